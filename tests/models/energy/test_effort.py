"""How an RBM is measured can be changed after the fit, and the evidence follows."""

import numpy as np

import likely


def test_log_partition_is_computed_anew_for_other_settings(global_random_seed):
    rows = np.random.default_rng(global_random_seed).integers(0, 2, (40, 30)).astype(np.float64)
    short = {"n_epochs": 1, "n_temperatures": 10, "n_ais_chains": 4, "n_sweeps": 5}
    model = likely.RBM(25, **short, random_state=0).fit(rows)
    first = model.evidence(rows[:3])
    second = model.set_params(n_temperatures=20).evidence(rows[:3])
    again = model.set_params(n_temperatures=10).evidence(rows[:3])
    assert "10 temperatures" in first.method
    assert "20 temperatures" in second.method
    assert not np.array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.values, again.values)
