from functools import partial
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely import VAE
from likely.models.latent.variational.posteriors import FAMILIES
from likely.objectives.elbo import elbo, log_importance_weights
from likely.objectives.importance_weighted import (
    bound_to_train_by,
    draw_samples,
    importance_bound_of,
)
from tests.models.latent.variational.vae_family_checks import (
    K,
    answers,
    check_density,
    check_gradient,
    check_weights,
    exact_log_prob,
    linear_family_case,
    rows_of,
)
from tests.models.latent.variational.vae_oracles import binary_case

SMALL = {"n_components": 2, "hidden": (8,), "n_epochs": 1, "n_importance": 16, "random_state": 0}


# ------------------------------------------------------------------ families of q
@pytest.mark.parametrize("name", FAMILIES)
def test_log_q_by_the_jacobian_and_by_dense_gaussians(x64, global_random_seed, name):
    family, answer = FAMILIES[name], answers(name, global_random_seed)
    noise = jnp.asarray(np.random.RandomState(global_random_seed).normal(size=(4, 1, K)))
    z, root = check_density(lambda a, e: family.of(a, K).sample(e), answer, noise)
    q, log_q, kl = jax.jit(partial(_asked, family))(answer, jnp.asarray(z))
    if name == "planar":
        assert kl is log_q is None
        return
    for row in range(4):
        mean, covariance = np.asarray(q.mean[row]), root[row] @ root[row].T
        dense = stats.multivariate_normal(mean, covariance).logpdf(z[row, 0])
        np.testing.assert_allclose(log_q[row, 0], dense, rtol=1e-9)
        expected = 0.5 * (np.trace(covariance) + mean @ mean - K - np.linalg.slogdet(covariance)[1])
        np.testing.assert_allclose(kl[row], expected, rtol=1e-9)
        if name == "low_rank":
            u = np.asarray(q.u[row])
            expected = np.diag(np.exp(-2 * np.asarray(q.log_std[row]))) + np.outer(u, u)
            np.testing.assert_allclose(np.linalg.inv(covariance), expected, rtol=1e-8)


def _asked(family, answer, z):
    q = family.of(answer, K)
    return q, q.log_prob(z) if q.has_log_prob else None, q.kl_to_standard_normal(z)


def test_products_of_matrices_give_the_density_of_every_member_at_every_point(x64, global_random_seed):
    random = np.random.RandomState(global_random_seed)
    q = FAMILIES["diagonal"].of(jnp.asarray(random.normal(size=(4, 2 * K))), K)
    z = random.normal(size=(7, K))
    members = zip(np.asarray(q.mean), np.exp(np.asarray(q.log_std)), strict=True)
    expected = [stats.norm.logpdf(z, mean, std).sum(axis=1) for mean, std in members]
    np.testing.assert_allclose(q.log_prob_everywhere(jnp.asarray(z)), expected, rtol=1e-10)


