"""What columns are read as: grids, counts, spikes, bent reals, times; and what is left out."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.columns import Cells
from likely.schema import Column, Schema, SchemaError
from likely.schema.files import read_schema, to_toml
from likely.schema.numbers import POISSON_LEVEL, grid_step, poisson_p_value, read_numbers

N = 400


def numbers(seed: int) -> dict[str, np.ndarray]:
    """Columns of numbers by the kind that they should be read as."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(N) < 0.9, 0.0, rng.lognormal(3, 1, N))
    return {
        "binary": rng.integers(0, 2, N),
        "binary 1 or 2": rng.integers(1, 3, N),
        "grid of scales": rng.integers(1, 5, N),
        "grid of ages": rng.integers(18, 91, N),
        "grid of cents": np.round(rng.lognormal(2, 1, N), 2),
        "grid of halves": rng.integers(-9, 9, N) / 2,
        "grid of thousands": 1000 * rng.integers(10, 90, N),
        "count": rng.poisson(2.5, N),
        "real": rng.normal(size=N),
        "real skewed": rng.lognormal(0, 2, N),
        "real with a spike": gain,
    }


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_numbers_are_read_as_what_they_are(library, global_random_seed):
    schema = Schema.infer(library(numbers(global_random_seed)))
    for column in schema.columns:
        assert column.kind == column.name.split()[0], column
    by_name = {column.name: column for column in schema.columns}
    steps = {name: by_name[f"grid of {name}"].step for name in ("cents", "halves", "thousands", "ages")}
    assert steps == {"cents": 0.01, "halves": 0.5, "thousands": 1000.0, "ages": 1.0}
    assert by_name["binary 1 or 2"].categories == (1, 2)
    assert by_name["real skewed"].is_warped
    assert by_name["real with a spike"].spikes == (0,)
    assert not by_name["real"].is_warped
    assert all(row.why for row in schema.explain())


@pytest.mark.parametrize("single", [False, True])
def test_rounded_numbers_in_other_units_are_a_grid_without_spikes(single, global_random_seed):
    """Whole numbers that were standardised repeat as they did before: every value is one, not a spike."""
    found = numbers(global_random_seed)
    for name in ("grid of scales", "grid of ages", "grid of halves", "grid of thousands", "count"):
        whole = found[name].astype(float)
        other = ((whole - whole.mean()) / whole.std()).astype(np.float32 if single else np.float64)
        column = Schema.infer(other[:, None]).columns[0]
        assert (column.kind, column.spikes) == ("grid", ()), name
        places = (other.astype(float) - column.offset) / column.step
        np.testing.assert_allclose(places, np.rint(places), atol=1e-3)
        # The step is that of the values which there are, in the new units.
        steps = np.unique(np.diff(np.unique(whole)))
        np.testing.assert_allclose(column.step * whole.std(), np.gcd.reduce((2 * steps).astype(int)) / 2, rtol=1e-5)


