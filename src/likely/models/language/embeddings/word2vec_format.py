r"""word2vec's files of vectors, which gensim, fastText, spaCy and others read.

Both begin with a line "<number of words> <length>". As text, a line for each word follows: the word and its numbers,
divided by blanks. In binary, each word is UTF-8 bytes, a blank, then its numbers as little-endian float32; word2vec's
own program ends it with a line feed, gensim does not, and both are read.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError
from likely.storage.files import write_atomically

_LONGEST_WORD = 1 << 16  # In bytes. Where no blank comes for so long, the file is of another kind.


def write_vectors(path: str | os.PathLike[str], words: list[str], vectors: np.ndarray, *, binary: bool) -> None:
    """Write words and their vectors, whole or not at all; text with as many digits as a float32 has."""
    odd = next((word for word in words if not word or any(blank in word for blank in " \n\t\r")), None)
    if odd is not None:
        raise ValueError(f"word2vec's files cannot hold the word {odd!r}, which has blanks in it.")
    vectors = np.ascontiguousarray(vectors, "<f4")
    head = f"{vectors.shape[0]} {vectors.shape[1]}\n".encode()
    if binary:
        body = b"".join(f"{word} ".encode() + row.tobytes() for word, row in zip(words, vectors, strict=True))
    else:
        lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors, strict=True))
        body = "".join(lines).encode()
    write_atomically(path, head + body)


def read_vectors(path: str | os.PathLike[str], *, binary: bool) -> tuple[list[str], np.ndarray]:
    """The words and vectors of a file; DataError says where it is not what it should be."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    data = path.read_bytes()
    head, _, body = data.partition(b"\n")
    try:
        n_words, width = map(int, head.split())
    except ValueError:
        n_words = width = 0
    if n_words < 1 or width < 1:
        raise DataError(f"{path}, line 1: the numbers of words and of components are needed, got {_shown(head)}.")
    # A row takes at least this many bytes. Memory is claimed only for what the file can hold, whatever its head says.
    if n_words * (4 * width + 2 if binary else 2 * width + 1) > len(body) + 1:
        raise DataError(f"{path} is cut short: {n_words:,} words of {width} components do not fit into it.")
    words, vectors = (_read_binary if binary else _read_text)(path, body, n_words, width)
    places = {word: i for i, word in enumerate(words)}
    if len(places) < len(words):
        twice = next(word for i, word in enumerate(words) if places[word] != i)
        raise DataError(f"{path}: word {places[twice] + 1:,}, {twice!r}, stands there before: leave one of them out.")
    if not np.isfinite(vectors).all():
        bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise DataError(f"{path}: the vector of {words[bad]!r} has numbers that are not finite.")
    return words, vectors


def _read_text(path: Path, body: bytes, n_words: int, width: int) -> tuple[list[str], np.ndarray]:
    lines = body.rstrip(b"\n").split(b"\n")
    if len(lines) != n_words:
        raise DataError(f"{path}, line 1: {n_words:,} words are announced, {len(lines):,} lines follow.")
    words, vectors = [], np.empty((n_words, width), np.float32)
    for i, line in enumerate(lines):
        fields = line.rstrip().split(b" ")
        try:
            words.append(fields[0].decode())
            vectors[i] = np.array(fields[1:], dtype=np.float64)
            if len(fields) != width + 1:
                raise ValueError
        except ValueError:
            message = f"a word and {width} numbers are needed, got {_shown(line)}."
            raise DataError(f"{path}, line {i + 2:,}: {message}") from None
    return words, vectors


def _read_binary(path: Path, body: bytes, n_words: int, width: int) -> tuple[list[str], np.ndarray]:
    words, vectors, at = [], np.empty((n_words, width), np.float32), 0
    for i in range(n_words):
        if body[at : at + 1] == b"\n":
            at += 1
        end = body.find(b" ", at, at + _LONGEST_WORD)
        if end < 0 or end + 1 + 4 * width > len(body):
            raise DataError(f"{path} is cut short in word {i + 1:,} of {n_words:,}, or is no binary file of vectors.")
        try:
            words.append(body[at:end].decode())
        except UnicodeDecodeError:
            raise DataError(f"{path}: word {i + 1:,}, {_shown(body[at:end])}, is not UTF-8.") from None
        vectors[i] = np.frombuffer(body, "<f4", width, end + 1)
        at = end + 1 + 4 * width
    return words, vectors


def _shown(text: bytes) -> str:
    return repr(text[:60].decode(errors="replace"))
