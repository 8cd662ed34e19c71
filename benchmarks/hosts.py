"""What several hosts cost and give: seconds of a pass by one process and by two, each on a core of its own.

    python -m benchmarks.hosts            measures, writes benchmarks/results/hosts.json and the tables of docs/scale.md
    python -m benchmarks.hosts --page     writes the tables anew from what was measured

A pass is an epoch or an iteration of EM. Its seconds are the difference of two fits of different length: neither
compiling nor the beginning counts. The fits differ by ten passes and more where these are short, since what else a fit
does varies by several, and the median of some rounds is kept. Seconds are those of the processor, of passes and of
messages alike: what else the machine does takes the clock's, and few of these. One process also makes a pass over half
of every batch: what a process of two has to do, had it nobody to speak with. What words cost is measured by themselves,
for messages of several sizes. `benchmarks/hosts_page.py` makes of it what more hosts would give. Two or three minutes
on two quiet cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np

from benchmarks.outcome import RESULTS, Outcome, describe, keep

ROOT = Path(__file__).resolve().parents[1]
N_ROUNDS = 5
MESSAGES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22)  # bytes
BATCH = 128
# By name: rows, columns, steps of a pass, and the lengths of the two fits that are compared.
SIZES = {
    "RBM-500": (640, 784, 5, (1, 11)),
    "VAE": (640, 784, 5, (1, 11)),
    "Mixture": (10_000, 64, 1, (2, 42)),
    "Circuit": (5_888, 32, 23, (1, 3)),
}
# How each speaks, and in how many arrays: a program adds up each array by itself. What is learned by gradient has one
# for each array of parameters and a few numbers (its weight, loss and metrics); a mixture counts, statistics and log p;
# outside programs all goes in one.
SPEAKS = {"RBM-500": "sum", "VAE": "sum", "Mixture": "sum", "Circuit": "outside"}
N_NUMBERS = 3
ARRAYS = {"Mixture": 3, "Circuit": 1}


def main(arguments: list[str]) -> None:
    from benchmarks.hosts_page import write_page

    if arguments[:1] == ["--worker"]:
        worker(*(int(value) for value in arguments[1:4]), Path(arguments[4]))
        return
    if arguments != ["--page"]:
        load = os.getloadavg()
        with tempfile.TemporaryDirectory() as folder:
            alone, pair = launched(1, Path(folder)), launched(2, Path(folder))
        figures = {"alone": alone[0], "pair": pair}
        keep(describe("hosts", Outcome([], figures), seed=0, small=False, load_before=load), RESULTS)
    write_page(json.loads((RESULTS / "hosts.json").read_text())["figures"])


def launched(n_processes: int, folder: Path) -> list[dict[str, Any]]:
    """What each process of a run found."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = [
        [sys.executable, "-m", "benchmarks.hosts", "--worker", str(rank), str(n_processes), str(port), str(folder)]
        for rank in range(n_processes)
    ]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    if any(process.wait() for process in running):
        raise RuntimeError("a process of the benchmark failed, and says why above.")
    return [json.loads((folder / f"{n_processes}.{rank}.json").read_text()) for rank in range(n_processes)]


def worker(rank: int, n_processes: int, port: int, folder: Path) -> None:
    """Measure in this process, on a core of its own."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    from likely import distributed

    found: dict[str, Any] = {}
    if n_processes > 1:
        distributed.start(f"127.0.0.1:{port}", n_processes, rank)
        found["messages"] = [{"bytes": size, **message_seconds(size)} for size in MESSAGES]
        print(f"  messages: {found['messages']}", flush=True)
    for name, (n_rows, n_columns, n_steps, lengths) in SIZES.items():
        found[name] = {"steps": n_steps, "rows": n_rows} | seconds_of_a_pass(name, n_rows, n_columns, lengths, BATCH)
        if n_processes == 1:
            found[name]["half"] = seconds_of_a_pass(name, n_rows // 2, n_columns, lengths, BATCH // 2)
        print(f"  {name}, process {rank} of {n_processes}: {found[name]}", flush=True)
    (folder / f"{n_processes}.{rank}.json").write_text(json.dumps(found))
    distributed.stop()


def seconds_of_a_pass(name: str, n_rows: int, n_columns: int, lengths: tuple[int, int], batch: int) -> dict[str, Any]:
    """Seconds on the clock and of the processor, and the bytes of what is learned."""
    import jax

    rows = np.random.RandomState(0).rand(n_rows, n_columns) < 0.3
    rows = np.random.RandomState(0).normal(size=rows.shape) if name == "Mixture" else rows
    for length in lengths:  # compiles
        model = build(name, length, n_columns, batch).fit(rows.astype(np.float32))
    wall, busy = [], []
    for _ in range(N_ROUNDS):
        clocks = []
        for length in lengths:
            before = time.perf_counter(), time.process_time()
            build(name, length, n_columns, batch).fit(rows.astype(np.float32))
            clocks.append((time.perf_counter() - before[0], time.process_time() - before[1]))
        wall.append((clocks[1][0] - clocks[0][0]) / (lengths[1] - lengths[0]))
        busy.append((clocks[1][1] - clocks[0][1]) / (lengths[1] - lengths[0]))
    learned = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(model.params_))
    arrays = ARRAYS.get(name, len(jax.tree.leaves(model.params_)) + N_NUMBERS)
    found = {"wall": float(np.median(wall)), "busy": float(np.median(busy)), "rounds": busy, "bytes": learned}
    return found | {"speaks": SPEAKS[name], "arrays": arrays}


def build(name: str, length: int, n_columns: int, batch: int) -> Any:
    """A model that makes so many passes."""
    import likely

    binary = likely.Schema.binary(n_columns)
    if name == "RBM-500":
        return likely.RBM(500, n_chains=batch, n_epochs=length, batch_size=batch, schema=binary, random_state=0)
    if name == "VAE":
        return likely.VAE(20, n_epochs=length, batch_size=batch, schema=binary, random_state=0)
    if name == "Circuit":
        return likely.Circuit(16, n_trees=2, n_epochs=length, batch_size=2 * batch, schema=binary, random_state=0)
    real = likely.Schema.real(n_columns)
    return likely.Mixture(100, n_init=1, max_iter=length, tol=0.0, schema=real, random_state=0)


def message_seconds(size: int) -> dict[str, float]:
    """Processor seconds of a sum over the processes inside a program, and of one outside (`distributed.summed`)."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec

    from likely import distributed
    from likely.placement import AXIS, device_mesh, shared_out

    mesh = device_mesh()
    assert mesh is not None
    own = jax.shard_map(
        lambda x: jax.lax.psum(x, AXIS), mesh=mesh, in_specs=PartitionSpec(AXIS), out_specs=PartitionSpec()
    )
    n = size // 4
    array = shared_out(lambda place: jnp.ones((place[0].stop - place[0].start, n)), (mesh.size,), mesh)
    numbers = np.ones(n, np.float32)
    program = jax.jit(own)
    return {
        "sum": _busy(lambda: jax.block_until_ready(program(array))),
        "outside": _busy(lambda: distributed.summed([numbers])),
    }


def _busy(call: Any, times: int = 20) -> float:
    """The median over some rounds of what many calls take of the processor, each."""
    call()
    found = []
    for _ in range(N_ROUNDS):
        before = time.process_time()
        for _ in range(times):
            call()
        found.append((time.process_time() - before) / times)
    return float(np.median(found))


if __name__ == "__main__":
    main(sys.argv[1:])