def test_a_grid_with_an_offset_comes_back_and_has_masses(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    ages = rng.integers(18, 60, N)
    rows = ((ages - 33.3) / 7.7)[:, None]
    schema = Schema.infer(rows)
    np.testing.assert_allclose(schema.decode(schema.encode(rows)), rows, atol=1e-12)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    shifted, whole = schema.encode(rows), Schema.infer(ages[:, None].astype(float)).encode(ages[:, None])
    free = Schema((Column("x0", "grid", step=1.0),))
    one, other = Cells.fit(shifted, schema), Cells.fit(whole, free)
    np.testing.assert_array_equal(one.apply(shifted, float), other.apply(whole, float))
    np.testing.assert_allclose(one.log_weight(shifted), other.log_weight(whole))


def test_values_that_repeat_throughout_are_no_spikes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    values = rng.normal(size=15)  # on no grid
    column = Schema.infer(np.append(rng.choice(values, N), rng.normal(size=N))[:, None]).columns[0]
    assert (column.kind, column.spikes) == ("real", ())


def test_a_column_s_kind_does_not_flip_at_a_hundred(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    ages = rng.integers(18, 100, N)
    for top in (100, 101):
        assert Schema.infer(np.column_stack([np.append(ages, top), np.append(ages, top)])).kinds == ("grid", "grid")


def test_counts_pass_for_poisson_as_often_as_is_said(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    p_values = []
    for _ in range(300):
        values, counts = np.unique(rng.poisson(rng.uniform(0.5, 20), 200), return_counts=True)
        p_values.append(poisson_p_value(values, counts))
    # By the union of two tests the level holds; of 300 tests at 1e-4 one is refused in three runs of a hundred, two in
    # one of two thousand.
    assert np.sum(np.array(p_values) <= POISSON_LEVEL) <= 2
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * np.sqrt(0.05 / 300)
    for other in (rng.integers(0, 20, 200), rng.poisson(5, 200) * 2, rng.geometric(0.2, 200)):
        assert poisson_p_value(*np.unique(other, return_counts=True)) < POISSON_LEVEL


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1, 2, 7], 1.0),
        ([0.1, 0.3, 0.7], 0.1),
        (np.float32([0.1, 0.3, 0.7]), 0.1),
        (np.arange(0, 100, 5), 5.0),
        ([0, 5, 10], 1.0),  # three values may be multiples of 5 by chance
        (86_400 * np.arange(40), 86_400.0),
        (7 * np.arange(15), 1.0),  # fifteen values may be multiples of 7 by chance
        (np.sqrt([2, 3, 5]), None),
        (np.random.default_rng(0).normal(size=50).astype(np.float32), None),
        ([1e15 + 0.5, 2e15], None),
    ],
)
def test_steps_of_grids(values, step):
    assert grid_step(np.unique(np.asarray(values, np.float64)), 1000) == step


def test_digits_that_nobody_repeats_are_no_grid(global_random_seed):
    rows = np.round(np.random.default_rng(global_random_seed).normal(size=200), 6)
    assert read_numbers(rows).kind == "real"


def test_few_cells_show_little():
    assert read_numbers(np.array([3.0, 5.0, 9.0])).kind == "count"
    assert read_numbers(np.array([3.0, 500.0])).kind == "real"
    assert read_numbers(np.array([0.5, 0.5])).kind == "real"


def frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 500, N), unit="D")
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "code": [f"{value:08x}" for value in rng.permutation(10**6)[:N]],
            "review": [f"the {i} quick brown foxes jumped {i}" for i in range(N)],
            "always": "EUR",
            "never": np.full(N, np.nan),
            "age": rng.integers(18, 90, N),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], N), ["low", "mid", "top"], ordered=True),
            "city": rng.choice(["Ulm", "Rome"], N),
            "seen": days,
        },
        index=[f"row {i}" for i in range(N)],
    )


def test_columns_that_tell_rows_apart_are_left_out(global_random_seed):
    rows = frame(global_random_seed)
    schema = Schema.infer(rows)
    assert {c.name: c.role for c in schema.left_out} == {
        "id": "identifier",
        "code": "identifier",
        "review": "text",
        "always": "constant",
        "never": "empty",
    }
    assert schema.kinds == ("grid", "ordinal", "categorical", "datetime")
    assert schema.columns[-1].resolution == "day"
    kept = Schema.infer(rows, kinds={"code": "categorical"}, drop=["city"])
    assert "code" in kept.names
    assert [c.name for c in kept.left_out if c.role == "dropped"] == ["city"]
    with pytest.raises(SchemaError, match="drop names column 'town'"):
        Schema.infer(rows, drop=["town"])


def test_columns_with_hardly_a_cell_are_constant():
    rows = pl.DataFrame({"word": ["x"] + [None] * 29, "number": [None] * 28 + [3.0, 3.0], "other": [1, 2, 3] * 10})
    schema = Schema.infer(rows)
    assert schema.names == ("other",)
    assert {c.name: c.why for c in schema.left_out} == {
        "word": "its only observed cell is 'x'",
        "number": "all its observed cells are 3",
    }
    # Rows that are drawn have neither: where most cells are holes the value is the exception.
    assert schema.decode(np.array([[1.0]])).columns == ["other"]


