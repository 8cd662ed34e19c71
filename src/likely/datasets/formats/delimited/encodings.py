"""The bytes of a text as UTF-8, whatever its encoding: the one that was given, or the one that is found."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from likely.datasets.errors import DataError

Source = Callable[[], Iterator[bytes]]  # Chunks of a file from its beginning on; called again, they come again.

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MARKED = ("utf-16", "utf-32")
_UTF8 = ("utf-8", "utf8", "utf-8-sig", "utf_8", "u8")


def encoding_by_mark(source: Source, path: Path) -> str:
    """What the byte-order mark at the beginning says; without one UTF-8."""
    first = next(source(), b"")
    if found := next((name for mark, name in _MARKS.items() if first.startswith(mark)), None):
        return found
    # Every other byte of Latin text in UTF-16 is zero, and no text in UTF-8 has zeros.
    if b"\0" in first[:1000] and first[:1000].count(b"\0") > len(first[:1000]) // 4:
        little = first[1:1000:2].count(b"\0") > first[0:1000:2].count(b"\0")
        raise DataError(
            f"{path} is full of zero bytes, as UTF-16 without a mark is: give "
            f"--encoding {'utf-16-le' if little else 'utf-16-be'}, or save it as UTF-8."
        )
    return "utf-8"


def as_utf8(source: Source, encoding: str, path: Path) -> Iterator[bytes]:
    """The chunks in UTF-8, without a byte-order mark. Those that claim to be UTF-8 are passed on unchecked."""
    chunks = source()
    if encoding.lower() in _UTF8:
        yield next(chunks, b"").removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for chunk in chunks:
            text = decoder.decode(chunk)
            line += text.count("\n")
            yield text.encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise DataError(
            f"{path}, at or after line {line}: this is no {encoding} ({error}): give another --encoding, or save it "
            "as UTF-8."
        ) from None


def encoding_of_bad_utf8(source: Source, error: UnicodeDecodeError, path: Path, line: int, offset: int) -> str:
    """The encoding of a text that is no UTF-8: Windows' for western languages, unless that is unlikely.

    It is unlikely where most characters beyond ASCII are good UTF-8, so that the text is damaged rather than of another
    encoding; and where a byte stands for nothing in it.
    """
    place = f"{path}, line {line}: byte {error.object[error.start]:#04x} at offset {offset} is no UTF-8"
    bad = good = 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    possible = True
    for chunk in source():
        text = decoder.decode(chunk)
        bad += text.count("\ufffd")
        good += sum(map(text.count, set(text) - _ASCII)) - text.count("\ufffd")
        possible = possible and not any(byte in chunk for byte in _NOT_IN_CP1252)
    if not possible or good > bad:
        raise DataError(f"{place}: save it as UTF-8, or give its --encoding, such as cp1252.")
    return "cp1252"


_ASCII = frozenset(map(chr, range(128)))
_NOT_IN_CP1252 = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
