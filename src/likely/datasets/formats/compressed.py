"""Bytes of a file, plain or gzip, with errors that name the file and the place."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from likely.datasets.errors import DataError, DataNotFoundError

_BYTES_A_READ = 1 << 24  # Memory is claimed for no more than that before it has arrived, whatever a header says.

# A file may unpack to so many bytes, or to so many times its own; beyond that it is taken for a bomb. Text and numbers
# shrink to a tenth, tables of hardly anything but zeros to a hundredth; zeros alone to a thousandth.
MOST_UNPACKED, MOST_TIMES = 16 << 20, 250


def check_unpacked(path: Path, n_unpacked: int, n_packed: int) -> None:
    """Refuse a file that unpacks to more than data do."""
    if n_unpacked > max(MOST_UNPACKED, MOST_TIMES * n_packed):
        raise DataError(
            f"{path} has {n_packed:,} bytes that unpack to more than {MOST_TIMES} times as many ({n_unpacked:,}), as "
            "files do that are made to fill a memory. If it is meant, unpack it yourself and read that."
        )


def open_unpacked(path: Path) -> BinaryIO:
    """A file to be read, unpacked if its name ends in .gz, and no bomb."""
    return io.BufferedReader(_Unpacked(path), 1 << 18) if path.suffix == ".gz" else open(path, "rb")


class _Unpacked(io.RawIOBase):
    """The bytes of a gzip file, counted."""

    def __init__(self, path: Path):
        self.path, self.n_read = path, 0
        self.n_packed = path.stat().st_size
        self.file = gzip.open(path, "rb")  # noqa: SIM115

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self.file.readinto(buffer)
        self.n_read += n
        check_unpacked(self.path, self.n_read, self.n_packed)
        return n

    def close(self) -> None:
        self.file.close()
        super().close()


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The content of a file, unpacked if its name ends in .gz; at most `limit` bytes of it."""
    chunks = list(read_chunks(path, limit))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def read_chunks(path: Path, limit: int | None = None, size: int = _BYTES_A_READ) -> Iterator[bytes]:
    """The same in pieces of at most `size` bytes."""
    n_read = 0
    try:
        with open_unpacked(path) as file:
            while limit is None or n_read < limit:
                chunk = file.read(size if limit is None else min(size, limit - n_read))
                if not chunk:
                    break
                n_read += len(chunk)
                yield chunk
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no file {path}.") from None
    except gzip.BadGzipFile as error:
        raise DataError(
            f"{path} is no gzip file though its name ends in .gz ({error}): rename or fetch it again."
        ) from None
    except (EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is cut short or damaged after {n_read:,} unpacked bytes ({error}): fetch it again."
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def stem_of(path: Path) -> str:
    """The file's name without `.gz` and without its format: table.csv.gz gives table."""
    name = path.name.removesuffix(".gz")
    return name.rpartition(".")[0] or name
