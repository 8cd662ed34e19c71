"""How much memory there is, and room on the disk for what is larger.

What may take memory is asked of the system: what is free, and what the limits of the process (`ulimit`) and of its
control group leave. LIKELY_MEMORY, or `--memory` on the command line, says less. Files have no names once they are
open, so that nothing is left of them however a run ends; they lie where `tempfile` puts things (TMPDIR).
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

VARIABLE = "LIKELY_MEMORY"
SPILL_BYTES = 2 << 30  # An array that is larger goes to a temporary file, and a smaller one that takes
SPILL_SHARE = 0.25  # more than so much of the memory.
_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_MEMBERSHIP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of control groups
_SMALL = 1 << 20  # bytes, below which nobody asks how much memory is free
_TAKEN_CELLS = 1 << 22  # cells that are copied at a time
_NO_LIMIT = 1 << 60  # what control groups of the first version write for "none" is above it


class _Here:
    """Whether copies of all rows go to the disk, however small: set once, for the process."""

    on_disk = False


class NoRoomError(OSError, ValueError):
    """The disk has no room for what memory does not hold."""


def parse_bytes(text: str) -> float:
    """A number of bytes as people write it.

    >>> [parse_bytes(text) for text in ("1000", "1.5 GB", "512MiB", "2g")]
    [1000.0, 1500000000.0, 536870912.0, 2000000000.0]
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]I?)?B?\s*", text.upper())
    if found is None or float(found[1]) <= 0:
        raise ValueError(f"memory must be a number of bytes above 0, such as 800MB or 2GiB, got {text!r}.")
    return float(found[1]) * _UNITS[found[2] or ""]


def set_memory(text: str) -> None:
    """Let this process, and those that it starts, take so much memory for tables."""
    parse_bytes(text)
    os.environ[VARIABLE] = text


def memory_limit() -> float:
    """Bytes that tables may take: what LIKELY_MEMORY says, else what is free."""
    given = os.environ.get(VARIABLE)
    return free_memory() if given is None else parse_bytes(given)


def stated_memory() -> float:
    """The same where somebody said it, in LIKELY_MEMORY or as a limit; infinite where nobody did.

    It does not change with what else the machine does, so that results may depend on it.
    """
    given = os.environ.get(VARIABLE)
    return min(_limits()) if given is None else parse_bytes(given)


def free_memory() -> float:
    """Bytes of memory that are free, by the system and by the limits of this process."""
    return max(0.0, min(_free_of_system(), *_free_by_limits()))


def _free_of_system() -> float:
    """What is free, or as much as there is where the system does not say."""
    found = _numbers_in(Path("/proc/meminfo")).get("MemAvailable")
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if found is None else found * 1024


