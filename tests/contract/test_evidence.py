"""Evidence: what its kinds mean, what its intervals cover, and what it refuses to compare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from likely.contract.evidence import Evidence, IncomparableError
from likely.schema import Measure
from tests.contract.evidence_checks import check_kinds_of_differences, check_limits_hold, check_readings_of_a_bit

finite = st.floats(-1e6, 1e6)
values = hnp.arrays(np.float64, st.integers(1, 12), elements=finite)


def exact(values, **about) -> Evidence:
    return Evidence.exact(values, **({"method": "test"} | about))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda v: exact(v), "exact"),
        (lambda v: Evidence.lower_bound(v, method="test"), "lower"),
        (lambda v: Evidence.upper_bound(v, method="test"), "upper"),
        (lambda v: Evidence.estimate(v, method="test"), "estimate"),
        (lambda v: Evidence.estimate(v, lower=v - 1, upper=v + 1, method="test"), "estimate"),
        (lambda v: Evidence.estimate(v, lower=v, upper=v + 1, method="test"), "estimate"),
        (lambda v: Evidence.unavailable(len(v), "it is a toy"), "unavailable"),
    ],
)
def test_kind_follows_from_the_limits(make, kind):
    evidence = make(np.array([-1.0, -2.0, -4.0]))
    assert evidence.kind == kind
    assert len(evidence) == 3
    assert evidence[1:].kind == kind
    assert (evidence.stderr == 0).all()
    assert kind in repr(evidence)


def test_numbers_of_an_exact_evidence():
    evidence = exact([-1.0, -2.0, -6.0], dimensions=[1, 2, 3], measure="counting")
    assert evidence.mean == -3.0
    assert evidence.bits_per_dimension == pytest.approx(9 / 6 / math.log(2))
    assert evidence.perplexity == pytest.approx(math.exp(9 / 6))
    assert evidence.monte_carlo_stderr == 0
    assert evidence.mean_stderr == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    low, high = evidence.interval(0.95)
    assert (low + high) / 2 == pytest.approx(-3)
    assert (high - low) / 2 == pytest.approx(1.959964 * evidence.mean_stderr, rel=1e-6)


def test_a_uniform_die_has_perplexity_six_and_a_bit_per_coin():
    assert exact(np.full(5, -math.log(6))).perplexity == pytest.approx(6)
    assert exact(np.full(5, -8 * math.log(2)), dimensions=8).bits_per_dimension == pytest.approx(1)


def test_one_row_says_nothing_of_the_population():
    evidence = exact([-1.0])
    assert evidence.mean_stderr == math.inf
    assert evidence.interval() == (-math.inf, math.inf)


@given(values, st.floats(0.01, 0.99))
def test_bounds_leave_their_interval_open_on_one_side(rows, level):
    low, high = Evidence.lower_bound(rows, method="test").interval(level)
    assert high == math.inf
    assert low <= rows.mean() + 1e-9
    low, high = Evidence.upper_bound(rows, method="test").interval(level)
    assert low == -math.inf
    assert high >= rows.mean() - 1e-9


@pytest.mark.parametrize("level", [0, 1, -1, 95])
def test_levels_are_probabilities(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        exact([-1.0, -2.0]).interval(level)


@given(values)
def test_replicates_carry_the_monte_carlo_error(rows):
    """Replicates that share their noise between rows: the mean's error is that of the shared noise, not less."""
    noise = np.linspace(-1, 1, 5)
    shared = Evidence.lower_bound(rows, replicates=rows[:, None] + noise, method="test")
    expected = noise.std(ddof=1) / math.sqrt(5)
    np.testing.assert_allclose(shared.stderr, expected, rtol=1e-6, atol=1e-9)
    assert shared.monte_carlo_stderr == pytest.approx(expected, rel=1e-6, abs=1e-9)
    if len(rows) > 1:
        assert shared.mean_stderr >= exact(rows).mean_stderr


def test_independent_replicates_average_out(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    noise = rng.normal(size=(400, 50))
    evidence = Evidence.lower_bound(noise.mean(axis=1), replicates=noise, method="test")
    assert evidence.stderr.mean() == pytest.approx(1 / math.sqrt(50), rel=6 / math.sqrt(2 * 49 * 400) + 0.01)
    # one standard deviation estimated from 50 means: relative error 1 / sqrt(2 · 49)
    assert evidence.monte_carlo_stderr == pytest.approx(1 / math.sqrt(50 * 400), rel=6 / math.sqrt(2 * 49))


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 4), (3, 2, 2)])
def test_replicates_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"replicates must be \(3 rows, at least 2 replicates\)"):
        Evidence.lower_bound(np.zeros(3), replicates=np.zeros(shape), method="test")


