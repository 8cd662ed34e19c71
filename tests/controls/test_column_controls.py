"""Planted bugs in the observation families: the checks of `tests/columns` must catch each."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from likely.columns import Bernoulli, Categorical, Gaussian, Poisson
from tests.columns.exponential_checks import (
    check_log_density,
    check_mean_is_the_gradient,
    check_natural_inverts_mean,
    check_sample_moments,
)

pytestmark = pytest.mark.usefixtures("x64")


def broken(family, **faults):
    return type(family.__name__, (family,), {name: staticmethod(fault) for name, fault in faults.items()})


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("count", broken(Poisson, log_base=lambda x: jnp.zeros_like(x))),  # log x! forgotten
        ("real", broken(Gaussian, log_base=lambda x: jnp.full_like(x, -0.9189385))),  # log(2π)/2 to seven digits
        ("real", broken(Gaussian, log_partition=lambda eta: Gaussian.log_partition(eta) * (1 + 1e-6))),
        ("binary", broken(Bernoulli, natural=lambda mean, floor: jnp.log(mean))),  # log p for logit p
        ("categorical", broken(Categorical, statistics=lambda x, s: Categorical.statistics(x, s)[..., ::-1])),
    ],
)
def test_wrong_densities(kind, family):
    with pytest.raises(AssertionError):
        check_log_density(family, kind, 0)


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("real", broken(Gaussian, mean=lambda eta: Gaussian.mean(eta).at[..., 1].multiply(1.000001))),
        ("binary", broken(Bernoulli, mean=lambda eta: Bernoulli.mean(eta * 1.000001))),
        ("count", broken(Poisson, mean=lambda eta: Poisson.mean(eta) + 1e-6)),
    ],
)
def test_wrong_means(kind, family):
    with pytest.raises(AssertionError):
        check_mean_is_the_gradient(family, kind, 0)
    with pytest.raises(AssertionError):
        check_natural_inverts_mean(family, kind, 0)


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("real", broken(Gaussian, sample=lambda key, eta: Gaussian.sample(key, eta.at[..., 1].multiply(1.1)))),
        ("binary", broken(Bernoulli, sample=lambda key, eta: Bernoulli.sample(key, eta + 0.2))),
        ("count", broken(Poisson, sample=lambda key, eta: Poisson.sample(key, eta + 0.1))),
        ("categorical", broken(Categorical, sample=lambda key, eta: Categorical.sample(key, eta * 1.2))),
    ],
)
def test_wrong_samplers(kind, family):
    with pytest.raises(AssertionError):
        check_sample_moments(family, kind, 0)
