"""Planted bugs that the audit catches: in kernels, posteriors, densities, draws, intervals and comparisons."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.contract.evidence import Evidence
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.network import moves
from likely.models.energy.pairwise import machine as pairwise
from likely.montecarlo import block_gibbs
from tests.audit import density_checks, findings, kernel_checks, posterior_checks, refusal_checks, sampled_checks
from tests.audit.cases import Case, fitted
from tests.audit.findings import SMALL

MIXTURE = Case("Mixture", "binary")


def caught(finding):
    assert not finding.holds
    with pytest.raises(AssertionError, match="at most"):
        finding.require()


# ------------------------------------------------------------------ kernels
def test_a_wrong_temperature_is_caught(global_random_seed):
    """Gibbs at a temperature 10% off."""
    hot = kernel_checks.gibbs_of_pairs(
        lambda machine, beta, clamped: block_gibbs(machine, beta=0.9 * beta), -1.0, False
    )
    caught(kernel_checks.check_kernel("hot", hot(global_random_seed), global_random_seed, SMALL))


@pytest.mark.parametrize("move", ["flip", "flips", "step"])
def test_a_move_that_is_always_accepted_is_caught(move, global_random_seed):
    accept = lambda variates, old, new, *_: (new, jnp.ones(len(new.x)))  # noqa: E731
    with mock.patch.object(moves, "_accept", accept):
        trial = kernel_checks.network_moves(move)(global_random_seed)
        finding = kernel_checks.check_kernel(move, trial, global_random_seed, SMALL)
    caught(finding)


def test_leapfrog_steps_without_their_acceptance_are_caught(global_random_seed):
    accept = lambda variates, old, new, *_: (new, jnp.ones(len(new.x)))  # noqa: E731
    with mock.patch.object(moves, "_accept", accept):
        line = kernel_checks.network_langevin(global_random_seed)
        caught(kernel_checks.check_line("leapfrog", line, global_random_seed, SMALL))


def test_a_conditional_that_is_one_unit_off_is_caught(global_random_seed):
    """Each hidden unit is drawn with its neighbour's logits."""
    right = harmonium.hidden_logits
    with mock.patch.object(harmonium, "hidden_logits", lambda *args: jnp.roll(right(*args), 1, axis=-1)):
        trial = kernel_checks.rbm_clamped(global_random_seed)
        caught(kernel_checks.check_kernel("off by one", trial, global_random_seed, SMALL))


def test_a_clamp_that_is_forgotten_is_caught(global_random_seed):
    """The chain leaves the machine unchanged, and not the machine given the cells."""
    right = harmonium.gibbs_hidden
    with mock.patch.object(
        harmonium, "gibbs_hidden", lambda key, params, h, columns, clamp=None: right(key, params, h, columns)
    ):
        trial = kernel_checks.rbm_clamped(global_random_seed)
        caught(kernel_checks.check_kernel("unclamped", trial, global_random_seed, findings.WHOLE))


def test_units_drawn_all_at_once_are_caught(global_random_seed):
    """Every unit from the old state, neighbours together."""

    def together(key, params, states, layout, known=None):
        return jax.random.bernoulli(key, jax.nn.sigmoid(pairwise.logits(params, states))).astype(states.dtype)

    with mock.patch.object(pairwise, "sweep", together):
        trial = kernel_checks.pairwise_sweeps("free")(global_random_seed)
        caught(kernel_checks.check_kernel("together", trial, global_random_seed, SMALL))


# ------------------------------------------------------------------ posteriors
@pytest.mark.parametrize("width", [0.7, 1.5])
def test_a_posterior_of_the_wrong_width_is_caught(width, global_random_seed):
    right = posterior_checks.posterior
    wrong = lambda *args: right(*args)._replace(root=width * right(*args).root)  # noqa: E731
    with mock.patch.object(posterior_checks, "posterior", wrong):
        caught(posterior_checks.codes("FactorAnalysis", global_random_seed, findings.WHOLE))


