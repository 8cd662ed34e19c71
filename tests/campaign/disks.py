"""Disks and folders at fault: no room, no right to write, folders that vanish, files that are replaced while read.

Each fault comes over everything that writes or reads. What must hold: an error of ours that names the file and says
what to do, the old file as it was, and nothing else in the folder, at once or after the next run.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

import likely
from likely.cli.output import write_rows
from likely.datasets.formats.user_files import read_table
from likely.storage.files import FileError, read_arrays, write_arrays, write_text
from likely.training import checkpoints
from tests.campaign.formats import network

Fault = Callable[[Path], Any]


def _model(path: Path) -> None:
    write_arrays(path, {"weight": np.ones(30_000)}, {"name": "é"})


def _rows(path: Path) -> None:
    frame = pl.DataFrame({"a": np.arange(30_000) * 0.1, "b": np.arange(30_000)})
    write_rows(path, frame, likely.Schema.infer(frame))


# Everything that writes a file for a user: name of the file, and what writes it.
WRITERS: dict[str, Callable[[Path], None]] = {
    "model.likely": _model,
    "run.checkpoint": lambda path: checkpoints.save(path, {"weight": np.ones((300, 100), np.float32)}, {"epoch": 2}),
    "rows.csv": _rows,
    "rows.parquet": _rows,
    "rows.npy": _rows,
    "net.bif": lambda path: network().write(path),
    "table.toml": lambda path: write_text(path, "# " + "é" * 20_000),
}


@contextmanager
def no_room(folder: Path) -> Iterator[None]:
    """Files may have some bytes only: what a disk says that is full in the middle of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def vanishing(folder: Path) -> Iterator[None]:
    """The folder is gone when the file beside the target has been written."""
    aside = folder.with_name(f"{folder.name} aside")

    def vanish(handle: int) -> None:
        if folder.exists():
            folder.rename(aside)

    with mock.patch("os.fsync", vanish):
        try:
            yield
        finally:
            if aside.exists():
                aside.rename(folder)


def failing(call: str, number: int) -> Callable[[Path], Any]:
    """A call of the system that fails with an error."""

    @contextmanager
    def fault(folder: Path) -> Iterator[None]:
        def fail(*_: Any, **__: Any) -> None:
            raise OSError(number, os.strerror(number))

        with mock.patch(call, fail):
            yield

    return fault


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Without the right to write; it means nothing to root, who must become somebody else first."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Without any right: the folder cannot even be looked into."""
    folder.chmod(0)
    try:
        yield
    finally:
        folder.chmod(0o755)


# What can be done to any folder; `ours` below are those that need a user who is not root.
FAULTS: dict[str, Fault] = {
    "no room in the middle of a file": no_room,
    "no room for a name": failing("tempfile.mkstemp", errno.ENOSPC),
    "no room when the disk is asked": failing("os.fsync", errno.ENOSPC),
    "over the quota": failing("os.fsync", errno.EDQUOT),
    "a disk that fails": failing("os.fsync", errno.EIO),
    "a read-only file system": failing("tempfile.mkstemp", errno.EROFS),
    "no right to rename": failing("os.replace", errno.EPERM),
    "a folder that vanishes": vanishing,
}
RIGHTS: dict[str, Fault] = {"a read-only folder": read_only, "a folder without rights": without_rights}


def write_under(fault: Fault, name: str, folder: Path) -> list[str]:
    """What is wrong with how a writer takes a fault, over a file that is there."""
    path, write = folder / name, WRITERS[name]
    write(path)
    before, found = path.read_bytes(), []
    with fault(folder):
        try:
            write(path)
            found.append("it wrote as if nothing were wrong")
        except FileError as error:
            if str(path) not in str(error) or not str(error).startswith("cannot write"):
                found.append(f"the error does not say what could not be written: {error}")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    if path.read_bytes() != before:
        found.append("the old file is another")
    write(path)  # the next run
    found += [f"{other.name} was left" for other in folder.iterdir() if other != path]
    path.unlink()
    return found


def writing(faults: dict[str, Fault]) -> dict[str, Any]:
    """All writers under all of these faults."""
    found: dict[str, Any] = {"tried": 0, "faults": []}
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "folder"
        folder.mkdir()
        for said, fault in faults.items():
            for name in WRITERS:
                wrong = write_under(fault, name, folder)
                found["faults"] += [f"{said}, {name}: {what}" for what in wrong]
                found["tried"] += 1
    return found


