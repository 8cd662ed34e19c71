"""A comparison that is broken off: what was finished is reported and kept, and the same call goes on from there."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import likely
from likely.leaderboard import Interrupted
from likely.leaderboard.kept import Kept
from likely.leaderboard.live_table import Lines, Watch
from likely.leaderboard.measuring import Rows
from tests.contracts.table import binary_rows, small


def models():
    return [likely.Independent(), small("Mixture"), small("VAE", n_importance=64)]


@pytest.fixture(scope="module")
def rows():
    return binary_rows(0)


@pytest.fixture(scope="module")
def whole(rows):
    """The comparison that nobody interrupts."""
    return likely.compare(models(), rows)


def refuse(name):
    """A fit or a score that must not happen again."""

    def refused(self, *arguments, **options):
        raise AssertionError(f"{name} was done a second time")

    return refused


def interrupt(self, *arguments, **options):
    raise KeyboardInterrupt


def same(one, other):
    for name in ("values", "lower", "upper", "replicates", "dimensions"):
        np.testing.assert_array_equal(getattr(one.evidence, name), getattr(other.evidence, name))
    assert one.evidence.fingerprint == other.evidence.fingerprint
    assert one.evidence.measure == other.evidence.measure
    assert (one.name, one.rank, one.standing, one.n_parameters) == (
        other.name,
        other.rank,
        other.standing,
        other.n_parameters,
    )


def test_what_was_finished_is_reported_and_used_again(rows, whole, tmp_path, monkeypatch):
    folder, page = tmp_path / "work", tmp_path / "r.html"
    with monkeypatch.context() as patch:
        patch.setattr(likely.VAE, "_fit", interrupt)
        with pytest.raises(Interrupted) as caught:
            likely.compare(models(), rows, keep_in=folder, report=page)
    board = caught.value.board
    assert (sorted(board.names), board.unfinished) == (["Independent", "Mixture"], ["VAE"])
    assert board.to_dict()["unfinished"] == ["VAE"]
    assert "Interrupted: 2 of 3 models were finished; VAE is missing." in page.read_text()
    with monkeypatch.context() as patch:
        for cls in (likely.Independent, likely.Mixture):
            patch.setattr(cls, "_fit", refuse("a fit"))
            patch.setattr(cls, "_evidence", refuse("a score"))
        second = likely.compare(models(), rows, keep_in=folder)
    assert not second.unfinished
    for entry in whole:
        same(second[entry.name], entry)
    assert not folder.exists()  # nothing is left of a comparison that is done


def test_a_fit_that_was_broken_off_goes_on_from_its_checkpoint(rows, whole, tmp_path, monkeypatch):
    steps = []

    class Stop(Watch):
        def update(self, done, metrics):
            steps.append(done)
            if len(steps) == 2:
                raise KeyboardInterrupt

        def stage(self, name, stage=""):
            if stage:
                steps.clear()

    monkeypatch.setattr("likely.leaderboard.live_table.Watch", Stop)
    with pytest.raises(Interrupted):
        likely.compare(models(), rows, keep_in=tmp_path / "work")
    (saved,) = (tmp_path / "work").rglob("*.checkpoint")
    monkeypatch.undo()
    resumed, fit = [], Rows.fit
    monkeypatch.setattr(Rows, "fit", lambda self, *a, **o: (resumed.append(o.get("resume")), fit(self, *a, **o))[1])
    board = likely.compare(models(), rows, keep_in=tmp_path / "work")
    assert resumed == [saved]
    same(board["VAE"], whole["VAE"])


def test_a_fitted_model_need_not_be_fitted_again_to_be_scored(rows, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(likely.Mixture, "_evidence", interrupt)
        with pytest.raises(Interrupted) as caught:
            likely.compare([small("Mixture")], rows, keep_in=tmp_path)
    assert len(caught.value.board) == 0
    monkeypatch.setattr(likely.Mixture, "_fit", refuse("a fit"))
    board = likely.compare([small("Mixture")], rows, keep_in=tmp_path)
    np.testing.assert_array_equal(board[0].evidence.values, whole["Mixture"].evidence.values)


@pytest.mark.parametrize("other", ["rows", "seed", "settings", "fresh", "damage"])
def test_other_data_or_settings_start_anew(other, rows, tmp_path, monkeypatch):
    first = [likely.Independent(), small("Mixture", n_init=1)]
    with monkeypatch.context() as patch:
        patch.setattr(likely.Mixture, "_fit", interrupt)
        with pytest.raises(Interrupted):
            likely.compare(first, rows, keep_in=tmp_path)
    if other == "damage":
        (path,) = tmp_path.rglob("Independent*.entry")
        path.write_bytes(path.read_bytes()[:-1])
    changed = {"rows": {"dataset": binary_rows(1)}, "seed": {"random_state": 1}, "fresh": {"fresh": True}}
    options = {"dataset": rows} | changed.get(other, {})
    model = likely.Independent(random_state=3) if other == "settings" else likely.Independent()
    fitted, fit = [], likely.Independent._fit
    monkeypatch.setattr(likely.Independent, "_fit", lambda self, *a: (fitted.append(1), fit(self, *a))[1])
    likely.compare([model], **options, keep_in=tmp_path)
    assert fitted
    fitted.clear()
    if other in ("rows", "seed", "settings"):  # and what was kept of the first is still there
        likely.compare([likely.Independent()], rows, keep_in=tmp_path)
        assert not fitted


def test_checkpoints_of_stages_go_with_the_rest(tmp_path):
    kept = Kept(tmp_path / "work" / "of these data")
    path = kept.resumption("DBN", small("DBN"))["checkpoint"].path
    for ending in ("", ".1", ".2"):  # one for each stage that was finished
        Path(f"{path}{ending}").write_bytes(b"")
    kept.discard()
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_kept(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(likely.Mixture, "_fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        likely.compare([likely.Independent(), small("Mixture")], rows)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_folders_place_is_refused(rows, tmp_path):
    (tmp_path / "work").write_text("")
    with pytest.raises(ValueError, match="it is a file"):
        likely.compare("independent", rows, keep_in=tmp_path / "work")


def test_lines_of_a_comparison_in_a_pipe(rows, whole, tmp_path, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    likely.compare(["independent"], rows, progress=True, report=tmp_path / "r.html")
    first, last = stream.getvalue().splitlines()
    assert first.startswith("1/1 Independent: fitted in ")
    assert "log p = −" in first
    assert last.startswith("report: drawn in ")
    stream.truncate(0)
    lines = Lines(["VAE", "Hopfield"], stream)
    lines.done(whole["VAE"])
    lines.stage("Hopfield", "fit")
    lines.interrupted()
    assert "1/2 VAE: kept from before: fitted in " in stream.getvalue()
    assert "2/2 Hopfield: interrupted" in stream.getvalue()
    stream.truncate(0)
    likely.compare(["independent"], rows)
    assert stream.getvalue().strip("\0") == ""  # where nobody asks, nothing is said in a pipe
