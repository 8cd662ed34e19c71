"""Text as data: sentences of tokens, from files or from anything that can be read twice, never held in memory whole."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import open_unpacked
from likely.datasets.text.encoded import CONVENTION, Encoded, Spill
from likely.datasets.text.vocabulary import BEGIN, BEGIN_ID, END, END_ID, SPECIAL, Vocabulary

Tokenizer = str | Callable[[str], list[str]]
TOKENIZERS = ("whitespace", "character")
_BYTES_A_READ = 1 << 20  # Of a file; a block of text and its tokens are all that is held.
_SENTENCES_A_READ = 4096  # Of an iterable: about as much text as a block of a file.
_SENTENCES_A_TASK = 512  # A block makes several tasks, so that all threads have something to do.
# Characters in the first block from which the compiled loop is worth the time that Numba takes to load: a text whose
# first block has fewer is nearly always one that dictionaries are done with sooner.
_WORTH_COMPILING = 1 << 17


class Corpus:
    """Sentences of tokens.

    A file's line is a sentence, a blank one too: it has no token but `</s>`. Perplexity counts every token and `</s>`,
    not `<s>`.

    Parameters
    ----------
    sentences : a list, or whatever can be iterated over more than once, of sentences: texts, which the tokenizer cuts,
        or lists of tokens, where None is an unobserved token. Or a function without arguments that returns a new
        iterator. For files there is `Corpus.from_files`.
    tokenizer : "whitespace" (as `str.split`), "character" (every character, blanks included), or a function from a
        text to a list of tokens.
    name : what tables call it.

    Examples
    --------
    >>> corpus = Corpus(["the dog ran away", "the dog sleeps"])
    >>> list(corpus)
    [['the', 'dog', 'ran', 'away'], ['the', 'dog', 'sleeps']]
    >>> corpus.vocabulary(min_count=2)
    Vocabulary(5 tokens)
    >>> corpus.encode(corpus.vocabulary(min_count=2)).tokens.tolist()
    [4, 3, 0, 0, 2, 4, 3, 0, 2]
    """

    def __init__(self, sentences: Any, *, tokenizer: Tokenizer = "whitespace", name: str = "corpus"):
        _check_source(sentences)
        self._paths: tuple[Path, ...] | None = None
        self._sentences = sentences
        self.tokenizer = _check_tokenizer(tokenizer)
        self.name = name

    @classmethod
    def from_files(
        cls, *paths: str | os.PathLike[str], tokenizer: Tokenizer = "whitespace", name: str | None = None
    ) -> Corpus:
        """The lines of text files in UTF-8, plain or .gz, one file after the other."""
        if not paths:
            raise ValueError("there is no file: give at least one path.")
        found = tuple(Path(path).expanduser() for path in paths)
        missing = next((path for path in found if not path.is_file()), None)
        if missing is not None:
            raise DataNotFoundError(f"there is no file {missing} (looked for at {missing.absolute()}).")
        corpus = cls((), tokenizer=tokenizer, name=name or found[0].name)
        corpus._paths = found
        return corpus

    def __iter__(self) -> Iterator[list[Any]]:
        """The sentences as lists of tokens."""
        for block in self._blocks():
            start = 0
            for _ in range(block.count(END)):
                end = block.index(END, start)
                yield block[start:end]
                start = end + 1

    def vocabulary(self, *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """The tokens that occur at least `min_count` times, of these the `max_size` most frequent; one pass.

        The others are `<unk>`. A text may hold `<unk>` as a word; it means the same.
        """
        counter: Counter[Any] = Counter()
        for block in self._blocks():
            counter.update(block)
        n_sentences = counter.pop(END, 0)
        if BEGIN in counter:
            raise _reserved(BEGIN, self.name)
        if not n_sentences:
            raise DataError(f"{self.name} is empty: it has no sentences.")
        return Vocabulary.of_counts(counter, n_sentences, min_count=min_count, max_size=max_size)

    def encode(self, vocabulary: Vocabulary, *, memory_budget: int = 2 << 30) -> Encoded:
        """The sentences as numbers, each closed by `</s>`; in a file without a name if they take more than the budget.

        Parameters
        ----------
        vocabulary : from `vocabulary()`, of this corpus or of the one that a model was trained on.
        memory_budget : bytes.
        """
        with Spill(np.int32, memory_budget // 2) as tokens, Spill(np.int64, memory_budget // 2) as ends:
            ends.append(np.zeros(1, np.int64))
            for ids in self._ids(vocabulary):
                ends.append(np.flatnonzero(ids == END_ID) + (tokens.length + 1))
                tokens.append(ids)
            if ends.length == 1:
                raise DataError(f"{self.name} is empty: it has no sentences.")
            return Encoded(tokens.array(), ends.array(), vocabulary)

    @property
    def convention(self) -> str:
        """What perplexity counts."""
        return CONVENTION

    def __repr__(self) -> str:
        kind = self.tokenizer if isinstance(self.tokenizer, str) else "own"
        return f"Corpus({self.name!r}, {kind} tokens, {CONVENTION})"

    # ------------------------------------------------------------------- blocks
    def _blocks(self) -> Iterator[list[Any]]:
        """Tokens of some sentences at a time, flat, each sentence closed by `</s>`."""
        return map(self._tokens, self.blocks())

    def _tokens(self, sentences: list[Any]) -> list[Any]:
        text = self._joined(sentences)
        if text is None:
            return [token for sentence in sentences for token in self._cut(sentence)]
        block = text.replace("\n", f" {END} ").split()  # All of it runs at the speed of C.
        block.append(END)
        if block.count(END) != len(sentences):
            raise _reserved(END, self.name)
        return block

    def _ids(self, vocabulary: Vocabulary) -> Iterator[np.ndarray]:
        """Token ids of some sentences at a time: by the compiled loop where there is much text, else one by one."""
        blocks = self.blocks()
        first = next(blocks, [])
        much = len(first) > 1 and self._is_text(first) and sum(map(len, first)) > _WORTH_COMPILING
        if not much:
            yield from (self._looked_up(some, vocabulary) for some in chain([first] if first else [], blocks))
            return
        from likely.datasets.text.fast_tokens import in_threads

        fast = vocabulary.fast

        def encoded(sentences: list[Any]) -> np.ndarray:
            text = self._joined(sentences)
            found = None if text is None else fast(text)
            if found is None:
                return self._looked_up(sentences, vocabulary)
            if found[1] >= 0:
                raise _reserved(SPECIAL[found[1]], self.name)
            return found[0]

        step = _SENTENCES_A_TASK
        pieces = (some[i : i + step] for some in chain([first], blocks) for i in range(0, len(some), step))
        yield from in_threads(encoded, pieces)

    def _looked_up(self, sentences: list[Any], vocabulary: Vocabulary) -> np.ndarray:
        block = self._tokens(sentences)
        ids = np.fromiter(map(vocabulary.index.__getitem__, block), np.int32, len(block))
        if (ids == BEGIN_ID).any():
            raise _reserved(BEGIN, self.name)
        return ids

    def _is_text(self, sentences: list[Any]) -> bool:
        """Whether they are texts to be cut at blanks."""
        return self.tokenizer == "whitespace" and all(type(sentence) is str for sentence in sentences)

    def _joined(self, sentences: list[Any]) -> str | None:
        """The sentences as lines of one text, if they are texts to be cut at blanks."""
        if not self._is_text(sentences):
            return None
        text = "\n".join(sentences)
        if text.count("\n") != len(sentences) - 1:  # Some sentence has line breaks inside.
            text = "\n".join(sentence.replace("\n", " ") for sentence in sentences)
        return text

    def _cut(self, sentence: Any) -> list[Any]:
        """The tokens of one sentence, and `</s>`."""
        if isinstance(sentence, str):
            tokens = _cut_text(sentence, self.tokenizer)
        elif isinstance(sentence, Iterable) and not isinstance(sentence, bytes):
            tokens = list(sentence)
        else:
            raise TypeError(f"a sentence must be a text or a list of tokens, got {sentence!r}.")
        odd = next((token for token in tokens if token is not None and not isinstance(token, str)), None)
        if odd is not None:
            raise TypeError(f"a token must be a string, or None where it is not observed, got {odd!r} in {self.name}.")
        if END in tokens:
            raise _reserved(END, self.name)
        return [*tokens, END]

    def blocks(self) -> Iterator[list[Any]]:
        """The sentences as they stand in the source, some at a time."""
        if self._paths is not None:
            for path in self._paths:
                yield from _read_lines(path)
            return
        source = iter(self._sentences() if callable(self._sentences) else self._sentences)
        while some := list(islice(source, _SENTENCES_A_READ)):
            yield some


def as_corpus(text: Any, tokenizer: Tokenizer = "whitespace") -> Corpus:
    """A corpus from whatever a model takes: a Corpus, a path object, or sentences."""
    if isinstance(text, Corpus):
        return text
    if isinstance(text, os.PathLike):
        return Corpus.from_files(text, tokenizer=tokenizer)
    return Corpus(text, tokenizer=tokenizer)


def _read_lines(path: Path) -> Iterator[list[str]]:
    """The lines of a file, some at a time; a line ends at a line feed, or at CR LF, and nowhere else."""
    number = 0  # how many lines were before this block
    begun: list[bytes] = []  # pieces of a line that has no end yet; some corpora are a single line
    try:
        with open_unpacked(path) as file:
            while data := file.read(_BYTES_A_READ):
                whole, newline, rest = data.rpartition(b"\n")
                if newline:
                    whole = b"".join([*begun, whole])
                    begun.clear()
                    yield _decoded(whole, path, number)
                    number += whole.count(b"\n") + 1
                if rest:
                    begun.append(rest)
            if begun:
                yield _decoded(b"".join(begun), path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged after line {number:,} ({error}): fetch it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _decoded(data: bytes, path: Path, number: int) -> list[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, place = number + before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise DataError(
            f"{path}, line {line:,}, byte {place}: 0x{data[error.start]:02x} is not UTF-8 ({error.reason}). "
            "Convert the file, as with `iconv -f latin1 -t utf-8`."
        ) from None
    return [line.removesuffix("\r") for line in text.split("\n")] if "\r" in text else text.split("\n")


def _cut_text(text: str, tokenizer: Tokenizer) -> list[str]:
    if tokenizer == "whitespace":
        return text.split()
    if tokenizer == "character":
        return list(text)
    tokens = tokenizer(text)  # type: ignore[operator]
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise TypeError(f"the tokenizer must return a list of tokens, got {tokens!r}.")
    return list(tokens)


def _check_source(sentences: Any) -> None:
    if isinstance(sentences, str | bytes):
        raise TypeError(
            "a single text is not a corpus: give Corpus([text]) for one sentence, Corpus(text.splitlines()) for its "
            "lines, or Corpus.from_files(path) for a file."
        )
    if callable(sentences):
        return
    if not isinstance(sentences, Iterable):
        raise TypeError(f"a corpus needs sentences that can be iterated over, got {type(sentences).__name__}.")
    if iter(sentences) is sentences:
        raise DataError(
            f"these sentences ({type(sentences).__name__}) can be read only once, and a model reads them several "
            "times: give a list, or a function that returns a new iterator, as in Corpus(lambda: read(path))."
        )


def _check_tokenizer(tokenizer: Any) -> Tokenizer:
    if tokenizer not in TOKENIZERS and not callable(tokenizer):
        names = ", ".join(map(repr, TOKENIZERS))
        raise ValueError(f"tokenizer must be {names} or a function, got {tokenizer!r}.")
    return tokenizer


def _reserved(token: str, name: str) -> DataError:
    return DataError(f"{name} holds the token {token!r}, which marks the edge of a sentence: remove or rename it.")
