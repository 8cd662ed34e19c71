"""Two-sample tests: exact levels where nothing differs, power where something does."""

from functools import partial
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from likely import classifier_test, mmd_test
from likely.information import two_sample
from tests.information.two_sample_checks import (
    check_level,
    discrepancy_by_loops,
    mixed_discrepancy_by_loops,
    mixed_p_values,
    p_values,
)

MMD = partial(mmd_test, n_permutations=99)
BAYES = partial(classifier_test, classifier=GaussianNB())


def test_discrepancy_is_its_definition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) * 2
    deviation = np.concatenate([x, y]).std(axis=0)
    found = mmd_test(x, y, bandwidth=0.8, n_permutations=1).statistic
    np.testing.assert_allclose(found, discrepancy_by_loops(x / deviation, y / deviation, 0.8), rtol=1e-9)


def test_discrepancy_of_mixed_rows_is_its_definition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x, y = ([[rng.choice(["a", "b", "c"]), rng.normal()] for _ in range(8)] for _ in range(2))
    found = mmd_test(x, y, bandwidth=0.8, n_permutations=1).statistic
    np.testing.assert_allclose(found, mixed_discrepancy_by_loops(x, y, 0.8), rtol=1e-5)  # corners in single precision


def test_p_values_of_mixed_rows_are_uniform_where_nothing_differs(global_random_seed):
    check_level(mixed_p_values(MMD, global_random_seed, 200))
    trees = DecisionTreeClassifier(max_depth=2, random_state=0)  # takes unobserved cells; its leaves tie
    check_level(mixed_p_values(partial(classifier_test, classifier=trees), global_random_seed, 200), uniform=False)


def test_differences_of_mixed_frames_are_found(global_random_seed):
    """Words that come with other dates, and holes in other places; each column alone is as in the other set."""
    rng = np.random.default_rng(global_random_seed)
    n = 300
    words, days = rng.choice(["tea", "coffee"], n), rng.integers(0, 1000, n)
    hole = rng.random(n) < 0.3

    def frame(words, days, hole):
        dates = np.where(hole, np.datetime64("NaT"), np.datetime64("2020-01-01") + days.astype("m8[D]"))
        return pl.DataFrame({"drink": words, "day": dates})

    x = frame(words, np.where(words == "tea", days, days + 1000), hole)
    together = rng.permutation(n)
    y = frame(words, np.where(words[together] == "tea", days, days + 1000), hole)
    assert mmd_test(x, y, n_permutations=199).rejected
    assert classifier_test(x, y).rejected
    assert classifier_test(x, frame(words, np.where(words == "tea", days, days + 1000), words == "tea")).rejected


def test_p_values_are_uniform_where_nothing_differs(global_random_seed):
    check_level(p_values(MMD, global_random_seed, 400, 0.0))
    check_level(p_values(BAYES, global_random_seed, 1000, 0.0))


def test_ties_make_alarms_rarer_never_more_frequent(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for test, n_times in ((MMD, 200), (BAYES, 400)):
        pairs = (rng.integers(2, size=(2, 20, 2)) + 0.0 for _ in range(n_times))
        found = np.array([test(*pair, random_state=number).p_value for number, pair in enumerate(pairs)])
        check_level(found, uniform=False)


def test_ties_are_broken_as_all_deals_would(global_random_seed):
    """The share of ties against all deals of the labels, enumerated, within its stated error."""
    rng = np.random.default_rng(global_random_seed)
    confidence, said, true = rng.random(10), np.arange(10) < 5, rng.permutation(10) < 4
    hits, total = (said & true).sum(), confidence[true].sum()
    deals = [list(deal) for deal in combinations(range(10), 4) if said[list(deal)].sum() == hits]
    exact = np.mean([confidence[deal].sum() >= total - 1e-9 for deal in deals])
    found = two_sample._share_of_ties(rng, confidence, said, true)
    assert abs(found - exact) < 5 * two_sample._error_of_share(found, two_sample._TIE_DEALS) + 1 / 200


def test_the_error_of_a_p_value_is_its_spread_over_seeds(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x, y = rng.normal(size=(2, 20, 2))
    found = [MMD(x, y, random_state=seed) for seed in range(100)]
    spread = np.std([one.p_value for one in found], ddof=1)
    stated = np.mean([one.p_stderr for one in found])
    assert 1 / 1.6 < stated / spread < 1.6  # five standard errors of a deviation from 100 values are 36%


def test_results_say_in_one_line_what_they_found():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40, 2))
    same, other = MMD(x, y), BAYES(x, y + 2)
    assert str(same).startswith("no difference found at level 0.05 (p = ")
    assert str(other).startswith("the sets differ at level 0.05 (p = ")
    assert " ± " in str(same)
    assert "99 permutations" in str(same)
    assert "\n" not in str(other)
    assert other.rejected
    assert not MMD(x, y, level=1e-9).rejected
    undecided = same._replace(p_value=0.06, p_stderr=0.02)
    assert "more permutations may decide otherwise" in str(undecided)
    with pytest.raises(ValueError, match="`level` must lie between 0 and 1, got 1"):
        BAYES(x, y, level=1)


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
    with pytest.raises(ValueError, match="the rows of X have 2 columns and the rows of Y 3"):
        mmd_test(rows, np.zeros((5, 3)))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        mmd_test(rows, np.zeros(5))
    for test in (mmd_test, classifier_test):
        with pytest.raises(ValueError, match="column 'x0' of the rows of Y holds an infinite number in row 0"):
            test(rows, np.full((5, 2), np.inf))
    with pytest.raises(ValueError, match="at least 2 rows"):
        mmd_test(rows, rows[:1])
    with pytest.raises(ValueError, match="at least 4 rows of each set, got 5 and 3"):
        classifier_test(rows, rows[:3])
    with pytest.raises(ValueError, match="`bandwidth` must be above 0"):
        mmd_test(rows, rows, bandwidth=0)
    assert mmd_test(rows, rows).p_value == 1.0  # all rows alike
