import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from likely.columns import Columns
from likely.nets.column_interface import (
    MIN_SCALE,
    encoder_features,
    location_mean,
    location_natural,
    log_density_at,
    n_locations,
    scale_of,
    softplus,
    spread_locations,
)

MIXED = Columns(("real", "binary", "categorical", "count", "real", "categorical"), (1, 1, 3, 1, 1, 2))


def draw_case(seed, n=20):
    """Locations, log scales, rows and a mask of observed cells for the mixed table."""
    random = np.random.RandomState(seed)
    location = jnp.asarray(random.normal(size=(n, n_locations(MIXED))))
    log_scale = jnp.asarray(random.normal(size=2))
    cells = [
        random.normal(size=n), random.randint(0, 2, n), random.randint(0, 3, n), random.poisson(2.0, n),
        random.normal(size=n), random.randint(0, 2, n),
    ]  # fmt: skip
    return location, log_scale, jnp.asarray(np.stack(cells, axis=1).astype(float)), jnp.asarray(random.rand(n, 6) < 0.6)


def test_density_is_the_columns_own(x64, global_random_seed):
    location, log_scale, x, observed = draw_case(global_random_seed)
    eta = location_natural(MIXED, location, log_scale)
    for mask in (None, observed):
        expected = MIXED.log_density(x, mask, eta)
        np.testing.assert_allclose(log_density_at(MIXED, x, mask, location, log_scale), expected, rtol=1e-9, atol=1e-12)


def test_density_against_scipy(x64, global_random_seed):
    location, log_scale, x, _ = draw_case(global_random_seed)
    a, t, s = np.asarray(x), np.asarray(location), MIN_SCALE + np.exp(np.asarray(log_scale))
    # locations lie by kind: binary, two categories, three categories or the other way round, count, real
    expected = stats.bernoulli.logpmf(a[:, 1], 1 / (1 + np.exp(-t[:, 0])))
    start = 1
    for block in MIXED.blocks:
        if block.kind == "categorical":
            logits = t[:, start : start + block.n_statistics]
            chosen = a[:, block.places[0]].astype(int)
            expected += logits[np.arange(len(a)), chosen] - np.log(np.exp(logits).sum(axis=1))
            start += block.n_statistics
    expected += stats.poisson.logpmf(a[:, 3], np.exp(t[:, 6]))
    expected += stats.norm.logpdf(a[:, 0], t[:, 7], s[0]) + stats.norm.logpdf(a[:, 4], t[:, 8], s[1])
    np.testing.assert_allclose(log_density_at(MIXED, x, None, location, log_scale), expected, rtol=1e-9)


def test_mean_statistics_are_the_columns_own(x64, global_random_seed):
    location, log_scale, _, _ = draw_case(global_random_seed)
    expected = MIXED.mean(location_natural(MIXED, location, log_scale))
    np.testing.assert_allclose(location_mean(MIXED, location, log_scale), expected, rtol=1e-9)


def test_unobserved_cells_may_hold_anything(x64):
    location, log_scale, x, observed = draw_case(0)
    other = jnp.where(observed, x, 1.0)
    args = (observed, location, log_scale)
    np.testing.assert_array_equal(log_density_at(MIXED, x, *args), log_density_at(MIXED, other, *args))
    features = encoder_features(MIXED, x, observed)
    np.testing.assert_array_equal(features, encoder_features(MIXED, other, observed))
    whole = encoder_features(MIXED, x, None)
    np.testing.assert_array_equal(features, jnp.where(spread_locations(MIXED, observed), whole, 0))
    offset = jnp.arange(9.0)
    centred = jnp.where(spread_locations(MIXED, observed), whole - offset[None], 0)
    np.testing.assert_array_equal(encoder_features(MIXED, x, observed, offset), centred)


def test_narrow_gaussian_keeps_its_digits_in_float32():
    columns, scale = Columns(("real",), (1,)), 2e-3
    x, mean = np.float32(2.7181), np.float32(2.7200)
    log_scale = jnp.log(jnp.array([scale - MIN_SCALE], jnp.float32))
    value = log_density_at(columns, jnp.array([x]), None, jnp.array([mean]), log_scale)
    # rounding of x - mean, which is exact here, and of the scale: a few units of the last place
    assert float(value) == pytest.approx(stats.norm.logpdf(float(x), float(mean), scale), rel=1e-5)


def test_features_of_each_kind():
    x = jnp.array([[1.5, 1.0, 2.0, 7.0, -0.5, 0.0]])
    features = np.asarray(encoder_features(MIXED, x, None))[0]
    assert len(features) == n_locations(MIXED) == 9
    assert sorted(features.round(4)) == sorted([1.0, 0, 0, 1, 1, 0, round(float(np.log(8)), 4), 1.5, -0.5])


def test_softplus_and_its_slope(x64):
    a = jnp.array([-800.0, -30.0, -1.0, 0.0, 1e-9, 2.0, 40.0, 800.0])
    np.testing.assert_allclose(softplus(a), np.logaddexp(np.asarray(a), 0), rtol=1e-14)
    np.testing.assert_allclose(jax.vmap(jax.grad(softplus))(a), special.expit(np.asarray(a)), rtol=1e-14)


def test_scale_has_a_floor():
    assert float(scale_of(jnp.array([-200.0]))[0]) == pytest.approx(MIN_SCALE)
