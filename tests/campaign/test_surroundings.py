"""What goes on around a fit must not change it: closed terminals, clocks that jump, other threads and processes."""

from __future__ import annotations

import io
import itertools
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.leaderboard.live_table import Lines
from likely.training import Checkpoint, TrainingConfig, progress, train, use_reporter
from tests.campaign.processes import scored
from tests.contracts.table import binary_rows
from tests.training.problems import bits, least_squares, linear, regression_rows

CONFIG = TrainingConfig(n_epochs=6, batch_size=4, learning_rate=0.05)
ROWS = regression_rows(1, 23).astype(np.float32)


def trained(seed=0, **options):
    result = train(linear(3, jnp.float32), least_squares, ROWS, config=CONFIG, key=jax.random.key(seed), **options)
    return bits(result.module)


@pytest.fixture(scope="module")
def expected():
    return trained()


class Closed(io.StringIO):
    """A terminal that was closed: it says that it is one, and every word into it fails."""

    def isatty(self):
        return True

    def write(self, text):
        raise OSError(5, "Input/output error")

    def flush(self):
        raise OSError(5, "Input/output error")


def shut():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [Closed, shut])
@pytest.mark.parametrize("reporter", ["bar", "lines"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of the thread that draws the bar
def test_a_closed_terminal_ends_no_training(stream, reporter, expected, monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.0)
    if reporter == "bar" and stream is shut:
        pytest.skip("Rich draws no bar into a stream that is no terminal")
    monkeypatch.setattr("sys.stderr", stream())
    with use_reporter(progress.Bar() if reporter == "bar" else progress.LineReporter()):
        assert trained() == expected


def test_a_closed_terminal_ends_no_comparison():
    lines = Lines(["VAE"], Closed())
    lines.stage("VAE", "fit")
    lines.interrupted()


def test_a_clock_that_jumps_changes_nothing(expected, tmp_path, monkeypatch):
    jumps = itertools.cycle([0.0, 4e9, -1e9, 1.0])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    path = tmp_path / "run.checkpoint"
    assert trained(checkpoint=Checkpoint(path, every_steps=5, every_seconds=1e-9)) == expected
    assert trained(resume=path) == expected
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_fits_in_two_threads_are_those_of_one(expected):
    rows = binary_rows(0)

    def network(seed):
        model = likely.BayesianNetwork(structure="tree", random_state=seed).fit(rows)
        return model.evidence(rows).values.tobytes()

    alone = [trained(1), network(0), expected, network(1)]
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(trained, 1), pool.submit(network, 0), pool.submit(trained, 0), pool.submit(network, 1)]
        assert [one.result() for one in work] == alone


def test_a_process_that_is_spawned_gives_the_same_evidence(tmp_path):
    rows = binary_rows(0)
    model = likely.BayesianNetwork(structure="tree", random_state=0).fit(rows)
    model.save(tmp_path / "model.likely")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(scored, (str(tmp_path / "model.likely"), rows))
    assert found == model.evidence(rows).values.tobytes()
