"""A damaged file gives rows or a `DataError`, never another error: every byte of small files is changed in turn.

Parquet is not here: polars ends the process on some damaged page headers, which no reader above it can prevent.
"""

import gzip

import numpy as np
import pytest

from likely.datasets import DataError, load
from tests.datasets.files import idx_bytes, write

ROWS = np.random.RandomState(0).rand(6, 2)


@pytest.fixture
def intact(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    np.savez(tmp_path / "rows.npz", ROWS)
    np.savez_compressed(tmp_path / "parts.npz", train=ROWS, test=ROWS[:4])
    write(tmp_path / "rows.idx", idx_bytes(ROWS))
    write(tmp_path / "bits.amat", "0 1 0\n1 1 1\n" * 3)
    (tmp_path / "bits.amat.gz").write_bytes(gzip.compress(b"0 1 0\n1 1 1\n" * 3, mtime=0))
    write(tmp_path / "table.csv", 'a,b,c\n1,"x",3\n4,y,\n' * 3)
    return tmp_path


# NumPy warns of headers that Python 2 might have written.
@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header parsing:UserWarning")
@pytest.mark.parametrize(
    "name", ["rows.npy", "rows.npz", "parts.npz", "rows.idx", "bits.amat", "bits.amat.gz", "table.csv"]
)
def test_any_changed_byte(intact, name, global_random_seed):
    whole = (intact / name).read_bytes()
    random = np.random.RandomState(global_random_seed)
    path = intact / f"damaged_{name}"
    n_refused = 0
    for place, byte in enumerate(whole):
        changed = byte ^ (1 << random.randint(8)) if place % 2 else random.randint(256)
        path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
        try:
            load(path)
        except DataError as error:
            assert str(path) in str(error)  # noqa: PT017
            n_refused += 1
    assert n_refused > 0
