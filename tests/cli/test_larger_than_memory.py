"""Commands on tables that memory does not hold write the bytes that they write of tables in memory."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import likely
from likely import memory
from likely.cli import output
from likely.cli.app import app
from likely.contract import batches, evidence

N_ROWS = 600


def succeed(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A mixed table with holes, and a column that models are not given."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, N_ROWS)
    frame = pl.DataFrame(
        {
            "name": [f"row {number}" for number in range(N_ROWS)],
            "real": rng.normal(3.0 * group),
            "rounded": np.round(rng.normal(group), 1),
            "count": rng.poisson(1 + group),
            "word": np.array(["red", "green"])[group],
            "day": np.datetime64("2020-01-01") + 7 * group + rng.integers(0, 3, N_ROWS),
        }
    )
    holes = rng.random((N_ROWS, frame.width)) < 0.1
    path = tmp_path_factory.mktemp("large") / "table.csv"
    frame.with_columns(
        pl.when(pl.Series(~holes[:, place])).then(pl.col(name)).alias(name)
        for place, name in enumerate(frame.columns)
        if name != "name"
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(table):
    path = table.with_name("mixture.likely")
    rows = likely.datasets.read(table).drop("name")
    # Covariances take rounded numbers as real ones, the mass of whose intervals has an error.
    likely.Mixture(2, covariance="full", max_iter=5, n_init=1, random_state=0).fit(rows).save(path)
    return path


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for a part of a table: it is read through the disk, answered in batches, and written by parts."""

    def shrink():
        monkeypatch.setenv(memory.VARIABLE, "80kB")
        monkeypatch.setattr(memory, "_SMALL", 100)
        monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)
        monkeypatch.setattr(evidence, "_CELLS_AT_ONCE", 1000)
        monkeypatch.setattr(output, "_ROWS_AT_ONCE", 100)

    return shrink


def test_scores_are_those_in_memory(model, table, small_memory, tmp_path):
    names = [f"scores{suffix}" for suffix in (".csv", ".parquet", ".npy")]
    (tmp_path / "whole").mkdir()
    (tmp_path / "apart").mkdir()
    whole = [succeed("score", model, table, "--out", tmp_path / "whole" / name, "--json") for name in names]
    small_memory()
    apart = [succeed("score", model, table, "--out", tmp_path / "apart" / name, "--json") for name in names]
    assert "temporary files" in apart[0].stderr
    assert "temporary files" not in whole[0].stderr
    for name, one, other in zip(names, whole, apart, strict=True):
        assert (tmp_path / "apart" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        assert json.loads(other.stdout) | {"out": ""} == json.loads(one.stdout) | {"out": ""}
    # Points in the intervals of rounded cells give a value and its error: the columns differ.
    assert pl.read_csv(tmp_path / "whole" / "scores.csv")["stderr"].max() > 0
