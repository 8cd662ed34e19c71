"""What is shown of long work: a bar, lines, or nothing; and that it changes nothing."""

from __future__ import annotations

import io

import jax
import numpy as np
import pytest

import likely
from likely.training import progress
from likely.training.progress import Bar, LineReporter, Silent, current_reporter, showing
from tests.contracts.table import binary_rows, small


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("asked", "stream", "kind"),
    [
        (None, io.StringIO, Silent),
        (None, Terminal, Bar),
        (True, io.StringIO, LineReporter),
        (True, Terminal, Bar),
        (False, Terminal, Silent),
    ],
)
def test_who_is_told(asked, stream, kind, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream())
    with showing(asked):
        assert isinstance(current_reporter(), kind)


def test_none_leaves_the_reporter_that_is_set():
    own = Silent()
    with progress.use_reporter(own), showing(None):
        assert current_reporter() is own


def test_lines_come_at_growing_intervals(monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    stream = io.StringIO()
    lines = LineReporter(stream)
    lines.start(100, "VAE")
    for done in range(100):
        lines.update(done, {"loss": 1.25})
    said = stream.getvalue().splitlines()
    assert said[0].startswith("VAE: 2% after 6 s, loss 1.25")
    waits = np.diff([float(line.split("after ")[1].split(" s")[0]) for line in said])
    assert len(said) >= 4
    assert (np.diff(waits) >= 0).all()


def test_fit_takes_progress_and_learns_the_same(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.0)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    rows = binary_rows(0)
    silent = small("RBM").fit(rows)
    assert stream.getvalue() == ""
    shown = small("RBM").fit(rows, progress=True)
    assert "% after " in stream.getvalue()
    jax.tree.map(np.testing.assert_array_equal, silent.params_, shown.params_)
    with pytest.raises(TypeError, match="progress"):
        likely.Independent().fit(rows, progress="yes")
