"""Multiple imputation, intervals and marks of `likely impute`; what `likely sample` is given."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import likely
from tests.cli.test_commands import refused, succeed


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "sex": np.where(rng.random(100) < 0.5, "Female", "Male"),
            "age": rng.integers(20, 60, 100),
            "size": rng.normal(size=100).round(4),
        }
    )
    holes = pl.Series(np.arange(100) % 10 == 0)
    frame = frame.with_columns(pl.when(~holes).then(pl.col("sex", "age")))
    path = tmp_path_factory.mktemp("completion") / "table.csv"
    frame.write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(table):
    path = table.with_name("model.likely")
    succeed("fit", "independent", table, "--out", path)
    return path


def test_draws_are_copies_in_one_table(model, table, tmp_path):
    out = tmp_path / "copies.csv"
    succeed("impute", model, table, "--draws", 3, "--mark", "--seed", 1, "--out", out)
    copies, given = pl.read_csv(out), pl.read_csv(table)
    assert copies.columns == ["draw", "row", *given.columns, "filled"]
    assert copies["draw"].to_list() == [1] * 100 + [2] * 100 + [3] * 100
    assert copies["row"].to_list() == list(range(1, 101)) * 3
    fitted = likely.load(model)
    expected = fitted.condition(likely.datasets.read_table(table, schema=fitted.schema_).frame).sample(
        3, random_state=1
    )
    assert copies["age"].to_list() == [age for copy in expected for age in copy["age"].to_list()]
    for copy in copies.partition_by("draw"):
        known = given["age"].is_not_null()
        assert copy.filter(known)["age"].equals(given.filter(known)["age"])
        assert copy["age"].null_count() == copy["sex"].null_count() == 0
        assert copy["filled"].fill_null("").to_list() == ["sex, age" if i % 10 == 0 else "" for i in range(100)]
    assert len(set(copies.filter(pl.col("row") == 1)["age"])) > 1


def test_intervals_are_those_of_the_conditional(model, table):
    rows = json.loads(succeed("impute", model, table, "--intervals", 0.8, "--mark", "--json").stdout)["rows"]
    assert list(rows[0]) == ["sex", "age", "age_low", "age_high", "size", "filled"]
    fitted = likely.load(model)
    low, high = fitted.condition(likely.datasets.read_table(table, schema=fitted.schema_).frame).interval(0.8)
    assert [row["age_low"] for row in rows] == pytest.approx(low[:, 1])
    assert [row["age_high"] for row in rows] == pytest.approx(high[:, 1])
    assert rows[0]["age_low"] < rows[0]["age"] < rows[0]["age_high"]
    assert rows[1]["age_low"] == rows[1]["age"] == rows[1]["age_high"]


def test_wrong_additions_are_refused(model, table, tmp_path):
    refused("impute", model, table, "--draws", 0, words="--draws")
    refused("impute", model, table, "--intervals", 90, words="between 0 and 1")
    refused("impute", model, table, "--intervals", 0.9, "--draws", 2, words="give one of them")
    refused("impute", model, table, "--draws", 2, "--out", tmp_path / "c.npy", words=".csv or .parquet")


def test_given_rows(model):
    rows = json.loads(succeed("sample", model, "-n", 20, "--given", "sex=Female,age=30..40", "--json").stdout)
    assert {row["sex"] for row in rows["rows"]} == {"Female"}
    assert all(30 <= row["age"] <= 40 for row in rows["rows"])
    assert len(rows["rows"]) == 20
    assert "20 kept of" in rows["method"]
    text = succeed("sample", model, "-n", 40, "--given", "sex=Female|Male", "--given", "size=..0", "--holes", "0.5")
    found = pl.read_csv(text.stdout.encode())
    assert found["size"].max() <= 0
    assert found["sex"].null_count() == 0
    assert 0 < found["age"].null_count() < 40


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--given", "sx=Female"), "Did you mean 'sex'?"),
        (("--given", "sex=Femal"), "Did you mean 'Female'?"),
        (("--given", "age"), "COLUMN=VALUE"),
        (("--given", "age=40..30"), "is empty"),
        (("--given", "age=old"), "holds numbers, got 'old'"),
        (("--given", "age=30,age=31"), "twice"),
        (("--holes", "many"), "a share such as 0.1"),
        (("--holes", "1.5"), "share from 0"),
    ],
)
def test_wrong_events_are_refused(model, options, words):
    refused("sample", model, *options, words=words)
