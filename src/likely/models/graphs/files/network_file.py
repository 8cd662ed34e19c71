"""Reading and writing files of networks, the format by the ending of the name, `.gz` for gzip."""

from __future__ import annotations

import gzip
import importlib
import os
import zlib
from pathlib import Path
from typing import Any

from likely.datasets.errors import DataError
from likely.datasets.formats.compressed import check_unpacked
from likely.models.graphs.files.described import Described, Malformed, check_complete
from likely.storage.files import FileError, write_atomically

_PLACE = "likely.models.graphs.files"
READERS = {
    ".bif": (f"{_PLACE}.bif", "read_bif"),
    ".xml": (f"{_PLACE}.xmlbif", "read_xmlbif"),
    ".xmlbif": (f"{_PLACE}.xmlbif", "read_xmlbif"),
    ".uai": (f"{_PLACE}.uai", "read_uai"),
    ".net": (f"{_PLACE}.hugin", "read_net"),
}
WRITERS = {
    ".bif": (f"{_PLACE}.bif", "write_bif"),
    ".xml": (f"{_PLACE}.xmlbif", "write_xmlbif"),
    ".xmlbif": (f"{_PLACE}.xmlbif", "write_xmlbif"),
    ".uai": (f"{_PLACE}.uai", "write_uai"),
}
_PIECE = 1 << 18
MOST_BYTES = 1 << 28  # of text; a gzip file of a few kilobytes may claim to hold any amount


def endings_of(path: str | os.PathLike) -> tuple[str, bool]:
    """The ending that says the format, and whether it is gzipped."""
    name = Path(path).name.lower()
    zipped = name.endswith(".gz")
    return Path(name.removesuffix(".gz")).suffix, zipped


def is_network(path: str | os.PathLike) -> bool:
    """Whether the name of a file is that of a network."""
    return endings_of(path)[0] in READERS


def read_described(path: str | os.PathLike) -> Described:
    """The network in a file."""
    ending, _ = endings_of(path)
    if ending not in READERS:
        raise FileError(f"cannot read {path}: its name must end in {', '.join(READERS)}, or one of these and .gz.")
    module, name = READERS[ending]
    network = getattr(importlib.import_module(module), name)(str(path), _text(Path(path)))
    check_complete(str(path), network)
    return network


def write_described(path: str | os.PathLike, network: Described) -> None:
    """Put the network into a file, whole or not at all."""
    ending, zipped = endings_of(path)
    if ending not in WRITERS:
        raise FileError(f"cannot write {path}: its name must end in {', '.join(WRITERS)}, or one of these and .gz.")
    if network.is_markov and ending != ".uai":
        raise FileError(f"cannot write {path}: {ending} holds Bayesian networks only; a Markov field goes into .uai.")
    module, name = WRITERS[ending]
    data = getattr(importlib.import_module(module), name)(network).encode()
    write_atomically(path, gzip.compress(data, mtime=0) if zipped else data)


def _text(path: Path) -> str:
    """The text of a file, unpacked if it is gzipped, whatever its name says."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            packed = path.stat().st_size if zipped else None
            data = _limited(path, gzip.GzipFile(fileobj=file) if zipped else file, packed)
    except FileNotFoundError:
        raise FileError(f"there is no file {path}.") from None
    except DataError as error:
        raise Malformed(str(error)) from None
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}.") from None
    if len(data) > MOST_BYTES:
        raise Malformed(f"{path} holds more than {MOST_BYTES >> 20} MB of text, more than a network needs.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _limited(path: Path, file: Any, packed: int | None) -> bytes:
    """What a file holds, piece by piece, and no more than a little over the limit; no bomb, if it was packed."""
    parts, size = [], 0
    while size <= MOST_BYTES and (part := file.read(_PIECE)):
        parts.append(part)
        size += len(part)
        if packed is not None:
            check_unpacked(path, size, packed)
    return b"".join(parts)
