"""Planted bugs in the autoencoder with discrete latents, caught by the checks that the library passes."""

import pytest

from likely.models.latent.variational.discrete.network import log_prob
from likely.objectives.discrete_elbo import closed_part, negative_discrete_elbo
from tests.models.latent.variational.discrete_checks import all_rows, case, check_log_prob, check_objective_is_unbiased

pytestmark = pytest.mark.usefixtures("x64")


def without_closed_part(module, batch, key, state, **options):
    """Entropy and prior forgotten."""
    loss, more = negative_discrete_elbo(module, batch, key, state, **options)
    share = batch.weight / batch.weight.sum()
    return loss + share @ closed_part(module, module.posterior(batch.x, batch.observed)), more


def test_a_bound_without_its_closed_part_is_caught(global_random_seed):
    with pytest.raises(AssertionError):
        check_objective_is_unbiased(without_closed_part, "score", global_random_seed, n_draws=1000, n_samples=1)


def test_a_sum_that_counts_unobserved_cells_is_caught():
    with pytest.raises(AssertionError):
        check_log_prob(lambda module, x, observed: log_prob(module, x, None), case(0), all_rows()[::5])
