"""log Z of fitted models: by enumeration, computed once, and anew when what it depends on changes."""

import numpy as np
import pytest
from scipy.special import logsumexp

import likely
from likely.models.energy.pairwise import answers as pairwise_answers

STATES = np.indices((2,) * 4).reshape(4, -1).T.astype(np.float64)


def machine(seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(4, 4)), 1)
    return weights + weights.T, rng.normal(size=4)


def exact_log_z(weights, bias, beta, low):
    """Over units that are `low` or 1, less the constant by which 0/1 units at inverse temperature 1 differ."""
    states = np.where(STATES == 1, 1.0, low)
    logs = beta * (0.5 * np.einsum("ni,ij,nj->n", states, weights, states) + states @ bias)
    return logsumexp(logs - logs[0])  # the first state has all units low, where a machine of 0/1 units weighs 1


@pytest.mark.parametrize("units", ["01", "pm1"])
def test_log_z_follows_the_settings_that_it_depends_on(units, x64, global_random_seed):
    weights, bias = machine(global_random_seed)
    model = likely.BoltzmannMachine.from_weights(weights, bias, units=units)
    for beta in (1.0, 0.3, 2.0):
        model.beta = beta
        wanted = exact_log_z(weights, bias, beta, 0.0 if units == "01" else -1.0)
        np.testing.assert_allclose(model.log_partition().low, [wanted], rtol=1e-10)


def test_log_z_is_computed_once_for_each_way_to_measure_it(monkeypatch):
    calls = []
    original = pairwise_answers.Exact.log_partition
    monkeypatch.setattr(
        pairwise_answers.Exact, "log_partition", lambda self, key: calls.append(1) or original(self, key)
    )
    model = likely.BoltzmannMachine.from_weights(*machine(0))
    first = model.log_partition()
    assert model.log_partition() is first
    model.evidence(STATES)
    assert len(calls) == 1
    for number, change in enumerate(({"beta": 0.5}, {"n_sweeps": 7}, {"n_ais_chains": 9}), start=2):
        model.set_params(**change).log_partition()
        assert len(calls) == number
    model.params_ = likely.BoltzmannMachine.from_weights(*machine(1)).params_
    model.log_partition()
    assert len(calls) == 5
