import pickle
import struct

import numpy as np
import pytest

from likely.datasets import DataError, DataNotFoundError
from likely.datasets.formats.numpy_files import part_of, read_npy, read_npz
from tests.datasets.files import write


def test_npy_is_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(3))
    rows = read_npy(tmp_path / "rows.npy")
    assert isinstance(rows, np.memmap)
    assert np.array_equal(rows, np.eye(3))


def test_npz_round_trip(tmp_path):
    np.savez_compressed(tmp_path / "rows.npz", train=np.eye(3), test=np.ones(2))
    arrays = read_npz(tmp_path / "rows.npz")
    assert np.array_equal(arrays["train"], np.eye(3))
    assert np.array_equal(arrays["test"], np.ones(2))


class Boom:
    """Raises if a reader runs what a pickle says."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_pickles_are_never_run(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([Boom()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "rows.npz", train=np.array([Boom()], dtype=object))
    for name, read in {"rows.npy": read_npy, "rows.npz": read_npz}.items():
        with pytest.raises(DataError, match=name):
            read(tmp_path / name)
    for name, read in {"bare.npy": read_npy, "bare.npz": read_npz}.items():
        with pytest.raises(DataError, match=name):
            read(write(tmp_path / name, pickle.dumps(Boom())))


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9])
def test_truncated_files(tmp_path, fraction):
    np.save(tmp_path / "rows.npy", np.eye(30))
    np.savez(tmp_path / "rows.npz", train=np.eye(30))
    for name, read in {"rows.npy": read_npy, "rows.npz": read_npz}.items():
        whole = (tmp_path / name).read_bytes()
        with pytest.raises(DataError, match=f"cut_{name}"):
            read(write(tmp_path / f"cut_{name}", whole[: int(fraction * len(whole))]))


def test_a_flipped_bit_in_an_archive_is_noticed(tmp_path):
    np.savez(tmp_path / "rows.npz", train=np.eye(30))
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    content[len(content) // 2] ^= 1
    with pytest.raises(DataError, match="CRC"):
        read_npz(write(tmp_path / "flipped.npz", bytes(content)))


def test_a_claim_is_not_allocated(tmp_path):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**40}, 1000), }}".ljust(117) + "\n"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"12345678"
    with pytest.raises(DataError, match="rows"):
        read_npy(write(tmp_path / "rows.npy", raw))


def test_an_array_in_the_name_of_an_archive(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(3))
    (tmp_path / "rows.npy").rename(tmp_path / "rows.npz")
    with pytest.raises(DataError, match=r"rows\.npz.*name it \.npy"):
        read_npz(tmp_path / "rows.npz")


@pytest.mark.parametrize("read", [read_npy, read_npz])
def test_not_there(tmp_path, read):
    with pytest.raises(DataNotFoundError, match="no file"):
        read(tmp_path / "rows")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train", ("train", False)),
        ("X_test", ("test", False)),
        ("y_valid", ("valid", True)),
        ("val_labels", ("valid", True)),
        ("nltcs.train.data.gz", ("train", False)),
        ("t10k-images-idx3-ubyte", ("test", False)),
        ("contest", None),
        ("training", None),
    ],
)
def test_parts_are_told_by_whole_words(name, part):
    assert part_of(name) == part
