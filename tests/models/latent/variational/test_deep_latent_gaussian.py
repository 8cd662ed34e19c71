import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely import DeepLatentGaussian
from likely.columns import Columns
from likely.models.latent.variational.deep_latent_gaussian import first_module
from likely.models.latent.variational.posteriors import Diagonal
from tests.models.latent.variational.deep_latent_checks import check_deep_weights, deep_case
from tests.models.latent.variational.vae_oracles import factor_log_prob, factor_rows


@pytest.mark.parametrize("posterior", ["low_rank", "full", "ladder"])
def test_evidence_of_linear_layers_is_factor_analysis(x64, global_random_seed, posterior):
    module, *law = deep_case(global_random_seed, posterior)
    rows = factor_rows(global_random_seed, *law, 8)
    check_deep_weights(module, rows, factor_log_prob(rows, *law), global_random_seed)


@pytest.fixture
def ladder(x64, global_random_seed):
    """A module of two layers, some answers for it, and noise."""
    key, random = jax.random.key(global_random_seed), np.random.RandomState(global_random_seed)
    module = first_module(key, Columns(("real",) * 5, (1,) * 5), (3, 2), (4,), "tanh", "ladder", reads_holes=False)
    last = module.decoder.between[0].layers[-1].weight
    module = eqx.tree_at(lambda m: m.decoder.between[0].layers[-1].weight, module, 10 * last)
    return module, jnp.asarray(random.normal(size=(4, 15))), jnp.asarray(random.normal(size=(4, 1, 5)))


def test_the_density_of_a_ladder_is_that_of_its_draws(ladder):
    """In any network: log q of the draws, and of the map from noise to draws by its Jacobian."""
    module, answer, noise = ladder
    q = module.posterior(answer)
    z, log_q = q.sample(noise)
    np.testing.assert_allclose(q.log_prob(z), log_q, rtol=1e-10)
    for row in range(4):
        own = module.posterior(answer[row : row + 1])
        jacobian = jax.jacobian(lambda e, own=own: own.sample(e[None, None])[0][0, 0])(noise[row, 0])
        expected = stats.norm.logpdf(noise[row, 0]).sum() - np.linalg.slogdet(jacobian)[1]
        np.testing.assert_allclose(log_q[row, 0], expected, rtol=1e-10)


def test_the_divergence_of_a_ladder_has_its_mean_and_less_noise(ladder, global_random_seed):
    """Against log q - log p of the same samples, which is KL(q || p) in expectation."""
    module, answer, _ = ladder
    q = module.posterior(0.5 * answer)
    z, log_q = q.sample(jax.random.normal(jax.random.key(global_random_seed), (4, 100_000, 5)))
    sampled = log_q - module.prior().log_prob(z)
    error = sampled.std(axis=1) / np.sqrt(100_000)
    assert (np.abs(q.kl_to_standard_normal(z) - sampled.mean(axis=1)) < 5 * error).all()
    each = jax.vmap(q.kl_to_standard_normal, in_axes=1)(z[:, :100, None])
    assert (each.std(axis=0) < 0.5 * sampled[:, :100].std(axis=1)).all()


def test_an_answer_of_zeros_is_the_prior_and_full_hold_says_where_the_layers_are(ladder):
    module, answer, noise = ladder
    np.testing.assert_allclose(module.posterior(jnp.zeros_like(answer)).sample(noise)[0], noise, atol=1e-12)
    target = answer[:, :5]
    sure = module.posterior(jnp.concatenate([target, jnp.full((4, 5), -60.0), jnp.ones((4, 5))], axis=1))
    layers = module.decoder.hidden(sure.sample(noise)[0])
    np.testing.assert_allclose(jnp.concatenate(layers, axis=-1)[:, 0], target, atol=1e-3)  # a std is e⁻¹⁰ at least


def test_a_ladder_whose_layers_keep_apart_is_a_vae(ladder):
    """Where nothing comes down, its bound is that of a diagonal q."""
    module, answer, noise = ladder
    mute = eqx.tree_at(lambda m: m.decoder.between, module, jax.tree.map(jnp.zeros_like, module.decoder.between))
    z, log_q = mute.posterior(answer).sample(noise)
    diagonal = Diagonal.of(answer, 5)
    expected = diagonal.sample(noise)
    np.testing.assert_allclose(z, expected[0], rtol=1e-12)
    np.testing.assert_allclose(log_q, expected[1], rtol=1e-12)
    divergences = [q.kl_to_standard_normal(z) for q in (mute.posterior(answer), diagonal)]
    np.testing.assert_allclose(*divergences, rtol=1e-12)


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