def test_responsibilities_that_forget_the_row_are_caught(global_random_seed):
    model = fitted(MIXTURE, global_random_seed).model
    blind = np.exp(np.asarray(model.params_.log_weights, np.float64))
    swapped = lambda self, rows: np.tile(blind[::-1] / blind.sum() * [0.5, 1.5], (len(rows), 1))  # noqa: E731
    with mock.patch.object(type(model), "transform", swapped):
        caught(posterior_checks.responsibilities(global_random_seed, findings.WHOLE))


def test_completions_that_ignore_the_row_are_caught(global_random_seed):
    """Erased cells drawn as if nothing were observed: right on average, wrong for every row."""

    def blind(model, queries):
        copies = [
            np.asarray(model.sample(len(queries), random_state=s), float) for s in range(posterior_checks.N_DRAWS)
        ]
        return [np.where(np.isnan(queries), 0.8 * copy + 0.2 * (copy > 0.5), copy) for copy in copies]

    finding = posterior_checks.cells(Case("FactorAnalysis", "real"), global_random_seed, findings.WHOLE, blind)
    caught(finding)


# ------------------------------------------------------------------ densities, conditionals, draws
@pytest.mark.parametrize("check", ["density", "holes"])
def test_an_evidence_that_is_a_hundredth_of_a_nat_off_is_caught(check, global_random_seed):
    model = fitted(MIXTURE, global_random_seed).model
    right = model.evidence
    wrong = lambda self, rows, **rest: _moved(right(rows, **rest), 0.01)  # noqa: E731
    with mock.patch.object(type(model), "evidence", wrong):
        found = density_checks.CHECKS[check](MIXTURE, global_random_seed, SMALL)
    assert any(not finding.holds for finding in found)


def _moved(evidence: Evidence, nats: float) -> Evidence:
    parts = {name: getattr(evidence, name) + nats for name in ("values", "lower", "upper")}
    replicates = None if evidence.replicates is None else evidence.replicates + nats
    return replace(evidence, **parts, replicates=replicates)


def test_a_bound_that_lies_above_the_truth_is_caught(global_random_seed):
    case = Case("VAE", "binary")
    model = fitted(case, global_random_seed).model
    right = model.evidence
    with mock.patch.object(type(model), "evidence", lambda self, rows, **rest: _moved(right(rows, **rest), 0.3)):
        found = density_checks.density(case, global_random_seed, SMALL)
    assert not next(f for f in found if f.check.endswith("above the truth")).holds


def test_noise_that_rows_share_is_caught(global_random_seed):
    """Every row of a copy is completed with the same uniform variates."""
    one = fitted(MIXTURE, global_random_seed)
    cls = type(one.model.condition(one.rows[:1]))

    def shared(self, n=1, random_state=None):
        uniform = np.random.default_rng(random_state).random((n, 1, self.rows.shape[1]))
        on = np.stack([self.probabilities(i)[:, 1] for i in range(self.rows.shape[1])], axis=1)
        return list((uniform < on[None]).astype(float))

    with mock.patch.object(cls, "sample", shared):
        caught(density_checks.draws_across(MIXTURE, global_random_seed, SMALL)[0])
        caught(density_checks.draws_within(MIXTURE, global_random_seed, findings.WHOLE)[0])  # cells are independent too


def test_intervals_that_are_sure_of_too_much_are_caught(global_random_seed):
    """Values with no error, a nat beside the truth."""
    model = fitted(Case("RBM", "binary"), global_random_seed).model
    right = model.evidence

    def sure(self, rows, **rest):
        evidence = _moved(right(rows, **rest), 1.0)
        return replace(evidence, lower=evidence.values, upper=evidence.values)

    with mock.patch.object(type(model), "evidence", sure):
        found = sampled_checks.coverage("RBM", global_random_seed, SMALL)
    assert all(not finding.holds for finding in found)


def test_comparisons_that_are_never_refused_are_caught(global_random_seed):
    with mock.patch.object(Evidence, "incomparable", return_value=""):
        caught(refusal_checks.refusal("other rows", global_random_seed))


def test_figures_that_are_no_numbers_do_not_hold():
    caught(findings.Finding("a model", "a check", float("nan"), 1.0, "nats"))
