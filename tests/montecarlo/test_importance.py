import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from likely.montecarlo.importance import CHUNK, resample, shared_noise, weigh

SIZES = (1, 5, CHUNK, CHUNK + 1, 100)


def sampler_of(rows):
    """Weights and statistics that depend on row and noise in a way of their own."""

    def sampler(noise):
        log_weights = -((rows[:, None, :] - noise[None]) ** 2).sum(axis=-1) * 3
        return log_weights, {"noise": jnp.broadcast_to(noise[None], (len(rows), *noise.shape)), "w": log_weights}

    return sampler


def all_noise(key, n, k):
    chunks = [shared_noise(key, c, k, jnp.float64) for c in range(-(-n // CHUNK))]
    return np.concatenate(chunks)[:n]


@pytest.mark.parametrize("n_samples", SIZES)
def test_streaming_is_the_plain_sum(x64, n_samples, global_random_seed):
    key = jax.random.key(global_random_seed)
    rows = 4 * jax.random.normal(jax.random.key(1), (6, 3))
    result = weigh(key, sampler_of(rows), n_samples=n_samples, n_latent=3, dtype=jnp.float64, keep_weights=True)
    noise = all_noise(key, n_samples, 3)
    log_weights = np.asarray(sampler_of(rows)(jnp.asarray(noise))[0])
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    expected = np.logaddexp.reduce(log_weights, axis=1) - np.log(n_samples)
    np.testing.assert_allclose(result.log_mean, expected, rtol=1e-12)
    np.testing.assert_allclose(result.log_weights, log_weights, rtol=1e-12)
    average = weights @ noise / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.average["noise"], average, rtol=1e-10, atol=1e-13)
    assert result.average["w"].shape == (6,)


@pytest.mark.parametrize("n_samples", SIZES[1:])
def test_replicates_are_groups_to_first_order(x64, n_samples):
    key, rows = jax.random.key(3), jax.random.normal(jax.random.key(1), (4, 2))
    result = weigh(key, sampler_of(rows), n_samples=n_samples, n_latent=2, dtype=jnp.float64)
    log_weights = np.asarray(sampler_of(rows)(jnp.asarray(all_noise(key, n_samples, 2)))[0])
    weights = np.exp(log_weights)
    groups = min(16, n_samples)
    for group in range(groups):
        ratio = weights[:, group::groups].mean(axis=1) / weights.mean(axis=1)
        np.testing.assert_allclose(result.replicates[:, group], np.log(weights.mean(axis=1)) + ratio - 1, rtol=1e-10)
    assert result.replicates.shape == (4, groups)


def test_weights_of_zero_are_weights():
    rows = jnp.zeros((2, 1))
    never = lambda noise: (jnp.where(noise[None, :, 0] > 0, 0.0, -jnp.inf) + rows, None)  # noqa: E731
    result = weigh(jax.random.key(0), never, n_samples=400, n_latent=1, dtype=jnp.float32)
    # a share of one half of 400 fair coins, five standard deviations
    assert abs(float(jnp.exp(result.log_mean[0])) - 0.5) < 5 * 0.5 / 20


def test_resampling_follows_the_weights(global_random_seed):
    weights = np.array([[0.1, 0.2, 0.0, 0.7], [0.25, 0.25, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        log_weights = jnp.asarray(np.log(weights), jnp.float32)
    noise_key = jax.random.key(9)
    many = jnp.repeat(log_weights, 4000, axis=0)
    drawn = np.asarray(resample(jax.random.key(global_random_seed), noise_key, many, 1)).reshape(2, 4000)
    values = np.asarray(shared_noise(noise_key, 0, 1, jnp.float32))[:4, 0]
    for row, law in enumerate(weights):
        counts = np.array([(drawn[row] == value).sum() for value in values])
        assert counts.sum() == 4000
        assert counts[law == 0].sum() == 0
        assert stats.chisquare(counts[law > 0], 4000 * law[law > 0]).pvalue > 1e-5