def _limits() -> tuple[float, ...]:
    """Of addresses (`ulimit -v`), of data (`ulimit -d`), and of the control groups."""
    groups = []
    for path, _ in _groups():
        try:
            text = path.read_text().strip()
        except OSError:
            text = ""
        groups.append(float(text) if text.isdigit() and int(text) < _NO_LIMIT else math.inf)
    try:
        import resource
    except ImportError:
        return math.inf, math.inf, *groups
    own = [resource.getrlimit(limit)[0] for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return *(math.inf if most == resource.RLIM_INFINITY else float(most) for most in own), *groups


def _free_by_limits() -> list[float]:
    """What the limits leave; in a control group pages of files can be given back, and do not count."""
    own = _numbers_in(Path("/proc/self/status"))
    used = [1024 * own.get(name, 0.0) for name in ("VmSize", "VmData")]
    used += [_numbers_in(path.with_name("memory.stat")).get(held, 0.0) for path, held in _groups()]
    return [limit - held for limit, held in zip(_limits(), used, strict=True)]


def _groups() -> list[tuple[Path, str]]:
    """Files with the limits of the control group that this process is in and of those above it, in both versions; and
    the name, in the `memory.stat` beside each, of what counts against it.
    """
    try:
        lines = _MEMBERSHIP.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, file, held = (
            ("memory", "memory.limit_in_bytes", "total_rss") if controllers else ("", "memory.max", "anon")
        )
        # A container sees its own group as the root, where the name that it has outside leads nowhere.
        inner = PurePosixPath(name.lstrip("/"))
        found += [(_GROUPS / root / folder / file, held) for folder in (inner, *inner.parents)]
    return found


def _numbers_in(path: Path) -> dict[str, float]:
    """The numbers in a file of the system with lines such as "name: 12 kB"."""
    try:
        lines = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: float(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def is_large(n_bytes: float) -> bool:
    """Whether so much is better put on the disk."""
    # For what is small it is not worth asking the system how much is free.
    return n_bytes > min(SPILL_BYTES, _SMALL) and n_bytes > min(SPILL_BYTES, SPILL_SHARE * memory_limit())


def hold_own_rows_alone() -> None:
    """From now on let copies of all rows lie on the disk: of several processes each has its own rows in memory."""
    _Here.on_disk = True


def allocate(shape: tuple[int, ...], dtype: Any, together: float = 0) -> np.ndarray:
    """Room for numbers: in memory, or in a nameless temporary file that goes with the array.

    Parameters
    ----------
    together : bytes of all the arrays that are made to stay beside each other, this one among them.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if not n_bytes or not (is_large(max(n_bytes, together)) or (_Here.on_disk and n_bytes > _SMALL)):
        return np.empty(shape, dtype)
    check_room(n_bytes, "rows")
    # The file has no name, and its bytes live until the last mapping of them is gone.
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=dtype, shape=shape)


def taken(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Some rows by their numbers, where `allocate` has room for them."""
    out = allocate((len(numbers), *rows.shape[1:]), rows.dtype)
    step = max(1, _TAKEN_CELLS // max(1, math.prod(rows.shape[1:])))
    for start in range(0, len(numbers), step):
        out[start : start + step] = rows[numbers[start : start + step]]
    return out


def by_column(rows: np.ndarray) -> np.ndarray:
    """(d, n) the rows by column; of those that lie on the disk a copy there, in which each column is one piece."""
    if not isinstance(rows, np.memmap):
        return rows.T
    out, step = allocate(rows.shape[::-1], rows.dtype), max(1, _TAKEN_CELLS // rows.shape[1])
    for start in range(0, len(rows), step):
        out[:, start : start + step] = rows[start : start + step].T
    return out


def check_room(n_bytes: float, what: str) -> None:
    """Refuse, before any work, what the disk has no room for."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise NoRoomError(
            f"{what} need {n_bytes / 1e9:,.1f} GB for temporary files, and {folder} has {free / 1e9:,.1f} GB free: "
            "make room there, or set TMPDIR to a folder with room."
        )


def can_map() -> bool:
    """Whether columns can lie on the disk, which takes pyarrow."""
    return find_spec("pyarrow") is not None


def on_disk(column: pl.Series) -> pl.Series:
    """A polars column whose cells lie in a nameless temporary file, and are read from there as they are asked for."""
    import polars as pl

    arrow = _arrow()
    handle, path = tempfile.mkstemp(prefix="likely-", suffix=".arrow")
    try:
        os.close(handle)
        # As a single batch, since a column in pieces is put together, in memory, as soon as its numbers are asked for.
        one = max(1, len(column))
        column.rechunk().to_frame().write_ipc(path, compression="uncompressed", record_batch_size=one)
        with arrow.memory_map(path) as file:
            table = arrow.ipc.open_file(file).read_all()
    finally:
        os.unlink(path)
    return pl.from_arrow(table).to_series(0)  # type: ignore[union-attr]


def _arrow() -> Any:
    # Arrow's own pool sets a gigabyte of addresses aside, which counts against limits, and nothing is allocated here.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.ipc  # type: ignore[import-untyped]

    return pyarrow