def test_words_that_are_spelled_alike_are_said():
    schema = Schema.infer(pl.DataFrame({"a": ["red", "Red ", "blue"] * 10, "b": ["red", "blue", "grey"] * 10}))
    assert [c.why for c in schema.columns] == ["words, 'Red ' and 'red' being two", "words"]


def test_frames_come_back_with_index_types_and_other_columns(global_random_seed):
    rows = frame(global_random_seed)
    schema = Schema.infer(rows)
    pd.testing.assert_frame_equal(schema.decode(schema.encode(rows), like=rows), rows, check_dtype=False)
    back = schema.decode(schema.encode(rows))
    assert back["age"].dtype == rows["age"].dtype
    assert back["grade"].cat.ordered
    assert list(back["grade"].cat.categories) == ["low", "mid", "top"]


@pytest.mark.parametrize(
    "times",
    [
        pl.Series("t", [dt.date(2020, 2, 29), None, dt.date(1950, 1, 1)]),
        pl.Series("t", [dt.datetime(2020, 2, 29, 23), None, dt.datetime(1969, 1, 1, 5)]),
        pl.Series("t", [dt.datetime(2020, 2, 29, 23, 1, 2, 345), None]),
        pd.Series(pd.to_datetime(["2020-02-29 12:30", None]), name="t"),
        pd.Series(pd.to_datetime(["2020-02-29 12:30", "2020-07-01 01:00"]).tz_localize("Europe/Rome"), name="t"),
    ],
    ids=["dates", "hours", "microseconds", "minutes", "zone"],
)
def test_times_come_back(times):
    table = times.to_frame()
    schema = Schema.infer(table)
    assert schema.kinds == ("datetime",)
    again = schema.decode(schema.encode(table))
    assert again["t"].to_list() == times.to_list() or pd.Series(again["t"]).equals(pd.Series(times))
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_unseen_categories_are_no_error_unless_asked_for():
    schema = Schema.infer(pl.DataFrame({"city": ["Ulm", "Rome"] * 20, "n": [0.5, 0.25] * 20}))
    np.testing.assert_array_equal(
        schema.encode(pl.DataFrame({"city": ["Oslo", None], "n": [0.5, 0.25]}))[:, 0], [2, np.nan]
    )
    strict = Schema((Column("city", "categorical", ("Rome", "Ulm")),))
    with pytest.raises(SchemaError, match="row 0 holds 'Oslo'"):
        strict.encode(pl.DataFrame({"city": ["Oslo"]}))


def test_numbers_off_their_grid_are_taken_for_their_neighbours_and_beyond_the_support_refused():
    schema = Schema.infer(pl.DataFrame({"age": [*range(18, 90)]}).sample(fraction=1, shuffle=True, seed=0))
    cells = Cells.fit(schema.encode(pl.DataFrame({"age": [*range(18, 90)]})), schema)
    rows = schema.encode(pl.DataFrame({"age": [20.0, 20.4, 19.999999]}))
    np.testing.assert_array_equal(cells.apply(rows, np.float64), cells.apply(np.full((3, 1), 20.0), np.float64))
    with pytest.raises(SchemaError, match=r"'age' is grid and needs a multiple of 1 from 0, but row 1 holds -3.0"):
        schema.encode(pl.DataFrame({"age": [20.0, -3.0]}))


