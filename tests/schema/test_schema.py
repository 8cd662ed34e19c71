"""Schemas: what is inferred, what is refused, and that rows come back as they went in."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likely.schema import Column, Schema, SchemaError, blocks

FRAMES = {"pandas": pd.DataFrame, "polars": lambda data: pl.DataFrame(data, strict=False), "pyarrow": pa.table}
CELLS = {
    "binary": st.sampled_from([0, 1]),
    "count": st.integers(2, 100),
    "real": st.floats(-1e6, -0.5),
    "categorical": st.text("abcé", min_size=1, max_size=3),
    "bool": st.booleans(),
}


def to_list(frame, name: str) -> list:
    cells = (
        frame[name].to_pylist()
        if isinstance(frame, pa.Table)
        else frame[name].tolist()
        if isinstance(frame, pd.DataFrame)
        else frame[name].to_list()
    )
    return [None if cell is None or cell != cell else cell for cell in cells]


@st.composite
def tables(draw):
    """Columns of every kind with holes, as lists; each column holds something."""
    n = draw(st.integers(2, 8))
    data = {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=5))):
        cells = draw(st.lists(st.one_of(st.none(), CELLS[kind]), min_size=n, max_size=n))
        cells[0] = draw(CELLS[kind])
        data[f"{kind}-{place}"] = cells
    return data


@pytest.mark.parametrize("library", FRAMES)
@given(data=tables())
@settings(max_examples=40)
def test_frames_come_back_as_they_went_in(library, data):
    frame = FRAMES[library](data)
    schema = Schema.infer(frame)
    for column in schema.columns:
        kind = column.name.split("-")[0]
        assert column.kind == ("binary" if kind == "bool" else kind)
    encoded = schema.encode(frame)
    assert encoded.shape == (len(next(iter(data.values()))), len(data))
    back = schema.decode(encoded)
    assert type(back) is type(frame)
    for name, cells in data.items():
        assert to_list(back, name) == cells
    again = schema.encode(back)
    np.testing.assert_array_equal(encoded, again)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.one_of(st.just(float("nan")), st.floats(-100, 100, width=32)),
    )
)
def test_arrays_come_back_as_they_went_in(rows):
    schema = Schema.infer(rows)
    np.testing.assert_array_equal(schema.decode(schema.encode(rows)), rows)


@given(tables())
def test_object_arrays_come_back_as_they_went_in(data):
    table = np.array([list(row) for row in zip(*data.values(), strict=True)], dtype=object)
    schema = Schema.infer(table)
    back = schema.decode(schema.encode(table))
    same = [(a is None and (b is None or b != b)) or a == b for a, b in zip(table.flat, back.flat, strict=True)]
    assert all(same)


@given(tables(), st.sampled_from(list(FRAMES)))
def test_json_round_trip(data, library):
    schema = Schema.infer(FRAMES[library](data))
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_json_keeps_the_picture_s_shape_and_refuses_unknown_libraries():
    schema = Schema.binary(12, image_shape=(3, 4))
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    with pytest.raises(SchemaError, match="unknown data-frame library 'os'"):
        Schema.from_json(schema.to_json() | {"frame": "os"})


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ([[0, 1], [1, 0]], ("binary", "binary")),
        ([[0.0, np.nan], [1.0, 0.0]], ("binary", "binary")),
        ([[0, 2], [100, 7]], ("count", "count")),
        ([[0, 2], [101, 7]], ("real", "count")),
        ([[0, 2], [-1, 7]], ("real", "count")),
        ([[0.5, 1], [1, 1]], ("real", "binary")),
        ([[np.nan, np.nan]], ("real", "real")),
    ],
)
def test_arrays_are_read_column_by_column(rows, kinds):
    schema = Schema.infer(np.array(rows))
    assert schema.kinds == kinds
    assert schema.names == ("x0", "x1")
    assert schema.frame is None


def test_pixels_of_a_picture_are_of_one_kind():
    rows = np.array([[0, 2], [1, 101]])
    assert Schema.infer(rows, image_shape=(1, 2)).kinds == ("real", "real")
    assert Schema.infer(rows[:1], image_shape=(1, 2)).kinds == ("count", "count")


def test_measure():
    assert Schema.binary(2).measure == Schema.count(2).measure == "counting"
    assert Schema.real(2).measure == "lebesgue"
    assert Schema((Column("a", "real"), Column("b", "count"))).measure == "mixed"


def test_pandas_categories_keep_their_order_and_unseen_ones():
    cells = pd.Categorical(["b", None, "a"], categories=["b", "a", "never"])
    schema = Schema.infer(pd.DataFrame({"c": cells}))
    assert schema.columns[0].categories == ("b", "a", "never")
    np.testing.assert_array_equal(schema.encode(pd.DataFrame({"c": cells}))[:, 0], [0, np.nan, 1])


@pytest.mark.parametrize(
    "cells",
    [
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1.5, None, 3.0], dtype="Float64"),
        pd.array([True, None, False], dtype="boolean"),
        pd.array(["x", None, "y"], dtype="string"),
    ],
)
def test_pandas_own_missing_values_are_unobserved(cells):
    frame = pd.DataFrame({"a": cells})
    encoded = Schema.infer(frame).encode(frame)
    np.testing.assert_array_equal(np.isnan(encoded[:, 0]), [False, True, False])


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(
    ("kind", "value"),
    [("binary", 2), ("binary", 0.5), ("count", -1), ("count", 2.5), ("real", np.inf), ("count", np.inf)],
)
def test_contradictions_name_column_and_value(library, kind, value):
    schema = Schema((Column("first", "real"), Column("second", kind)))
    frame = FRAMES[library]({"first": [0.5, 0.5, 0.5], "second": [0.0, float("nan"), float(value)]})
    with pytest.raises(SchemaError, match=rf"column 'second' is {kind}.*row 2 holds {float(value)!r}"):
        schema.encode(frame)
    with pytest.raises(SchemaError, match=rf"'second'.*row 2 holds {float(value)!r}"):
        schema.encode(np.array([[0.5, 0.0], [0.5, np.nan], [0.5, value]]))


def test_contradictions_of_categories_name_column_and_value():
    schema = Schema((Column("colour", "categorical", ("red", "blue")),))
    with pytest.raises(SchemaError, match="'colour' is categorical with values 'red', 'blue', but row 1 holds 'green'"):
        schema.encode(pd.DataFrame({"colour": ["red", "green"]}))
    with pytest.raises(SchemaError, match="row 0 holds 3"):
        schema.encode(np.array([[3]]))


@pytest.mark.parametrize("cells", [["1.5", "abc"], [1.0, "abc"], [None, "abc"]])
def test_words_in_a_column_of_numbers_are_named(cells):
    schema = Schema.real(1)
    with pytest.raises(SchemaError, match="'x0' is real but holds 'abc'"):
        schema.encode(np.array(cells, dtype=object)[:, None])


def test_numbers_too_large_for_a_float_are_named():
    with pytest.raises(SchemaError, match="'x0' is real but holds 1000000"):
        Schema.real(1).encode(np.array([[10**400]], dtype=object))


def test_rows_of_another_table_are_refused():
    schema = Schema.infer(pd.DataFrame({"a": [0.5], "b": [1.5]}))
    with pytest.raises(SchemaError, match="column 'b' is missing; the rows have a, c"):
        schema.encode(pd.DataFrame({"a": [0.5], "c": [1.5]}))
    with pytest.raises(SchemaError, match="rows have 3 columns, the schema has 2"):
        schema.encode(np.zeros((1, 3)))
    reordered = pd.DataFrame({"extra": ["x"], "b": [1.5], "a": [0.5]})
    np.testing.assert_array_equal(schema.encode(reordered), [[0.5, 1.5]])


@pytest.mark.parametrize(
    ("X", "error", "why"),
    [
        (np.zeros(3), SchemaError, "Expected 2D array, got 1D array"),
        (np.zeros((2, 2), complex), SchemaError, "Complex data not supported"),
        (np.zeros((2, 2), "datetime64[D]"), SchemaError, "cannot read an array of datetime64"),
        (np.array([["a", 1]], dtype=object)[:, [0, 1]].T, TypeError, "column 'x0' holds 1 of type int"),
        (np.array([[{}]], dtype=object), TypeError, "column 'x0' holds {} of type dict"),
    ],
)
def test_what_is_no_table_is_refused(X, error, why):
    with pytest.raises(error, match=why):
        Schema.infer(X)


def test_kinds_override_what_is_inferred():
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 2, 3], "c": ["no", "yes", None], "d": [4.0, 7.0, np.nan]})
    schema = Schema.infer(frame, kinds={"a": "real", 1: "categorical", "c": "binary", "d": "categorical"})
    assert schema.kinds == ("real", "categorical", "binary", "categorical")
    assert schema.columns[1].categories == (1, 2, 3)
    assert schema.columns[2].categories == ("no", "yes")
    assert schema.columns[3].categories == (4.0, 7.0)
    encoded = schema.encode(frame)
    np.testing.assert_array_equal(encoded, [[0, 0, 0, 0], [1, 1, 1, 1], [1, 2, np.nan, np.nan]])
    pd.testing.assert_frame_equal(schema.decode(encoded).astype(object), frame.astype(object), check_dtype=False)


def test_kinds_of_arrays_go_by_position_or_name():
    rows = np.array([[0.0, 3.0], [1.0, 5.0]])
    assert Schema.infer(rows, kinds={0: "binary"}).kinds == ("binary", "count")
    assert Schema.infer(rows, kinds={"x1": "categorical"}).columns[1].categories == (3.0, 5.0)


def test_kinds_that_cannot_be_are_refused():
    frame = pd.DataFrame({"a": [0, 1, 2]})
    with pytest.raises(SchemaError, match="kinds names column 'z', which the data do not have"):
        Schema.infer(frame, kinds={"z": "real"})
    with pytest.raises(SchemaError, match="binary column 'a' needs two categories, got 3"):
        Schema.infer(frame, kinds={"a": "binary"})
    with pytest.raises(SchemaError, match="kind of column 'a' must be one of binary, categorical, ordinal, count"):
        Schema.infer(frame, kinds={"a": "reel"})


def test_as_real_reads_numbers_and_refuses_categories():
    schema = Schema((Column("a", "binary"), Column("b", "count"), Column("c", "real")), frame="pandas")
    assert schema.as_real().kinds == ("real", "grid", "real")
    assert schema.as_real().frame == "pandas"
    with pytest.raises(SchemaError, match="column 'd' is categorical"):
        Schema((Column("d", "categorical", ("x", "y")),)).as_real()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Schema(()), "at least one column"),
        (lambda: Schema((Column("a", "real"), Column("a", "real"))), "two columns are called 'a'"),
        (lambda: Schema.real(4, image_shape=(3, 2)), "holds 6 pixels, but there are 4 columns"),
        (lambda: Column("a", "categorical"), "needs its categories"),
        (lambda: Column("a", "binary", ("x",)), "needs two categories, got 1"),
        (lambda: Column("a", "real", ("x", "y")), "cannot have categories"),
        (lambda: Column("a", "categorical", ("x", "x")), "not distinct"),
    ],
)
def test_schemas_that_contradict_themselves(make, why):
    with pytest.raises(SchemaError, match=why):
        make()


def test_a_memory_map_is_read_where_it_is(tmp_path):
    rows = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    encoded = Schema.infer(mapped).encode(mapped)
    assert isinstance(encoded, np.memmap)
    assert encoded.dtype == np.float32


def test_blocks_cover_all_rows_once(monkeypatch):
    monkeypatch.setattr("likely.schema.arrays._BLOCK_CELLS", 10)
    rows = np.arange(42.0).reshape(14, 3)
    parts = list(blocks(rows))
    np.testing.assert_array_equal(np.concatenate([block for _, block in parts]), rows)
    assert [start for start, _ in parts] == [0, 3, 6, 9, 12]
    rows[13, 2] = np.inf
    with pytest.raises(SchemaError, match=r"'x2'.*row 13 holds inf"):
        Schema.real(3).encode(rows)
    assert Schema.infer(np.vstack([np.zeros((9, 3)), np.full((1, 3), 0.5)])).kinds == ("real",) * 3


def test_drawn_reals_have_the_decimals_that_were_seen_and_given_ones_their_own():
    pressure = np.random.default_rng(0).normal(1013, 6, 40).round(3)
    table = pl.DataFrame({"hpa": pressure})
    schema = Schema.infer(table)
    assert (schema.kinds, schema.columns[0].decimals) == (("real",), 3)
    assert Schema.from_json(schema.to_json()).columns[0].decimals == 3
    cells = np.array([[1008.6795032618098], [np.nan]])
    assert schema.decode(cells)["hpa"][0] == 1008.68
    assert schema.decode(cells, table[:2])["hpa"][0] == cells[0, 0]


def test_frames_with_numbers_as_names_and_bytes_as_cells():
    frame = pd.DataFrame(np.array([[0.5, 1.5], [2.5, np.nan]]))
    schema = Schema.infer(frame)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))).names == schema.names
    np.testing.assert_array_equal(schema.encode(frame), frame.to_numpy())
    table = np.array([[b"x", b"y"], [b"y", b"y"]])
    schema = Schema.infer(table)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))).kinds == schema.kinds


def test_a_series_is_no_table():
    with pytest.raises(SchemaError, match="Expected 2D array, got 1D array"):
        Schema.infer(pd.Series([1.0, 2.0]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_two_floats_of_which_one_is_whole_come_back(library):
    cells = [0.0, 937.01, 0.0, None, 937.01] * 20
    frame = pl.DataFrame({"bonus": cells})
    frame = frame.to_pandas() if library == "pandas" else frame
    schema = Schema.infer(frame)
    back = schema.decode(schema.encode(frame))
    assert schema.kinds == ("binary",)
    assert [None if cell != cell else cell for cell in back["bonus"].to_list()] == cells
