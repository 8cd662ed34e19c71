"""The checks of the autoencoder fail where they should: each gets a wrong part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.contract.evidence import Evidence
from likely.objectives import elbo
from tests.models.latent.variational.vae_checks import check_conditional_mean, check_evidence_by_quadrature
from tests.models.latent.variational.vae_oracles import all_rows, binary_case, fitted, quadrature
from tests.objectives.elbo_checks import check_kl, check_weights_are_exact


def kl_with_wrong_sign(mean, log_std):
    return 0.5 * (jnp.exp(2 * log_std) + mean**2 - 1 + 2 * log_std).sum(axis=-1)


def kl_without_half(mean, log_std):
    return (jnp.exp(2 * log_std) + mean**2 - 1 - 2 * log_std).sum(axis=-1)


def kl_of_variance_as_std(mean, log_std):
    return 0.5 * (jnp.exp(log_std) + mean**2 - 1 - log_std).sum(axis=-1)


def weights_without_proposal(module, x, observed, answer, noise):
    _, z = elbo.log_importance_weights(module, x, observed, answer, noise)
    return module.log_likelihood(x, observed, z) - 0.5 * (z**2).sum(axis=-1), z


def weights_without_log_std(module, x, observed, answer, noise):
    right, z = elbo.log_importance_weights(module, x, observed, answer, noise)
    return right - jnp.split(answer, 2, axis=1)[1].sum(axis=-1)[:, None], z


def weights_without_prior(module, x, observed, answer, noise):
    right, z = elbo.log_importance_weights(module, x, observed, answer, noise)
    return right + 0.5 * (z**2).sum(axis=-1), z


@pytest.mark.parametrize("wrong", [kl_with_wrong_sign, kl_without_half, kl_of_variance_as_std])
def test_wrong_kl_is_caught(x64, wrong):
    with pytest.raises(AssertionError):
        check_kl(wrong)


@pytest.mark.parametrize("wrong", [weights_without_proposal, weights_without_log_std, weights_without_prior])
def test_wrong_weights_are_caught(x64, wrong):
    with pytest.raises(AssertionError):
        check_weights_are_exact(wrong)


@pytest.fixture
def case(x64):
    module, rows = binary_case(0), all_rows(5)
    return module, rows, *quadrature(module, rows)


def as_evidence(log_weights):
    """Evidence from weights (n, S), with replicates as the model makes them."""
    weights = np.exp(log_weights)
    ratio = weights.reshape(len(weights), -1, 16).mean(axis=1) / weights.mean(axis=1, keepdims=True)
    values = np.log(weights.mean(axis=1))
    return Evidence.lower_bound(values, values[:, None] + ratio - 1, method="by hand")


@pytest.mark.parametrize(
    ("weights_of", "right"),
    [(elbo.log_importance_weights, True), (weights_without_proposal, False), (weights_without_prior, False)],
)
def test_wrong_evidence_is_caught(case, weights_of, right):
    module, rows, exact, _ = case
    x, observed = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    mean, log_std = jnp.split(module.recognise(x, observed), 2, axis=1)
    # as wide as the prior: the encoder as it is would do for some rows only
    noise = jax.random.normal(jax.random.key(0), (4000, 1))
    answer = jnp.concatenate([mean, jnp.maximum(log_std, 0.0)], axis=1)
    log_weights, _ = weights_of(module, x, observed, answer, noise)
    evidence = as_evidence(np.asarray(log_weights))
    if right:
        check_evidence_by_quadrature(evidence, exact)
    else:
        with pytest.raises(AssertionError):
            check_evidence_by_quadrature(evidence, exact)


def test_evidence_that_counts_unobserved_cells_as_zero_is_caught(case):
    module, rows, exact, _ = case
    model = fitted(0, np.nan_to_num(rows), module, n_importance=2000)
    with pytest.raises(AssertionError):
        check_evidence_by_quadrature(model.evidence(np.nan_to_num(rows)), exact)


def test_conditional_mean_from_unweighted_proposals_is_caught(case):
    module, rows, _, expected = case
    x, observed = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    mean, log_std = jnp.split(module.recognise(x, observed), 2, axis=1)
    z = mean[:, None] + jnp.exp(log_std)[:, None] * jax.random.normal(jax.random.key(0), (len(rows), 2000, 1))
    with pytest.raises(AssertionError):
        check_conditional_mean(module.mean(z).mean(axis=1), expected, rows)
