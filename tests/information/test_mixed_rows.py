"""Sets of rows read together: any library, any kind of column, one matrix."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likely.information.binning import Bins
from likely.information.mixed_rows import MOST_CATEGORIES, read_together

CELLS = {
    "number": [1, None, 3],
    "word": ["x", None, "y"],
    "truth": [True, False, None],
    "day": [date(2020, 1, 1), None, date(2021, 2, 3)],
    "time": [datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 6), None],
}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_reads_alike(library):
    rows = read_together({"A": LIBRARIES[library](CELLS), "B": pl.DataFrame(CELLS)})
    assert rows.kinds == ("number", "category", "number", "date", "date")
    assert rows.sizes == (3, 3)
    np.testing.assert_array_equal(rows.part(0), rows.part(1))
    np.testing.assert_array_equal(
        np.isnan(rows.part(0)), [[cell is None for cell in row] for row in zip(*CELLS.values(), strict=True)]
    )
    assert [rows.shown(place, rows.cells[0, place]) for place in range(5)] == [
        "1", "'x'", "1", "2020-01-01", "2020-01-01T05:00:00.000000",
    ]  # fmt: skip


def test_objects_and_other_types_of_a_kind_read_alike():
    as_text = pl.DataFrame(CELLS).with_columns(pl.col("number", "day").cast(pl.String))
    rows = read_together({"A": pl.DataFrame(CELLS), "B": as_text, "C": np.array(list(CELLS.values()), object).T})
    np.testing.assert_array_equal(rows.part(0), rows.part(1))
    np.testing.assert_array_equal(rows.part(0), rows.part(2))
    codes = pd.DataFrame({"k": pd.Categorical([1, 2, 3])})
    assert read_together({"A": codes, "B": pd.DataFrame({"k": [1, 2, 4]})}).cells.ravel().tolist() == [1, 2, 3, 1, 2, 4]
    spans = read_together({"A": [[timedelta(seconds=3)]], "B": [[None]]})
    assert spans.kinds == ("number",)
    assert spans.cells[0, 0] == 3


def test_what_cannot_be_compared_is_refused():
    def both(one, other):
        return read_together({"the real rows": pl.DataFrame(one), "the drawn rows": pl.DataFrame(other)})

    with pytest.raises(ValueError, match="'a' holds numbers in the real rows and words in the drawn rows, such as 'q'"):
        both({"a": [1]}, {"a": ["q"]})
    with pytest.raises(ValueError, match="'a' holds dates in the real rows and numbers in the drawn rows, such as 1"):
        both({"a": [date(2020, 1, 1)]}, {"a": [1]})
    with pytest.raises(ValueError, match=r"the drawn rows have no column 'age', .* Did you mean 'agee'\?"):
        both({"age": [1]}, {"agee": [1]})
    with pytest.raises(ValueError, match="the drawn rows have a column 'b', which the real rows have not: drop it"):
        both({"a": [1]}, {"a": [1], "b": [1]})
    with pytest.raises(ValueError, match="column 'a' of the drawn rows holds an infinite number in row 1"):
        both({"a": [1.0]}, {"a": [1.0, np.inf]})


def test_columns_are_two_apart_on_average():
    """Squared distances of points add up over columns, each of which gives 2 on average over pairs of rows."""
    rng = np.random.default_rng(0)
    table = {"number": rng.normal(size=60) ** 3, "word": rng.choice(list("aaab"), size=60)}
    points = read_together({"A": pl.DataFrame(table)}).embedded()
    for block in (points[:, :1], points[:, 1:]):
        squares = ((block[:, None] - block[None, :]) ** 2).sum(axis=2)
        np.testing.assert_allclose(squares.mean(), 2, rtol=1e-5)


def test_unobserved_cells_are_near_each_other_only():
    points = read_together({"A": [[1.0, "a"], [None, "a"], [None, "a"], [2.0, None]]}).embedded()
    squares = ((points[:, None] - points[None, :]) ** 2).sum(axis=2)
    assert squares[1, 2] == 0
    assert squares[0, 1] >= 1
    assert squares[1, 3] > squares[0, 1]


def test_rare_ones_of_very_many_categories_are_as_one():
    words = [f"w{i}" for i in range(600)] + ["w7"] * 5
    codes = read_together({"A": pl.DataFrame({"a": words})}).for_trees()
    assert codes.max() == MOST_CATEGORIES
    assert codes[-1] == codes[7] == 0


def test_bins_keep_spikes_and_sort_new_cells_alike():
    rng = np.random.default_rng(0)
    cells = np.where(rng.random(1000) < 0.9, 0.0, rng.exponential(size=1000))
    bins = Bins.of(cells)
    codes = bins.codes(cells)
    assert (codes[cells == 0] == 0).all()
    assert (codes[cells > 0] > 0).all()
    assert np.ptp(np.bincount(codes)[1:]) <= 1
    assert bins.codes(np.array([-1.0, 0.0, 99.0, np.nan])).tolist() == [1, 0, bins.n_bins - 1, -1]
    few = Bins.of(np.array([3.0, 3.0, 5.0]))
    assert few.codes(np.array([3.0, 5.0, 4.0])).tolist() == [0, 1, 2]
