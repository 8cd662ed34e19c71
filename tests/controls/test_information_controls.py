"""Quantities of information with a bug planted, which the checks must catch."""

from dataclasses import replace

import numpy as np
import pytest

from likely import information
from likely.information import Counts, Gaussian, closed_forms
from tests.information import information_checks as checks

JOINT = np.array([[0.3, 0.1, 0.05], [0.05, 0.2, 0.3]])
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


def off(quantity, by):
    """A quantity that is wrong by a factor."""
    return lambda *args, **options: replace(quantity(*args, **options), value=quantity(*args, **options).value * by)


def test_a_conditional_entropy_given_the_wrong_variable_is_caught():
    def turned(joint, of=1, given=0):
        return information.conditional_entropy(joint, given, of)

    with pytest.raises(AssertionError):
        checks.check_chain_rule(turned, information.entropy, JOINT)


def test_information_in_bits_is_caught():
    with pytest.raises(AssertionError):
        checks.check_shared(
            off(information.mutual_information, 1.001), information.conditional_entropy, information.entropy, JOINT
        )
    with pytest.raises(AssertionError):
        checks.check_pinsker(off(information.kl, 0.5), np.array([0.5, 0.5]), np.array([0.45, 0.55]))


def test_a_divergence_the_wrong_way_round_is_no_entropy_of_a_mixture():
    def reverse(p, q):  # KL(m‖p) in place of KL(p‖m) is unbounded
        middle = (p + q) / 2
        return information.kl(middle, p + 1e-9 * (p == 0) / (1 + 1e-9 * (p == 0).sum()))

    with pytest.raises((AssertionError, ValueError)):
        checks.check_jensen_shannon(reverse, np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def test_an_error_that_is_too_small_is_caught():
    p = Gaussian(0, 1)
    loose = information.Density(p.log_prob, p.sample, p.support)
    found = information.entropy(loose, n_draws=2000)
    with pytest.raises(AssertionError):
        checks.check_against(replace(found, stderr=found.stderr / 1000), p.entropy())


def test_a_forgotten_half_of_a_gaussian_is_caught(monkeypatch):
    p, q = Gaussian([0, 0], [1, 2]), Gaussian([1, 0], [2, 1])
    right = closed_forms.gaussian_kl(p.mean, np.diag(p.covariance), q.mean, np.diag(q.covariance))
    assert p.kl(q) == pytest.approx(right)
    monkeypatch.setattr(closed_forms, "log_determinant", lambda covariance: 0.0)
    wrong = closed_forms.gaussian_kl(p.mean, np.diag([1.0, 3.0]), q.mean, np.diag(q.covariance))
    assert wrong != pytest.approx(Gaussian([0, 0], [1, 3]).kl(q))


def test_counts_without_correction_are_seen_to_be_low():
    rng = np.random.default_rng(0)
    tables = rng.multinomial(30, np.full(10, 0.1), size=400)
    truth = np.log(10)
    plain, corrected = (
        np.mean([information.entropy(Counts(table, how)).value for table in tables]) - truth
        for how in ("none", "grassberger")
    )
    assert plain < -0.1 < corrected
