"""Sandwiched sums and the evidence they make, against enumeration."""

from likely.models.energy.normaliser.log_sum import evidence_of_bounds, evidence_of_sums, sandwich
from tests.models.energy.normaliser.log_sum_checks import (
    check_evidence_of_bounds,
    check_evidence_of_sums,
    check_sandwich,
)


def test_a_sandwich_of_known_sums(global_random_seed):
    check_sandwich(sandwich, global_random_seed)


def test_evidence_of_sums(global_random_seed):
    check_evidence_of_sums(evidence_of_sums, global_random_seed)


def test_evidence_of_bounds(global_random_seed):
    check_evidence_of_bounds(evidence_of_bounds, global_random_seed)
