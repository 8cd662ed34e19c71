"""A step of two convolutions on pictures of MNIST, 128 at a time, beside PyTorch's.

Both have 32 and 64 filters of 4 × 4 pixels and stride 2, rectifiers, a linear layer, cross-entropy and Adam, and go
through the same rows in new orders; ours is `NetworkPredictor` with its one training loop. The ratio is of processor
time, which other work on the machine changes least: ours of a long fit less a short one, over the steps between; the
peer's on one thread, where its threads do not spin while they wait for each other. By the clock, both with two threads,
stands beside it.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import likely
from benchmarks import data, peers
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch

BAR, BATCH, CORES = 1.0, 128, 2
CHANNELS, RATE = (32, 64), 1e-3


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    n_steps, n_passes, n_rounds = (2, 2, 1) if small else (50, 3, 3)
    dataset = data.load("mnist", binarize=None)
    assert dataset.labels is not None
    rows, labels = dataset.train[: n_steps * BATCH], dataset.labels["train"][: n_steps * BATCH]
    fit = partial(_fitted, rows, labels, dataset.schema, seed)
    fit(1), fit(n_passes)  # for the compiler
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npy")
        np.save(path, np.column_stack([rows, labels]).astype(np.float32))
        told = {"rows": path, "channels": CHANNELS, "batch_size": BATCH, "learning_rate": RATE, "seed": seed}
        for _ in range(n_rounds):
            theirs += [peers.run("peer_cnn_torch", **told, n_threads=n, n_passes=n_passes - 1) for n in (1, CORES)]
            ours.append(_a_step(fit, n_steps, n_passes))
    return Outcome(
        [_line(ours, theirs, n_steps)], {"ours": ours, "peer": theirs, "steps": n_steps}, theirs[-1]["versions"]
    )


def _a_step(fit: Any, n_steps: int, n_passes: int) -> dict[str, float]:
    """Seconds of a step by processor and by clock, and the mean loss of the last pass."""
    short, _ = cpu_stopwatch(partial(fit, 1))
    long, model = cpu_stopwatch(partial(fit, n_passes))
    clock = model.history_["seconds"][-1] / (n_passes * n_steps)
    return {
        "processor": (long - short) / ((n_passes - 1) * n_steps),
        "clock": clock,
        "loss": model.history_["loss"][-1],
    }


def _fitted(rows: np.ndarray, labels: np.ndarray, schema: Any, seed: int, n_epochs: int) -> likely.NetworkPredictor:
    settings: dict[str, Any] = {"batch_size": BATCH, "learning_rate": RATE, "schedule": "constant", "weight_decay": 0.0}
    shape: dict[str, Any] = {"hidden": (), "channels": CHANNELS, "dropout": 0.0, "held_out": 0.0}
    return likely.NetworkPredictor(**shape, **settings, n_epochs=n_epochs, schema=schema, random_state=seed).fit(
        rows, labels
    )


def _line(ours: list[dict[str, float]], theirs: list[dict[str, Any]], n_steps: int) -> Line:
    own = {name: 1000 * statistics.median([one[name] for one in ours]) for name in ("processor", "clock")}
    processor, clock = (
        1000 * statistics.median([s for answer in answers for s in answer[name]]) / n_steps
        for name, answers in (("processor", theirs[::2]), ("seconds", theirs[1::2]))
    )
    return Line(
        what=f"Two convolutions {CHANNELS[0]}, {CHANNELS[1]}, batches of {BATCH}: processor time of a training step",
        ours=f"{own['processor']:.3g} ms",
        peer=f"{processor:.3g} ms PyTorch",
        ratio=processor / own["processor"],
        quality=f"by the clock, two threads, {own['clock']:.3g} ms, peer {clock:.3g} ms; mean loss of the last pass "
        f"{ours[-1]['loss']:.3f}, peer {theirs[-1]['loss']:.3f} nats",
        bar=f"≥ {BAR:g}×",
        reached=bool(processor >= BAR * own["processor"]),
    )
