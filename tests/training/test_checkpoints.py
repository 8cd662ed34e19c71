"""A run that is killed and resumed has the bits of one that was not; what does not fit is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.storage.files import FileError, read_arrays, read_description, write_arrays
from likely.training import Checkpoint, TrainingConfig, train, use_reporter
from likely.training.checkpoints import load
from tests.training.checks import StopAt, check_resumed_run_is_the_same, train_with_everything
from tests.training.problems import bits, least_squares, linear, regression_rows, without_time
from tests.training.run_alone import CONFIG
from tests.training.run_alone import rows as rows_alone

ROWS = regression_rows(1, 41).astype(np.float32)
ADAM = TrainingConfig(n_epochs=8, batch_size=4, learning_rate=0.05, averaging=0.9, schedule="cosine", warmup_steps=5)


@pytest.mark.parametrize(
    "config",
    [
        ADAM,
        replace(ADAM, optimizer="momentum", averaging=None, validate_every=3),
        replace(ADAM, optimizer="lbfgs", learning_rate=1.0, schedule="constant", batch_size=None, warmup_steps=0),
        replace(ADAM, memory_budget=150),
        replace(ADAM, optimizer="sgd", learning_rate=0.9, patience=3, averaging=None),
    ],
    ids=["adam", "momentum", "lbfgs", "streamed", "patience"],
)
@pytest.mark.parametrize("stop_at", [1, 5])
def test_resumed_run_has_the_same_bits(tmp_path, config, stop_at):
    check_resumed_run_is_the_same(tmp_path, ROWS, config, stop_at)


@pytest.mark.parametrize("stop_at", [11, 13, 87])
def test_resumed_at_the_end_of_an_epoch_within_it_or_at_the_last_step_but_one(tmp_path, stop_at):
    check_resumed_run_is_the_same(tmp_path, ROWS, ADAM, stop_at)


def test_killed_run_is_resumed_with_the_same_bits(tmp_path):
    """kill -9 in the middle of a long run, in another process; then both runs here."""
    path = tmp_path / "run.checkpoint"
    command = [sys.executable, "-m", "tests.training.run_alone", str(tmp_path / "never.npz"), str(path)]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    process = subprocess.Popen(command, cwd=root, env=environment)
    try:
        deadline = time.monotonic() + 120
        while not (path.exists() and read_description(path)["meta"]["position"][0] >= 2):
            assert process.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not load(path)[1]["finished"]
    killed_at = int(load(path)[0]["['carry'].step"])
    # the rest of 440,000 steps would take minutes: both runs go on for a few thousand
    more = killed_at + 4000
    resumed = interrupted(more, tmp_path / "resumed", resume=path)
    straight = interrupted(more, tmp_path / "straight")
    assert killed_at % 777 == 0
    assert {name: a.tobytes() for name, a in resumed[0].items()} == {
        name: a.tobytes() for name, a in straight[0].items()
    }
    assert without_time(resumed[1]["history"]) == without_time(straight[1]["history"])
    assert resumed[1]["best"] == straight[1]["best"]


def interrupted(n_steps, path, **options):
    """Arrays and description of a run's checkpoint after at least `n_steps`, at a multiple of 1,000."""
    n_steps = -(-n_steps // 1000) * 1000
    with use_reporter(StopAt(n_steps)), pytest.raises(KeyboardInterrupt):
        train_with_everything(rows_alone(), CONFIG, checkpoint=Checkpoint(path, every_steps=1000), **options)
    arrays, description = load(path)
    assert int(arrays["['carry'].step"]) == n_steps
    return arrays, description


def test_finished_run_returns_at_once(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    result = train_with_everything(ROWS, ADAM, checkpoint=path)
    monkeypatch.setattr("likely.training.loop.run", None)
    again = train_with_everything(ROWS, ADAM, resume=path)
    assert bits(again.module) == bits(result.module)
    assert bits(again.state) == bits(result.state)
    assert again.history == result.history
    assert again.n_steps == result.n_steps


def test_resumed_run_keeps_its_key(tmp_path):
    path = tmp_path / "run.checkpoint"
    rows = ROWS
    with use_reporter(StopAt(5)), pytest.raises(KeyboardInterrupt):
        train(
            linear(3),
            least_squares,
            rows,
            config=ADAM,
            key=jax.random.key(1),
            checkpoint=Checkpoint(path, every_steps=5),
        )
    straight = train(linear(3), least_squares, rows, config=ADAM, key=jax.random.key(1))
    resumed = train(linear(3), least_squares, rows, config=ADAM, key=jax.random.key(2), resume=path)
    assert bits(resumed.module) == bits(straight.module)


def test_saving_by_time_and_by_step(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("likely.training.loop.save", lambda path, journal, *_: saved.append(journal.n_steps))
    monkeypatch.setattr("likely.training.loop.FIRST_STEPS", 4)
    monkeypatch.setattr("likely.training.loop.SEGMENT_SECONDS", 1e-9)
    train_with_everything(ROWS, ADAM, checkpoint=Checkpoint(tmp_path / "a", every_steps=30))
    assert saved == [30, 60, 88]
    saved.clear()
    train_with_everything(ROWS, ADAM, checkpoint=Checkpoint(tmp_path / "a", every_seconds=1e-9))
    assert len(saved) > 10
    saved.clear()
    train_with_everything(ROWS, ADAM, checkpoint=tmp_path / "a")
    assert saved == [88]


def test_saving_changes_nothing(tmp_path):
    straight = train_with_everything(ROWS, ADAM)
    saved = train_with_everything(ROWS, ADAM, checkpoint=Checkpoint(tmp_path / "a", every_steps=3, every_seconds=1e-3))
    assert bits(saved.module) == bits(straight.module)
    assert bits(saved.state) == bits(straight.state)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.checkpoint"
    train_with_everything(ROWS, ADAM, checkpoint=path)
    return path


def test_other_settings_are_refused(saved):
    with pytest.raises(ValueError, match=r"setting 'learning_rate' was 0.05 when it was written and is 0.1 now"):
        train_with_everything(ROWS, replace(ADAM, learning_rate=0.1), resume=saved)


def test_other_rows_are_refused(saved):
    other = ROWS.copy()
    other[0, 0] += 1
    with pytest.raises(ValueError, match="the content of 'rows'"):
        train_with_everything(other, ADAM, resume=saved)


def test_other_module_is_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="the content of 'valid_rows'"):
        train(linear(3), least_squares, ROWS, config=ADAM, key=jax.random.key(0), resume=saved)
    path = tmp_path / "plain"
    train(linear(3), least_squares, ROWS, config=ADAM, key=jax.random.key(0), checkpoint=path)

    def other(module, batch, key, state):
        return jnp.sum(module["weight"] ** 2), (state, {"rows": 0.0})

    with pytest.raises(ValueError, match=r"no place for the checkpoint's .*bias|lacks"):
        train({"weight": jnp.ones(2)}, other, ROWS, config=ADAM, key=jax.random.key(0), resume=path)
    wide = replace_weight(linear(3), jnp.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"float32\[1, 3\] in the checkpoint and float32\[2, 3\] in this run"):
        train(wide, least_squares, ROWS, config=ADAM, key=jax.random.key(0), resume=path)


def replace_weight(module, weight):
    return type(module)(weight, module.bias, module.table)


def test_other_files_are_refused(tmp_path, saved):
    write_arrays(tmp_path / "model", {"weight": np.zeros(2)}, {"kind": "model"})
    for path, message in ((tmp_path / "model", "not a training checkpoint"), (tmp_path / "none", "there is no file")):
        with pytest.raises(FileError, match=message):
            train_with_everything(ROWS, ADAM, resume=path)
    damaged = bytearray(saved.read_bytes())
    damaged[-3] ^= 1
    saved.write_bytes(damaged)
    with pytest.raises(FileError, match="damaged"):
        train_with_everything(ROWS, ADAM, resume=saved)


def test_file_holds_plain_arrays_only(saved):
    arrays, description = read_arrays(saved)
    assert all(a.dtype.kind in "fiub" for a in arrays.values())
    assert description["types"]["['carry'].state['key']"] == {"key": "threefry2x32"}
    assert description["types"]["['carry'].state['short']"]["dtype"] == "bfloat16"
    assert description["finished"]


@pytest.mark.usefixtures("x64")
def test_double_precision_is_resumed_as_such(tmp_path):
    path, module = tmp_path / "a", linear(3, jnp.float64)
    straight = train(module, least_squares, ROWS, config=ADAM, key=jax.random.key(0), checkpoint=path)
    again = train(module, least_squares, ROWS, config=ADAM, key=jax.random.key(0), resume=path)
    assert again.module.weight.dtype == jnp.float64
    assert bits(again.module) == bits(straight.module)
    with pytest.raises(ValueError, match="float64"):
        train(linear(3, jnp.float32), least_squares, ROWS, config=ADAM, key=jax.random.key(0), resume=path)