def _versions(folder: Path, name: str) -> list[bytes]:
    """Two sound files that differ in every cell: numbers from 1 to 2, and from 2 to 3."""
    contents = []
    for value in (1.0, 2.0):
        path = folder / f"version-{name}"
        if name.endswith(".likely"):
            write_arrays(path, {"a": np.full(40_000, value)}, {"value": value})
        else:
            frame = pl.DataFrame({column: value + np.arange(4000) / 5000 for column in "abc"})
            write_rows(path, frame, likely.Schema.infer(frame))
        contents.append(path.read_bytes())
        path.unlink()
    return contents


def _read_model(path: Path) -> set[float]:
    arrays, meta = read_arrays(path)
    return {*np.unique(arrays["a"]).tolist(), meta["value"]}


READERS: dict[str, Callable[[Path], set[float]]] = {
    "m.likely": _read_model,
    **{
        f"t.{ending}": lambda path: set(np.unique(np.floor(read_table(path).frame)).tolist())
        for ending in ("csv", "parquet", "npy")
    },
}


def reading(n_reads: int) -> dict[str, Any]:
    """Files that are replaced by others, as a writer does it, all the while they are read."""
    found: dict[str, Any] = {"tried": 0, "refused": 0, "faults": []}
    with tempfile.TemporaryDirectory() as folder:
        for name, read in READERS.items():
            path, contents = Path(folder) / name, _versions(Path(folder), name)
            path.write_bytes(contents[0])
            stop = threading.Event()
            other = threading.Thread(target=_replace, args=(path, contents, stop))
            other.start()
            try:
                for _ in range(n_reads):
                    _read_once(read, path, found)
            finally:
                stop.set()
                other.join()
    return found


def _replace(path: Path, contents: list[bytes], stop: threading.Event) -> None:
    turn = 0
    while not stop.is_set():
        turn += 1
        beside = path.with_suffix(".new")
        beside.write_bytes(contents[turn % 2])
        os.replace(beside, path)
        stop.wait(0.0005)


def _read_once(read: Callable[[Path], set[float]], path: Path, found: dict[str, Any]) -> None:
    found["tried"] += 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = read(path)
        if len(values) != 1:
            found["faults"].append(f"{path.name}: a mixture of {sorted(values)}")
    except (FileError, likely.datasets.errors.DataError) as error:
        found["refused"] += 1
        if "changed while it was read" not in str(error):
            found["faults"].append(f"{path.name}: {error}")


def as_nobody(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of a user without rights, if this one is root; else right here.

    Nothing but NumPy and polars is at work in the child, and it ends without cleaning up.
    """
    if os.geteuid() != 0:
        return function(*arguments)
    import json

    inward, outward = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.setgid(65534)
            os.setuid(65534)
            os.write(outward, json.dumps(function(*arguments)).encode())
        os._exit(0)
    os.close(outward)
    with os.fdopen(inward, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"tried": 0, "faults": ["the process of another user ended early"]}


def full_disk(n_megabytes: int = 1) -> dict[str, Any] | None:
    """All writers on a small file system that another file fills; None where none can be mounted."""
    import subprocess

    folder = Path(tempfile.mkdtemp())
    options = ["-t", "tmpfs", "-o", f"size={n_megabytes}m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(["mount", *options], capture_output=True).returncode != 0:
        folder.rmdir()
        return None

    @contextmanager
    def filled(where: Path) -> Iterator[None]:
        with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        try:
            yield
        finally:
            (folder / "filler").unlink()

    found: dict[str, Any] = {"tried": 0, "faults": []}
    try:
        inner = folder / "folder"
        inner.mkdir()
        for name in WRITERS:
            found["faults"] += [f"full, {name}: {what}" for what in write_under(filled, name, inner)]
            found["tried"] += 1
    finally:
        subprocess.run(["umount", str(folder)], check=False)
        folder.rmdir()
    return found


def all_faults(seed: int, small: bool) -> dict[str, Any]:
    """Every writer under every fault, then training and comparing under those that can come in their middle."""
    nobody = as_nobody(writing, RIGHTS)  # first: a fork is sound while JAX has no threads
    found = _joined(nobody, writing(FAULTS))
    full = full_disk()
    found = _joined(found, full or {"tried": 0, "faults": []}) | {"mounted": 0 if full is None else full["tried"]}
    from tests.campaign import long_work

    found = _joined(found, long_work.training(FAULTS))
    return found if small else _joined(found, long_work.comparing())


def replaced(seed: int, small: bool) -> dict[str, Any]:
    return reading(30 if small else 2500)


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return one | {name: one[name] + other[name] for name in ("tried", "faults")}
