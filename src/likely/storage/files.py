"""Files that hold arrays and a description, cannot run code, and are either whole or not there.

One safetensors file. Its header's `__metadata__` has two strings: `likely`, a JSON description with the shape, type and
checksum of every array, and `checksum`, that of the description itself; so any flipped bit is found. The same arrays
and description are the same bytes. Writing goes beside the target, is fsynced, renamed over it, and the folder is
fsynced. A file is opened once to be read, so that one which is replaced meanwhile is the old one or the new.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

FORMAT = 1
# In bytes. A real header has a few kilobytes, and foreign JSON of this size is still read within half a second.
MAX_HEADER = 16 << 20
_SECONDS_TO_LOCK = 60.0
_AT_WORK: set[str] = set()  # names of the files that this process is writing
_DTYPES = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}


class FileError(ValueError):
    """A file that is not what it should be: truncated, altered, foreign, or of another version."""


def write_atomically(path: str | os.PathLike, *parts: bytes | memoryview) -> None:
    """Put `parts`, one after the other, at `path`: after a crash there is the old file or the new, never a mixture.

    Raises
    ------
    FileError : there is no such folder, no room, or no right to write; the old file is as it was.
    """
    write_through(path, lambda file: file.writelines(parts))


def write_through(path: str | os.PathLike, write: Callable[[BinaryIO], Any]) -> None:
    """The same of what `write` puts into the file, which need not be in memory at a time."""
    target = Path(path)
    check_writable(target)
    try:
        _write_beside(target, write)
    except OSError as error:
        raise FileError(f"cannot write {target}: {_reason(error, target.parent)}") from error


def check_writable(path: str | os.PathLike) -> None:
    """Refuse a file that could not be written; to be asked before hours of work as well."""
    target = Path(path)
    if os.path.isdir(target):
        raise FileError(f"cannot write {target}: it is a folder.")
    if not os.path.isdir(target.parent):
        raise FileError(f"cannot write {target}: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        error = OSError(errno.EACCES, os.strerror(errno.EACCES))
        raise FileError(f"cannot write {target}: {_reason(error, target.parent)}")


def _write_beside(target: Path, write: Callable[[BinaryIO], Any]) -> None:
    remove_remains(target)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.{os.getpid()}-", suffix=".part")
    name = Path(beside).name
    _AT_WORK.add(name)
    try:
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(OSError):  # Some network file systems have no locks; others then go by numbers.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):  # A folder that can no longer be written to: the first error says more.
            Path(beside).unlink(missing_ok=True)
        raise
    finally:
        _AT_WORK.discard(name)
    # The new name is an entry of the folder, which a power cut may lose until the folder itself is on the disk.
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _reason(error: OSError, folder: Path) -> str:
    """What an error of the system means here, and what to do about it."""
    said = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{said}. Free some space, or choose another folder; what was there before is unchanged."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{said}. Choose a folder that you may write to, or get the right to write to {folder}."
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
        return f"the folder {folder} vanished. Make it anew, or choose another."
    return f"{said}."


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write text as UTF-8, atomically."""
    write_atomically(path, text.encode())


def remove_remains(target: Path) -> None:
    """Remove what writers of this file left beside it when they were killed; those that live are at work."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        writer = part.name.removeprefix(f".{target.name}.").partition("-")[0]
        if writer.isdigit() and not _is_at_work(int(writer), part):
            part.unlink(missing_ok=True)


def _is_at_work(writer: int, part: Path) -> bool:
    """Whether the process of that number may still be writing a file."""
    if writer == os.getpid():  # In a container every run may have the same number.
        return part.name in _AT_WORK
    return _is_running(writer) and _is_held(part)


def _is_held(part: Path) -> bool:
    """Whether a file is locked; the number of its writer may since belong to another process.

    A writer holds a lock from just after it made the file, so one without a lock counts as held for its first minute.
    """
    try:
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return abs(time.time() - os.fstat(file.fileno()).st_mtime) < _SECONDS_TO_LOCK
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's, or a system that cannot say
        return True
    return True


def write_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON description into one file, atomically."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    described = {name: _describe(array) for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, "meta": meta, "arrays": described}, sort_keys=True, allow_nan=True)
    data = save(arrays, metadata={"likely": text, "checksum": _checksum(text.encode())})
    length = struct.unpack("<Q", data[:8])[0]
    if length > MAX_HEADER:
        raise FileError(f"cannot write {path}: its description is larger than {MAX_HEADER >> 20} MB.")
    head = _in_order(data[8 : 8 + length])
    write_atomically(path, struct.pack("<Q", len(head)), head, memoryview(data)[8 + length :])


def read_arrays(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_arrays` wrote; anything else raises `FileError` before memory is claimed for it."""
    path = Path(path)
    with _opened(path) as file:
        description = _description(path, file)
        file.seek(0)
        data = file.read()  # As large as the file, whatever sizes the header claims.
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} is damaged: {error}") from None
    if set(arrays) != set(description["arrays"]):
        raise FileError(f"{path} is damaged: its arrays are not the ones it describes.")
    for name, array in arrays.items():
        if _describe(array) != description["arrays"][name]:
            raise FileError(f"{path} is damaged: array {name!r} does not match its checksum.")
    return arrays, description["meta"]


