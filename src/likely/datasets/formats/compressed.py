"""Bytes of a file, plain or gzip, with errors that name the file and the place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from likely.datasets.errors import DataError, DataNotFoundError

_BYTES_A_READ = 1 << 24  # Memory is claimed for no more than that before it has arrived, whatever a header says.


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The content of a file, unpacked if its name ends in .gz; at most `limit` bytes of it."""
    chunks = list(read_chunks(path, limit))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def read_chunks(path: Path, limit: int | None = None, size: int = _BYTES_A_READ) -> Iterator[bytes]:
    """The same in pieces of at most `size` bytes."""
    n_read = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
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
