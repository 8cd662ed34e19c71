"""Planted bugs in the calibration of odd rows, caught by the checks that the library passes."""

import numpy as np
import pytest

from likely.contract.surprise import calibration
from tests.contract.surprise_checks import (
    binary_model,
    check_binomial,
    check_uniform,
    enumerated_tails,
    erased,
    gaussian_model,
    holed_states,
)

N = 2000


@pytest.fixture
def unmasked(monkeypatch):
    """Draws are compared whole, whatever is observed of a row."""
    right = calibration.Source.masked
    monkeypatch.setattr(calibration.Source, "masked", lambda self, patterns, n: right(self, patterns | True, n))


@pytest.fixture
def reversed_order(monkeypatch):
    """The share of draws that are more likely."""
    right = calibration.tail_of
    monkeypatch.setattr(calibration, "tail_of", lambda values, reference, *more: right(-values, -reference, *more))


def test_draws_that_are_not_masked_are_caught(unmasked, global_random_seed):
    bits, gaussian = binary_model(0), gaussian_model(0)
    found = bits.surprise(holed_states(), n_draws=N, random_state=global_random_seed)
    with pytest.raises(AssertionError):
        check_binomial(found.tail, enumerated_tails(bits, holed_states()), N)
    rows = erased(gaussian.sample(N, random_state=global_random_seed + 1), global_random_seed)
    tail = gaussian.surprise(rows, n_draws=N, random_state=global_random_seed).tail
    with pytest.raises(AssertionError):
        check_uniform(tail, N)


def test_a_reversed_tail_is_caught(reversed_order):
    bits = binary_model(0)
    with pytest.raises(AssertionError):
        check_binomial(bits.surprise(holed_states(), n_draws=N).tail, enumerated_tails(bits, holed_states()), N)


def test_a_share_that_is_off_in_its_tails_is_caught():
    with pytest.raises(AssertionError):
        check_uniform(np.linspace(0, 1, N) ** 1.5, N)
