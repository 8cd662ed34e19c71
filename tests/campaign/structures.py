"""Damage inside a format's own structure, put together again so that its outer checks hold.

Random damage to a packed file is found by the packing's checksum, and hardly ever reaches the reader behind it. Here a
file is taken apart, a part is changed, and lengths and checksums are made anew, as somebody would who means harm.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import tomllib
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from likely.storage.files import read_arrays, write_arrays
from tests.campaign import thrift
from tests.campaign.mutations import Mutation, mutated, mutated_json


def mostly(inside: Mutation, share: float = 0.7) -> Mutation:
    """That damage for most files, and any damage at all for the others, or where the file cannot be taken apart."""

    def damage(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
        return inside(rng, data, words) if rng.random() < share else mutated(rng, data, words)

    return damage


def packed(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """gzip: what is packed is damaged, and packed again."""
    return gzip.compress(mutated(rng, gzip.decompress(data), words), compresslevel=1, mtime=0)


# ---------------------------------------------------------------------- NumPy
_TYPES = ("<f8", ">f4", "<f2", "<c16", "|b1", "|u1", "<i8", ">i2", "<u4", "<M8[ns]", "<m8[D]", "<U0", "<U4", ">U1",
          "|S0", "|S3", "|V0", "|V8", "|O", "<f16", "", "nonsense", [("a", "<f8")], [("a", "<i2"), ("b", "<U2")],
          ("<f8", (2,)), None, 8)  # fmt: skip
_SIDES = (0, 1, 2, 3, 4, 12, 48, -1, 2**31, 2**63, 2**64, -(2**63), True, 1.5, None, "3")


def array(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """.npy: another type, shape or order in the head, and mostly as many bytes after it as those ask for."""
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    head = {"descr": dtype.str, "fortran_order": is_fortran, "shape": shape}
    rest = file.read()
    if rng.random() < 0.6:
        head["descr"] = _one_of(rng, _TYPES)
    if rng.random() < 0.6:
        head["shape"] = tuple(_one_of(rng, _SIDES) for _ in range(rng.integers(0, 4)))
    if rng.random() < 0.2:
        head["fortran_order"] = _one_of(rng, (True, False, 1, None, "no"))
    if rng.random() < 0.1:
        del head[_one_of(rng, tuple(head))]
    if rng.random() < 0.7:
        rest = _fitting(head, rest)
    version = b"\x01\x00" if rng.random() < 0.8 else bytes(rng.integers(0, 5, 2).tolist())
    return _array_file(repr(head).encode(), rest, version)


def _fitting(head: dict[str, Any], data: bytes) -> bytes:
    """The same bytes again and again, as many as a head claims; as they are if it claims too many or none."""
    shape = head.get("shape", (None,))
    if not all(isinstance(side, int) for side in shape):
        return data
    try:
        n = math.prod(shape) * np.dtype(head.get("descr", "<f8")).itemsize
    except (TypeError, ValueError):  # of what is no type
        return data
    return (data * (n // len(data) + 1))[:n] if data and 0 <= n < 10_000 else data


def _array_file(head: bytes, data: bytes, version: bytes) -> bytes:
    size = "<H" if version[:1] == b"\x01" else "<I"
    head += b" " * (-(len(head) + 9 + struct.calcsize(size)) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack(size, len(head)) + head + data


_NAMES = ("train.npy", "test.npy", "valid.npy", "y_train.npy", "y_test.npy", "x", " ", "../../train.npy",
          "/etc/test.npy", "train.npy/", "a\x00b.npy", "é.npy", "train")  # fmt: skip


def archive(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """.npz: members damaged, named otherwise, twice, in another order or gone, in an archive that is sound."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(member.filename, file.read(member)) for member in file.infolist()]
    whole = {held for _, held in members}
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(members)))
        name, held = members[at]
        way = rng.random()
        if way < 0.5:
            members[at] = name, (array if held in whole and rng.random() < 0.7 else mutated)(rng, held, words)
        elif way < 0.7:
            members[at] = _one_of(rng, _NAMES), held
        elif way < 0.85:
            members.append((_one_of(rng, (*_NAMES, name)), held))
        elif len(members) > 1:
            del members[at]
    out = io.BytesIO()
    packing = _one_of(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(out, "w", packing) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that comes twice
        for name, held in members:
            file.writestr(name, held)
    return out.getvalue()


# ---------------------------------------------------------------------- IDX
def idx(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """Another type and other sides, with as many bytes as they ask for."""
    code = _one_of(rng, (0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0, 0xFF))
    sides = tuple(_one_of(rng, (0, 1, 2, 3, 7, 255, 65_536, 2**32 - 1)) for _ in range(rng.integers(0, 6)))
    if rng.random() < 0.05:
        sides = (1,) * int(rng.integers(30, 256))
    n = math.prod(sides) * {0x0B: 2, 0x0C: 4, 0x0D: 4, 0x0E: 8}.get(code, 1)
    cells = (data * (n // len(data) + 1))[:n] if n < 10_000 else data
    return bytes([0, 0, code, len(sides)]) + np.array(sides, ">u4").tobytes() + cells


# ---------------------------------------------------------------------- Parquet
def parquet(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """The directory with some of its numbers, texts and lists changed; or the heads of the pages, byte by byte."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    directory, _ = thrift.parse(data, start)
    if rng.random() < 0.4:
        return _damaged_page(rng, data, thrift.at(directory, 4))
    for _ in range(rng.integers(1, 4)):
        thrift.change(rng, directory)
    text = thrift.written(directory)
    return data[:start] + text + struct.pack("<I", len(text)) + b"PAR1"


def _damaged_page(rng: np.random.Generator, data: bytes, groups: Any) -> bytes:
    """One to three bytes at the beginning of a column's pages put in the place of others."""
    column = thrift.at(_one_of(rng, thrift.at(_one_of(rng, groups), 1)), 3)
    place = thrift.at(column, 11 if thrift.at(column, 11) and rng.random() < 0.5 else 9)
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        out[place + int(rng.integers(40))] = int(rng.integers(256))
    return bytes(out)


# ---------------------------------------------------------------------- JSON: schemas, models, checkpoints
def schema(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """TOML or JSON, read, changed and written as JSON."""
    text = data.decode()
    described = json.loads(text) if text.startswith("{") else tomllib.loads(text)
    return json.dumps(mutated_json(rng, described)).encode()


def header(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """safetensors: the header's JSON changed, what it says of likely's own mostly kept, its length made anew."""
    length = struct.unpack("<Q", data[:8])[0]
    parsed = json.loads(data[8 : 8 + length])
    own = {} if rng.random() < 0.2 else {"__metadata__": parsed.pop("__metadata__")}
    changed = mutated_json(rng, parsed)
    text = json.dumps(changed | own if isinstance(changed, dict) else changed).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def described(written: Callable[[str, Callable], bytes]) -> Mutation:
    """A likely file whose description or arrays were changed by somebody who knows how checksums are made.

    written : what a writer puts into a file of a name, as bytes.
    """

    def damage(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
        def rewrite(path: Any) -> None:
            path.write_bytes(data)
            arrays, meta = read_arrays(path)
            for name in list(arrays):
                if rng.random() < 0.1:
                    arrays[name] = _other_array(rng, arrays[name])
            write_arrays(path, arrays, mutated_json(rng, meta))

        if rng.random() < 0.2:
            return header(rng, data, words)
        try:
            return written("model.likely", rewrite)
        except (ValueError, TypeError):  # Some changes, such as a description that is no table, cannot be written.
            return mutated(rng, data, words)

    return damage


def _other_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Of another shape, another type, or with numbers that no fit gives."""
    ways = (
        lambda: array[..., None],
        lambda: array.ravel()[: array.size // 2],
        lambda: np.full(array.shape, -1, np.int32),
        lambda: array.astype(np.int64) + (1 << 40),
        lambda: np.full(array.shape, np.nan),
        lambda: np.zeros(0, array.dtype),
    )
    with np.errstate(invalid="ignore"):
        return ways[rng.integers(len(ways))]()


def _one_of(rng: np.random.Generator, things: Any) -> Any:
    return things[rng.integers(len(things))]
