"""Simulation-based calibration of every posterior, and coverage of the intervals of sampled evidence."""

import pytest

from tests.audit import posterior_checks, sampled_checks
from tests.audit.cases import few_cases
from tests.audit.findings import SMALL

ALONE = [case for case in few_cases() if case.kind != "mixed"]
CHAINED = [name for name in sampled_checks.MACHINES if name != "DBN"]  # which answers by importance, not by chains


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_erased_cells_are_draws_among_draws(case, global_random_seed):
    posterior_checks.cells(case, global_random_seed, SMALL).require()


@pytest.mark.parametrize("name", CHAINED)
def test_clamped_chains_are_calibrated(name, global_random_seed):
    posterior_checks.clamped_chains(name, global_random_seed, SMALL).require()


@pytest.mark.parametrize("name", ["ProbabilisticPCA", "FactorAnalysis"])
def test_codes_are_calibrated(name, global_random_seed):
    posterior_checks.codes(name, global_random_seed, SMALL).require()


def test_components_are_calibrated(global_random_seed):
    posterior_checks.responsibilities(global_random_seed, SMALL).require()


def test_classes_are_calibrated(global_random_seed):
    posterior_checks.classes(global_random_seed, SMALL).require()


@pytest.mark.parametrize("name", sampled_checks.MACHINES)
def test_intervals_hold_the_truth(name, global_random_seed):
    for finding in sampled_checks.coverage(name, global_random_seed, SMALL):
        finding.require()
