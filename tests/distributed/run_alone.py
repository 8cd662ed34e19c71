"""Fits in a process of their own, which may be one of several: what each gave, as arrays in one file.

python -m tests.distributed.run_alone FOLDER fit|die0|die1|resume|memory NAMES [PORT N_PROCESSES RANK]
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.base import clone

import likely
from likely import distributed
from likely.placement import device_mesh
from likely.training import loop
from likely.training.batches import Feed


def bits(n: int = 301, d: int = 9, share_of_holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(3)
    kinds = rng.random((4, d))
    rows = (rng.random((n, d)) < kinds[rng.integers(4, size=n)]).astype(float)
    rows[rng.random(rows.shape) < share_of_holes] = np.nan
    return rows


def reals(n: int = 301, d: int = 5, share_of_holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    rows[rng.random(rows.shape) < share_of_holes] = np.nan
    return rows


def codes(n: int = 5001, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(9), size=(3, d))
    kind = rng.integers(3, size=n)
    return np.stack([[rng.choice(9, p=shares[k, j]) for k in kind] for j in range(d)], axis=1).astype(float)


def fits() -> dict[str, Any]:
    """By name: the model, the rows, and rows to validate by."""
    return {
        "rbm": (likely.RBM(6, n_epochs=4, batch_size=25, n_temperatures=20, random_state=0), bits(), bits(60)),
        "vae": (likely.VAE(2, n_epochs=3, batch_size=50, random_state=0), reals(share_of_holes=0.1), reals(60)),
        "mixture": (likely.Mixture(3, covariance="full", random_state=0), reals(share_of_holes=0.1), None),
        "coded": (likely.Mixture(3, random_state=0), codes(), None),
        "factors": (likely.FactorAnalysis(2, random_state=0), reals(share_of_holes=0.1), None),
        "circuit": (likely.Circuit(4, n_trees=2, n_epochs=2, random_state=0), bits(share_of_holes=0.1), None),
        "network": (likely.BayesianNetwork(structure="tree", random_state=0), bits(share_of_holes=0.1), None),
    }


def learned(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters, history and evidence of a fitted model."""
    leaves = jax.tree.leaves(model.params_)
    found = {f"params{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    history = {name: np.asarray(curve) for name, curve in model.history_.items() if name != "seconds"}
    return found | history | {"evidence": model.score_samples(rows[:50])}


def refusals() -> list[str]:
    """What is said where this process is given something else than the first one."""
    odd, said = distributed.rank() == 1, []
    for rows, n_epochs, seed in (
        (bits(302 if odd else 301), 4, 0),
        (bits(), 5 if odd else 4, 0),
        (bits(), 4, int(odd)),
    ):
        try:
            likely.RBM(6, n_epochs=n_epochs, batch_size=25, random_state=seed).fit(rows)
        except distributed.Disagreement as error:
            said.append(str(error))
    for model, rows in (
        (likely.Mixture(2, random_state=0), reals(302 if odd else 301)),
        (likely.FactorAnalysis(2 if odd else 1, random_state=0), reals()),
        (likely.Circuit(2, n_trees=1, random_state=int(odd)), bits()),
    ):
        try:
            model.fit(rows)
        except distributed.Disagreement as error:
            said.append(str(error))
    return said


def share_of_rows() -> float:
    """Of the rows of a span, how many this process holds."""
    rows = bits(400).astype(np.float32)
    feed = Feed(
        rows, dtype=np.float32, batch_size=20, n_epochs=1, budget=1 << 30, aligned=None, words=(0,), mesh=device_mesh()
    )
    x: Any = feed.data(feed.span(0)).x
    return sum(shard.data.size for shard in x.addressable_shards) / rows.size


def own_memory() -> int:
    """Bytes that are this process's own; pages of files, which the system takes back as it likes, do not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def memory_of_fits(folder: Path) -> dict[str, Any]:
    """By name: how far a fit of the large table's rows goes above what the process had before, in bytes."""
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    schema, found = likely.Schema.binary(rows.shape[1]), {}
    for name, model in {
        "mixture": likely.Mixture(2, max_iter=2, n_init=1, schema=schema, random_state=0),
        "rbm": likely.RBM(4, n_epochs=1, batch_size=5000, schema=schema, random_state=0),
    }.items():
        clone(model).fit(rows[:20_000])  # what is compiled, and what a first fit leaves behind, does not count
        gc.collect()
        before, most, over = own_memory(), [0], threading.Event()

        def look(most: list[int] = most, over: threading.Event = over) -> None:
            while not over.wait(0.002):
                most[0] = max(most[0], own_memory())

        watching = threading.Thread(target=look)
        watching.start()
        model.fit(rows)
        over.set()
        watching.join()
        found[f"memory/{name}"] = max(0, most[0] - before)
    return found


def die_after(n_saves: int) -> None:
    """Let this process be killed after so many checkpoints."""
    original, done = loop.save, []

    def save(*arguments: Any) -> None:
        original(*arguments)
        done.append(None)
        if len(done) == n_saves:
            os.kill(os.getpid(), signal.SIGKILL)

    loop.save = save  # type: ignore[assignment]


def fit(name: str, folder: Path, task: str) -> dict[str, np.ndarray]:
    """What a fit gave; that of the machine is one with checkpoints, which may be killed, and go on."""
    model, rows, valid = fits()[name]
    options: dict[str, Any] = {} if valid is None else {"valid": valid}
    if task != "fit":
        options["checkpoint"] = likely.training.Checkpoint(folder / "checkpoint", every_steps=11)
    if task == "resume":
        options["resume"] = folder / "checkpoint"
    if task.startswith("die") and distributed.rank() == int(task[3:]):
        die_after(3)
    return learned(model.fit(rows, **options), rows)


def main(folder: str, task: str, names: str, *where: str) -> None:
    if where:
        port, n_processes, rank = (int(value) for value in where)
        distributed.start(f"127.0.0.1:{port}", n_processes, rank)
    arrays: dict[str, Any] = {"n_devices": jax.device_count(), "n_processes": distributed.n_processes()}
    if task == "memory":
        arrays |= memory_of_fits(Path(folder))
        np.savez(Path(folder) / f"{task}.{distributed.n_processes()}.{distributed.rank()}.npz", **arrays)
        return
    arrays["share"] = share_of_rows()
    if task == "resume":
        arrays["refusals"] = np.array(refusals())
    for name in names.split(","):
        arrays |= {f"{name}/{key}": value for key, value in fit(name, Path(folder), task).items()}
    if task == "fit":
        model, rows, _ = fits()["factors"]
        model.fit(rows).save(Path(folder) / f"model.{task}.{distributed.n_processes()}.likely")
    np.savez(Path(folder) / f"{task}.{distributed.n_processes()}.{distributed.rank()}.npz", **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
