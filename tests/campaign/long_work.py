"""Faults of the disk that come over long work in its middle: training with checkpoints, a comparison with a report.

What was done must not be lost: training goes on from its last checkpoint with the same bits, a comparison ends with all
of its models, and once the fault is gone the same call leaves nothing but what was asked for.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import likely
from likely.leaderboard import compare
from likely.storage.files import FileError
from likely.training import Checkpoint, TrainingConfig, use_reporter
from tests.campaign.disks import FAULTS, Fault, vanishing
from tests.contracts.table import binary_rows, small
from tests.training.checks import train_with_everything
from tests.training.problems import bits, regression_rows

STEPS = 20
CONFIG = TrainingConfig(n_epochs=8, batch_size=4, learning_rate=0.05, averaging=0.9)


class _Begin:
    """A reporter that lets a fault begin after some steps."""

    def __init__(self, fault: Any, after: int):
        self.fault, self.after, self.began = fault, after, False

    def start(self, total: int, label: str) -> None: ...

    def update(self, done: int, metrics: dict[str, float]) -> None:
        if done >= self.after and not self.began:
            self.began = True
            self.fault.__enter__()

    def finish(self) -> None:
        if self.began:
            self.fault.__exit__(None, None, None)


def training(faults: dict[str, Fault]) -> dict[str, Any]:
    """Each fault comes after the first checkpoint; the run ends with a word, and goes on with the same bits."""
    rows, found = regression_rows(1, 41).astype("float32"), {"tried": 0, "faults": []}
    straight = bits(train_with_everything(rows, CONFIG).module)
    for said, fault in faults.items():
        with tempfile.TemporaryDirectory() as outer:
            folder = Path(outer) / "folder"
            folder.mkdir()
            wrong = _training_under(fault, folder, rows, straight)
        found["tried"] += 1
        found["faults"] += [f"{said}, training: {what}" for what in wrong]
    return found


def _training_under(fault: Fault, folder: Path, rows: Any, straight: Any) -> list[str]:
    path, wrong = folder / "run.checkpoint", []
    saved = Checkpoint(path, every_steps=STEPS, every_seconds=None)
    try:
        with use_reporter(_Begin(fault(folder), STEPS + 1)):
            train_with_everything(rows, CONFIG, checkpoint=saved)
        wrong.append("it went on as if nothing were wrong")
    except FileError as error:
        if not str(error).startswith(f"cannot write {path}"):
            wrong.append(f"the error does not say what could not be written: {error}")
    resumed = train_with_everything(rows, CONFIG, checkpoint=saved, resume=path)
    if bits(resumed.module) != straight:
        wrong.append("the resumed run has other bits")
    return wrong + [f"{other.name} was left" for other in folder.iterdir() if other != path]


def comparing(faults: dict[str, Fault] = FAULTS) -> dict[str, Any]:
    """Each fault comes over a comparison: what cannot be kept is said, and the report that cannot be written as well.

    A folder that vanishes is no fault here: a comparison makes the one that it keeps its work in.
    """
    found: dict[str, Any] = {"tried": 0, "faults": []}
    for said, fault in faults.items():
        if fault is vanishing:
            continue
        with tempfile.TemporaryDirectory() as outer:
            folder = Path(outer) / "folder"
            folder.mkdir()
            wrong = _comparing_under(fault, folder)
        found["tried"] += 1
        found["faults"] += [f"{said}, compare: {what}" for what in wrong]
    return found


def _comparing_under(fault: Fault, folder: Path) -> list[str]:
    wrong, report = [], folder / "report.html"
    models, rows = [likely.Independent(), small("Mixture")], binary_rows(0)
    report.write_text("old")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with fault(folder):
                compare(models, rows, report=report, keep_in=folder / "kept", progress=False)
            wrong.append("it ended as if nothing were wrong")
        except FileError as error:
            if "cannot write" not in str(error):
                wrong.append(f"the error does not say what could not be written: {error}")
    if not any("cannot be kept" in str(one.message) for one in warned):
        wrong.append("nobody was told that nothing is kept")
    if report.read_text() != "old":
        wrong.append("the old report is another")
    board = compare(models, rows, report=report, keep_in=folder / "kept", progress=False)
    if any(entry.failure for entry in board) or len(board) != len(models):
        wrong.append("the next comparison has a model that failed")
    return wrong + [f"{other.name} was left" for other in folder.iterdir() if other != report]
