"""Layers of splines: volumes by autodiff, integrals and holes by summing over a grid, inverses, tails, a fit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely.models.latent.flow import spline
from likely.models.latent.flow.answers import draw_filled, flow_evidence, weigh_rows
from likely.models.latent.flow.bijection import (
    N_FILLED,
    bound,
    bound_by_draws,
    generate,
    latents,
    log_prob,
    negative_bound,
)
from likely.models.latent.flow.layers import Layers, first_layers, places
from likely.schema import SchemaError
from likely.training import Batch
from tests.models.latent.flow.flow_checks import check_integral, check_log_det, flow_params, plane, some_layers


def moons(seed: int, n: int) -> np.ndarray:
    """Two half circles that reach into each other, with noise."""
    rng = np.random.default_rng(seed)
    angle, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + 0.08 * rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def bent_noise():
    """A small flow of two moons, whose columns are read as plain reals."""
    settings = {"n_layers": 3, "n_hidden": 16, "n_epochs": 40, "batch_size": 64, "learning_rate": 1e-2}
    return likely.Generator("spline", **settings, schema=likely.Schema.real(2), random_state=0).fit(moons(0, 1200))


def test_volumes_are_determinants_of_jacobians(x64):
    check_log_det(Layers.forward)


def test_density_sums_to_one(x64):
    check_integral(log_prob)


@pytest.mark.parametrize("flow", ["masked", "coupling"])
def test_the_way_back_leads_back(x64, flow):
    layers = some_layers(flow, 5)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(40, 5)) * 3)
    np.testing.assert_allclose(jax.jit(lambda x: layers.inverse(layers.forward(x)[0]))(x), x, rtol=0, atol=1e-9)


def test_the_way_back_leads_back_in_single_precision(bent_noise):
    z = np.random.default_rng(0).normal(size=(2000, 2)).astype(np.float32)
    x = generate(bent_noise.params_, jnp.asarray(z))
    again = generate(bent_noise.params_, latents(bent_noise.params_, x))
    assert float(jnp.abs(again - x).max()) < 1e-5


def test_splines_are_the_identity_beyond_their_bins_and_without_numbers(x64):
    rng = np.random.default_rng(0)
    far = jnp.asarray(spline.BOUND + rng.exponential(size=10)) * np.array([1, -1] * 5)
    raw = jnp.asarray(rng.normal(size=(10, spline.n_raw(6))))
    value, log_slope = spline.forward(far, raw)
    np.testing.assert_array_equal(value, far)
    np.testing.assert_array_equal(log_slope, 0)
    np.testing.assert_array_equal(spline.inverse(far, raw), far)
    near = jnp.asarray(rng.uniform(-5, 5, 10))
    value, log_slope = spline.forward(near, jnp.zeros((10, spline.n_raw(6))))
    np.testing.assert_allclose(value, near, atol=1e-12)
    np.testing.assert_allclose(log_slope, 0, atol=1e-12)


def test_splines_rise_and_meet_at_their_ends(x64):
    x = jnp.linspace(-spline.BOUND, spline.BOUND, 4001)
    raw = jnp.asarray(np.random.default_rng(1).normal(size=spline.n_raw(8)) * 3)
    value, log_slope = spline.forward(x, jnp.broadcast_to(raw, (len(x), len(raw))))
    assert (np.diff(value) > 0).all()
    np.testing.assert_allclose(np.asarray(value)[[0, -1]], [-spline.BOUND, spline.BOUND], atol=1e-9)
    middle, slope = 0.5 * (log_slope[1:] + log_slope[:-1]), np.diff(value) / np.diff(x)
    assert np.median(np.abs(np.exp(middle) - slope)) < 1e-4


def test_layers_that_add_nothing_are_the_gaussian(x64):
    params = flow_params()
    layers = first_layers(jax.random.key(0), 2, "masked", 3, 8, 4, "tanh")
    silent = eqx.tree_at(lambda own: own.give, layers, jnp.zeros_like(layers.give))
    zeros = jnp.zeros(2)
    params = eqx.tree_at(lambda p: (p.flow.layers, p.skew, p.log_tail), params, (silent, zeros, zeros))
    x = np.random.default_rng(0).normal(size=(9, 2)) * 4
    tril = np.asarray(params.block.scale_tril[0])
    expected = stats.multivariate_normal(np.asarray(params.block.means[0]), tril @ tril.T).logpdf(x)
    np.testing.assert_allclose(jax.jit(lambda x: log_prob(params, x, None))(x), expected, rtol=1e-9)


def test_holes_by_weighed_draws_are_the_sums_over_a_grid(x64):
    """Evidence of one column, and mean and square of the other given it, within the errors that are stated."""
    params, value = flow_params(), 0.7
    rows = np.array([[value, np.nan], [np.nan, np.nan]])
    found = flow_evidence(params, rows, jax.random.key(0), 4000)
    _, line, area = plane()
    both = jnp.asarray(np.stack([np.full_like(line, value), line], axis=1))
    density = np.exp(np.asarray(jax.jit(lambda x: log_prob(params, x, None))(both))) * np.sqrt(area)
    assert abs(found.values[0] - np.log(density.sum())) < 5 * found.stderr[0] < 0.2
    assert found.values[1] == found.upper[1] == 0
    weighted, kept = weigh_rows(
        jax.random.key(0), params, jnp.nan_to_num(rows), jnp.asarray(~np.isnan(rows)), 4000, conditional=True
    )
    share = density / density.sum()
    assert abs(weighted.average[0, 1] - share @ line) < 5 * weighted.stderr[0, 1] < 0.5
    assert abs(weighted.average[0, 3] - share @ line**2) < 5 * weighted.stderr[0, 3]
    draws = draw_filled(
        jax.random.key(1), jax.random.key(0), params, jnp.tile(weighted.log_weights[:1], (4000, 1)),
        jnp.tile(kept[:1], (4000, 1)),
    )  # fmt: skip
    assert (np.asarray(draws[:, 0]) == value).all()
    error = np.hypot(float(draws[:, 1].std()) / np.sqrt(4000), float(weighted.stderr[0, 1]))
    assert abs(float(draws[:, 1].mean()) - share @ line) < 5 * error


def test_few_rows_with_holes_are_drawn_alone_and_have_the_same_bound(x64):
    """One row of sixteen has a hole: the bound, and complete rows' log p, are what draws of all rows give."""
    params, key = flow_params(), jax.random.key(0)
    x = np.random.default_rng(0).normal(size=(16, 2))
    observed = np.ones((16, 2), bool)
    observed[5, 1] = False
    x[5, 1] = 0.0
    noise = jax.random.normal(key, (16, N_FILLED, 3))
    found = jax.jit(lambda own: bound(own, Batch(jnp.asarray(x), jnp.asarray(observed), jnp.ones(16)), key))(params)
    draws = jax.jit(lambda own: bound_by_draws(own, jnp.asarray(x), jnp.asarray(observed), noise))(params)
    np.testing.assert_allclose(found, draws, rtol=1e-9)
    complete = flow_evidence(params, x, key, 2).values
    assert abs(found[5] - complete[5]) > 0.1  # what stands in a hole says nothing
    np.testing.assert_allclose(np.delete(found, 5), np.delete(complete, 5), rtol=1e-9)
    rows = np.where(observed, x, np.nan)
    holed = flow_evidence(params, rows, key, 2)
    np.testing.assert_array_equal(np.delete(holed.values, 5), np.delete(complete, 5))
    np.testing.assert_array_equal(np.isinf(holed.upper), np.arange(16) == 5)


