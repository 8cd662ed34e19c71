"""`likely fidelity`: the table, the JSON, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest

from tests.cli.test_commands import refused, succeed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two halves of a table, and a third with ages that cannot be."""
    folder, rng = tmp_path_factory.mktemp("fidelity"), np.random.default_rng(0)
    age = rng.integers(18, 90, 300)
    table = pl.DataFrame({"age": age, "drink": np.where(age + 20 * rng.normal(size=300) > 50, "tea", "coffee")})
    parts = {"real": table[:100], "holdout": table[100:200], "drawn": table[200:]}
    parts["bad"] = parts["drawn"].with_columns(age=pl.when(pl.int_range(100) < 25).then(-1).otherwise(pl.col("age")))
    for name, rows in parts.items():
        rows.write_csv(folder / f"{name}.csv", separator=";")
    return {name: folder / f"{name}.csv" for name in parts}


def test_table_and_json(files):
    text = succeed("fidelity", files["real"], files["bad"], "--holdout", files["holdout"], "--target", "drink").stdout
    assert "age: negative ◂" in text
    assert "0.2500" in text
    assert "100 drawn, 100 real and 100 held-out rows" in text
    found = json.loads(succeed("fidelity", files["real"], files["drawn"], "--json", "--separator", ";").stdout)
    assert (found["n_real"], found["n_holdout"], found["usefulness"]) == (100, 0, None)
    assert found["impossible_rows"] < 0.25
    assert [column["column"] for column in found["marginals"]] == ["age", "drink"]


def test_drawn_rows_without_what_models_leave_out(files, tmp_path):
    """An identifier is in no drawn row, and codes are read as those of the real rows, be there zeros or not."""
    real = pl.read_csv(files["real"], separator=";").with_row_index("id", 1)
    real = real.with_columns(zip=pl.Series(["01067", "04109"] * 50), key=pl.Series([f"K-{i * i}" for i in range(100)]))
    real.write_csv(tmp_path / "real.csv")
    drawn = real.select("age", "drink", zip=pl.lit("10115"))
    drawn.write_csv(tmp_path / "drawn.csv")
    result = succeed("fidelity", tmp_path / "real.csv", tmp_path / "drawn.csv")
    assert "not compared, since models leave them out: id, key" in " ".join(result.stdout.split())
    assert "zip: unseen" in result.stdout


def test_what_is_refused(files, tmp_path):
    refused("fidelity", files["real"], tmp_path / "none.csv", words="there is no file or folder")
    refused("fidelity", files["real"], files["drawn"], "--target", "drinks", words="Did you mean 'drink'?")
    (tmp_path / "other.csv").write_text("height,drink\n1,tea\n2,tea\n")
    refused("fidelity", files["real"], tmp_path / "other.csv", words="the drawn rows have no column 'age'")
