"""Planted bugs in draws, errors and counts, which the checks of the normaliser and of the contract see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from likely.columns import Columns
from likely.columns.counts import Counts
from likely.models.energy.harmonium import answers as harmonium
from likely.models.energy.normaliser import answers as normaliser
from likely.models.energy.normaliser.row_noise import row_numbers
from likely.models.energy.normaliser.schedule import Settings
from tests.columns.counts_checks import check_counts
from tests.models.energy.harmonium import brute_force
from tests.models.energy.normaliser.row_noise_checks import (
    all_states,
    check_a_row_is_drawn_alone,
    check_copies_are_independent,
    exact_means,
    rows_with_holes,
)
from tests.models.energy.normaliser.watched_checks import check_right_or_unsure

SIX = Columns(("binary",) * 6, (1,) * 6)


@pytest.fixture
def machine():
    return brute_force.machine(SIX, 3, 0, scale=0.7)


def drawn(params, rows, n):
    found = harmonium.Exact(params, SIX, "hidden").condition(None, rows).sample(jax.random.key(0), n)
    return np.where(np.isnan(rows), found, rows)


def test_shared_noise_is_caught(machine, x64, monkeypatch):
    monkeypatch.setattr(normaliser, "row_keys", lambda key, numbers: jnp.broadcast_to(key, (len(numbers),)))
    rows = rows_with_holes(6)
    logs = logsumexp(brute_force.log_joint(machine, all_states(6), SIX), axis=1)
    with pytest.raises(AssertionError):
        check_copies_are_independent(drawn(machine, rows, 500), rows, exact_means(logs, rows))


def test_noise_by_place_is_caught(machine, x64, monkeypatch):
    def by_place(rows):
        return np.column_stack([np.zeros((len(rows), 2)), np.arange(len(rows))]).astype(np.uint32)

    monkeypatch.setattr(normaliser, "row_numbers", by_place)
    with pytest.raises(AssertionError):
        check_a_row_is_drawn_alone(lambda rows: drawn(machine, rows, 3), rows_with_holes(6))


def test_equal_rows_with_equal_noise_are_caught(machine, x64, monkeypatch):
    def without_occurrence(rows):
        return row_numbers(rows) * np.array([1, 1, 0], np.uint32)

    monkeypatch.setattr(normaliser, "row_numbers", without_occurrence)
    with pytest.raises(AssertionError):
        check_a_row_is_drawn_alone(lambda rows: drawn(machine, rows, 3), rows_with_holes(6))


def test_chains_from_one_start_that_are_sure_of_themselves_are_caught(x64, monkeypatch):
    """Ten bits that a hidden unit switches together: chains that all start off stay off, and agree that it is so."""
    ten = Columns(("binary",) * 10, (1,) * 10)
    params = brute_force.RBMParams(
        jnp.full((10, 1), 5.0), jnp.full(10, -2.5), jnp.full(1, -25.0), jnp.zeros((9, 1), bool)
    )
    one_start = lambda key, params, n, row, seen, columns: jnp.zeros((n, params.n_hidden), row.dtype)  # noqa: E731
    monkeypatch.setattr(harmonium.chains, "_dispersed", one_start)
    monkeypatch.setattr(harmonium, "few_holes", lambda rows, columns: np.zeros(len(rows), bool))
    jax.clear_caches()
    rows = np.full((1, 10), np.nan)
    parts = harmonium.Sampled(params, ten, Settings(16, 10, 53)).condition(jax.random.key(0), rows)
    exact = harmonium.Exact(params, ten, "hidden").condition(None, rows).mean
    with pytest.raises(AssertionError):
        check_right_or_unsure(parts.mean, parts.stderr, parts.mixing.unsure, exact, 16)


WEIGHTS, RATES = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0.4, 20.0])


def test_rounded_means_are_caught():
    counts = Counts.of_mixture([0], WEIGHTS, RATES[:, None])
    mean = WEIGHTS @ RATES
    std = np.sqrt(counts.squares[:, 0] - mean**2)
    check_counts(std, counts.modes(0, mean), WEIGHTS, RATES)
    with pytest.raises(AssertionError):
        check_counts(std, np.round(mean), WEIGHTS, RATES)


def test_deviations_without_poisson_noise_and_from_few_draws_are_caught():
    mean, modes = WEIGHTS @ RATES, Counts.of_mixture([0], WEIGHTS, RATES[:, None]).modes(0, WEIGHTS @ RATES)
    with pytest.raises(AssertionError):
        check_counts(np.sqrt(WEIGHTS @ RATES**2 - mean**2), modes, WEIGHTS, RATES)
    rng = np.random.default_rng(0)
    drawn = [rng.poisson(RATES[rng.choice(2, 64, p=w)]).std() for w in WEIGHTS]
    with pytest.raises(AssertionError):
        check_counts(np.array(drawn), modes, WEIGHTS, RATES)
