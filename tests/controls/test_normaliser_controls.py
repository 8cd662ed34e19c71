"""Planted bugs in sandwiched sums and in the evidence made of them, caught by the checks that the library passes."""

import numpy as np
import pytest

from likely.contract.evidence import Evidence
from likely.models.energy.normaliser.log_sum import LogSum, evidence_of_bounds, evidence_of_sums, sandwich
from tests.models.energy.normaliser.log_sum_checks import (
    check_evidence_of_bounds,
    check_evidence_of_sums,
    check_sandwich,
)


def mean_of_logs(forward, reverse, n_groups):
    """A chain's log weight is no log of a mean weight: too low by half the variance of one, not of the mean."""
    found = sandwich(forward, reverse, n_groups)
    low = forward.mean(axis=1)
    return found._replace(low=low, replicates=found.replicates + (low - found.low)[:, None])


def sides_exchanged(forward, reverse, n_groups):
    """The reverse for the low end: low and high are then wrong by as much the other way."""
    return sandwich(-reverse, -forward, n_groups)


def errors_of_all_chains(forward, reverse, n_groups):
    """Replicates as noisy as the whole estimate, where each should be as noisy as its share of the chains."""
    found = sandwich(forward, reverse, n_groups)
    return found._replace(replicates=found.low[:, None] + (found.replicates - found.low[:, None]) / np.sqrt(n_groups))


@pytest.mark.parametrize("bug", [mean_of_logs, sides_exchanged, errors_of_all_chains], ids=lambda bug: bug.__name__)
def test_wrong_sandwiches_are_caught(bug, global_random_seed):
    with pytest.raises(AssertionError):
        check_sandwich(bug, global_random_seed)


def optimistic(sums, log_z, rows, method):
    """Both limits from the low end of log Z."""
    return evidence_of_sums(sums, log_z._replace(high=log_z.low), rows, method)


def something_of_nothing(sums, log_z, rows, method):
    """A row without an observed cell is given the error of log Z, where its probability is 1."""
    return evidence_of_sums(sums, log_z, np.zeros_like(rows), method)


def replicates_of_rows_alone(sums, log_z, rows, method):
    """The error of log Z forgotten."""
    replicates = None if log_z.replicates is None else np.repeat(log_z.low[:, None], log_z.replicates.shape[1], axis=1)
    return evidence_of_sums(sums, log_z._replace(replicates=replicates), rows, method)


def always_exact(sums, log_z, rows, method):
    return Evidence.exact(sums.low - log_z.low, method=method)


@pytest.mark.parametrize(
    "bug", [optimistic, something_of_nothing, replicates_of_rows_alone, always_exact], ids=lambda bug: bug.__name__
)
def test_wrong_evidence_of_sums_is_caught(bug, global_random_seed):
    with pytest.raises(AssertionError):
        check_evidence_of_sums(bug, global_random_seed)


def limit_from_the_low_end(bounds, replicates, log_z, rows, method):
    return evidence_of_bounds(bounds, replicates, log_z._replace(high=log_z.low), rows, method)


def not_joined(bounds, replicates, log_z, rows, method):
    """The first few replicates in place of all of them, in groups."""
    few = None if log_z.replicates is None else replicates[:, : log_z.replicates.shape[1]]
    return evidence_of_bounds(bounds, few, log_z, rows, method)


def taken_for_sums(bounds, replicates, log_z, rows, method):
    """What is known below only is said to be known above, too."""
    sums = LogSum.exact(bounds, None if log_z.replicates is None else log_z.replicates.shape[1])
    return evidence_of_sums(sums, log_z, rows, method)


@pytest.mark.parametrize("bug", [limit_from_the_low_end, not_joined, taken_for_sums], ids=lambda bug: bug.__name__)
def test_wrong_evidence_of_bounds_is_caught(bug, global_random_seed):
    with pytest.raises(AssertionError):
        check_evidence_of_bounds(bug, global_random_seed)