def test_gradients_are_finite_with_holes_far_rows_and_rows_on_knots():
    params = flow_params()
    x = np.array([[0.0, 0.0], [1e4, -1e4], [spline.BOUND, -spline.BOUND], [2.5, 0.0]], np.float32)
    holes = jnp.asarray([[True, True], [True, True], [True, False], [False, False]])
    loss = lambda own, batch: negative_bound(own, batch, jax.random.key(0), None)[0]  # noqa: E731
    for observed in (None, holes):
        batch = Batch(jnp.asarray(x), observed, jnp.ones(4))
        gradient = eqx.filter_jit(eqx.filter_grad(loss))(params, batch)
        assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient) if leaf is not None)


def test_orders_change_from_layer_to_layer():
    masked, coupling = places("masked", 4, 3), places("coupling", 5, 3)
    np.testing.assert_array_equal(masked[:2], [[0, 1, 2, 3], [3, 2, 1, 0]])
    np.testing.assert_array_equal(coupling[0] + coupling[1], 1)
    assert sorted(masked[2]) == [0, 1, 2, 3]
    assert set(coupling[2]) == {0, 1}


def test_a_fit_of_two_moons(bent_noise, tmp_path):
    """Above the Gaussian by more than a nat, near the truth; draws as likely as rows; a file with the same answers."""
    test = moons(1, 1000)
    affine = likely.Generator(schema=likely.Schema.real(2)).fit(moons(0, 1200))
    evidence = bent_noise.evidence(test)
    assert evidence.kind == "exact"
    assert evidence.mean > affine.score(test) + 0.9
    drawn = bent_noise.evidence(bent_noise.sample(1000, random_state=1))
    assert abs(drawn.mean - evidence.mean) < 0.2  # What it overrates or underrates by is small beside a nat.
    bent_noise.save(tmp_path / "moons.likely")
    again = likely.load(tmp_path / "moons.likely")
    np.testing.assert_array_equal(again.score_samples(test), evidence.values)
    np.testing.assert_array_equal(again.sample(5, random_state=3), bent_noise.sample(5, random_state=3))
    z = bent_noise.latents(test)
    # Under the flow z is standard noise; rows that it has not seen differ from its own draws by how far it is from the
    # truth, a share of a nat, besides chance: 4 standard errors of both.
    chance = 4 / np.sqrt(z.size)
    gap = np.sqrt(2 * abs(drawn.mean - evidence.mean))  # a shift by s costs s²/2 nats
    assert abs(z.mean()) < chance + gap
    assert abs(z.std() - 1) < chance / np.sqrt(2) + gap
    filled = bent_noise.impute([[0.0, np.nan], [np.nan, 0.9]])
    assert filled[0, 0] == 0.0
    assert np.isfinite(filled).all()


def test_splines_refuse_columns_that_have_no_density():
    rows = np.stack([np.arange(40.0) % 2, np.random.default_rng(0).normal(size=40)], axis=1)
    with pytest.raises(SchemaError, match="is binary, and splines have a density of numbers alone"):
        likely.Generator("spline").fit(rows)
    with pytest.raises(ValueError, match="no checkpoints"):
        likely.Generator().fit(rows, checkpoint="nowhere")
