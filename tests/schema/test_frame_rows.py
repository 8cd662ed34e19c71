"""A large frame encoded by blocks gives what a matrix gives, bit for bit: cells, units, fingerprint, errors."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

from likely.columns import Cells
from likely.contract.fingerprint import Fingerprint
from likely.contract.table_estimator import hole_shares
from likely.schema import Schema, SchemaError, as_frame, frame_rows, values


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 3000
    words = np.array(["north", "south", None, "west"], dtype=object)
    return pl.DataFrame(
        {
            "score": rng.normal(1e6, 1e-3, n),
            "skewed": np.exp(rng.normal(0, 2, n)),
            "gain": np.where(rng.random(n) < 0.7, 0, np.exp(rng.normal(7, 1, n))),
            "age": rng.integers(18, 90, n),
            "holes": pl.Series(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))).fill_nan(None),
            "word": words[rng.integers(0, 4, n)].tolist(),
            "yes": rng.random(n) < 0.3,
            "day": [date.fromordinal(730_000 + int(k)) for k in rng.integers(0, 900, n)],
        }
    )


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


@pytest.fixture
def by_blocks(frame, schema, monkeypatch):
    monkeypatch.setattr("likely.schema.schema.LARGE", 1)
    monkeypatch.setattr(values, "_CELLS_AT_ONCE", 700)
    rows = schema.encode_by_blocks(frame)
    assert isinstance(rows, frame_rows.FrameRows)
    return rows


def test_indexes_as_the_matrix(frame, schema, by_blocks):
    matrix = schema.encode(frame)
    assert matrix.flags.c_contiguous
    assert (by_blocks.shape, len(by_blocks)) == (matrix.shape, len(matrix))
    for key in (slice(None), slice(100, 900), slice(2990, 5000), (slice(None), 5), (slice(7, 9), np.array([0, 6]))):
        np.testing.assert_array_equal(by_blocks[key], matrix[key])
    np.testing.assert_array_equal(np.asarray(by_blocks), matrix)


@pytest.mark.parametrize("numbers", ["bins", "real"])
def test_gives_the_same_cells(frame, schema, by_blocks, numbers):
    matrix = schema.encode(frame)
    cells, same = (Cells.fit(rows, schema, "column", numbers) for rows in (matrix, by_blocks))
    np.testing.assert_array_equal(same.scaling.offset, cells.scaling.offset)
    np.testing.assert_array_equal(same.scaling.scale, cells.scaling.scale)
    np.testing.assert_array_equal(same.apply(by_blocks, np.float32), cells.apply(matrix, np.float32))


def test_gives_the_same_name_and_shares_of_holes(frame, schema, by_blocks):
    matrix = schema.encode(frame)
    assert str(Fingerprint.of(by_blocks, schema.columns)) == str(Fingerprint.of(matrix, schema.columns))
    assert hole_shares(by_blocks, None) == tuple(np.isnan(matrix).mean(axis=0).tolist())


def test_names_the_row_of_a_bad_cell(frame, schema, by_blocks):
    fixed = Schema(tuple(c if c.name != "word" else _without_reserve(c) for c in schema.columns), None, "polars")
    odd = frame.with_columns(word=pl.Series([*["north"] * 2000, "up", *["south"] * 999]))
    with pytest.raises(SchemaError, match="row 2000 holds 'up'"):
        frame_rows.FrameRows(fixed.columns, as_frame(odd))


def _without_reserve(column):
    return replace(column, unseen="error")