def test_schemas_as_toml_and_json(tmp_path, global_random_seed):
    for schema in (Schema.infer(frame(global_random_seed)), Schema.infer(pd.DataFrame(numbers(global_random_seed)))):
        (tmp_path / "s.toml").write_text(to_toml(schema))
        assert read_schema(tmp_path / "s.toml") == schema
        (tmp_path / "s.json").write_text(json.dumps(schema.to_json()))
        assert read_schema(tmp_path / "s.json") == schema
    (tmp_path / "s.toml").write_text('[[columns]]\nname = "a"\nkind = "real"\ncolour = "red"')
    with pytest.raises(SchemaError, match="has no 'colour'"):
        read_schema(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text("columns = 3")
    with pytest.raises(SchemaError, match="describes no schema"):
        read_schema(tmp_path / "s.toml")
    with pytest.raises(SchemaError, match="cannot read a schema"):
        read_schema(tmp_path / "absent.toml")


def test_repeated_numbers_on_no_grid_are_ordinal_and_come_back():
    """Two of them are binary: neither is whole, which a frame of numbers must not mind."""
    rng = np.random.default_rng(0)
    for values, kind in (([2**0.5, 2.0, np.e, np.pi], "ordinal"), ([1.5, 4.0], "binary")):
        table = pl.DataFrame({"x": rng.choice(values, 200)})
        schema = Schema.infer(table)
        assert (schema.kinds, schema.columns[0].categories) == ((kind,), tuple(values))
        assert schema.decode(schema.encode(table)).equals(table)
        assert schema.as_real().kinds == ("real",)


def test_a_number_that_nearly_all_cells_repeat_is_a_spike():
    cells = np.append(np.full(590, 20.5), np.random.default_rng(0).normal(size=10))
    assert Schema.infer(pl.DataFrame({"x": cells})).columns[0].spikes == (20.5,)


@pytest.mark.parametrize("scale", [1e-12, 1e-30, 1e-300])
def test_tiny_numbers_are_no_zeros(scale, global_random_seed):
    rows = np.random.default_rng(global_random_seed).normal(size=(200, 1)) * scale
    schema = Schema.infer(rows)
    assert schema.kinds == ("real",)
    np.testing.assert_array_equal(schema.decode(schema.encode(rows)), rows)


def test_rounding_errors_beside_whole_numbers_are_zeros():
    values = np.array([0.1 + 0.2 - 0.3, 1.0, 2.0, 3.0, 7.0])  # The first is 5.6e-17.
    assert grid_step(np.sort(values), 100) == 1.0


def test_large_whole_numbers_come_back(global_random_seed):
    rows = np.rint(np.random.default_rng(global_random_seed).uniform(1e14, 1e15, (200, 1)))
    schema = Schema.infer(rows)
    np.testing.assert_array_equal(schema.decode(schema.encode(rows)), rows)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_infinite_numbers_of_a_frame_are_refused_with_their_row(library, share):
    cells = np.where(np.arange(20) < 20 * share, -np.inf, np.arange(20) % 7 + 0.25)
    with pytest.raises(SchemaError, match=r"'depth' holds -inf in row 0, which is not finite: .* NaN"):
        Schema.infer(library({"depth": cells, "other": np.arange(20) % 3}))


def test_a_name_that_stands_twice_is_refused_with_its_columns():
    arrow = pl.DataFrame({"a": [1, 2], "b": [1, 2], "c": [3, 4]}).to_arrow()
    twice = pd.DataFrame([[1, 2, 3]], columns=["size", "b", "size"])
    for frame, name in (
        (twice, "size"),
        (arrow.rename_columns(["x", "b", "x"]), "x"),
        (twice.set_axis([1, "b", "1"], axis=1), "1"),
    ):
        with pytest.raises(SchemaError, match=rf"columns 0 and 2 are both called '{name}': rename one"):
            Schema.infer(frame)


def test_types_of_pandas_that_know_missing_cells_come_back_with_given_rows():
    table = pd.DataFrame(
        {
            "n": pd.array([3, None, 5, 4] * 10, "Int64"),
            "b": pd.array([True, False, None, True] * 10, "boolean"),
            "f": pd.array([0.25, 1.5, None, 2.125] * 10, "Float64"),
            "plain": [7, 9, 8, 7] * 10,
        }
    )
    schema = Schema.infer(table)
    filled = schema.decode(np.nan_to_num(schema.encode(table), nan=1.0), like=table)
    assert filled.dtypes.to_dict() == table.dtypes.to_dict()
    assert filled["n"].tolist()[:4] == [3, 1, 5, 4]
    half = schema.decode(np.where(np.isnan(schema.encode(table)), 0.5, schema.encode(table)), like=table)
    assert half["n"].tolist()[0] == 3