@pytest.mark.parametrize("prior", ["mixture", "vamp"])
def test_the_divergence_to_a_mixture_is_that_of_its_log_density(x64, global_random_seed, prior):
    rows = np.random.RandomState(global_random_seed).normal(size=(20, 3))
    module = VAE(2, hidden=(), prior=prior, n_prior_components=3, n_epochs=1, random_state=0).fit(rows).params_
    q, p = module.posterior(module.recognise(jnp.asarray(rows), None)), module.prior()
    z, log_q = q.sample(jnp.asarray(np.random.RandomState(1).normal(size=(20, 5, 2))))
    np.testing.assert_allclose(p.divergence(q, z, log_q), (log_q - p.log_prob(z)).mean(axis=1), rtol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_an_answer_of_zeros_is_near_the_standard_normal(x64, name):
    family = FAMILIES[name]
    noise = jnp.asarray(np.random.RandomState(0).normal(size=(1, 5, K)))
    z, log_q = jax.jit(lambda a, e: family.of(a, K).sample(e))(np.zeros((1, family.n_answers(K))), noise)
    near = 0.01 if name == "low_rank" else 1e-9  # whose u does not start at 0
    np.testing.assert_allclose(z, noise, rtol=near, atol=near)
    np.testing.assert_allclose(log_q[0], stats.norm.logpdf(noise[0]).sum(axis=1), rtol=near)


CASES = [(name, "normal") for name in FAMILIES] + [("full", "mixture"), ("low_rank", "vamp")]


@pytest.mark.parametrize(("name", "prior"), CASES)
def test_weights_of_every_posterior_and_prior_average_to_the_evidence(x64, global_random_seed, name, prior):
    """On linear Gaussian decoders, whose evidence is a Gaussian or a mixture of them."""
    module, law = linear_family_case(global_random_seed, name, prior)
    rows = rows_of(global_random_seed, law, 8)
    exact, x = exact_log_prob(rows, law), jnp.asarray(rows)
    noise = jax.random.normal(jax.random.key(global_random_seed), (10_000, 2))

    @eqx.filter_jit
    def both(module):
        weights = log_importance_weights(module, x, None, module.recognise(x, None), noise)[0]
        return weights, elbo(module, x, None, jnp.broadcast_to(noise[None], (8, *noise.shape)))[0]

    weights, bound = (np.asarray(part) for part in both(module))
    check_weights(weights, exact)
    # a closed KL and the sampled one are one divergence: both bounds are of the same noise
    error = weights.mean(axis=0).std(ddof=1) / np.sqrt(weights.shape[1])
    assert abs(bound.mean() - weights.mean()) < 5 * error + 1e-9


def test_samples_of_a_mixture_prior_have_its_moments(x64, global_random_seed):
    module, _ = linear_family_case(global_random_seed, "full", "mixture")
    prior = module.prior()
    draw = eqx.filter_jit(lambda prior, key: prior.sample(key, 20_000, 2, jnp.float64))
    z = np.asarray(draw(prior, jax.random.key(global_random_seed)))
    mean, std = np.asarray(prior.q.mean), np.exp(np.asarray(prior.q.log_std))
    weight = np.exp(prior.log_weight) / np.exp(prior.log_weight).sum()
    expected = weight @ mean
    spread = weight @ (std**2 + mean**2) - expected**2
    assert (np.abs(z.mean(axis=0) - expected) < 5 * np.sqrt(spread / 20_000)).all()


# ------------------------------------------------------------------ the importance-weighted objective
@pytest.fixture
def quadrature_case(x64):
    """One row of five bits, one latent, two importance samples; noise by Gauss and Hermite's rule in two dimensions."""
    module = binary_case(3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    weights = weights / weights.sum()
    noise = jnp.asarray(np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2, 1))
    weight = jnp.asarray(np.outer(weights, weights).ravel())
    x = jnp.broadcast_to(jnp.array([[1.0, 0, 0, 1, 1]]), (10_000, 5))
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def args(vector):
        module = eqx.combine(unravel(vector), rest)
        return module, x, None, module.recognise(x, None), noise

    return flat, args, weight


def test_doubly_reparameterised_gradient_is_the_bounds_own(quadrature_case, global_random_seed):
    flat, args, weight = quadrature_case
    total = jax.jit(lambda vector: weight @ importance_bound_of(*args(vector)))
    by_hand = jax.jit(jax.value_and_grad(lambda vector: bound_to_train_by(*args(vector), 1.0, weight)))
    value, gradient = by_hand(flat)
    np.testing.assert_allclose(value, total(flat), rtol=1e-10)
    # the offset of the encoder's features is held still on purpose
    moving = args(jnp.ones_like(flat))[0]
    moving = jax.flatten_util.ravel_pytree(eqx.tree_at(lambda m: m.offset, moving, jnp.zeros(5)))[0]
    for draw in range(3):
        direction = np.random.RandomState(global_random_seed + draw).normal(size=flat.shape)
        check_gradient(gradient, total, flat, jnp.asarray(direction) * moving)


def test_the_gradient_by_hand_has_less_noise(quadrature_case):
    """At the encoder's parameters, as Tucker et al. (2018) promise: node by node, its spread is smaller."""
    flat, args, weight = quadrature_case

    @jax.jit
    def spreads(vector):
        module, x, _, answer, noise = args(vector)
        one = lambda f: jax.vmap(jax.grad(f))(answer[:, None], x[:, None], noise[:, None])[:, 0]  # noqa: E731
        plain = one(lambda a, row, e: importance_bound_of(module, row, None, a, e)[0])
        by_hand = one(lambda a, row, e: bound_to_train_by(module, row, None, a, e, 1.0, jnp.ones(1)))
        return [(weight @ (g - (weight @ g)[None]) ** 2).sum() for g in (plain, by_hand)]

    plain, by_hand = spreads(flat)
    assert by_hand < 0.5 * plain


@pytest.mark.parametrize(("name", "n_drawn"), [("diagonal", 1), ("diagonal", 3), ("planar", 2)])
def test_the_gradient_by_drawn_samples_is_that_by_all_on_average(x64, global_random_seed, name, n_drawn):
    module, law = linear_family_case(global_random_seed, name)
    x = jnp.asarray(rows_of(global_random_seed, law, 3))
    noise = jnp.asarray(np.random.RandomState(global_random_seed).normal(size=(3, 6, 2)))
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def bound(vector, key):
        module = eqx.combine(unravel(vector), rest)
        args = (module, x, None, module.recognise(x, None), noise, 1.0)
        drawn = None if key is None else draw_samples(key, *args, n_drawn)
        return bound_to_train_by(*args, jnp.array([0.2, 0.3, 0.5]), drawn)

    value, expected = jax.jit(jax.value_and_grad(lambda vector: bound(vector, None)))(flat)
    keys = jax.random.split(jax.random.key(global_random_seed), 20_000)
    values, found = jax.jit(jax.vmap(jax.value_and_grad(bound), in_axes=(None, 0)))(flat, keys)
    np.testing.assert_allclose(values, value, rtol=1e-10)
    error = found.std(axis=0) / np.sqrt(len(keys))
    assert (error > 0).any()
    assert (np.abs(found.mean(axis=0) - expected) < 5 * error + 1e-9).all()


# ------------------------------------------------------------------ the estimator
@pytest.fixture(scope="module")
def digits():
    return likely.datasets.load("digits")


@pytest.mark.parametrize(
    "setting",
    [
        {"posterior": "low_rank", "prior": "vamp", "n_importance_train": 3, "n_prior_components": 4},
        {"posterior": "planar", "prior": "mixture", "channels": (4,), "n_importance_train": 3, "n_importance_drawn": 1},
    ],
    ids=["vamp", "convolutional"],
)
def test_variants_learn_score_and_save(setting, digits, tmp_path):
    rows = digits.train[:200].copy()
    rows[np.arange(200), np.arange(200) % 64] = np.nan  # in every row: one program for all
    model = VAE(**SMALL | {"schema": digits.schema, "n_refine": 0} | setting).fit(rows)
    assert np.isfinite(model.history_["loss"]).all()
    assert np.isfinite(model.score_samples(rows)).all()
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    assert jax.tree.structure(again.params_) == jax.tree.structure(model.params_)
    jax.tree.map(np.testing.assert_array_equal, again.params_, model.params_)


def test_settings_that_do_not_go_together_are_named(digits):
    with pytest.raises(ValueError, match=r"`prior='vamp'` needs log q\(z \| x\) at any z"):
        VAE(**SMALL, posterior="planar", prior="vamp").fit(digits.train)
    with pytest.raises(ValueError, match=r"`n_samples` .2. and `n_importance_train` .3. cannot both be above 1"):
        VAE(**SMALL, n_samples=2, n_importance_train=3).fit(digits.train)
    with pytest.raises(ValueError, match=r"`n_importance_drawn` .4. cannot be more than `n_importance_train` .3."):
        VAE(**SMALL, n_importance_train=3, n_importance_drawn=4).fit(digits.train)
    with pytest.raises(
        likely.SchemaError, match="`channels` is for pictures, and the schema of these 4 columns has no"
    ):
        VAE(**SMALL, channels=(4,)).fit(np.eye(4))


def test_more_latents_than_columns_are_warned_of():
    """Warnings are errors here, so nothing is fitted."""
    with pytest.raises(UserWarning, match="5 latents are more than the 4 columns that they explain"):
        VAE(**SMALL | {"n_components": 5}).fit(np.eye(4))
    model = VAE()
    model.columns_ = SimpleNamespace(n_columns=4)
    model._warn_of_many(16, "n_components")  # of a number that nobody chose


def test_tables_have_a_mixture_of_pseudo_inputs_as_prior_unless_they_say_little(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    reals, bits = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 3)).astype(float)
    holes = np.where(rng.permutation(120).reshape(40, 3) < 40, np.nan, reals)  # a third of the cells

    def chosen(rows, **settings):
        model = VAE(1, hidden=(), n_epochs=1, held_out=0, random_state=0, **settings).fit(rows)
        return model.prior_, model.n_prior_components_

    assert chosen(reals) == ("vamp", 5)
    assert chosen(reals, prior="normal")[0] == chosen(holes)[0] == chosen(bits)[0] == "normal"
    assert chosen(reals, prior="mixture", n_prior_components=3) == ("mixture", 3)
