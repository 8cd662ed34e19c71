import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.datasets import DataError, Dataset
from likely.datasets.dataset import Split, cut_validation, split_rows
from likely.schema import Schema
from tests.datasets.checks import check_partition


@given(n_rows=st.integers(3, 2000), seed=st.integers(0, 1000), shuffle=st.booleans())
def test_a_split_is_a_partition(n_rows, seed, shuffle):
    check_partition(split_rows(n_rows, name="table", seed=seed, shuffle=shuffle), n_rows)


@given(n_rows=st.integers(2, 2000), seed=st.integers(0, 1000))
def test_validation_is_cut_from_training(n_rows, seed):
    kept, valid = cut_validation(n_rows, name="table", seed=seed)
    assert np.array_equal(np.sort(np.concatenate([kept, valid])), np.arange(n_rows))
    assert len(valid) == max(1, round(n_rows / 10))


def test_a_split_never_changes():
    # Benchmarks and published figures rest on these rows.
    assert split_rows(20, name="table", seed=0).test.tolist() == [15, 12]
    assert split_rows(20, name="table", seed=0).valid.tolist() == [3, 0]


def test_seeds_give_different_splits():
    one, two = (split_rows(100, name="table", seed=seed).test for seed in (0, 1))
    assert not np.array_equal(one, two)


def test_without_shuffling_the_parts_are_views():
    rows = np.arange(40).reshape(20, 2)
    parts = split_rows(20, name="table", shuffle=False).take(rows)
    assert all(np.shares_memory(part, rows) for part in parts)
    assert np.array_equal(np.concatenate(parts), rows)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_too_few_rows_for_three_parts(n_rows):
    with pytest.raises(DataError, match=f"table has {n_rows} rows.*at least 3"):
        split_rows(n_rows, name="table")


def test_frames_and_arrays_are_taken_alike():
    split = Split(np.array([2, 0]), np.array([1]), np.array([3]))
    frame, array = pl.DataFrame({"a": [10, 11, 12, 13]}), np.array([[10], [11], [12], [13]])
    for from_frame, from_array in zip(split.take(frame), split.take(array), strict=True):
        assert np.array_equal(from_frame.to_numpy(), from_array)


def test_repr_says_what_it_is():
    rows = np.zeros((2000, 4))
    data = Dataset(rows, rows[:3], rows[:5], Schema.binary(4, (2, 2)), "tiny")
    assert repr(data) == "Dataset('tiny': 2,000 / 3 / 5 rows, 4 binary columns, pictures 2×2)"
