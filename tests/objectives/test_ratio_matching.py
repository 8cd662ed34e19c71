"""Ratio matching against its definition on an enumerated machine."""

import jax
import numpy as np

from likely.objectives.ratio_matching import ratio_matching
from tests.objectives.energy_checks import (
    N_UNITS,
    STATES,
    check_consistent,
    check_gradient,
    machine,
    machine_energy,
    machine_truth,
)
from tests.objectives.energy_checks import population as population_of


def test_loss_is_hyvarinens(x64, global_random_seed):
    """½ E Σ_i of the squared errors of 1/(1+u) at both ratios, up to a constant of the model: compare differences.

    The definition is E_p [(g(p/p^i) - g(q/q^i))² + (g(p^i/p) - g(q^i/q))²] with g(u) = 1/(1+u), truth p and model q.
    """
    truth, batch = machine(global_random_seed), population_of(machine(global_random_seed))
    p = np.asarray(machine_truth(truth)[0])
    flips = [[int(np.flatnonzero((np.where(np.arange(N_UNITS) == i, 1 - s, s) == STATES).all(axis=1))[0])
              for i in range(N_UNITS)] for s in STATES]  # fmt: skip
    flips = np.array(flips)

    def definition(theta):
        q, total = np.asarray(machine_truth(theta)[0]), 0.0
        g = lambda u: 1 / (1 + u)  # noqa: E731
        for i in range(N_UNITS):
            other = flips[:, i]
            total += p @ ((g(p / p[other]) - g(q / q[other])) ** 2 + (g(p[other] / p) - g(q[other] / q)) ** 2)
        return 0.5 * total

    models = [machine(global_random_seed + k) for k in (1, 2)]
    ours = [float(ratio_matching(m, batch, jax.random.key(0), None, energy=machine_energy)[0]) for m in models]
    np.testing.assert_allclose(ours[1] - ours[0], definition(models[1]) - definition(models[0]), rtol=1e-8)


def test_consistent(x64, global_random_seed):
    check_consistent(ratio_matching, global_random_seed)


def test_gradient_against_finite_differences(x64, global_random_seed):
    batch = population_of(machine(global_random_seed + 1))
    loss = lambda t: ratio_matching(t, batch, jax.random.key(0), None, energy=machine_energy)[0]  # noqa: E731
    check_gradient(loss, machine(global_random_seed), global_random_seed)
