"""Array files: whole or not there, found out when damaged, and cheap to refuse."""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likely.storage import files
from likely.storage.files import FileError, read_arrays, read_description, write_arrays, write_atomically

DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def array_sets(draw):
    names = draw(st.lists(st.text("abc.[]0", min_size=1, max_size=6), unique=True, max_size=4))
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    return {name: draw(hnp.arrays(draw(st.sampled_from(DTYPES)), shapes)) for name in names}


@given(arrays=array_sets(), meta=st.dictionaries(st.text(max_size=5), json_values, max_size=4))
@settings(max_examples=60)
def test_what_is_written_is_read(tmp_path_factory, arrays, meta):
    path = tmp_path_factory.mktemp("files") / "a.likely"
    write_arrays(path, arrays, meta)
    back, same = read_arrays(path)
    assert same == meta
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
    assert os.listdir(path.parent) == ["a.likely"]


def check_same_bytes(path: Path) -> None:
    """Twenty writes of the same arrays are one file; names in an order of chance would pass once in 2^19 times."""
    arrays = {name: np.arange(3.0) for name in "cab"}
    contents = set()
    for _ in range(20):
        write_arrays(path, arrays, {"b": 1, "a": [2]})
        contents.add(path.read_bytes())
    assert len(contents) == 1


def test_same_arrays_are_the_same_bytes(tmp_path):
    check_same_bytes(tmp_path / "a.likely")


def test_a_header_in_the_order_of_a_hash_is_caught(tmp_path, monkeypatch):
    """A planted bug: safetensors' header as it comes."""
    monkeypatch.setattr(files, "_in_order", lambda header: header)
    with pytest.raises(AssertionError):
        check_same_bytes(tmp_path / "a.likely")


@pytest.fixture
def small(tmp_path) -> Path:
    path = tmp_path / "small.likely"
    write_arrays(path, {"w": np.array([1.5, -2.0]), "n": np.array(3)}, {"class": "Toy", "text": "é"})
    return path


def test_every_flipped_bit_is_found(small):
    whole = small.read_bytes()
    with small.open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                with pytest.raises(FileError):
                    read_arrays(small)
            os.pwrite(file.fileno(), bytes([byte]), place)
    assert small.read_bytes() == whole


def test_every_truncation_is_found(small):
    whole = small.read_bytes()
    for length in range(len(whole)):
        small.write_bytes(whole[:length])
        with pytest.raises(FileError):
            read_arrays(small)
    small.write_bytes(whole + b"\0")
    with pytest.raises(FileError):
        read_arrays(small)


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_noise_is_no_file(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("noise") / "x"
    path.write_bytes(data)
    with pytest.raises(FileError):
        read_arrays(path)


def header_file(header: object, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def with_description(text: str, entries: dict | None = None, body: bytes = b"") -> bytes:
    checksum = blake2b(text.encode(), digest_size=16).hexdigest()
    return header_file({"__metadata__": {"likely": text, "checksum": checksum}} | (entries or {}), body)


HUGE = {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}
FOREIGN = {
    "empty": b"",
    "a pickle": pickle.dumps({"a": 1}),
    "a zip": b"PK\x03\x04" + bytes(200),
    "text": b"hello, this is no model\n" * 20,
    "a header larger than the file": header_file(b"{}", length=1 << 40),
    "a header of 2^64 - 1": header_file(b"{}", length=(1 << 64) - 1),
    "an array of 8 TB": header_file({"w": HUGE}),
    "an array of negative size": header_file({"w": HUGE | {"shape": [-1], "data_offsets": [0, 0]}}),
    "an array before the file": header_file({"w": HUGE | {"shape": [1], "data_offsets": [-8, 0]}}),
    "offsets that are words": header_file({"w": HUGE | {"data_offsets": ["a", "b"]}}),
    "an entry that is a list": header_file({"w": [1, 2]}),
    "a header that is a list": header_file([1, 2, 3]),
    "a header too deep": header_file(b"[" * 100_000),
    "another's safetensors": header_file({"w": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
    "metadata that is a list": header_file({"__metadata__": [1]}),
    "a description that is no JSON": with_description("nonsense"),
    "a description that is a list": with_description("[1]"),
    "a description without arrays": with_description('{"format": 1, "meta": {}}'),
    "a description whose arrays are a list": with_description('{"format": 1, "meta": {}, "arrays": []}'),
    "a description without meta": with_description('{"format": 1, "arrays": {}}'),
    "a description too deep": with_description("[" * 100_000),
    "a description of half a character": header_file(b'{"__metadata__": {"likely": "\\ud800", "checksum": "0"}}'),
    "another format": with_description('{"format": 2, "meta": {}, "arrays": {}}'),
    "arrays that are not described": with_description(
        '{"format": 1, "meta": {}, "arrays": {}}', {"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"x"
    ),
    "arrays that are only described": with_description(
        '{"format": 1, "meta": {}, "arrays": {"w": {"dtype": "float64", "shape": [1099511627776], "checksum": "0"}}}'
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_and_forged_files_are_refused_at_once(tmp_path, name):
    path = tmp_path / "foreign.likely"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(FileError):  # the first time imports what reading needs
        read_arrays(path)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(FileError, match=r"foreign\.likely"):
        read_arrays(path)
    seconds, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1
    assert peak < 20 << 20


def test_a_large_foreign_header_is_refused_at_once(tmp_path):
    """As large as is read at all, and full of small things: the worst that JSON can be asked to build."""
    path = tmp_path / "large.likely"
    path.write_bytes(header_file(b'{"a":[' + b"0," * ((files.MAX_HEADER - 10) // 2) + b"0]}"))
    start = time.process_time()
    with pytest.raises(FileError):
        read_arrays(path)
    assert time.process_time() - start < 1
    path.write_bytes(header_file(b"{" + b" " * files.MAX_HEADER + b"}"))
    with pytest.raises(FileError, match="does not fit"):
        read_arrays(path)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(FileError, match=r"there is no file .*absent\.likely"):
        read_arrays(tmp_path / "absent.likely")
    with pytest.raises(FileError, match="cannot read"):
        read_arrays(tmp_path)
    with pytest.raises(FileError, match=r"the folder .*nowhere does not exist"):
        write_arrays(tmp_path / "nowhere" / "m.likely", {}, {})


def test_the_description_alone_can_be_read(small):
    description = read_description(small)
    assert description["meta"] == {"class": "Toy", "text": "é"}
    assert description["arrays"]["w"]["shape"] == [2]


def test_what_json_cannot_hold_leaves_nothing_behind(small):
    before = small.read_bytes()
    with pytest.raises(TypeError):
        write_arrays(small, {}, {"object": object()})
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]


def test_a_failed_write_leaves_the_old_file(small, monkeypatch):
    before = small.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device\. Free some space"):
        write_atomically(small, b"new")
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]


def test_files_get_the_rights_that_new_files_have(tmp_path):
    write_atomically(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


WRITER = """
import itertools, sys
from likely.storage.files import write_atomically
for turn in itertools.count():
    write_atomically(sys.argv[1], bytes([turn % 251]) * 2_000_000)
    if turn == 0:
        print("ready", flush=True)
"""


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path):
    target = tmp_path / "target"
    for delay in (0.0, 0.003, 0.011, 0.02):
        environment = os.environ | {"PYTHONPATH": str(Path(files.__file__).parents[2])}
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, env=environment)
        with writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(delay)
            writer.send_signal(signal.SIGKILL)
        data = target.read_bytes()
        assert len(data) == 2_000_000
        assert len(set(data)) == 1