def test_one_value_per_row():
    with pytest.raises(ValueError, match=r"one value per row, got an array of shape \(2, 2\)"):
        exact(np.zeros((2, 2)))


@given(values, st.data())
def test_subsetting_takes_the_rows_of_everything(rows, data):
    n = len(rows)
    index = data.draw(
        st.one_of(
            st.lists(st.integers(0, n - 1), min_size=1).map(np.array),
            hnp.arrays(bool, n).filter(lambda mask: mask.any()),
            st.just(slice(None, None, 2)),
        )
    )
    replicates = rows[:, None] + np.arange(3.0)
    whole = Evidence.estimate(
        rows, lower=rows - 1, upper=rows + 2, replicates=replicates, method="test", dimensions=np.arange(n)
    )
    part = whole[index]
    np.testing.assert_array_equal(part.values, rows[index])
    np.testing.assert_array_equal(part.lower, rows[index] - 1)
    np.testing.assert_array_equal(part.upper, rows[index] + 2)
    np.testing.assert_array_equal(part.replicates, replicates[index])
    np.testing.assert_array_equal(part.dimensions, np.arange(n)[index])
    assert (part - whole[index]).mean == 0


def test_different_subsets_do_not_compare():
    whole = exact(np.arange(6.0), fingerprint="rows")
    assert whole[[0, 1]].incomparable(whole[[0, 1]]) == ""
    with pytest.raises(IncomparableError, match="different rows"):
        whole[[0, 1]] - whole[[1, 2]]


@given(hnp.arrays(np.float64, (7, 2), elements=finite))
def test_the_paired_difference_is_that_of_the_rows(pair):
    a, b = pair.T
    difference = exact(a) - exact(b)
    assert difference.kind == "exact"
    assert difference.mean == pytest.approx(np.mean(a - b), rel=1e-12, abs=1e-9)
    assert difference.stderr == pytest.approx(stats.sem(a - b), rel=1e-9, abs=1e-9)
    back = exact(b) - exact(a)
    assert back.mean == pytest.approx(-difference.mean, abs=1e-9)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("exact", "exact", "exact"),
        ("lower", "exact", "lower"),  # what is at least a, less b, is at least a - b
        ("exact", "lower", "upper"),
        ("exact", "upper", "lower"),
        ("upper", "lower", "upper"),
        ("lower", "upper", "lower"),
        ("lower", "lower", "estimate"),  # two lower bounds limit their difference on neither side
        ("estimate", "exact", "estimate"),
    ],
)
def test_differences_of_bounds_are_typed(left, right, kind):
    make = {
        "exact": exact,
        "lower": lambda v: Evidence.lower_bound(v, method="test"),
        "upper": lambda v: Evidence.upper_bound(v, method="test"),
        "estimate": lambda v: Evidence.estimate(v, lower=np.array(v) - 1, upper=np.array(v) + 1, method="test"),
    }
    difference = make[left]([-1.0, -2.0, -3.5]) - make[right]([-2.0, -2.5, -3.0])
    assert difference.kind == kind
    assert difference.lower <= difference.mean <= difference.upper
    assert f"{difference.mean:.3f}" in str(difference)
    low, high = difference.interval()
    assert (low == -math.inf) == (difference.lower == -math.inf)
    assert (high == math.inf) == (difference.upper == math.inf)


@given(hnp.arrays(np.float64, (6, 4), elements=st.floats(-100, 100)))
def test_limits_of_a_difference_contain_the_truth(columns):
    """Whatever the true values are within their limits, their difference lies within the difference's."""
    truth_a, truth_b, slack_a, slack_b = columns.T
    a = Evidence.estimate(truth_a, lower=truth_a - abs(slack_a), upper=truth_a + abs(slack_b), method="test")
    b = Evidence.lower_bound(truth_b - abs(slack_b), method="test")
    difference = a - b
    assert difference.lower - 1e-9 <= np.mean(truth_a - truth_b) <= difference.upper + 1e-9


