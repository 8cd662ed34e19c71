"""Fits in a process of their own, which may be one of several: what each gave, as arrays in one file.

`main` is called by tests/distributed/forks.py with FOLDER fit|die0|die1|resume|memory NAMES [PORT N_PROCESSES RANK].
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from sklearn.base import clone

import likely
from likely import distributed, placement
from likely.distributed import parquet, sums
from likely.models.latent.mixture import mixture
from likely.objectives import em
from likely.placement import device_mesh
from likely.training import batches, loop
from likely.training.batches import Feed

# Models that show wrong rows, wrong sums between processes, and wrong sums in a program.
PLANTED = "rbm,factors,mixture"


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
        "vae": (
            likely.VAE(2, hidden=(20,), n_epochs=3, batch_size=50, random_state=0),
            reals(share_of_holes=0.1),
            reals(60),
        ),
        # More complete rows than a block has, so that each process has some of them, and rows with holes.
        "mixture": (
            likely.Mixture(3, covariance="full", n_init=1, max_iter=20, random_state=0),
            reals(901, 5, 0.05),
            None,
        ),
        "coded": (likely.Mixture(3, n_init=1, random_state=0), codes(), None),
        "factors": (likely.FactorAnalysis(2, random_state=0), reals(share_of_holes=0.1), None),
        "circuit": (likely.Circuit(4, n_trees=2, n_epochs=2, random_state=0), bits(share_of_holes=0.1), None),
        "network": (likely.BayesianNetwork(structure="tree", random_state=0), bits(share_of_holes=0.1), None),
        "trees": (likely.TreeMixture(2, max_iter=3, random_state=0), bits(share_of_holes=0.1), None),
    }


def learned(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters, history and evidence of a fitted model."""
    leaves = jax.tree.leaves(model.params_)
    found = {f"params{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    history = {name: np.asarray(curve) for name, curve in model.history_.items() if name != "seconds"}
    return found | history | {"evidence": model.score_samples(rows[:8])}


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


def noted(decode: Any, numbers: list[int]) -> Any:
    """What decodes rows, with a note of how many there were."""

    def wrapped(*arguments: Any) -> Any:
        for start, part in decode(*arguments):
            numbers.append(len(part))
            yield start, part

    return wrapped


def memory_of_fits(folder: Path) -> dict[str, Any]:
    """By name: how far a fit of the large table's rows goes above what the process had before, in bytes.

    The table is in two Parquet files. Of bits the memory map is fitted as it is, of reals a copy in standard units.
    """
    decoded: list[int] = []
    parquet._decoded = noted(parquet._decoded, decoded)  # type: ignore[assignment]
    rows = distributed.rows_of_parquet(folder, folder / f"rows.{distributed.n_processes()}.npy")
    found: dict[str, Any] = {"decoded": sum(decoded), "rows": rows[::4000]}
    binary, real = likely.Schema.binary(rows.shape[1]), likely.Schema.real(rows.shape[1])
    for name, model in {
        "mixture": likely.Mixture(2, max_iter=2, n_init=1, schema=real, random_state=0),
        "rbm": likely.RBM(4, n_epochs=1, batch_size=5000, schema=binary, random_state=0),
    }.items():
        clone(model).fit(rows)  # what is compiled, and what a first fit leaves behind, does not count
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


def fitted(name: str, folder: Path, task: str) -> tuple[Any, np.ndarray]:
    """A fitted model and its rows; that of the machine is one with checkpoints, which may be killed, and go on."""
    model, rows, valid = fits()[name]
    options: dict[str, Any] = {} if valid is None else {"valid": valid}
    if task in ("die0", "die1", "resume"):
        options["checkpoint"] = likely.training.Checkpoint(folder / "checkpoint", every_steps=11)
    if task == "resume":
        options["resume"] = folder / "checkpoint"
    if task.startswith("die") and distributed.rank() == int(task[3:]):
        die_after(3)
    return model.fit(rows, **options), rows


def plant_bugs() -> None:
    """Let the second process read rows of the first, or add its own sums up a thousandth too large."""
    rank = distributed.rank()
    of_rows, add = placement.shared_out, sums._sum

    def neighbours(make: Any, shape: tuple[int, ...], mesh: Any, axis: int = 0) -> Any:
        step = shape[axis] // mesh.size

        def wrong(place: tuple[slice, ...]) -> Any:
            before = slice(place[axis].start - step, place[axis].stop - step)
            return make((*place[:axis], before, *place[axis + 1 :]) if rank == 1 else place)

        return of_rows(wrong, shape, mesh, axis)

    def too_large(own: np.ndarray) -> np.ndarray:
        return add((own * (1.001 if rank == 1 else 1)).astype(own.dtype))

    def unequal(value: Any, axis: str) -> Any:
        heavier = 1 + 1e-3 * jax.lax.axis_index(axis)
        return jax.tree.map(lambda part: jax.lax.psum(part * heavier.astype(part.dtype), axis), value)

    batches.shared_out = neighbours  # type: ignore[attr-defined]
    sums._sum = too_large
    em.lax = SimpleNamespace(**{**vars(em.lax), "psum": unequal})  # type: ignore[assignment]
    step = mixture.em_step  # by another name it is traced anew, with what is planted
    mixture.em_step = lambda *arguments, **options: step(*arguments, **options)  # type: ignore[assignment]


def keep_programs() -> None:
    """Have this process write the programs that it compiles into JAX's cache, as JAX lets the first one alone do."""
    from jax._src import compiler  # no public name leads there; without this each process compiles all anew

    state = compiler.distributed.global_state
    compiler.distributed = SimpleNamespace(global_state=SimpleNamespace(process_id=0, client=state.client))


def keep(folder: str, task: str, arrays: dict[str, Any], names: str = "") -> None:
    """Fit the models of these names, and write what they learned beside the arrays."""
    for name in filter(None, names.split(",")):
        model, rows = fitted(name, Path(folder), task)
        arrays |= {f"{name}/{key}": value for key, value in learned(model, rows).items()}
        if task == "fit" and name == "factors":
            model.save(Path(folder) / f"model.{task}.{distributed.n_processes()}.likely")
    np.savez(Path(folder) / f"{task}.{distributed.n_processes()}.{distributed.rank()}.npz", **arrays)


def main(folder: str, task: str, names: str, *where: str) -> None:
    if where:
        port, n_processes, rank = (int(value) for value in where)
        distributed.start(f"127.0.0.1:{port}", n_processes, rank)
        keep_programs()
    about: dict[str, Any] = {"n_devices": jax.device_count(), "n_processes": distributed.n_processes()}
    if task == "memory":
        keep(folder, task, about | memory_of_fits(Path(folder)))
        return
    if task == "fit":
        keep(folder, task, about | {"share": share_of_rows()}, names)
        if where:
            plant_bugs()
            keep(folder, "planted", about, PLANTED)
        return
    keep(folder, task, about | ({"refusals": np.array(refusals())} if task == "resume" else {}), names)
