"""Geweke's test of every Markov kernel of the library."""

import pytest

from tests.audit.findings import SMALL
from tests.audit.kernel_checks import KERNELS, LINES, REAL_KERNELS, check_kernel, check_line
from tests.montecarlo.chain_checks import check_joint_of_reals


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_leave_their_law_unchanged(name, global_random_seed):
    check_kernel(name, KERNELS[name](global_random_seed), global_random_seed, SMALL).require()


@pytest.mark.parametrize("name", LINES)
def test_kernels_on_a_line_leave_their_law_unchanged(name, global_random_seed):
    check_line(name, LINES[name](global_random_seed), global_random_seed, SMALL).require()


@pytest.mark.parametrize("name", REAL_KERNELS)
def test_parameters_and_data_in_turns(name, global_random_seed):
    kernel = REAL_KERNELS[name]
    check_joint_of_reals(lambda key, f, theta: kernel(f)(key, theta[None])[0], global_random_seed, n=4000)
