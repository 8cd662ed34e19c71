"""The mass of rounded rows: against the distribution function, and never above one however a density closes in."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import likely
from likely.columns import Cells
from likely.contract.evidence import Evidence
from likely.contract.rounding import N_GROUPS, mass_of_intervals
from likely.schema import Column, Schema


def gaussian_of(cells: np.ndarray) -> Evidence:
    """Independent standard Gaussians, of what is observed."""
    return Evidence.exact(np.nansum(stats.norm.logpdf(cells), axis=1), method="closed form")


@pytest.mark.parametrize("step", [0.25, 1.0])
def test_masses_against_the_distribution_function(step, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x = np.round(rng.normal(3, 2, (300, 2)) / step) * step
    schema = Schema((Column("a", "grid", step=step), Column("b", "grid", step=step)))
    cells = Cells.fit(x, schema, numbers="real")
    rows = x[:50].copy()
    rows[0, 1] = np.nan
    found = mass_of_intervals(cells, rows, gaussian_of, rng)
    ends = [(rows + half * step - x.mean(axis=0)) / x.std(axis=0) for half in (-0.5, 0.5)]
    exact = np.nansum(np.log(stats.norm.cdf(ends[1]) - stats.norm.cdf(ends[0])), axis=1)
    assert found.kind == "lower"
    # A bound of four points is below by half of a variance that is small here; its error covers the rest.
    t = stats.t.ppf(1 - 1e-5, N_GROUPS - 1)
    assert (found.values <= exact + t * found.stderr + 1e-9).all()
    assert (found.values >= exact - 0.05 * step**2 - t * found.stderr - 1e-9).all()


def test_a_peak_on_a_repeated_value_stays_a_probability(global_random_seed):
    rows = np.full((50, 1), 7.0)
    rows[0] = 8.0
    cells = Cells.fit(rows, Schema((Column("a", "grid", step=1.0),)), numbers="real")
    middle = cells.apply(rows[1:2], np.dtype(np.float64))
    for width in (1e-2, 1e-4, 1e-8):

        def peak(z, width=width):
            return Evidence.exact(stats.norm.logpdf(z, middle, width).sum(axis=1), method="closed form")

        found = mass_of_intervals(cells, rows[1:2], peak, np.random.default_rng(global_random_seed))
        assert found.values[0] <= 0 + 5 * found.stderr[0]


def test_gaussian_models_of_rounded_tables_can_be_compared_with_models_of_bins(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    latent = rng.normal(size=(400, 1))
    table = np.round(latent @ [[4.0, -3.0, 2.0]] + rng.normal(size=(400, 3)) + 20)
    frame = pl.DataFrame(table.astype(int), schema=["a", "b", "c"])
    factors = likely.FactorAnalysis(1).fit(frame[:300])
    bins = likely.Independent().fit(frame[:300])
    evidence = factors.evidence(frame[300:])
    assert evidence.kind == "lower"
    assert evidence.measure == "counting"
    assert (evidence - bins.evidence(frame[300:])).mean > 0.5
    drawn = factors.sample(200)
    assert drawn.schema == frame.schema
    assert drawn["a"].min() >= 0
