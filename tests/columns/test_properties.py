"""What every kind of column keeps, from a user's values to cells and back.

The model of the cells is fixed and simple, so that what is tested is the reading: random shares of categories, a
Poisson distribution, the standard Gaussian. Then log p of a value is that of its cells plus `log_weight`.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from likely.columns.cells import Cells
from likely.columns.codecs.warp import Warp
from likely.schema import Schema

N = 600
RNG = np.random.default_rng(5)
GRADES = pl.Enum(["low", "mid", "top", "never"])
WORDS = np.array([f"w{k}" for k in range(90)])
LOGNORMAL = RNG.lognormal(1, 1.2, N)

TABLES = {
    "binary": pl.Series(RNG.choice([False, True], N)),
    "binary, two numbers": pl.Series(RNG.choice([1.5, 4.0], N)),
    "categorical": pl.Series(RNG.choice(["Ulm", "Rome", "Oslo"], N)),
    "categorical, many": pl.Series(WORDS[np.minimum(RNG.geometric(0.05, N) - 1, 89)]),
    "ordinal": pl.Series(RNG.choice(["low", "mid", "top"], N), dtype=GRADES),
    "ordinal, numbers": pl.Series(RNG.choice([2**0.5, 2.0, 2.718281828459045, 3.141592653589793], N)),
    "count": pl.Series(RNG.poisson(3, N)),
    "grid": pl.Series(RNG.integers(18, 91, N)),
    "grid, cents": pl.Series(np.round(LOGNORMAL, 2)),
    "grid, other units": pl.Series((RNG.integers(18, 91, N) - 40.1) / 8.3),
    "real": pl.Series(RNG.normal(20, 5, N)),
    "real, bent": pl.Series(LOGNORMAL),
    "real, spike": pl.Series(np.where(RNG.random(N) < 0.7, 0.0, LOGNORMAL)),
    "datetime, days": pl.Series(np.datetime64("2022-01-01") + RNG.integers(0, 90, N)),
    "datetime, quarters of hours": pl.Series(
        (np.datetime64("2022-01-01T00:00") + 15 * RNG.integers(0, 3000, N)).astype("datetime64[us]")
    ),
}
NUMBERS = [name for name in TABLES if name.startswith(("grid", "real"))]


def read(values: pl.Series, **options) -> tuple[Schema, np.ndarray, Cells]:
    """The schema of a table of one column, its encoded rows (n, 1), and their cells."""
    frame = pl.DataFrame({"x": values})
    schema = Schema.infer(frame, **options)
    encoded = schema.encode(frame)
    return schema, encoded, Cells.fit(encoded, schema)


def log_p(cells: Cells, encoded: np.ndarray) -> np.ndarray:
    """log p of encoded values (n, 1) under the fixed model of their cells."""
    out = cells.log_weight(encoded)
    coded = cells.apply(encoded, np.float64)
    rng = np.random.default_rng(1)
    for cell, kind, size in zip(coded.T, cells.columns.kinds, cells.columns.n_categories, strict=True):
        shares = rng.dirichlet(np.ones(2 if kind == "binary" else max(1, size)))
        known = np.nan_to_num(cell)
        if kind in ("binary", "categorical"):
            own = np.log(shares[known.astype(int)])
        else:
            own = stats.poisson(3).logpmf(known) if kind == "count" else stats.norm.logpdf(known)
        out = out + np.where(np.isnan(cell), 0.0, own)
    return out


def every_value(name: str, schema: Schema, encoded: np.ndarray, cells: Cells) -> np.ndarray:
    """All encoded values that have probabilities, or so many that less than e^-50 lies beyond; of reals the spikes."""
    column, kind = schema.columns[0], schema.kinds[0]
    if column.categories is not None:
        return np.arange(len(column.categories) + (column.unseen == "reserve"), dtype=float)
    if kind == "count":
        return np.arange(0.0, 200.0)
    if kind == "real":
        return np.array(column.spikes)
    step = float(column.step or 1)
    low, high = encoded.min() / step, encoded.max() / step
    room = 60 * max(1.0, 0.1 * (high - low))
    if kind == "datetime":  # Beyond the range whole days, weeks or months fall off.
        a_day = cells.codecs[0].ticks_a_day
        days = 60 * max(1.0, 0.1 * (high - low) / a_day / 7) * 7
        low, high = low - days * a_day, high + days * a_day
        return np.arange(low // (7 * a_day) * 7 * a_day, high)
    places = np.arange(np.rint(low - room), np.rint(high + room) + 1) * step
    return places if column.support[0] is None else places[places >= column.support[0]]


def integral(cells: Cells, encoded: np.ndarray) -> tuple[float, float]:
    """∫ p(x) dx by the trapezoidal rule, and its error by half as many points; x are dense where the rows are."""
    middle, width = np.median(encoded), np.subtract(*np.quantile(encoded, [0.75, 0.25])) or 1.0
    x = middle + width * np.sinh(np.linspace(-18, 18, 80_001))
    p = np.exp(log_p(cells, x[:, None]))
    fine, coarse = np.trapezoid(p, x), np.trapezoid(p[::2], x[::2])
    return float(fine), abs(fine - coarse)


def check_total(name: str) -> None:
    schema, encoded, cells = read(TABLES[name])
    values = every_value(name, schema, encoded, cells)
    total, error = float(np.exp(log_p(cells, values[:, None])).sum()) if len(values) else 0.0, 1e-9
    if schema.kinds[0] == "real":
        inside, error = integral(cells, encoded[~np.isin(encoded[:, 0], schema.columns[0].spikes)])
        total += inside
    assert abs(total - 1) <= error + 1e-6


@pytest.mark.parametrize("name", TABLES)
def test_masses_sum_and_densities_integrate_to_one(name):
    check_total(name)


@pytest.mark.parametrize("name", ["real, bent", "real, spike"])
def test_a_forgotten_jacobian_is_caught(name, monkeypatch):
    monkeypatch.setattr(Warp, "log_weight", lambda self, x, shift=None: np.zeros(len(x)))
    with pytest.raises(AssertionError):
        check_total(name)


@pytest.mark.parametrize("name", TABLES)
def test_values_come_back_through_the_schema_and_stay_in_their_cells(name):
    frame = pl.DataFrame({"x": TABLES[name]}).with_columns(pl.when(pl.int_range(N) % 7 > 0).then("x"))
    schema = Schema.infer(frame)
    encoded = schema.encode(frame)
    back = schema.decode(encoded, frame)
    assert back.schema == frame.schema
    known = frame["x"].is_not_null()
    assert (back["x"].is_not_null() == known).all()
    if frame["x"].dtype.is_float():
        np.testing.assert_allclose(back["x"].filter(known), frame["x"].filter(known), rtol=1e-12)
    else:
        assert back["x"].equals(frame["x"])
    cells = Cells.fit(encoded, schema)
    coded = cells.apply(encoded, np.float64)
    drawn = cells.invert(coded, np.random.default_rng(0))
    inside = (drawn > np.nanmin(encoded)) & (drawn < np.nanmax(encoded)) | np.isnan(drawn)  # times are cut off there
    kept = inside[:, 0] if schema.kinds[0] == "datetime" else slice(None)
    np.testing.assert_allclose(cells.apply(drawn, np.float64)[kept], coded[kept], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_other_units_change_evidence_by_the_jacobian_of_densities_alone(name):
    """In tenths, a power of ten, by which rounded numbers are rounded still."""
    (schema, encoded, cells), (other, scaled, its_cells) = read(TABLES[name]), read(TABLES[name] * 10)
    assert other.kinds == schema.kinds
    density = 0.0
    if schema.kinds[0] == "real":
        density = np.where(np.isin(encoded[:, 0], schema.columns[0].spikes), 0.0, np.log(10))
    np.testing.assert_allclose(log_p(cells, encoded) - log_p(its_cells, scaled), density, atol=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("name", ["real", "real, bent", "grid", "grid, cents", "count"])
def test_a_value_repeated_ever_more_often_has_a_probability_and_no_density(name, share):
    """So that no model gains without bound by closing in on it."""
    values = TABLES[name].to_numpy().astype(float)
    values = np.where(np.random.default_rng(2).permutation(N) < share * N, values[0], values)
    _, encoded, cells = read(pl.Series(values))
    assert (log_p(cells, encoded)[values == values[0]] <= 0).all()
