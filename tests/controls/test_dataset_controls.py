"""Planted bugs in reading data, which the checks of tests/datasets must catch."""

import io

import numpy as np
import polars as pl
import pytest

from likely.datasets import load
from likely.datasets.dataset import Split, permutation
from tests.datasets.checks import (
    check_amounts,
    check_every_row_counted,
    check_partition,
    check_stochastic_binarisation,
    check_upright,
)


def test_a_row_in_two_parts_is_caught():
    order = permutation(100, 0)
    check_partition(Split(order[:80], order[80:90], order[90:]), 100)
    with pytest.raises(AssertionError):
        check_partition(Split(order[:80], order[79:89], order[90:]), 100)


def test_a_row_in_no_part_is_caught():
    order = permutation(100, 0)
    with pytest.raises(AssertionError):
        check_partition(Split(order[:80], order[80:90], order[91:]), 100)


def test_binarisation_off_by_one_grey_value_is_caught(global_random_seed):
    def off_by_one(grey: np.ndarray, seed: int) -> np.ndarray:
        return np.random.RandomState(seed).randint(0, 256, grey.shape) < grey  # 256 values: 255 is not always one

    with pytest.raises(AssertionError):
        check_stochastic_binarisation(off_by_one, global_random_seed)


def test_binarisation_with_shared_draws_is_caught(global_random_seed):
    def shared(grey: np.ndarray, seed: int) -> np.ndarray:
        draws = np.random.RandomState(seed).randint(0, 255, (1, grey.shape[1]))  # one draw a column
        return np.broadcast_to(draws, grey.shape) < grey

    with pytest.raises(AssertionError):
        check_stochastic_binarisation(shared, global_random_seed)


@pytest.mark.parametrize("bug", ["transposed", "inverted", "upside down"])
def test_pictures_that_do_not_stand_are_caught(data_folder, bug):
    data = load("silhouettes")
    pictures = data.train.reshape(-1, 28, 28)
    check_upright(pictures, data.labels["train"])
    broken = {
        "transposed": pictures.transpose(0, 2, 1),
        "inverted": 1 - pictures,
        "upside down": pictures[:, ::-1],
    }[bug]
    with pytest.raises(AssertionError):
        check_upright(broken, data.labels["train"])


def test_a_reader_that_fills_up_short_rows_is_caught():
    def lenient(text: bytes) -> pl.DataFrame:
        return pl.read_csv(io.BytesIO(text))  # polars alone: missing cells become nulls

    with pytest.raises(AssertionError, match="nobody noticed"):
        check_every_row_counted(lenient, b"a,b,c\n" + b"1,2,3\n" * 5)


def test_a_reader_that_takes_every_comma_for_thousands_is_caught():
    def careless(cells: list[str]) -> list[float]:
        return [float(cell.replace(",", "")) for cell in cells]

    check_amounts(careless, [123450, 5], "en")
    with pytest.raises(AssertionError):
        check_amounts(careless, [50], "de")
