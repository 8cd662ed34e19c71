"""Identities that every quantity of information must keep, as functions that take the quantity: bugs can be planted."""

from __future__ import annotations

import math

import numpy as np

ROUNDING = 1e-12  # of sums over at most a hundred terms of size one, in float64


def check_chain_rule(conditional_entropy, entropy, joint):
    """H(a, b) = H(a) + H(b | a), either way round."""
    for of, given in ((1, 0), (0, 1)):
        alone = entropy(joint.sum(axis=of)).value
        assert abs(entropy(joint).value - alone - conditional_entropy(joint, of, given).value) < ROUNDING


def check_shared(mutual_information, conditional_entropy, entropy, joint):
    """I(a; b) = H(b) - H(b | a) = I(b; a) ≥ 0."""
    value = mutual_information(joint).value
    assert abs(value - entropy(joint.sum(axis=0)).value + conditional_entropy(joint).value) < ROUNDING
    assert abs(value - mutual_information(joint, 1, 0).value) < ROUNDING
    assert value > -ROUNDING


def check_gibbs(kl, p, q):
    """KL(p‖q) ≥ 0, and 0 for q = p."""
    assert kl(p, q).value >= 0
    assert abs(kl(p, p).value) < ROUNDING


def check_pinsker(kl, p, q):
    """KL ≥ 2 TV², which tells nats from bits."""
    distance = 0.5 * np.abs(p - q).sum()
    assert kl(p, q).value >= 2 * distance**2 - ROUNDING


def check_jensen_shannon(jensen_shannon, p, q):
    """Symmetric, between 0 and log 2, and at most half of the total variation times 2 log 2."""
    value = jensen_shannon(p, q).value
    assert value == jensen_shannon(q, p).value
    assert -ROUNDING < value < math.log(2) + ROUNDING
    assert value <= math.log(2) * 0.5 * np.abs(p - q).sum() + ROUNDING


def check_against(found, truth, errors=4.5):
    """An estimate within 4.5 of its standard errors of the truth: a false alarm in 10^5."""
    assert found.is_sampled
    assert found.stderr > 0
    assert abs(found.value - truth) < errors * found.stderr, f"{found}, not {truth:.4f}"
