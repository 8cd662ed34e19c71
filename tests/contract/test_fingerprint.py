"""Fingerprints: the same for the same values, whatever codes and types they come in, and row by row."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import likely
from likely.contract.fingerprint import Fingerprint
from likely.schema import Column, Schema
from tests.contract.evidence_checks import check_slices, check_values_are_named, smokers

cells = st.one_of(st.floats(allow_infinity=False), st.sampled_from([0.0, 1.0, np.nan]))
tables = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=cells)


def fingerprint(rows: np.ndarray, columns=()) -> str:
    return str(Fingerprint.of(rows, columns))


def test_fingerprints_name_rows_by_value():
    rows = np.array([[0.0, np.nan], [1.5, -2.0]])
    other_nan = rows.copy()
    other_nan[0, 1] = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]
    same = [rows.copy(), np.asfortranarray(rows), rows.astype(np.float32), rows * 1.0 - 0.0, other_nan]
    assert {fingerprint(r) for r in same} == {fingerprint(rows)}
    assert fingerprint(-np.zeros((1, 1))) == fingerprint(np.zeros((1, 1)))
    different = [rows[::-1], rows[:1], rows.T, rows.reshape(1, 4), rows + 1e-12, np.nan_to_num(rows)]
    assert fingerprint(rows) not in {fingerprint(r) for r in different}


def test_fingerprints_do_not_depend_on_blocks(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[rows < -1] = np.nan
    tokens, offsets = np.arange(50) % 7, np.array([0, 3, 3, 20, 21, 50])
    whole, text = fingerprint(rows), str(Fingerprint.of_sequences(tokens, offsets))
    monkeypatch.setattr("likely.contract.fingerprint._HASHED_CELLS", 7)
    assert fingerprint(rows) == whole
    assert str(Fingerprint.of_sequences(tokens, offsets)) == text


@given(tables, st.data())
def test_a_part_of_a_name_is_the_name_of_the_part(rows, data):
    chosen = data.draw(hnp.arrays(np.intp, st.integers(0, 9), elements=st.integers(0, len(rows) - 1)))
    whole = Fingerprint.of(rows)
    assert whole[chosen] == Fingerprint.of(rows[chosen])
    assert whole == str(whole)
    assert hash(whole) == hash(Fingerprint.of(rows.copy()))


@given(tables, st.data())
def test_one_changed_cell_changes_its_row_alone(rows, data):
    row, column = (data.draw(st.integers(0, side - 1)) for side in rows.shape)
    changed = rows.copy()
    changed[row, column] = 0.25 if rows[row, column] != 0.25 else 7.0
    one, other = Fingerprint.of(rows).rows, Fingerprint.of(changed).rows
    assert (one != other).tolist() == [i == row for i in range(len(rows))]


def test_small_tables_do_not_collide():
    """Every row of three columns over the values that tables are made of: bits, counts, halves, holes, large ones."""
    values = np.array([*range(20), -1.0, 0.5, 0.25, 1e300, 1e-300, np.inf, -np.inf, np.nan])
    rows = np.stack(np.meshgrid(values, values, values), axis=-1).reshape(-1, 3)
    assert len(np.unique(Fingerprint.of(rows).rows)) == len(rows)
    bits = (np.arange(1 << 16)[:, None] >> np.arange(16) & 1).astype(float)
    assert len(np.unique(Fingerprint.of(bits).rows)) == len(bits)


def test_codes_are_named_by_what_they_stand_for():
    check_values_are_named()


def test_numbers_have_one_name_whatever_their_kind():
    """3 and 7 as a category, as a binary column's two values, and as numbers; False and True as 0 and 1."""
    codes, numbers = np.array([[0.0], [1.0], [np.nan]]), np.array([[3.0], [7.0], [np.nan]])
    for kind in ("binary", "categorical"):
        assert fingerprint(codes, [Column("x", kind, (3, 7))]) == fingerprint(numbers, [Column("x", "real")])
    assert fingerprint(codes, [Column("x", "binary", (False, True))]) == fingerprint(codes)
    assert fingerprint(codes, [Column("x", "binary", ("3", "7"))]) != fingerprint(numbers)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_libraries_and_readings_share_a_name(library):
    table = smokers(20).with_columns(pl.Series("pet", ["cat", "dog"] * 10), smokes=pl.col("smokes") == 1)
    native = {"polars": table, "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[library]
    model = likely.Independent().fit(native)
    assert model.evidence(native).fingerprint == likely.Independent().fit(table).evidence(table).fingerprint
    assert model.evidence(native).fingerprint == model.fingerprint_
    numbers = table.drop("pet")
    real = likely.FactorAnalysis(1).fit(numbers)  # reads the bit as a real number, and the count as a rounded one
    assert sorted(real.schema_.kinds) == ["grid", "real", "real"]
    assert real.evidence(numbers).fingerprint == likely.Independent().fit(numbers).evidence(numbers).fingerprint


def test_columns_of_other_names_are_said_to_be_that():
    table = smokers(10).select("age")
    one, other = (likely.Independent().fit(rows).evidence(rows) for rows in (table, table.to_numpy()))
    assert "their values are equal, and what these are of has other names" in one.incomparable(other)
    again = likely.Independent().fit(table.to_numpy() + 1.0)
    assert "the data differ" in one.incomparable(again.evidence(table.to_numpy() + 1.0))


def test_slices_of_tables_compare_with_themselves():
    rows = np.random.default_rng(0).normal(size=(12, 3))
    rows[2, 1] = np.nan
    check_slices(likely.Independent().fit(rows).evidence, rows, [7, 2, 2])
    table = smokers(12)
    check_slices(likely.Independent(schema=Schema.infer(table)).fit(table).evidence, table, [3, 1])


def test_slices_of_text_compare_with_themselves():
    sentences = ["the dog ran", "the cat", "a cat ran away", "the dog", ""]
    model = likely.NGram(2).fit(sentences)
    check_slices(model.evidence, sentences, [2, 0])
    names = Fingerprint.of_sequences(np.array([1, 2, 1, 2, 2, 1]), np.array([0, 2, 4, 6]))
    assert names.rows[0] == names.rows[1] != names.rows[2]


def test_sequences_that_end_elsewhere_differ():
    tokens = np.array([1, 2, 3, 0])
    ends = [[0, 4], [0, 2, 4], [0, 1, 4], [0, 4, 4], [0, 0, 4]]
    assert len({Fingerprint.of_sequences(tokens, np.array(offsets)) for offsets in ends}) == len(ends)
