import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely import DeepLatentGaussian
from likely.columns import Columns
from likely.models.latent.deep_latent_gaussian import first_module
from tests.models.latent.deep_latent_checks import check_deep_weights, deep_case
from tests.models.latent.vae_oracles import factor_log_prob, factor_rows


@pytest.mark.parametrize("posterior", ["low_rank", "full", "ladder"])
def test_evidence_of_linear_layers_is_factor_analysis(x64, global_random_seed, posterior):
    module, *law = deep_case(global_random_seed, posterior)
    rows = factor_rows(global_random_seed, *law, 8)
    check_deep_weights(module, rows, factor_log_prob(rows, *law), global_random_seed)


def test_the_density_of_a_ladder_is_that_of_its_draws(x64, global_random_seed):
    """In any network: log q of the draws, and of the map from noise to draws by its Jacobian."""
    key, random = jax.random.key(global_random_seed), np.random.RandomState(global_random_seed)
    module = first_module(key, Columns(("real",) * 5, (1,) * 5), (3, 2), (4,), "tanh", "ladder", reads_holes=False)
    answer, noise = jnp.asarray(random.normal(size=(4, 10))), jnp.asarray(random.normal(size=(4, 1, 5)))
    q = module.posterior(answer)
    z, log_q = q.sample(noise)
    np.testing.assert_allclose(q.log_prob(z), log_q, rtol=1e-10)
    for row in range(4):
        own = module.posterior(answer[row : row + 1])
        jacobian = jax.jacobian(lambda e, own=own: own.sample(e[None, None])[0][0, 0])(noise[row, 0])
        expected = stats.norm.logpdf(noise[row, 0]).sum() - np.linalg.slogdet(jacobian)[1]
        np.testing.assert_allclose(log_q[row, 0], expected, rtol=1e-10)


def test_a_ladder_that_trusts_no_row_is_the_prior_and_one_that_trusts_it_hits_its_targets(x64):
    columns, key = Columns(("real",) * 5, (1,) * 5), jax.random.key(0)
    module = first_module(key, columns, (3, 2), (4,), "tanh", "ladder", reads_holes=False)
    noise = jax.random.normal(key, (2, 1, 5))
    target = jax.random.normal(jax.random.key(1), (2, 5))
    aloof = module.posterior(jnp.concatenate([target, jnp.full((2, 5), -60.0)], axis=1))
    np.testing.assert_allclose(aloof.sample(noise)[0], noise, atol=1e-9)
    sure = module.posterior(jnp.concatenate([target, jnp.full((2, 5), 60.0)], axis=1))
    layers = module.decoder.hidden(sure.sample(noise)[0])
    np.testing.assert_allclose(jnp.concatenate(layers, axis=-1)[:, 0], target, atol=1e-9)


def test_a_ladder_learns_saves_and_loads(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2)) @ np.ones((2, 4))
    model = DeepLatentGaussian((2, 1), hidden=(4,), posterior="ladder", n_epochs=2, random_state=0).fit(rows)
    model.save(tmp_path / "deep.likely")
    again = likely.load(tmp_path / "deep.likely")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    assert model.transform(rows).shape == (60, 3)


@pytest.mark.parametrize(
    ("layers", "message"),
    [((), "size of at least one layer"), ((3, 0), "`layers` must hold sizes of layers"), (3, "'layers' parameter")],
)
def test_bad_layers_are_named(layers, message):
    with pytest.raises(ValueError, match=message):
        DeepLatentGaussian(layers).fit(np.eye(4))
