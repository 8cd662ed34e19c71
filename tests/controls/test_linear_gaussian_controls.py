"""Planted bugs in linear-Gaussian models: the checks of `tests/models/latent` must catch each."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.models.latent.linear import em as linear_gaussian_em
from likely.models.latent.linear import linear_gaussian
from likely.models.latent.linear.linear_gaussian import conditional_moments, log_prob, posterior, sample
from likely.runtime import by_blocks
from tests.models.latent.linear.linear_precision_checks import check_rounding, nearly_dependent
from tests.models.latent.mixture.gaussian_checks import (
    assert_never_falls,
    check_conditional,
    check_em_step,
    check_log_prob,
    check_moments,
    check_posterior,
    dense,
    random_params,
)

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize(("noise", "wrong"), [(1e-6, "float32"), (1e-9, "silent")])
def test_evidence_that_is_further_off_than_it_says_is_caught(noise, wrong, monkeypatch):
    """Planted bugs: the posterior's precision summed in float32, and a rounding that nobody is told of."""
    with jax.enable_x64(False):
        rows = nearly_dependent(0, noise)
        model = likely.FactorAnalysis(1, min_noise=noise / 10, random_state=0).fit(rows)
        check_rounding(model, rows)
        if wrong == "silent":
            monkeypatch.setattr(linear_gaussian, "rounding", lambda params: 0.0)
        else:
            in_float32 = lambda self, function, rows: by_blocks(partial(function, self.params_), rows)  # noqa: E731
            monkeypatch.setattr(linear_gaussian.LinearGaussian, "_by_rows", in_float32)
        with pytest.raises(AssertionError):
            check_rounding(model, rows)


def with_noise(factor):
    return lambda params: eqx.tree_at(lambda p: p.noise, params, params.noise * factor)


@pytest.mark.parametrize(
    "broken",
    [
        lambda p, x, o: log_prob(with_noise(1.0001)(p), x, o),  # the noise off by a ten-thousandth
        lambda p, x, o: log_prob(p, x, None),  # unobserved cells taken for zeros
        lambda p, x, o: log_prob(p, x, o) * (1 + 1e-6),
        lambda p, x, o: log_prob(p, x, o) - 0.5 * jnp.log(2 * jnp.pi) * (0 if o is None else (~o).sum(axis=1)),
        lambda p, x, o: log_prob(eqx.tree_at(lambda q: q.offset, p, p.offset + 1e-5), x, o),
    ],
)
def test_wrong_densities(broken):
    with pytest.raises(AssertionError):
        check_log_prob(broken, 0)


def test_wrong_posteriors(monkeypatch):
    with pytest.raises(AssertionError):
        check_posterior(lambda p, x, o: posterior(with_noise(1.0001)(p), x, o), 0)
    right = linear_gaussian._precision
    monkeypatch.setattr(linear_gaussian, "_precision", lambda V, o: right(V, o) + 1e-4)  # the prior's part is wrong
    with pytest.raises(AssertionError):
        check_posterior(posterior, 0)


def test_wrong_conditionals():
    def without_noise(p, x, o):
        mean, variance = conditional_moments(p, x, o)
        return mean, jnp.where(o, 0, variance - p.noise_of_columns[None])

    def of_the_code_s_mean(p, x, o):
        mean, variance = conditional_moments(p, x, o)
        return mean, jnp.where(o, 0, jnp.broadcast_to(p.noise_of_columns[None], variance.shape))

    for broken in (without_noise, of_the_code_s_mean):
        with pytest.raises(AssertionError):
            check_conditional(broken, 0)


def _change(where, how):
    """A fault in one of the summed statistics."""
    return lambda totals: eqx.tree_at(where, totals, how(totals))


@pytest.mark.parametrize(
    "fault",
    [
        _change(lambda t: t.counts, lambda t: jnp.full_like(t.counts, t.n_rows)),  # noise divided by all rows
        _change(lambda t: t.codes_seen, lambda t: t.codes_seen * (1 + 1e-6)),
        _change(lambda t: t.codes, lambda t: t.codes.at[0, 0].multiply(1.001)),  # the expansion's part
        _change(lambda t: t.cross, lambda t: t.cross.at[:, -1].multiply(1 + 1e-6)),  # the offset's part
        _change(lambda t: t.n_rows, lambda t: t.n_rows + 1),  # a padding row counted
    ],
)
def test_wrong_sums_of_em(monkeypatch, fault):
    right = linear_gaussian_em.expect_incomplete
    monkeypatch.setattr(linear_gaussian_em, "expect_incomplete", lambda params, given: fault(right(params, given)))
    with pytest.raises(AssertionError):
        check_em_step(linear_gaussian_em.em_step, 0)


def test_em_with_less_of_the_code_s_spread(monkeypatch):
    """E[h hᵀ] too near to E[h] E[h]ᵀ, as for a code that is known."""
    right = linear_gaussian_em.posterior
    monkeypatch.setattr(
        linear_gaussian_em, "posterior", lambda *args: (code := right(*args))._replace(root=code.root * 0.999)
    )
    with pytest.raises(AssertionError):
        check_em_step(linear_gaussian_em.em_step, 0)


def test_a_step_that_falls_is_seen():
    with pytest.raises(AssertionError):
        assert_never_falls(np.array([-3.0, -2.0, -2.001]))


def test_samples_of_another_model():
    params = random_params(0)
    draws = np.asarray(sample(jax.random.key(0), with_noise(1.2)(params), 40_000))
    with pytest.raises(AssertionError):
        check_moments(draws, *dense(params))
