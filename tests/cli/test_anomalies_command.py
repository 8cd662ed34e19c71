"""`likely anomalies`: rows are named by their number in the file, with reasons; files keep every column."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from tests.cli.test_commands import refused, succeed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("anomalies")


@pytest.fixture(scope="module")
def table(folder):
    """Two columns that go together, a word, and one row in which they do not."""
    rng = np.random.default_rng(0)
    size = rng.normal(170, 10, 80)
    weight = (size - 100 + rng.normal(0, 3, 80)).tolist()
    weight[6], weight[9] = 20.5, None
    frame = pl.DataFrame({"height": size.round(2), "weight": weight, "eyes": np.where(size > 170, "blue", "brown")})
    frame.write_csv(folder / "table.csv")
    frame.with_columns(id=pl.Series([f"n{i}" for i in range(80)])).write_csv(folder / "named.csv")
    return folder / "table.csv"


@pytest.fixture(scope="module")
def model(folder, table):
    settings = ("--set", "n_components=1", "--set", "covariance=full", "--set", "n_init=1")
    succeed("fit", "mixture", table, "--out", folder / "m.likely", *settings)
    return folder / "m.likely"


def test_the_oddest_row_by_its_number_with_its_cells(model, table):
    head, names, first, *others = succeed("anomalies", model, table, "--top", 3).stdout.splitlines()
    assert head == "3 oddest of 80 rows by Mixture, 1,000 draws"
    assert names.split()[:3] == ["row", "surprise", "tail"]
    assert first.split()[0] == "7"
    assert "weight=20.5" in first
    assert len(others) == 2


def test_json_says_the_same(model, table):
    found = json.loads(succeed("anomalies", model, table, "--top", 2, "--json").stdout)
    assert (found["n_rows"], found["n_draws"], len(found["rows"])) == (80, 1000, 2)
    assert found["rows"][0]["row"] == 7
    assert {reason["column"] for reason in found["rows"][0]["why"][:2]} == {"height", "weight"}
    assert "why" not in json.loads(succeed("anomalies", model, table, "--json", "--no-why").stdout)["rows"][0]


def test_the_file_has_every_column_and_row(model, folder, table):
    succeed("anomalies", model, folder / "named.csv", "--top", 2, "--out", folder / "ranked.csv")
    ranked = pl.read_csv(folder / "ranked.csv")
    names = ["height", "weight", "eyes", "id", "surprise", "tail", "tail_stderr", "why"]
    assert ranked.columns == names
    assert ranked["id"].to_list() == [f"n{i}" for i in range(80)]
    assert ranked["surprise"].arg_max() == 6
    assert ranked["why"].drop_nulls().len() == 2


def test_a_table_alone_is_judged_by_a_committee(table, folder):
    pl.read_csv(table).drop("eyes").drop_nulls().write_csv(folder / "whole.csv")  # without holes nothing is masked
    found = json.loads(succeed("anomalies", folder / "whole.csv", "--top", 1, "--json", "--no-why").stdout)
    assert found["model"] == "a committee of models"
    assert found["rows"][0]["row"] == 7


def test_wrong_uses(model, table, folder):
    refused("anomalies", model, words="is a model's file: give the table too")
    refused("anomalies", model, table, table, words="got 3 files")
    refused("anomalies", model, table, "--kind", "eyes=categorical", words="the model knows")
    refused("anomalies", model, table, "--out", folder / "ranked.npy", words=".csv, .parquet")
