"""GAN: straight-through draws, learning by each loss, noisy evidence against the closed form of a linear generator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely.columns import Columns
from likely.models.latent.adversarial.gan import first_params
from likely.nets import location_mean

MIXED = Columns(("binary", "real", "count", "categorical"), (1, 1, 1, 3))


def table(seed: int, n: int = 200) -> np.ndarray:
    """Two correlated columns."""
    return np.random.default_rng(seed).normal(size=(n, 2)) @ np.array([[3.0, 0.8], [0.0, 0.6]]) + [0, 50]


@pytest.mark.parametrize("loss", ["non_saturating", "wasserstein"])
def test_either_game_learns_where_rows_are_and_how_wide(loss, global_random_seed):
    rows = np.c_[table(global_random_seed), np.full(200, 7.0)]  # the last column is constant
    model = likely.GAN(2, hidden=(16,), loss=loss, n_epochs=250, batch_size=50, learning_rate=2e-3, random_state=0)
    drawn = model.fit(rows).sample(2000)
    deviation = rows[:, :2].std(axis=0)
    # What a game learns is held to what 200 rows tell: three standard errors of a mean, four of the logarithm of a
    # deviation. After a single epoch means are off by 0.43, logarithms by 0.84; the constant column spreads by 0.63.
    assert (np.abs(drawn.mean(axis=0) - rows.mean(axis=0))[:2] < 3 * deviation / np.sqrt(200)).all()
    assert (np.abs(np.log(drawn[:, :2].std(axis=0) / deviation)) < 4 / np.sqrt(2 * 200)).all()
    assert np.abs(drawn[:, 2] - 7).mean() < 0.1
    assert np.isfinite(model.critic_scores([[np.nan] * 3, [0.0, 50.0, 7.0]])).all()


def test_noisy_evidence_of_a_linear_generator_is_its_gaussian(global_random_seed):
    rows = table(global_random_seed)
    model = likely.GAN(2, hidden=(), n_epochs=1, random_state=0).fit(rows)
    layer, scale = model.params_.generator.network.layers[0], model.cells_.scaling.scale
    loadings, mean = np.asarray(layer.weight) * scale[:, None], model.cells_.scaling.invert(np.asarray(layer.bias))
    holed = rows[:12].copy()
    holed[::2, 0], holed[1::2, 1], holed[11] = np.nan, np.nan, np.nan
    noise = np.array([0.6, 0.3])
    evidence = model.noisy_evidence(holed, noise, n_temperatures=60, n_chains=64)
    deviation = np.sqrt((loadings**2).sum(axis=1) + noise**2)
    cells = stats.norm(mean, deviation).logpdf(holed)
    exact = np.where(np.isnan(holed), 0, cells).sum(axis=1)
    assert evidence.kind == "lower"
    assert (np.abs(evidence.values - exact) < 4.5 * evidence.stderr + 1e-4).all()
    assert evidence.stderr.max() < 0.2
    check_refusals(model)


def check_refusals(model):
    """There is no evidence without noise, and noise must be some."""
    assert "mmd_test" in model.evidence([[0.0, 50.0]]).reason
    with pytest.raises(AttributeError, match="noisy_evidence"):
        model.score([[0.0, 50.0]])
    for noise in (0, -1.0, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="`noise` must be a deviation above 0, or one for each of the 2 columns"):
            model.noisy_evidence([[0.0, 50.0]], noise)
    with pytest.raises(ValueError, match=r"above 0\.001 of each real column's deviation"):
        model.noisy_evidence([[0.0, 50.0]], 1e-5)


def test_draws_are_whole_and_their_slopes_are_those_of_means(x64, global_random_seed):
    params = eqx.filter_jit(first_params)(jax.random.key(global_random_seed), MIXED, 2, (5,), "tanh")
    generator = params.generator
    z = jax.random.normal(jax.random.key(1), (50, 2))
    mask = jnp.asarray(np.random.default_rng(0).random((50, 4)) < 0.8)

    @jax.jit
    def read(z):
        rows = generator.draw(jax.random.key(2), generator.network(z))
        features, pull = jax.vjp(lambda z: generator.fake_features(jax.random.key(2), z, mask), z)

        def means(z):
            parts = location_mean(MIXED, generator.network(z), jnp.zeros(1))[:, ~MIXED.is_quadratic]
            count = MIXED.column_of[~MIXED.is_quadratic] == 2
            seen = mask[:, MIXED.column_of[~MIXED.is_quadratic]]
            return jnp.where(seen, jnp.where(count[None, :], jnp.log1p(parts), parts), 0)

        return rows, features, pull(jnp.ones_like(features))[0], jax.vjp(means, z)[1](jnp.ones_like(features))[0]

    rows, features, slopes, of_means = (np.asarray(a) for a in read(z))
    np.testing.assert_allclose(slopes, of_means, rtol=1e-9, atol=1e-12)
    expected = eqx.filter_jit(lambda x: generator.features(x, mask))(jnp.asarray(rows))
    np.testing.assert_allclose(features, expected, atol=1e-12)
    assert set(np.unique(rows[:, 0])) <= {0, 1}
    assert (rows[:, 2] == np.round(rows[:, 2])).all()
