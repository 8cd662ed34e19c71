"""What is done in processes that are killed: training with checkpoints, comparing with a report.

Each is a function of plain values, run in a child of a server process that has imported everything and started nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import likely
from likely.leaderboard import compare
from likely.leaderboard.measuring import Rows
from likely.storage.files import read_arrays, write_arrays
from likely.training import Checkpoint, TrainingConfig, checkpoints
from tests.contracts.table import binary_rows, small
from tests.training.checks import train_with_everything
from tests.training.problems import regression_rows

STEPS = 5_000  # A checkpoint comes every so many steps of training, which has forty times as many.
OLD_REPORT = "the report of an earlier comparison"
CONFIG = TrainingConfig(
    n_epochs=40 * STEPS // 11, batch_size=4, learning_rate=0.01, averaging=0.99, patience=1_000_000, validate_every=2000
)


def training_rows() -> np.ndarray:
    return regression_rows(1, 41).astype(np.float32)


def training(path: str) -> None:
    """Train with checkpoints, on from the one that is there."""
    resume = path if Path(path).exists() else None
    train_with_everything(
        training_rows(), CONFIG, checkpoint=Checkpoint(path, every_steps=STEPS, every_seconds=None), resume=resume
    )


def training_bits(path: Path) -> bytes:
    """All arrays of a finished run, in the order of their names."""
    arrays, description = checkpoints.load(path)
    assert description["finished"], "a run that is not finished"
    return b"".join(arrays[name].tobytes() for name in sorted(arrays))


def steps_of(path: Path) -> int:
    """The steps that a checkpoint's run had taken; the file is checked as a whole."""
    return int(checkpoints.load(path)[0]["['carry'].step"])


def contenders() -> list[Any]:
    """Models that are fitted in one go, and one that has checkpoints."""
    return [
        likely.Independent(),
        small("Mixture"),
        small("Autoregressive", n_chains=1),
        small("VAE", n_importance=64, n_epochs=300),
    ]


def comparison_rows() -> np.ndarray:
    return binary_rows(0)


def comparing(report: str, log: str, out: str) -> None:
    """Compare with a report, as the command line does; `log` gets a line when a fit begins, `out` what came of it."""
    fit = Rows.fit

    def told(self: Rows, model: Any, *arguments: Any, **options: Any) -> Any:
        with open(log, "a") as file:
            file.write(f"{type(model).__name__}\n")
        return fit(self, model, *arguments, **options)

    Rows.fit = told  # type: ignore[method-assign]
    board = compare(contenders(), comparison_rows(), report=report, keep_in=f"{report}.part", progress=False)
    write_arrays(out, {entry.name: entry.evidence.values for entry in board}, {})


def compared() -> dict[str, bytes]:
    """The evidence of a comparison that nobody kills."""
    return {entry.name: entry.evidence.values.tobytes() for entry in compare(contenders(), comparison_rows())}


def read_evidence(path: Path) -> dict[str, bytes]:
    """The evidence that a comparison in a process of its own wrote."""
    return {name: array.tobytes() for name, array in read_arrays(path)[0].items()}


def finished_in(folder: Path) -> set[str]:
    """Names of the models that a comparison keeps as fitted."""
    return {path.name.partition("-")[0] for path in folder.rglob("*.entry") if not path.name.startswith(".")}


def fault_of_report(path: Path) -> str | None:
    """What is wrong with a report that must be the old one or a new one, the whole of it."""
    text = path.read_text()
    if text == OLD_REPORT or (text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")):
        return None
    return f"a report of {len(text)} characters that is neither the old one nor a whole one"


def quietly(function: Any, *arguments: Any) -> None:
    """Call a function with nothing on the terminal: what a killed process has to say is of no use."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    function(*arguments)
