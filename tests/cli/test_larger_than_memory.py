"""Commands on tables that memory does not hold write the bytes that they write of tables in memory."""

from __future__ import annotations

import datetime
import json
from functools import partialmethod

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import likely
from likely import memory
from likely.cli import completion, output, prediction
from likely.cli.app import app
from likely.contract import batches, evidence
from likely.contract.conditional import Conditional

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
    path = table.with_name("independent.likely")
    rows = likely.datasets.read(table).drop("name")
    likely.Independent(random_state=0).fit(rows).save(path)
    return path


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for a part of a table: it is read through the disk, answered in batches, and written by parts."""

    def shrink():
        monkeypatch.setenv(memory.VARIABLE, "40kB")
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
    log_p = likely.load(model).score_samples(likely.datasets.read(table).drop("name"))
    assert np.array_equal(np.load(tmp_path / "whole" / "scores.npy")[:, 0], log_p)


def same_files(small_memory, tmp_path, command, *options):
    """What a command writes of a table in memory and of one that is not, which are the same bytes."""
    found = []
    for place in ("whole", "apart"):
        if place == "apart":
            small_memory()
        found.append(tmp_path / f"{place}{'.csv' if '--draws' in options else '.parquet'}")
        said = succeed(*command, "--out", found[-1], *options)
        assert ("temporary files" in said.stderr) == (place == "apart")
    assert found[0].read_bytes() == found[1].read_bytes()
    return found[0]


@pytest.mark.parametrize("options", [("--mark",), ("--intervals", 0.5), ("--draws", 2, "--mark", "--seed", 1)])
def test_filled_rows_with_what_is_beside_them_are_those_in_memory(
    options, model, table, small_memory, tmp_path, monkeypatch
):
    monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)  # Draws of a batch are its own, in memory as on the disk.
    monkeypatch.setattr(completion, "_DRAWN_CELLS", 256 * 1000 * 5)
    monkeypatch.setattr(Conditional, "interval", partialmethod(Conditional.interval, n_draws=20))
    path = same_files(small_memory, tmp_path, ("impute", model, table), *options)
    filled = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    assert len(filled) == N_ROWS * (2 if "--draws" in options else 1)
    plain = likely.load(model).impute(likely.datasets.read(table).drop("name"))
    holes = likely.datasets.read(table)["rounded"].is_null().to_numpy()
    assert np.array_equal(filled["rounded"][:N_ROWS].to_numpy()[~holes], plain["rounded"].to_numpy()[~holes])
    if "--draws" not in options:
        assert np.array_equal(filled["rounded"].to_numpy(), plain["rounded"].to_numpy())
    if "--mark" in options:
        assert np.array_equal(filled["filled"][-N_ROWS:].str.contains("rounded"), holes)


def test_rows_of_different_batches_are_filled_by_different_draws(model, monkeypatch):
    monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)
    rows = pl.DataFrame(
        {"real": [None] * 512, "rounded": 0.1, "count": 1, "word": "red", "day": datetime.date(2020, 1, 2)}
    )
    rows = rows.with_columns(pl.col("real").cast(pl.Float64))

    def of_batches():
        judge = likely.load(model)
        found = completion.completed(judge, rows, judge.condition(rows[:1]), 1, None, False, 0)
        return np.split(found["real"].to_numpy(), 2)

    one, other = of_batches()
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.3  # five standard errors of 256 pairs
    monkeypatch.setattr("likely.contract.model.key_of", lambda key, first: key)
    one, other = of_batches()
    assert np.array_equal(one, other)


def test_predictions_and_their_scores_are_those_in_memory(table, small_memory, tmp_path, monkeypatch):
    rows = likely.datasets.read(table).drop("name", "day").drop_nulls()
    rows.write_csv(tmp_path / "rows.csv")
    predictor = likely.LinearPredictor(random_state=0).fit(rows[:100], "rounded")
    predictor.save(tmp_path / "predictor.likely")
    mean, log_p = predictor.predict(rows.drop("rounded")), predictor.evidence(rows, "rounded").values
    monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)
    monkeypatch.setattr(prediction, "_CELLS_A_NUMBER", 1)
    monkeypatch.setattr(Conditional, "interval", partialmethod(Conditional.interval, n_draws=20))
    files = tmp_path / "predictor.likely", tmp_path / "rows.csv"
    predicted = same_files(small_memory, tmp_path, ("predict", *files))
    np.testing.assert_allclose(pl.read_parquet(predicted)["rounded"], mean)
    succeed("score", *files, "--out", predicted, "--force")
    np.testing.assert_allclose(pl.read_parquet(predicted)["log_p"], log_p, rtol=1e-5)
