"""Standard units: there and back, the Jacobian, holes, constants, and tables too large for memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from likely import memory
from likely.columns import Scaling

cell = st.one_of(st.just(float("nan")), st.floats(-1e9, 1e9, allow_subnormal=False).map(lambda x: round(x, 3)))
tables = hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=cell)


def real(rows: np.ndarray) -> np.ndarray:
    """All columns."""
    return np.arange(rows.shape[1])


@given(tables, st.sampled_from(["column", "common"]))
def test_there_and_back(rows, mode):
    units = Scaling.fit(rows, real(rows), mode)
    assert (units.scale > 0).all()
    assert np.isfinite(units.offset).all()
    standard = units.apply(rows, np.dtype(np.float64))
    np.testing.assert_array_equal(np.isnan(standard), np.isnan(rows))
    np.testing.assert_allclose(
        units.invert(standard), rows, rtol=1e-9, atol=1e-9 * (1 + np.nanmax(np.abs(rows), initial=0))
    )


def test_standard_units_have_mean_0_and_variance_1(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(500, 3)) * [1e-4, 1, 1e5] + [1998, 0, -1e7]
    rows[rng.random(rows.shape) < 0.3] = np.nan
    standard = Scaling.fit(rows, real(rows), "column").apply(rows, np.dtype(np.float64))
    np.testing.assert_allclose(np.nanmean(standard, axis=0), 0, atol=1e-7)  # 1998 to sixteen digits, over 1e-4
    np.testing.assert_allclose(np.nanvar(standard, axis=0), 1, rtol=1e-6)


def test_common_scale_keeps_ratios_of_spreads(global_random_seed):
    rows = np.random.default_rng(global_random_seed).normal(size=(500, 3)) * [1, 2, 3] + 7
    units = Scaling.fit(rows, real(rows), "common")
    assert len(set(units.scale)) == 1
    standard = units.apply(rows, np.dtype(np.float64))
    np.testing.assert_allclose(standard.var(axis=0).mean(), 1, rtol=1e-10)
    np.testing.assert_allclose(standard.std(axis=0) / standard.std(axis=0)[0], rows.std(axis=0) / rows.std(axis=0)[0])


@pytest.mark.parametrize("mode", ["column", "common"])
def test_constant_columns_keep_their_scale(mode):
    rows = np.column_stack([np.full(9, 0.1), np.full(9, -1e12)])
    np.testing.assert_array_equal(Scaling.fit(rows, real(rows), mode).scale, 1)


def test_a_common_scale_is_common_whatever_the_means():
    """A large constant beside a small spread: one scale all the same, or isotropic noise would not be."""
    rows = np.column_stack([np.full(50, 1e6), np.random.default_rng(0).normal(size=50) * 1e-7])
    units = Scaling.fit(rows, real(rows), "common")
    assert units.scale[0] == units.scale[1]
    np.testing.assert_allclose(units.scale, np.sqrt(rows.var(axis=0)[1] / 2), rtol=1e-6)


def test_only_real_columns_are_scaled():
    rows = np.array([[1.0, 5.0, 2.0], [0.0, 9.0, 4.0], [1.0, 1.0, np.nan]])
    units = Scaling.fit(rows, np.array([2]), "column")
    np.testing.assert_array_equal(units.offset, [0, 0, 3])
    np.testing.assert_array_equal(units.scale, [1, 1, 1])
    untouched = Scaling.fit(rows[:, :2], np.arange(0), "column")
    assert untouched.is_identity
    assert untouched.apply(rows[:, :2], np.dtype(np.float64)).base is rows
    assert untouched.apply(rows[:, :2], np.dtype(np.float32)).dtype == np.float32


def test_the_jacobian_is_that_of_the_change_of_units(global_random_seed):
    """log N(x; m, s) = log N(standard; 0, 1) - log s, over the observed cells."""
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(50, 3)) * [0.1, 10, 3] + 100
    rows[rng.random(rows.shape) < 0.4] = np.nan
    units = Scaling.fit(rows, real(rows), "column")
    observed = ~np.isnan(rows)
    standard = np.nansum(stats.norm.logpdf(units.apply(rows, np.dtype(np.float64))), axis=1)
    users = np.nansum(stats.norm.logpdf(rows, units.offset, units.scale), axis=1)
    np.testing.assert_allclose(standard + units.log_jacobian(observed), users, rtol=1e-8, atol=1e-10)


def test_blocks_and_spilling_change_nothing(monkeypatch, global_random_seed):
    rows = np.random.default_rng(global_random_seed).normal(size=(40, 3)) * 5 + 1
    rows[3, 1] = np.nan
    whole = Scaling.fit(rows, real(rows), "column")
    expected = whole.apply(rows, np.dtype(np.float32))
    monkeypatch.setattr("likely.schema.arrays._BLOCK_CELLS", 10)
    monkeypatch.setattr(memory, "SPILL_BYTES", 100)
    parts = Scaling.fit(rows, real(rows), "column")
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-12)
    spilled = whole.apply(rows, np.dtype(np.float32))
    assert isinstance(spilled, np.memmap)
    np.testing.assert_array_equal(spilled, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_rows_of_other_types(dtype):
    rows = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    units = Scaling.fit(rows, real(rows), "column")
    np.testing.assert_allclose(units.offset, rows.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(units.scale, rows.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("exponent", [-1000, -700, 700, 1000])
@pytest.mark.parametrize("mode", ["column", "common"])
def test_extreme_numbers_have_the_units_of_ordinary_ones(exponent, mode):
    """A power of two changes no digit of a number, so it must change none of the standard units either."""
    rows = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 2.0, 0.5] + [0.0, 3.0, -1.0]
    rows[4, 1] = np.nan
    ordinary, extreme = (Scaling.fit(x, real(rows), mode) for x in (rows, np.ldexp(rows, exponent)))
    np.testing.assert_allclose(extreme.scale, np.ldexp(ordinary.scale, exponent), rtol=1e-14)
    standard = extreme.apply(np.ldexp(rows, exponent), np.dtype(np.float64))
    np.testing.assert_allclose(standard, ordinary.apply(rows, np.dtype(np.float64)), rtol=1e-12)


def test_the_largest_of_all_numbers_has_units():
    """Its logarithm is rounded up to 1024, and two to the power of that is no number."""
    rows = np.array([[1.0], [2.0], [np.finfo(float).max], [-3.0]])
    units = Scaling.fit(rows, real(rows), "column")
    np.testing.assert_allclose(units.offset, np.finfo(float).max / 4)
    np.testing.assert_allclose(units.scale, np.finfo(float).max * np.sqrt(3 / 16))
