"""Every model takes every kind of column: what is drawn and filled in could be in the table, and evidence is honest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import likely
from likely.contract.evidence import SIGNS
from tests.contracts.table import NAMES, is_binary_only, is_real_only, labels_for, small, with_hook

N = 120  # rows, as in the other tables of the contract, so that programs compiled for them serve here too
ANY = [name for name in NAMES if not is_binary_only(name) and not is_real_only(name)]


def messy(seed: int, n: int = N) -> pl.DataFrame:
    """A column of every kind, with holes, an identifier and a constant."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    day = np.datetime64("2022-01-01") + rng.integers(0, 90, n)
    frame = pl.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "currency": ["EUR"] * n,
            "age": rng.integers(20, 60, n) + 10 * group,
            "price": np.round(rng.lognormal(1 + group, 0.5, n), 2),
            "gain": np.where(rng.random(n) < 0.7, 0.0, rng.lognormal(2, 1, n)),
            "city": rng.choice(["Ulm", "Rome", "Oslo"], n),
            "grade": pl.Series(rng.choice(["low", "mid", "top"], n), dtype=pl.Enum(["low", "mid", "top"])),
            "seen": pl.Series(day.astype("datetime64[D]")),
        }
    )
    holes = rng.random((n, frame.width)) < 0.15
    return frame.with_columns(
        pl.when(pl.Series(holes[:, place])).then(None).otherwise(pl.col(name)).alias(name)
        for place, name in enumerate(frame.columns)
        if name not in ("id", "currency")
    )


@pytest.fixture(scope="module")
def fitted():
    """Models by name, each fitted once."""
    kept: dict[str, likely.Model] = {}

    def fit(name: str) -> likely.Model:
        if name not in kept:
            frame = messy(0)
            rows = frame[["id", "age", "price"]] if is_real_only(name) else frame
            kept[name] = small(name).fit(rows, labels_for(name, rows))
        return kept[name]

    return fit


def assert_could_be(drawn: pl.DataFrame, rows: pl.DataFrame) -> None:
    """Whether every value is of a kind that the rows have."""
    assert drawn["age"].dtype == rows["age"].dtype
    assert drawn["age"].min() >= 0
    cents = drawn["price"].to_numpy() * 100
    np.testing.assert_allclose(cents, np.rint(cents), atol=1e-6)
    assert cents.min() >= 0
    if "gain" in drawn.columns:
        assert drawn["gain"].min() >= 0
        assert set(drawn["city"]) <= {"Ulm", "Rome", "Oslo"}
        assert drawn["grade"].dtype == rows["grade"].dtype
        assert drawn["seen"].dtype == pl.Date
        assert drawn["seen"].is_between(rows["seen"].min(), rows["seen"].max()).all()


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # Small models have short chains.
@pytest.mark.parametrize("name", [name for name in with_hook("_sample") if not is_binary_only(name)])
def test_drawn_rows_could_exist(name, fitted):
    rows = messy(0)
    drawn = fitted(name).sample(150, random_state=1)
    assert "id" not in drawn.columns
    assert_could_be(drawn, rows)


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")
@pytest.mark.parametrize("name", [name for name in with_hook("_condition") if not is_binary_only(name)])
def test_filled_cells_could_exist_and_the_rest_comes_back(name, fitted):
    rows = messy(1)[:40]
    rows = rows[["id", "age", "price"]] if is_real_only(name) else rows
    filled = fitted(name).impute(rows)
    assert filled.columns == rows.columns
    assert filled.null_count().sum_horizontal()[0] == 0
    for column in rows.columns:
        known = rows[column].is_not_null()
        assert filled[column].filter(known).to_list() == rows[column].filter(known).to_list()
    assert_could_be(filled, rows)


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")
@pytest.mark.parametrize("name", [name for name in with_hook("_evidence") if not is_binary_only(name)])
def test_rounded_cells_and_categories_have_probabilities(name, fitted):
    model = fitted(name)
    columns = ["id", "age", "price"] if is_real_only(name) else messy(0).columns
    rows = messy(2)[:60][columns]
    if not is_real_only(name):
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias("gain"))  # the one density
    evidence = model.evidence(rows)
    assert evidence.kind in SIGNS
    assert np.isfinite(evidence.values).all()
    assert (evidence.values <= 5 * evidence.stderr).all()
    assert evidence.measure.densities == (() if is_real_only(name) else ("gain",))


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")
@pytest.mark.parametrize("name", ANY)
def test_a_category_never_seen_is_no_error(name, fitted):
    rows = messy(3)[:3].with_columns(pl.Series("city", ["Oslo", "Lima", None]))
    evidence = fitted(name).evidence(rows)
    assert evidence.kind == "unavailable" or np.isfinite(evidence.values).all()


@pytest.mark.parametrize("name", ["Mixture", "FactorAnalysis", "VAE"])
def test_cells_are_saved_with_the_model(name, fitted, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    rows = messy(4)[:20][["id", "age", "price"]] if is_real_only(name) else messy(4)[:20]
    np.testing.assert_array_equal(again.evidence(rows).values, model.evidence(rows).values)
    assert again.sample(20, random_state=3).equals(model.sample(20, random_state=3))


def test_all_values_of_a_rounded_column_sum_to_one(fitted):
    """By the model's own evidence of rows that have nothing but the one cell."""
    model = fitted("Mixture")
    ages = np.arange(0, 400)
    empty = {name: pl.Series([None] * len(ages), dtype=messy(0).schema[name]) for name in messy(0).columns}
    rows = pl.DataFrame(empty).with_columns(pl.Series("age", ages))
    total = np.exp(model.evidence(rows).values).sum()
    np.testing.assert_allclose(total, 1, rtol=1e-4)


def test_other_units_change_evidence_by_the_jacobian_and_rounded_cells_not_at_all():
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"length": rng.lognormal(0, 1, 200), "age": rng.integers(1, 90, 200)})
    other = rows.with_columns(pl.col("length") * 2.54, pl.col("age") * 10)
    one, two = (likely.Mixture(2, random_state=0).fit(table).evidence(table).values for table in (rows, other))
    np.testing.assert_allclose(one - two, np.log(2.54), atol=2e-3)  # EM stops within 1e-3 nats of its end
