"""Saves that are killed with SIGKILL at random moments: the file is the old one or the new one, whole."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from likely.storage.files import read_arrays, write_arrays

Record = dict[str, Any]


def saves(seed: int, small: bool) -> Record:
    """Kill a process that saves without end; each kill comes within about three saves."""
    n_kills = 40 if small else 1000
    rng, found = np.random.default_rng(seed), new_record(n_kills)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.likely"
        save_one(path, 0)
        last = 0
        for _ in range(n_kills):
            last = _one_save(path, last, rng.uniform(0, 0.02), found)
        save_one(path, last + 1)  # the next run
        check_alone(folder, [path], found)
    return found


def _one_save(path: Path, last: int, wait: float, found: Record) -> int:
    """Kill one writer; the version that is there afterwards."""
    inward, outward = os.pipe()
    child = os.fork()
    if child == 0:  # Nothing but NumPy is at work here, so that a fork is sound.
        with suppress(BaseException):
            save(str(path), last + 1, outward)
        os._exit(1)
    os.close(outward)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(inward, "rb") as pipe:
        finished = [int(line) for line in pipe.read().splitlines()]
    confirmed = finished[-1] if finished else last
    try:
        there = version_of(path)
    except (ValueError, AssertionError) as error:
        found["faults"].append(f"after version {confirmed}: {error}")
        return confirmed
    if there not in (confirmed, confirmed + 1):
        found["faults"].append(f"version {there} after {confirmed} was finished")
    found["new"] += there == confirmed + 1
    found["temporary files"] += len(list(path.parent.iterdir())) - 1
    return there


def version(number: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a description that belong together and to no other number."""
    return {"weight": np.full(50_000, number, np.int64), "bias": np.arange(number, number + 1000)}, {"number": number}


def version_of(path: Path) -> int:
    """The number of the version that a file holds, the whole of it."""
    arrays, meta = read_arrays(path)
    expected, _ = version(meta["number"])
    assert all(np.array_equal(arrays[name], expected[name]) for name in expected), "a mixture of versions"
    return meta["number"]


def save_one(path: Path, number: int) -> None:
    write_arrays(path, *version(number))


def save(path: str, first: int, told: int) -> None:
    """Save version after version; the number of each that is finished goes into the pipe `told`."""
    for number in range(first, first + 100_000):
        write_arrays(path, *version(number))
        os.write(told, b"%d\n" % number)


def check_alone(folder: str | Path, known: list[Path], found: Record) -> None:
    """Nothing else may be in the folder."""
    left = sorted(path.name for path in Path(folder).iterdir() if path not in known)
    found["faults"] += [f"{name} was left" for name in left]


def new_record(n_kills: int) -> Record:
    """What is counted of so many kills."""
    return {"kills": n_kills, "new": 0, "temporary files": 0, "faults": []}
