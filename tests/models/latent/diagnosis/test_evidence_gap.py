"""Annealed evidence of decoders, both ways, and the split of the bound's gap, against linear Gaussian decoders."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.models.latent.diagnosis.annealed_latents import Effort, anneal, anneal_back, summed
from likely.models.latent.diagnosis.evidence_gap import (
    _warn_if_lost,
    annealed_evidence,
    bidirectional_gap,
    evidence_gap,
)
from tests.models.latent.diagnosis.evidence_gap_checks import (
    EFFORT,
    GAP_EFFORT,
    check_annealed_is_exact,
    check_errors_of_gaps,
    gaps_over_seeds,
    spoiled_case,
)
from tests.models.latent.variational.vae_oracles import factor_log_prob, factor_rows, fitted, linear_case, linear_module


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("start", ["posterior", "prior"])
def test_annealed_is_exact_up_to_its_error(start, global_random_seed):
    check_annealed_is_exact(anneal, global_random_seed, start)


@pytest.mark.usefixtures("x64")
def test_the_truth_lies_between_the_two_directions(global_random_seed):
    module, *law = linear_case(global_random_seed)
    random = np.random.RandomState(global_random_seed)
    z = random.normal(size=(40, 2))
    rows = z @ law[0].T + law[1] + np.sqrt(law[2]) * random.normal(size=(40, 6))
    exact, x = factor_log_prob(rows, *law), jnp.asarray(rows)
    key = jax.random.key(global_random_seed)
    forth = summed(np.asarray(anneal(key, module, x, None, start="prior", effort=EFFORT)))
    back = summed(np.asarray(anneal_back(key, module, x, None, jnp.asarray(z), effort=EFFORT)))
    shorts, errors = [], []
    for target, (value, replicates) in ((exact, forth), (-exact, back)):
        # The mean weight is p(x), or 1 / p(x); its logarithm falls short by half its relative variance, to first order.
        short, n_replicates = target - value, replicates.shape[1]
        jensen = (replicates.var(axis=1, ddof=1) / n_replicates).mean()
        over_rows = short.std(ddof=1) / np.sqrt(len(rows))
        over_noise = replicates.mean(axis=0).std(ddof=1) / np.sqrt(n_replicates)  # which all rows share
        error = np.hypot(over_rows, over_noise)
        assert -5 * error < short.mean() < 5 * error + jensen
        shorts.append(short.mean())
        errors.append(error)
    assert sum(shorts) > -5 * np.hypot(*errors)  # the limits do not cross but by chance


@pytest.mark.usefixtures("x64")
def test_bounds_are_in_order(global_random_seed):
    """ELBO <= importance-weighted <= annealed <= exact, on average."""
    module, rows, exact = spoiled_case(global_random_seed)
    model = fitted(global_random_seed, rows, module, n_importance=16, n_refine=1)
    annealed = annealed_evidence(model, rows, n_temperatures=60, n_chains=16, n_leapfrog=5)
    elbo = evidence_gap(model, rows, n_refine=400, n_samples=256, n_temperatures=60, n_chains=16, n_leapfrog=5).elbo
    error = 5 * annealed.monte_carlo_stderr
    assert elbo.mean() < model.score(rows) < annealed.mean + error
    assert annealed.mean < exact.mean() + error
    assert annealed.kind == "lower"
    assert annealed.method == f"annealing from the posterior, {EFFORT}"
    np.testing.assert_array_equal(annealed.dimensions, (~np.isnan(rows)).sum(axis=1))
    part = annealed_evidence(model, rows[3:9], n_temperatures=60, n_chains=16, n_leapfrog=5)
    np.testing.assert_array_equal(part.values, annealed.values[3:9])  # a row's value does not depend on the others


@pytest.mark.usefixtures("x64")
def test_the_gap_of_a_diagonal_posterior_is_split_as_it_must_be(global_random_seed):
    """For a Gaussian posterior of precision P the best diagonal q loses ½(Σ log P_ii - log det P), whatever the row."""
    random = np.random.RandomState(global_random_seed)
    loadings, offset, noise = random.normal(size=(6, 2)), random.normal(size=6), np.full(6, 0.5)
    precision = np.eye(2) + loadings.T @ (loadings / noise[:, None])
    lost = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    # a network that answers every row with the prior: all else is amortisation
    module = linear_module(np.zeros((4, 6)), np.zeros(4), loadings, offset, noise)
    rows = factor_rows(global_random_seed, loadings, offset, noise, 24)
    model = fitted(global_random_seed, rows, module)
    n_samples, effort = 2048, {"n_temperatures": 60, "n_chains": 16, "n_leapfrog": 5}
    gap = evidence_gap(model, rows, n_refine=400, n_samples=n_samples, **effort)
    exact = factor_log_prob(rows, loadings, offset, noise)
    annealed = annealed_evidence(model, rows, **effort)
    np.testing.assert_array_equal(annealed.values, gap.evidence)
    error, jensen = 5 * annealed.monte_carlo_stderr, (annealed.stderr**2).mean()
    assert -error - jensen < gap.evidence.mean() - exact.mean() < error
    # Of a pair ±ε the log-likelihoods are a constant - ½ε'Aε, with A = S(P - I)S, S the deviations of the best q; all
    # rows share the pairs. Steps that learn on as many others lose Σ_i Var(ε_i (Aε)_i) / 4 a pair by their own noise.
    scale = 1 / np.sqrt(np.diag(precision))
    form, pairs = scale[:, None] * (precision - np.eye(2)) * scale, n_samples / 2
    error = 5 * np.sqrt((form**2).sum() / 2 / pairs)
    refit = 5 * ((form**2).sum() + (np.diag(form) ** 2).sum()) / 4 / pairs
    assert -error < (exact - gap.best).mean() - lost < error + refit
    assert gap.amortisation.mean() > 1
    np.testing.assert_allclose(gap.approximation + gap.amortisation, gap.evidence - gap.elbo)
    assert "approximation" in repr(gap)


@pytest.mark.usefixtures("x64")
def test_errors_of_a_gap_are_its_spread_over_seeds(global_random_seed):
    module, rows, _ = spoiled_case(global_random_seed, n=8)
    found = gaps_over_seeds(evidence_gap, fitted(global_random_seed, rows, module), rows)
    check_errors_of_gaps(found)
    gap = found[0]
    assert {len(error) for error in gap.stderr.values()} == {8}
    for name in ("elbo", "best"):  # the mean of the pairs is the bound
        np.testing.assert_allclose(getattr(gap, f"{name}_replicates").mean(axis=1), getattr(gap, name))
    assert repr(gap).count(" ± ") == 3
    assert "estimated by annealing from the posterior" in repr(gap)
    assert "\n" not in repr(gap)


@pytest.mark.usefixtures("x64")
def test_the_bound_of_a_known_q_lies_within_its_error(global_random_seed):
    """Of q = N(0, I): E log N(x; W z + b, Ψ) is log N(x; b, Ψ) - ½ tr WᵀΨ⁻¹W."""
    random = np.random.RandomState(global_random_seed)
    loadings, offset, noise = random.normal(size=(6, 2)), random.normal(size=6), np.full(6, 0.5)
    module = linear_module(np.zeros((4, 6)), np.zeros(4), loadings, offset, noise)
    rows = factor_rows(global_random_seed, loadings, offset, noise, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", likely.EvidenceWarning)  # five steps leave next to nothing to tell apart
        gap = evidence_gap(fitted(global_random_seed, rows, module), rows, **{**GAP_EFFORT, "n_samples": 512})
    exact = factor_log_prob(rows, 0 * loadings, offset, noise) - 0.5 * (loadings**2 / noise[:, None]).sum()
    assert abs((gap.elbo - exact).mean()) < 5 * gap.mean_stderr["elbo"]
    assert (np.abs(gap.elbo - exact) < 6 * gap.stderr["elbo"]).all()


@pytest.mark.usefixtures("x64")
def test_gaps_that_are_lost_in_their_errors_give_a_warning(global_random_seed):
    module, rows, _ = spoiled_case(global_random_seed, n=2)
    model = fitted(global_random_seed, rows, module)
    with pytest.warns(likely.EvidenceWarning, match="raise `n_samples` from 4 to about"):
        _warn_if_lost("amortisation", 0.05, 0.3, "n_samples", 4)
    with pytest.raises(ValueError, match="`n_samples` must be at least 4, got 2"):
        evidence_gap(model, rows, n_samples=2)


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # seven temperatures are few
def test_a_budget_buys_temperatures(plain):
    rows, few = np.eye(4, 3), {"n_chains": 4, "n_leapfrog": 2}
    same = annealed_evidence(plain, rows, n_temperatures=7, **few)
    np.testing.assert_array_equal(annealed_evidence(plain, rows, budget=7, **few).values, same.values)
    assert "7 temperatures" in evidence_gap(plain, rows, budget=7, n_refine=1, **few).method
    assert "7 temperatures" in bidirectional_gap(plain, 4, budget=7, **few).method
    with pytest.raises(ValueError, match="`budget` must be a positive whole number"):
        annealed_evidence(plain, rows, budget=-1)


@pytest.fixture(scope="module")
def plain():
    rows = np.random.default_rng(0).normal(size=(60, 1)) @ np.ones((1, 3)) + np.random.default_rng(1).normal(
        size=(60, 3)
    )
    return likely.VAE(1, hidden=(), n_epochs=2, random_state=0).fit(rows)


def test_own_rows_tell_how_tight_annealing_is(plain):
    gap = bidirectional_gap(plain, 30, n_temperatures=60, n_chains=16, n_leapfrog=5)
    assert -5 * gap.stderr < gap.mean < 0.5
    assert "own rows, estimated by annealing from the prior" in repr(gap)
    over_rows = (gap.upper - gap.lower).std(ddof=1) / np.sqrt(30)
    np.testing.assert_allclose(gap.stderr, np.hypot(over_rows, gap.monte_carlo_stderr))
    # The chains' noise is the same for all rows: their part of the error does not fall with the number of rows.
    assert gap.monte_carlo_stderr > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [({"n_temperatures": 0}, "n_temperatures"), ({"n_chains": 1}, "n_chains"), ({"n_leapfrog": 2.5}, "n_leapfrog")],
)
def test_bad_efforts_are_refused(options, text, plain):
    with pytest.raises(ValueError, match=f"`{text}` must be a whole number of at least"):
        annealed_evidence(plain, np.eye(4, 3), **options)


def test_models_without_a_recognition_network_are_refused():
    with pytest.raises(TypeError, match="Independent has no recognition network"):
        annealed_evidence(likely.Independent().fit(np.eye(3)), np.eye(3))


def test_efforts_say_what_they_are():
    assert str(Effort(10, 4, 3)) == "10 temperatures, 4 chains, 3 leapfrog steps"
