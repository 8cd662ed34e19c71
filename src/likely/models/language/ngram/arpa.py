r"""ARPA files: n-grams with log10 p and log10 of the back-off weight, as text; the form that all tools share.

    \data\         how many n-grams of each order: ngram 1=...
    \1-grams:      then a line for each:  log10 p <tab> words <tab> log10 b, the last where it is not 0
    \end\

log10 p = -99 stands for probability 0, as in SRILM; so `<s>`, which is never predicted, has it.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from array import array
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import open_unpacked
from likely.datasets.text.vocabulary import BEGIN, BEGIN_ID, END, SPECIAL, Vocabulary
from likely.models.language.ngram.tables import Tables
from likely.storage.files import write_atomically

_LOG10_OF_ZERO = -99.0  # This is what all tools write.
_LOG_OF_TEN = math.log(10)


def write_arpa(path: str | os.PathLike[str], tables: Tables, vocabulary: Vocabulary) -> None:
    """Write a model, whole or not at all."""
    odd = next((token for token in vocabulary if not token or token.split() != [token]), None)
    if odd is not None:
        raise ValueError(f"an ARPA file cannot hold the token {odd!r}, which has blanks in it.")
    data = BytesIO()
    counts = np.diff(tables.bounds)
    lines = [f"ngram {n}={count}" for n, count in enumerate(counts.tolist(), start=1)]
    data.write(("\\data\\\n" + "\n".join(lines) + "\n").encode())
    for n in range(1, tables.order + 1):
        data.write(f"\n\\{n}-grams:\n".encode())
        _write_section(data, tables, vocabulary, n)
    data.write(b"\n\\end\\\n")
    content = data.getvalue()
    write_atomically(path, gzip.compress(content, 6, mtime=0) if str(path).endswith(".gz") else content)


def _write_section(data: BytesIO, tables: Tables, vocabulary: Vocabulary, n: int) -> None:
    import polars as pl

    entries = np.arange(tables.bounds[n - 1], tables.bounds[n])
    tokens = pl.Series(vocabulary.tokens)
    ids = [tables.words[entries]]
    parent = entries
    for _ in range(n - 1):
        parent = np.searchsorted(tables.start, parent, side="right") - 1
        ids.append(tables.words[parent])
    columns: dict[str, Any] = {"p": _log10(tables.log_prob[entries])}
    columns |= {f"w{i}": tokens.gather(part) for i, part in enumerate(reversed(ids))}
    frame = pl.DataFrame(columns)
    words = pl.concat_str([f"w{i}" for i in range(n)], separator=" ")
    if n < tables.order:
        weights = pl.Series("b", _log10(tables.log_backoff[entries]))
        words = pl.when(weights != 0).then(pl.concat_str([words, pl.lit("\t"), _digits(weights)])).otherwise(words)
    frame.select(_digits(frame["p"]), words.alias("words")).write_csv(
        data, include_header=False, separator="\t", quote_style="never"
    )


def _digits(values: Any) -> Any:
    return values.round_sig_figs(9).cast(str)


def _log10(values: np.ndarray) -> np.ndarray:
    return np.maximum(np.asarray(values) / _LOG_OF_TEN, _LOG10_OF_ZERO)


def read_arpa(path: str | os.PathLike[str]) -> tuple[Tables, Vocabulary]:
    """Read a model and check that it is one."""
    reader = _Reader(Path(path).expanduser())
    counts = reader.head()
    levels = [reader.section(n, count, n == len(counts)) for n, count in enumerate(counts, start=1)]
    reader.end()
    vocabulary, order = _vocabulary(reader, levels[0])
    return _tables(reader, levels, vocabulary, order), vocabulary


class _Section:
    """The lines of one section: number of the first, log10 p, words, log10 b.

    They grow as lines are read, so that memory is claimed for what is there, whatever the file's head counts.
    """

    def __init__(self, first: int, n: int):
        self.first, self.n = first, n
        self.words: list[list[bytes]] = []
        self._p, self._b = array("d"), array("d")

    def append(self, p: float, words: list[bytes], b: float) -> None:
        """Take in a line."""
        self._p.append(p)
        self.words.append(words)
        self._b.append(b)

    @property
    def p(self) -> np.ndarray:
        return np.frombuffer(self._p) if self._p else np.zeros(0)

    @property
    def b(self) -> np.ndarray:
        return np.frombuffer(self._b) if self._b else np.zeros(0)


class _Reader:
    """Goes through the lines and knows where it is."""

    def __init__(self, path: Path):
        if not path.is_file():
            raise DataNotFoundError(f"there is no file {path}.")
        self.path, self.number = path, 0
        self.lines = self._lines()

    def _lines(self) -> Iterator[bytes]:
        try:
            with open_unpacked(self.path) as file:
                for self.number, line in enumerate(file, start=1):
                    yield line.strip()
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self.path} is damaged after line {self.number:,} ({error}).") from None

    def wrong(self, what: str, number: int | None = None) -> DataError:
        """An error that names the line."""
        return DataError(f"{self.path}, line {self.number if number is None else number:,}: {what}")

    def next(self, wanted: str) -> bytes:
        """The next line that is not blank."""
        for line in self.lines:
            if line:
                return line
        raise self.wrong(f"the file ends where {wanted} should be: it is cut short.")

    def head(self) -> list[int]:
        """How many n-grams of each order the file says it has; leaves the reader at the first section's title."""
        for line in self.lines:  # Whatever stands before is a comment.
            if line == b"\\data\\":
                break
        else:
            raise self.wrong("there is no \\data\\ section: this is no ARPA file.")
        counts: list[int] = []
        while (line := self.next("\\1-grams:")) != b"\\1-grams:":
            found = re.fullmatch(rb"ngram\s+(\d+)\s*=\s*(\d+)", line)
            if found is None or int(found[1]) != len(counts) + 1:
                raise self.wrong(f"`ngram {len(counts) + 1}=COUNT` or \\1-grams: is needed, got {_shown(line)}.")
            counts.append(int(found[2]))
        if not counts or counts[0] < 1:
            raise self.wrong("the \\data\\ section counts no words.")
        return counts

    def section(self, n: int, count: int, is_last: bool) -> _Section:
        """The n-grams of an order; the first section's title is read already."""
        if n > 1 and (title := self.next(f"\\{n}-grams:")) != f"\\{n}-grams:".encode():
            raise self.wrong(
                f"\\{n}-grams: is needed after {n - 1}-grams, of which \\data\\ counts no more, got {_shown(title)}."
            )
        section = _Section(self.number + 1, n)
        for i in range(count):
            line = next(self.lines, b"")
            fields = line.split()
            if len(fields) <= 1:
                raise self.wrong(f"the section has {i:,} {n}-grams, \\data\\ says {count:,}.")
            weight = 0.0
            if len(fields) == n + 2 and not is_last:
                weight = self._log(fields[-1], "back-off weight")
            elif len(fields) != n + 1:
                more = "" if is_last else ", perhaps log10 b,"
                raise self.wrong(f"log10 p and {n} words{more} are needed, got {_shown(line)}.")
            p = self._log(fields[0], "log-probability")
            if p > 0:
                raise self.wrong(f"log10 p must be at most 0, got {_shown(fields[0])}.")
            section.append(p, fields[1 : n + 1], weight)
        return section

    def _log(self, text: bytes, what: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or value == math.inf:
            raise self.wrong(f"{_shown(text)} is no {what}.")
        return value

    def end(self) -> None:
        """The last line."""
        if (line := self.next("\\end\\")) != b"\\end\\":
            raise self.wrong(f"\\end\\ is needed after the last n-gram that \\data\\ counts, got {_shown(line)}.")


def _vocabulary(reader: _Reader, words: _Section) -> tuple[Vocabulary, np.ndarray]:
    """The vocabulary, and the line of each of its tokens in the section, -1 where it has none."""
    tokens: list[str] = []
    for i, (token,) in enumerate(words.words):
        try:
            tokens.append(token.decode())
        except UnicodeDecodeError:
            raise reader.wrong(f"{token!r} is not UTF-8.", words.first + i) from None
    places = {token: i for i, token in enumerate(tokens)}
    if len(places) < len(tokens):
        twice = next(i for i, token in enumerate(tokens) if places[token] != i)
        raise reader.wrong(f"word {tokens[twice]!r} stands twice.", words.first + places[tokens[twice]])
    missing = next((token for token in (BEGIN, END) if token not in places), None)
    if missing is not None:
        raise reader.wrong(f"the words lack {missing}.", words.first)
    vocabulary = Vocabulary([token for token in tokens if token not in SPECIAL])
    return vocabulary, np.array([places.get(token, -1) for token in vocabulary.tokens])


def _tables(reader: _Reader, levels: list[_Section], vocabulary: Vocabulary, order: np.ndarray) -> Tables:
    """The trie: each section's n-grams in the order of (context, word)."""
    n_words, index = len(vocabulary), {token.encode(): i for i, token in enumerate(vocabulary.tokens)}
    known = order >= 0
    log_prob = [np.where(known, levels[0].p[order], _LOG10_OF_ZERO)]
    log_backoff = [np.where(known, levels[0].b[order], 0.0)]
    words, starts, keys = [np.arange(n_words, dtype=np.int32)], [], [np.arange(n_words, dtype=np.int64)]
    for level in levels[1:]:
        ids = _ids(reader, level, index)
        _find(reader, level, keys, ids[:, 1:], n_words, "without its first word")
        key = _find(reader, level, keys, ids[:, :-1], n_words, "without its last word") * n_words + ids[:, -1]
        place = np.argsort(key, kind="stable")
        key = key[place]
        same = np.flatnonzero(key[1:] == key[:-1])
        if len(same):
            again = place[same[0] + 1]
            raise reader.wrong(f"{_gram(level, again)} stands twice.", level.first + int(again))
        bound = sum(map(len, words))
        starts.append(np.searchsorted(key, np.arange(len(keys[-1])) * n_words) + bound)
        keys.append(key)
        words.append((key % n_words).astype(np.int32))
        log_prob.append(level.p[place])
        log_backoff.append(level.b[place])
    # KenLM writes p = 1 for <s>, so that a text may have it as a token; here it is never predicted.
    log_prob[0][BEGIN_ID] = _LOG10_OF_ZERO
    sizes = [len(part) for part in words]
    bounds = tuple(np.concatenate([[0], np.cumsum(sizes)]).tolist())
    start = np.concatenate([*starts, [bounds[-1]]]).astype(np.int64)
    weights = np.concatenate(log_backoff[:-1] or [np.zeros(0)])
    return Tables(np.concatenate(words), start, _natural(np.concatenate(log_prob)), _natural(weights), bounds)


def _ids(reader: _Reader, level: _Section, index: dict[bytes, int]) -> np.ndarray:
    try:
        return np.array([[index[word] for word in gram] for gram in level.words], np.int64).reshape(-1, level.n)
    except KeyError as error:
        line = next(i for i, gram in enumerate(level.words) if error.args[0] in gram)
        raise reader.wrong(
            f"{_shown(error.args[0])} is not among the words of \\1-grams:.", level.first + line
        ) from None


def _find(
    reader: _Reader, level: _Section, keys: list[np.ndarray], ids: np.ndarray, n_words: int, which: str
) -> np.ndarray:
    """Numbers, within their order, of the n-grams `ids`, all of which must be there."""
    number = ids[:, 0]
    for n in range(1, ids.shape[1]):
        key = number * n_words + ids[:, n]
        number = np.minimum(np.searchsorted(keys[n], key), max(0, len(keys[n]) - 1))
        absent = np.flatnonzero(keys[n][number] != key) if len(keys[n]) else np.arange(len(key))
        if len(absent):
            what = f"{_gram(level, absent[0])} {which} is not among the {level.n - 1}-grams."
            raise reader.wrong(what, level.first + int(absent[0]))
    return number


def _gram(level: _Section, i: int) -> str:
    return f"the {level.n}-gram {_shown(b' '.join(level.words[int(i)]))}"


def _natural(log10: np.ndarray) -> np.ndarray:
    return np.where(log10 <= _LOG10_OF_ZERO, -np.inf, log10 * _LOG_OF_TEN)


def _shown(text: bytes) -> str:
    return repr(text[:60].decode(errors="replace"))
