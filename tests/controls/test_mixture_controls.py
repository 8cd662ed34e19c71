"""Planted bugs in the mixture, which its tests must catch."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.columns import exponential as families
from likely.models.latent.mixture import by_value, gaussian_block, stack
from likely.models.latent.mixture import em as mixture_em
from tests.contracts.table import binary_rows
from tests.models.latent.mixture import test_mixture as checks
from tests.models.latent.mixture.by_value_checks import check_start
from tests.models.latent.mixture.stack_checks import check_weighted_sum


@pytest.fixture(autouse=True)
def _compile_anew():
    """A program compiled before the bug was planted would hide it, and one compiled after would keep it."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def test_a_forgotten_log_determinant_is_caught(monkeypatch, x64):
    original = gaussian_block._log_density

    def forgetful(white, tril, n_cells):
        return original(white, np.eye(tril.shape[-1]), n_cells)

    monkeypatch.setattr(gaussian_block, "_log_density", forgetful)
    with pytest.raises(AssertionError):
        checks.test_log_prob_with_holes_equals_scipy("full", None, 0)


def test_a_missing_conditional_covariance_lowers_the_objective(monkeypatch):
    original = gaussian_block.expected_cells

    def overconfident(block, x, observed):
        cells, spread = original(block, x, observed)
        return cells, 0 * spread

    monkeypatch.setattr(gaussian_block, "expected_cells", overconfident)
    with pytest.raises(AssertionError):
        checks.test_em_never_lowers_its_objective.hypothesis.inner_test(0, "full", 0.4, 0.0)


def test_counting_rows_that_lack_a_column_is_caught(monkeypatch):
    original = mixture_em._sums

    def all_rows(*args):
        sums = original(*args)
        return sums._replace(seen=jnp.broadcast_to(sums.counts[:, None], sums.seen.shape))

    monkeypatch.setattr(mixture_em, "_sums", all_rows)
    with pytest.raises(AssertionError):
        checks.test_em_never_lowers_its_objective.hypothesis.inner_test(0, "diagonal", 0.4, 0.0)


def test_a_poisson_without_its_factorial_is_caught(monkeypatch, x64):
    monkeypatch.setattr(families.Poisson, "log_base", staticmethod(lambda x: 0 * x))
    with pytest.raises(AssertionError):
        checks.test_log_prob_with_holes_equals_scipy("diagonal", None, 0)


def test_a_sum_in_the_order_of_the_cores_is_caught():
    """One core cannot tell: there the two runs are the same."""
    n_cores = len(os.sched_getaffinity(0))
    alike = checks.sums_on_cores(1, "summed") == checks.sums_on_cores(n_cores, "summed")
    assert alike == (n_cores == 1)


@pytest.mark.parametrize("wrong", ["equal", "logs"])
def test_a_stack_that_weighs_wrongly_is_caught(monkeypatch, wrong):
    """Members that all count the same, and a mean of logarithms in place of the logarithm of a mean."""
    members = [likely.Mixture(k, n_init=1, max_iter=20, random_state=k).fit(binary_rows(k, 150)) for k in (1, 3)]
    model = likely.Stack(members).fit(binary_rows(9, 100))
    check_weighted_sum(model, members)
    right = stack.mixed_evidence

    def mixed(found, weights):
        if wrong == "equal":
            return right(found, np.full(len(found), 1 / len(found)))
        return stack.Evidence.exact(weights @ np.stack([one.values for one in found]), method="wrong")

    monkeypatch.setattr(stack, "mixed_evidence", mixed)
    with pytest.raises(AssertionError):
        check_weighted_sum(model, members)


@pytest.mark.parametrize("bug", ["equal shares", "rows that fill up count"])
def test_a_start_with_wrong_weights_is_caught(bug, monkeypatch, x64):
    original = by_value.together

    def equal(found, shares, layout):
        return original(found, np.full(len(shares), 1 / len(shares)), layout)

    def started(fit, rows, weight, codes, *rest):
        counting = lambda rows, weight, key, k: fit(rows, np.maximum(weight, 1), key, k)  # noqa: E731
        return by_value.started(counting if bug != "equal shares" else fit, rows, weight, codes, *rest)

    if bug == "equal shares":
        monkeypatch.setattr(by_value, "together", equal)
    with pytest.raises(AssertionError):
        check_start(started, "full")
