"""Two-sample tests: exact levels where nothing differs, power where something does."""

from functools import partial

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from likely import classifier_test, mmd_test
from tests.information.two_sample_checks import check_level, discrepancy_by_loops, p_values

MMD = partial(mmd_test, n_permutations=99)
BAYES = partial(classifier_test, classifier=GaussianNB())


def test_discrepancy_is_its_definition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) * 2
    deviation = np.concatenate([x, y]).std(axis=0)
    found = mmd_test(x, y, bandwidth=0.8, n_permutations=1).statistic
    np.testing.assert_allclose(found, discrepancy_by_loops(x / deviation, y / deviation, 0.8), rtol=1e-9)


def test_p_values_are_uniform_where_nothing_differs(global_random_seed):
    check_level(p_values(MMD, global_random_seed, 400, 0.0))
    check_level(p_values(BAYES, global_random_seed, 200, 0.0), uniform=False)


def test_differences_are_found(global_random_seed):
    """The sets' means are four standard errors and more apart: missing one in ten is a fault."""
    assert (p_values(MMD, global_random_seed, 40, 1.2) < 0.05).mean() > 0.9
    assert (p_values(BAYES, global_random_seed, 40, 2.0) < 0.05).mean() > 0.9


def test_default_classifier_takes_holes_and_tells_a_ring_from_a_disc():
    rng = np.random.default_rng(0)
    disc = rng.normal(size=(400, 2))
    ring = disc / np.linalg.norm(disc, axis=1, keepdims=True)
    disc[::10, 0] = np.nan
    assert classifier_test(disc, ring).p_value < 1e-3


def test_bad_rows_are_refused():
    rows = np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"got shapes \(5, 2\) and \(5, 3\)"):
        mmd_test(rows, np.zeros((5, 3)))
    with pytest.raises(ValueError, match="impute NaN cells, or use classifier_test"):
        mmd_test(rows, np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="at least 2 rows"):
        mmd_test(rows, rows[:1])
    with pytest.raises(ValueError, match="at least 4 rows of each set, got 5 and 3"):
        classifier_test(rows, rows[:3])
    with pytest.raises(ValueError, match="`bandwidth` must be above 0"):
        mmd_test(rows, rows, bandwidth=0)
    assert mmd_test(rows, rows).p_value == 1.0  # all rows alike
