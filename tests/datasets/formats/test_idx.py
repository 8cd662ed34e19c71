import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likely.datasets import DataError, DataNotFoundError
from likely.datasets.formats.idx import read_idx
from tests.datasets.files import IDX_CODES, idx_bytes, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("idx")


@given(
    array=st.sampled_from(sorted(IDX_CODES)).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=4, max_side=4))
    ),
    suffix=st.sampled_from(["", ".gz"]),
)
def test_round_trip(folder, array, suffix):
    back = read_idx(write(folder / f"cells-idx-ubyte{suffix}", idx_bytes(array)))
    assert back.dtype == array.dtype
    assert back.dtype.isnative
    np.testing.assert_array_equal(back, array)


def test_wrong_magic_names_file_and_offset(tmp_path):
    path = write(tmp_path / "images.idx", b"\x89PNG....")
    with pytest.raises(DataError, match=r"images\.idx is no IDX file: at offset 0 it has 89 50 4e 47"):
        read_idx(path)


def test_empty_file(tmp_path):
    with pytest.raises(DataError, match="it has nothing"):
        read_idx(write(tmp_path / "images.idx", b""))


def test_every_truncation_is_noticed(tmp_path):
    whole = idx_bytes(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    for n_bytes in range(len(whole)):
        with pytest.raises(DataError, match=r"cells\.idx"):
            read_idx(write(tmp_path / "cells.idx", whole[:n_bytes]))


def test_truncated_gzip(tmp_path):
    path = write(tmp_path / "cells.idx.gz", idx_bytes(np.random.RandomState(0).randint(0, 255, (50, 50), np.uint8)))
    for n_bytes in (0, 5, 15, 200, path.stat().st_size - 1):
        damaged = write(tmp_path / "damaged.idx", path.read_bytes()[:n_bytes]).rename(tmp_path / "damaged.idx.gz")
        with pytest.raises(DataError, match=r"damaged\.idx\.gz"):
            read_idx(damaged)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_claim_is_not_allocated(tmp_path, suffix):
    head = bytes([0, 0, 0x0E, 4]) + struct.pack(">4I", *[2**32 - 1] * 4)
    with pytest.raises(DataError, match=r"claims shape 4294967295×.*ends at offset 23"):
        read_idx(write(tmp_path / f"cells.idx{suffix}", head + b"abc"))


def test_more_cells_than_claimed(tmp_path):
    with pytest.raises(DataError, match="goes on after that"):
        read_idx(write(tmp_path / "cells.idx", idx_bytes(np.zeros(5, np.uint8)) + b"x"))


def test_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"no file .*cells\.idx"):
        read_idx(tmp_path / "cells.idx")