def test_intervals_of_differences_cover_at_their_level(global_random_seed):
    """Many paired comparisons with Monte Carlo error shared by all rows, by an exact binomial test."""
    rng = np.random.default_rng(global_random_seed)
    n, n_replicates, runs, truth = 150, 150, 1000, 0.3
    covered = 0
    for _ in range(runs):
        common = rng.normal(size=n) * 10  # rows differ much more than models do: only pairing sees the difference
        a = common + truth + rng.normal(size=n)
        shared = rng.normal(size=n_replicates)  # one noise for all rows, as in annealed sampling
        b = common + shared.mean()
        difference = exact(a) - Evidence.estimate(b, b, b, replicates=common[:, None] + shared, method="test")
        low, high = difference.interval(0.9)
        covered += low <= truth <= high
    assert stats.binomtest(covered, runs, 0.9).pvalue > 1e-5


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (exact([-1.0, -2.0], fingerprint="a", measure="lebesgue"), "counting measure, the other on the lebesgue"),
        (exact([-1.0, -2.0], fingerprint="b"), "different rows"),
        (exact([-1.0], fingerprint="a"), "one speaks of 2 rows, the other of 1"),
        (Evidence.unavailable(2, "a GAN has no density", fingerprint="a"), r"no value \(a GAN has no density\)"),
    ],
)
def test_unlike_things_are_refused_with_the_reason(other, why):
    one = exact([-1.0, -3.0], fingerprint="a")
    for left, right in ((one, other), (other, one)):
        with pytest.raises(IncomparableError, match="cannot be compared"):
            left - right
    with pytest.raises(IncomparableError, match=why):
        one - other
    assert one.incomparable(one) == ""


def test_a_bit_is_not_compared_with_its_density():
    check_readings_of_a_bit()


def test_a_refusal_names_the_columns_behind_the_words():
    names = ["pixel 0", "pixel 1"]
    mass, density = (exact([-1.0, -2.0], measure=Measure.of(names, [is_real] * 2)) for is_real in (False, True))
    said = mass.incomparable(density)
    assert "on the counting measure, the other on the lebesgue measure: column 'pixel 0' is a density" in said
    assert "and so is column 'pixel 1'" in said


def test_differences_of_sampled_values_are_not_exact():
    check_kinds_of_differences()


def test_a_difference_knows_where_it_comes_from():
    rows = np.array([-1.0, -2.0, -4.0])
    noise = np.array([-0.2, 0.1, 0.1])
    wide = Evidence.estimate(rows, rows - 1, rows + 0.5, replicates=rows[:, None] + noise, method="annealed")
    difference = wide - exact(rows - 1)
    error = noise.std(ddof=1) / math.sqrt(3)
    assert difference.methods == ("annealed", "test")
    assert difference.monte_carlo_stderr == pytest.approx(error)
    low, high = difference.limits()
    assert (low, high) == pytest.approx((0 - 1.959964 * error, 1.5 + 1.959964 * error), abs=1e-6)
    assert str(difference) == f"{difference.mean:.3f} ± {difference.stderr:.3f} (limits {low:.3f} to {high:.3f})"


def test_limits_that_are_shown_are_widened_by_their_error():
    rows = np.array([-1.0, -2.0, -4.0])
    noise = np.array([[-0.2, 0.1, 0.1]])
    evidence = Evidence.estimate(rows, rows - 1, rows + 0.5, replicates=rows[:, None] + noise, method="test")
    margin = 1.959964 * noise.std(ddof=1) / math.sqrt(3)
    low, high = evidence.limits()
    np.testing.assert_allclose(low, rows - 1 - margin, atol=1e-6)
    np.testing.assert_allclose(high, rows + 0.5 + margin, atol=1e-6)
    assert evidence.mean_limits() == pytest.approx((low.mean(), high.mean()))
    assert f"in [{low.mean():.3f}, {high.mean():.3f}]" in repr(evidence)
    assert f"{low.mean():.3f} to {high.mean():.3f}" in evidence._repr_html_()
    np.testing.assert_array_equal(exact(rows).limits(), [rows, rows])


def test_limits_cover_at_their_level(global_random_seed):
    """Ends that are each right on average, and no more than that: as they are they hold the truth rarely."""
    rng = np.random.default_rng(global_random_seed)
    truth, n_replicates = rng.normal(size=400), 64
    noise = rng.normal(size=(400, n_replicates))
    values = truth + noise.mean(axis=1)
    evidence = Evidence.estimate(values, values, values, replicates=truth[:, None] + noise, method="test")
    assert np.mean((evidence.lower <= truth) & (truth <= evidence.upper)) == 0
    check_limits_hold(evidence, truth)


def test_an_evidence_minus_a_number_is_a_type_error():
    with pytest.raises(TypeError):
        exact([-1.0]) - 1.0  # type: ignore[operator]


def test_limits_that_meet_by_chance_make_no_estimate_exact():
    rows = np.array([-1.0, -2.0])
    noisy = rows[:, None] + np.array([[-0.1, 0.1]])
    assert Evidence.estimate(rows, rows, rows, replicates=noisy, method="test").kind == "estimate"
