"""Files that are small and ask for much: bombs, nests, shapes that overflow, names that lead elsewhere or come twice.

Each is read, or refused with an error of ours, in bounded time and memory, as the damaged files of `fuzzing` are.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.text.corpus import Corpus
from likely.storage.files import _checksum
from tests.campaign.formats import FORMATS, Format
from tests.campaign.fuzzing import one

MEGABYTE = 1 << 20
N_MEGABYTES = 40  # that bombs unpack to, from a thousandth of it
SECONDS = 5.0  # of the processor for one of them: some are refused only when 16 MB of text were read


@cache
def _gzipped(piece: bytes, times: int) -> bytes:
    """A piece again and again, packed without ever being held whole."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        for _ in range(times):
            file.write(piece)
    return out.getvalue()


def _zipped(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that comes twice
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def _zipped_zeros() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as file:
        file.write(_npy(f"({N_MEGABYTES}, 131072)"))
        for _ in range(N_MEGABYTES):
            file.write(bytes(MEGABYTE))
    return out.getvalue()


def _npy(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def _safetensors(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def _described(text: str) -> bytes:
    """A header whose description has the right checksum, whatever it says."""
    return json.dumps({"__metadata__": {"likely": text, "checksum": _checksum(text.encode())}}).encode()


def _idx(shape: tuple[int, ...]) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes() + bytes(8)


_PROGRAM = _npy("(1,)", "|O", b"cos\nsystem\n(S'x'\ntR.")
_SOUND = _npy("(2, 2)", data=np.eye(2).tobytes())
_CORPUS = Format(".txt.gz", list, lambda path: Corpus.from_files(path).vocabulary())

# What it is: the format that it is given to, the ending of its name where that is another, and its bytes.
BOMBS: dict[str, tuple[Format, str, Callable[[], bytes]]] = {
    "zeros in csv.gz": (FORMATS["csv"], ".csv.gz", lambda: _gzipped(bytes(MEGABYTE), N_MEGABYTES)),
    "one line in csv.gz": (FORMATS["csv"], ".csv.gz", lambda: _gzipped(b"0," * (MEGABYTE // 2), N_MEGABYTES)),
    "rows of nothing in csv.gz": (FORMATS["csv"], ".csv.gz", lambda: _gzipped(b"0\n" * (MEGABYTE // 2), N_MEGABYTES)),
    "a gzip file in a gzip file": (FORMATS["csv"], ".csv.gz", lambda: gzip.compress(_zeros(N_MEGABYTES))),
    "zeros in idx.gz": (FORMATS["idx"], ".idx.gz", lambda: gzip.compress(_idx((4, 8192, 9600))) + _zeros(N_MEGABYTES)),
    "zeros in arpa.gz": (FORMATS["arpa"], ".arpa.gz", lambda: _gzipped(bytes(MEGABYTE), N_MEGABYTES)),
    "zeros in a corpus": (_CORPUS, ".txt.gz", lambda: _gzipped(b"a" * MEGABYTE, N_MEGABYTES)),
    "zeros in a network": (FORMATS["bif"], ".bif.gz", lambda: _gzipped(bytes(MEGABYTE), N_MEGABYTES)),
    "zeros in npz": (FORMATS["npz"], "", lambda: _zipped_zeros()),
    "a shape that no member holds": (FORMATS["npz"], "", lambda: _zipped(("a.npy", _npy("(9999999,)")))),
    "a name twice in npz": (FORMATS["npz"], "", lambda: _zipped(("a.npy", _SOUND), ("a.npy", _SOUND))),
    "paths in npz": (FORMATS["npz"], "", lambda: _zipped(("../../train.npy", _SOUND), ("/etc/test.npy", _SOUND))),
    "a program in npz": (FORMATS["npz"], "", lambda: _zipped(("a.npy", _PROGRAM))),
    "a program in npy": (FORMATS["npy"], "", lambda: _PROGRAM),
    "a shape that overflows 64 bits": (FORMATS["npy"], "", lambda: _npy("(4611686018427387905, 4)", data=bytes(32))),
    "a shape that is negative": (FORMATS["npy"], "", lambda: _npy("(-1, -4)", data=bytes(32))),
    "sizes that overflow in idx": (FORMATS["idx"], "", lambda: _idx((2**32 - 1, 2**32 - 1, 2**32 - 1))),
    "sizes whose product is small in 32 bits": (FORMATS["idx"], "", lambda: _idx((65536, 65536, 8))),
    "a nest of JSON": (FORMATS["model"], "", lambda: _safetensors(b"[" * 200_000 + b"]" * 200_000)),
    "a nest in a description": (FORMATS["model"], "", lambda: _safetensors(_described("[" * 200_000))),
    "a nest of tables": (FORMATS["schema"], "", lambda: b"a = " + b"[" * 100_000 + b"]" * 100_000),
    "a nest in a schema": (FORMATS["schema"], ".json", lambda: b'{"columns": ' + b"[" * 100_000),
    "entities of entities": (FORMATS["xmlbif"], "", lambda: _laughs()),
    "a nest of XML": (FORMATS["xmlbif"], "", lambda: b"<a>" * 100_000),
    "a name twice in a header": (
        FORMATS["model"], "",
        lambda: _safetensors(b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},'
                             b'"a":{"dtype":"F64","shape":[9],"data_offsets":[0,8]}}', bytes(8)),
    ),
    "a shape that overflows in a header": (
        FORMATS["model"], "",
        lambda: _safetensors(b'{"a":{"dtype":"F64","shape":[4611686018427387905,4],"data_offsets":[0,32]}}', bytes(32)),
    ),
    "a column twice": (FORMATS["csv"], "", lambda: b"a,a\n1,2\n3,4\n5,6\n"),
    "a million columns": (FORMATS["csv"], "", lambda: b"," * 1_000_000 + b"\n"),
    "a quote without an end": (FORMATS["csv"], "", lambda: b'a,b\n"' + b"x,\n" * MEGABYTE),
    "a column twice in Parquet": (FORMATS["parquet"], "", lambda: _parquet_with_a_name_twice()),
    "a variable twice": (FORMATS["bif"], "", lambda: _twice(FORMATS["bif"], rb"variable .*?\n}\n")),
    "a variable twice in XML": (FORMATS["xmlbif"], "", lambda: _twice(FORMATS["xmlbif"], rb"<VARIABLE.*?</VARIABLE>")),
    "a node twice": (FORMATS["hugin"], "", lambda: _twice(FORMATS["hugin"], rb"node .*?}\n")),
    "a table twice": (FORMATS["hugin"], "", lambda: _twice(FORMATS["hugin"], rb"potential .*?}\n")),
    "a column twice in a schema": (FORMATS["schema"], "", lambda: _twice(FORMATS["schema"], rb"\[\[.*?\n\n")),
    "a word twice": (FORMATS["word2vec"], "", lambda: b"2 1\ncat 0.1\ncat 0.2\n"),
    "a word twice in binary": (FORMATS["word2vec binary"], "", lambda: b"2 1\ncat abcdcat abcd"),
    "a word twice in a model of words": (
        FORMATS["arpa"], "",
        lambda: _twice(FORMATS["arpa"], rb"-0.8\tdog\t-0.1\n").replace(b"ngram 1=5", b"ngram 1=6"),
    ),
    "words announced that are not there": (FORMATS["word2vec binary"], "", lambda: b"9999999999 9999999999\na "),
    "n-grams announced that are not there": (FORMATS["arpa"], "", lambda: b"\\data\\\nngram 1=99999999999999\n"),
    "a table of 2^200 entries": (FORMATS["uai"], "", lambda: _wide_network()),
}  # fmt: skip


def _twice(form: Format, pattern: bytes) -> bytes:
    """A sound file in which a piece stands twice."""
    data = form.examples()[0]
    found = re.search(pattern, data, re.DOTALL)
    assert found is not None
    return data[: found.end()] + data[found.start() :]


def _parquet_with_a_name_twice() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]), out)
    return out.getvalue()


def _zeros(n_megabytes: int) -> bytes:
    return _gzipped(bytes(MEGABYTE), n_megabytes)


def _laughs() -> bytes:
    lines = ["<!DOCTYPE b [", '<!ENTITY a0 "ha">']
    lines += [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)]
    return ("\n".join(lines) + "\n]><BIF><NETWORK><NAME>&a11;</NAME></NETWORK></BIF>").encode()


def _wide_network() -> bytes:
    nodes = " ".join(map(str, range(200)))
    return f"MARKOV\n200\n{'2 ' * 200}\n1\n200 {nodes}\n\n4\n1 1 1 1\n".encode()


def explode(folder: Path) -> dict[str, Any]:
    """What became of every bomb: the same record as of damaged files."""
    found: dict[str, Any] = {"inputs": len(BOMBS), "read": 0, "refused": 0, "faults": {}}
    for name, (form, ending, data) in BOMBS.items():
        path = folder / f"bomb{ending or form.ending}"
        path.write_bytes(data())
        outcome = one(form, path, SECONDS)
        path.unlink()
        if outcome in ("read", "refused"):
            found[outcome] += 1
        else:
            found["faults"][name] = outcome
    return found