def read_description(path: str | os.PathLike) -> dict[str, Any]:
    """The checked description in a file's header: format, meta, arrays."""
    path = Path(path)
    with _opened(path) as file:
        return _description(path, file)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file to be read, with errors of the system as ours."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise FileError(f"there is no file {path}.") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None


def _description(path: Path, file: BinaryIO) -> dict[str, Any]:
    header = _header(path, file, os.fstat(file.fileno()).st_size)
    return _parsed(path, _checked_text(path, header.get("__metadata__")))


def _checked_text(path: Path, metadata: Any) -> str:
    """The description as it was written, from a header's metadata."""
    metadata = metadata if isinstance(metadata, dict) else {}
    text = metadata.get("likely")
    if not isinstance(text, str):
        raise FileError(f"{path} is a safetensors file, but not one of likely's.")
    if metadata.get("checksum") != _checksum(text.encode(errors="replace")):
        raise FileError(f"{path} is damaged: its description does not match its checksum.")
    return text


def _parsed(path: Path, text: str) -> dict[str, Any]:
    """The description that a text is; its checksum was right, so what is odd here was written by something else."""
    try:
        description = json.loads(text)
        form = description["format"]
        sound = isinstance(description["arrays"], dict) and isinstance(description["meta"], dict)
    except (ValueError, RecursionError, TypeError, KeyError):
        raise FileError(f"{path} is damaged: its description is not what likely writes.") from None
    if form != FORMAT:
        raise FileError(f"{path} has format {form}, this version of likely reads format {FORMAT}.")
    if not sound:
        raise FileError(f"{path} is damaged: its description is not what likely writes.")
    return description


def _header(path: Path, file: BinaryIO, size: int) -> dict[str, Any]:
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
    if not 2 <= length <= min(size - 8, MAX_HEADER):
        raise FileError(f"{path} is not a likely file, or it is truncated: its header does not fit its {size} bytes.")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not a likely file, or it is damaged: its header is not JSON.") from None
    if not isinstance(header, dict):
        raise FileError(f"{path} is not a likely file: its header is not a table.")
    end = 0
    for name, entry in header.items():
        if name != "__metadata__":
            end = max(end, _check_entry(path, name, entry, size - 8 - length))
    if end != size - 8 - length:
        raise FileError(f"{path} is damaged: it holds {size - 8 - length} bytes of arrays where {end} are described.")
    return header


def _check_entry(path: Path, name: str, entry: Any, room: int) -> int:
    try:
        start, end = entry["data_offsets"]
        sound = entry["dtype"] in _DTYPES and 0 <= start <= end <= room and all(side >= 0 for side in entry["shape"])
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound:
        raise FileError(f"{path} is damaged or truncated: array {name!r} does not fit in the file.")
    return int(end)


def _in_order(header: bytes) -> bytes:
    """The same header with its names in order, which safetensors leaves to a hash that differs from run to run."""
    text = json.dumps(json.loads(header), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)  # The arrays after it stay aligned to eight bytes.


def _describe(array: np.ndarray) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "shape": list(array.shape), "checksum": _checksum(array.tobytes())}


def _checksum(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _umask() -> int:
    # The mask can only be read by setting another.
    current = os.umask(0)
    os.umask(current)
    return current
