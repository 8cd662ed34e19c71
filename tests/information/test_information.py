"""Entropies and divergences: closed forms against quadrature, sums and SciPy; identities; estimates within errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from likely import information
from likely.columns import Columns
from likely.information import ColumnFamily, Counts, Density, Discrete, Gaussian, Information, Samples
from tests.information.information_checks import (
    check_against,
    check_chain_rule,
    check_gibbs,
    check_jensen_shannon,
    check_pinsker,
    check_shared,
)

shares = st.integers(0, 20)


def table(*shape):
    """Tables of probabilities with zeros among them."""
    size = math.prod(shape)
    return st.lists(shares, min_size=size, max_size=size).filter(any).map(lambda x: np.reshape(x, shape) / sum(x))


few = settings(max_examples=60)


@few
@given(table(3, 4))
def test_the_chain_rule_holds(joint):
    check_chain_rule(information.conditional_entropy, information.entropy, joint)
    check_shared(information.mutual_information, information.conditional_entropy, information.entropy, joint)
    assert information.entropy(joint).value == pytest.approx(stats.entropy(joint.ravel()), abs=1e-12)


@few
@given(table(5), table(5))
def test_divergences_keep_gibbs_inequality_and_the_bounds_of_jensen_and_shannon(p, q):
    check_gibbs(information.kl, p, q)
    check_pinsker(information.kl, p, q)
    check_jensen_shannon(information.jensen_shannon, p, q)
    assert information.kl(p, q).value == pytest.approx(stats.entropy(p, q), abs=1e-12)
    crossed = information.cross_entropy(p, q).value
    assert crossed == pytest.approx(information.entropy(p).value + stats.entropy(p, q), abs=1e-12)


@few
@given(table(2, 3))
def test_the_mean_of_pointwise_information_is_the_mutual_one(joint):
    some = joint > 0
    mean = np.sum(joint[some] * information.pmi(joint)[some])
    assert mean == pytest.approx(information.mutual_information(joint).value, abs=1e-12)


COLUMNS = Columns(("binary", "categorical", "count", "real", "real"), (1, 3, 1, 1, 1))
numbers = st.floats(-2, 2, width=32)


def eta_of(x):
    """Natural parameters from ten numbers; precisions between e^-2 and e^2."""
    eta = np.array(x)
    eta[-2:] = -0.5 * np.exp(eta[-2:])
    return eta[: COLUMNS.n_statistics]


etas = st.lists(numbers, min_size=9, max_size=9).map(eta_of)


@few
@given(etas, etas)
def test_columns_keep_gibbs_inequality_and_add_up(one, other):
    p, q = ColumnFamily(COLUMNS, one), ColumnFamily(COLUMNS, other)
    check_gibbs(information.kl, p, q)
    parts = [information.kl(p.marginal((i,)), q.marginal((i,))).value for i in range(5)]
    assert sum(parts) == pytest.approx(p.kl(q), rel=1e-12, abs=1e-12)
    assert information.mutual_information(p, (0, 2), (1, 3)).value == pytest.approx(0, abs=1e-12)


def frozen(eta):
    """The same columns by SciPy, in the order of the columns; real ones last, as their blocks are."""
    shares = np.exp(eta[1:4]) / np.exp(eta[1:4]).sum()
    variances = -0.5 / eta[7:9]
    reals = [stats.norm(m * v, np.sqrt(v)) for m, v in zip(eta[5:7], variances, strict=True)]
    return [stats.bernoulli(1 / (1 + np.exp(-eta[0]))), shares, stats.poisson(np.exp(eta[4])), *reals]


def test_columns_agree_with_scipy_by_sums_and_quadrature(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    one, other = (eta_of(rng.uniform(-2, 2, 9)) for _ in range(2))
    p, q = ColumnFamily(COLUMNS, one), ColumnFamily(COLUMNS, other)
    own, others = frozen(one), frozen(other)
    x = np.arange(120)
    for place in (0, 2):
        values, elses = own[place].pmf(x), others[place].pmf(x)
        assert p.entropies()[place] == pytest.approx(stats.entropy(values), abs=1e-12)
        assert p.divergences(q)[place] == pytest.approx(stats.entropy(values, elses), abs=1e-10)
    assert p.entropies()[1] == pytest.approx(stats.entropy(own[1]), abs=1e-12)
    assert p.divergences(q)[1] == pytest.approx(stats.entropy(own[1], others[1]), abs=1e-12)
    for place in (3, 4):
        a, b = own[place], others[place]
        assert p.entropies()[place] == pytest.approx(a.entropy(), abs=1e-12)
        ends = a.mean() - 12 * a.std(), a.mean() + 12 * a.std()
        by_quadrature = integrate.quad(lambda t, a=a, b=b: a.pdf(t) * (a.logpdf(t) - b.logpdf(t)), *ends)[0]
        assert p.divergences(q)[place] == pytest.approx(by_quadrature, abs=1e-7)


def test_the_entropy_of_large_rates_joins_the_sum():
    columns = Columns(("count",), (1,))
    below, above = (ColumnFamily(columns, [np.log(rate)]).entropy() for rate in (19_999.99, 20_000.01))
    # Between them it rises by half the logarithm of the ratio; rounding of 1e5 terms of size one is below 1e-10.
    assert above - below == pytest.approx(0.5 * np.log(20_000.01 / 19_999.99), abs=1e-10)
    assert ColumnFamily(columns, [-np.inf]).entropy() == 0


def gaussians(seed, d=3):
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(d, d)) for _ in range(2)]
    return [Gaussian(rng.normal(size=d), factor @ factor.T + np.eye(d)) for factor in factors]


def test_gaussians_agree_with_scipy_and_diagonal_ones_with_full(global_random_seed):
    p, q = gaussians(global_random_seed)
    truth = stats.multivariate_normal(p.mean, p.covariance)
    assert p.entropy() == pytest.approx(truth.entropy(), rel=1e-10)
    x = p.sample(np.random.default_rng(global_random_seed), 5)
    np.testing.assert_allclose(p.log_prob(x), truth.logpdf(x), rtol=1e-10)
    # E_p (x - m)ᵀ S (x - m) in coordinates, an independent way to the same number.
    inverse = np.linalg.inv(q.covariance)
    quadratic = np.trace(inverse @ p.covariance) + (p.mean - q.mean) @ inverse @ (p.mean - q.mean)
    logs = np.linalg.slogdet(q.covariance)[1] - np.linalg.slogdet(p.covariance)[1]
    assert p.kl(q) == pytest.approx(0.5 * (quadratic - 3 + logs), rel=1e-9)
    flat, round_ = Gaussian(p.mean, [1.0, 2.0, 3.0]), Gaussian(q.mean, 2.0)
    whole = Gaussian(p.mean, np.diag([1.0, 2.0, 3.0]))
    assert flat.kl(round_) == pytest.approx(whole.kl(round_), rel=1e-10)
    assert flat.entropy() == pytest.approx(whole.entropy(), rel=1e-12)
    check_gibbs(information.kl, p, q)


def test_information_of_gaussians_keeps_the_chain_rule(global_random_seed):
    p, _ = gaussians(global_random_seed, 4)
    both = information.conditional_entropy(p, (1, 3), (0, 2)).value + p.marginal((0, 2)).entropy()
    assert both == pytest.approx(p.entropy(), rel=1e-12)
    shared = information.mutual_information(p, (0, 2), (1, 3)).value
    apart = Gaussian(p.mean, np.where(np.add.outer(np.arange(4), np.arange(4)) % 2 == 0, p.covariance, 0))
    assert shared == pytest.approx(p.kl(apart), rel=1e-9)  # I is the divergence from the product of marginals


def test_draws_give_the_closed_form_within_their_error(global_random_seed):
    p, q = gaussians(global_random_seed)
    options = {"n_draws": 4000, "random_state": global_random_seed}
    loose = [Density(g.log_prob, g.sample, g.support) for g in (p, q)]
    check_against(information.entropy(loose[0], **options), p.entropy())
    check_against(information.kl(*loose, **options), p.kl(q))
    check_against(information.kl(p, loose[1], **options), p.kl(q))
    check_against(information.cross_entropy(*loose, **options), p.entropy() + p.kl(q))
    apart = Gaussian([0.0], 1.0), Gaussian([2.0], 1.0)
    a, b = stats.norm(0, 1), stats.norm(2, 1)
    truth = 2 * integrate.quad(lambda t: 0.5 * a.pdf(t) * np.log(2 * a.pdf(t) / (a.pdf(t) + b.pdf(t))), -12, 14)[0]
    check_against(information.jensen_shannon(*apart, **options), truth)
    check_against(information.jensen_shannon(a, b, **options), truth)


def test_distributions_of_scipy_are_taken_as_they_are(global_random_seed):
    found = information.entropy(stats.gamma(3), n_draws=4000, random_state=global_random_seed)
    check_against(found, float(stats.gamma(3).entropy()))
    found = information.kl(stats.poisson(3), stats.poisson(5), n_draws=4000, random_state=global_random_seed)
    check_against(found, 3 * np.log(3 / 5) - 3 + 5)


P, Q = np.array([0.4, 0.2, 0.15, 0.1, 0.06, 0.04, 0.03, 0.02]), np.array([0.2, 0.2, *[0.1] * 6])


@pytest.mark.parametrize("correction", ["miller-madow", "grassberger", "chao-shen"])
def test_corrected_entropies_of_counts_are_nearer_on_average_and_say_so(correction, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    tables = rng.multinomial(60, P, size=1000)
    plain, found = ([information.entropy(Counts(t, how)) for t in tables] for how in ("none", correction))
    assert "not corrected" in plain[0].method
    assert "corrected by" in found[0].method
    truth = information.entropy(P).value
    bias, was = (np.mean([f.value for f in many]) - truth for many in (found, plain))
    noise = np.std([f.value for f in found]) / np.sqrt(1000)
    assert abs(bias) + 4.5 * noise < abs(was) - 4.5 * noise  # 0.064 without correction, at most 0.015 with
    # The delta method leaves out how the correction varies, a tenth of the deviation at 60 rows; the deviation of 1000
    # values is known to a fortieth.
    assert np.mean([f.stderr for f in found]) == pytest.approx(np.std([f.value for f in found]), rel=0.1 + 4.5 / 40)


@pytest.mark.parametrize("quantity", [information.kl, information.jensen_shannon])
def test_divergences_of_counts_are_corrected_to_second_order(quantity, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    pairs = list(zip(rng.multinomial(200, P, size=800), rng.multinomial(300, Q, size=800), strict=True))
    plain, found = ([quantity(Counts(a, how), Counts(b, how)) for a, b in pairs] for how in ("none", "grassberger"))
    truth, values = quantity(P, Q).value, np.array([f.value for f in found])
    noise = values.std() / np.sqrt(800)
    was = np.mean([f.value for f in plain]) - truth
    assert abs(values.mean() - truth) + 4.5 * noise < was
    assert np.mean([f.stderr for f in found]) == pytest.approx(values.std(), rel=0.1 + 4.5 / 40)


def test_information_of_counts_is_that_of_the_tables_they_are_drawn_from(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    joint = rng.dirichlet(np.full(24, 2.0)).reshape(2, 3, 4)
    counts = Counts(rng.multinomial(5000, joint.ravel()).reshape(2, 3, 4))
    for a, b in ((0, 1), ((2, 0), 1), (1, (0, 2))):
        found, given = information.mutual_information(counts, a, b), information.conditional_entropy(counts, b, a)
        check_against(found, information.mutual_information(joint, a, b).value)
        check_against(given, information.conditional_entropy(joint, b, a).value)
        axes = (b,) if isinstance(b, int) else b
        assert counts.marginal(axes).entropy() - given.value == pytest.approx(found.value, abs=1e-12)


def test_neighbours_give_information_of_densities(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    p, q = Gaussian([0, 0], [[1, 0.6], [0.6, 1]]), Gaussian([0.3, 0], [1.2, 1.5])
    x, y = Samples(p.sample(rng, 1500)), Samples(q.sample(rng, 1500))
    # In two dimensions the bias is below half a standard error at 1500 rows, and errors are a quarter too small.
    check_against(information.entropy(x), p.entropy(), 6)
    check_against(information.kl(x, y), p.kl(q), 6)
    check_against(information.mutual_information(x), -0.5 * np.log(1 - 0.36), 6)
    given = information.conditional_entropy(x)
    check_against(given, p.entropy() - p.marginal((0,)).entropy(), 6)


def test_a_result_says_what_it_is():
    coin = information.entropy([0.5, 0.5])
    assert (coin.kind, coin.bits, coin.nats, float(coin)) == ("exact", 1.0, math.log(2), math.log(2))
    assert coin.interval() == (coin.value, coin.value)
    assert information.perplexity(Discrete([0.125] * 8)) == pytest.approx(8)
    bound = Information(1.0, 0.1, -math.inf, 1.0, "by hand", is_sampled=True)
    assert bound.kind == "upper"
    assert bound.interval(0.95)[0] == -math.inf
    assert bound.interval(0.95)[1] == pytest.approx(1.196, abs=1e-3)
    assert "≤ 1.000 ± 0.100 nats (upper" in str(bound)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: information.entropy([3, 1]), "must have sum 1, got 4"),
        (lambda: information.entropy([-0.5, 1.5]), "from 0 on"),
        (lambda: information.entropy("ab"), "got str"),
        (lambda: information.kl([0.5, 0.5], [1.0]), "different things: a table of 2 values, and a table of 1 values"),
        (lambda: information.kl([0.5, 0.5], Gaussian(0, 1)), "different things"),
        (lambda: information.kl(Counts([1, 2]), [0.5, 0.5]), "cannot compare a Counts with a list"),
        (lambda: information.kl(Counts([1, 2]), Counts([1])), "of other values"),
        (lambda: Counts([0.5, 0.5]), "whole numbers"),
        (lambda: Counts([0, 0]), "no rows"),
        (lambda: Counts([1], "jackknife"), "must be one of"),
        (lambda: Gaussian([0, 0], [[1, 2], [2, 1]]), "positive definite"),
        (lambda: Gaussian([0, 0], np.ones((2, 3))), r"got shapes \(2,\) and \(2, 3\)"),
        (lambda: information.mutual_information([0.5, 0.5]), "numbered from 0 to 0"),
        (lambda: information.mutual_information(np.full((2, 2), 0.25), 0, 0), "share none"),
        (lambda: information.mutual_information(stats.norm()), "numbered from 0 to 0"),
        (lambda: information.pmi([0.5, 0.5]), "two variables"),
        (lambda: information.entropy(Samples([1.0, 1.0, 1.0], 1)), "values repeat"),
        (lambda: Samples([1.0, np.nan]), "finite"),
        (lambda: information.cross_entropy(Counts([1]), Counts([1])), "ask for `kl`"),
        (lambda: information.jensen_shannon(Samples([1.0, 2.0], 1), Samples([1.0, 2.0], 1)), "classifier_test"),
        (lambda: ColumnFamily(COLUMNS, [0.0]), "natural parameters"),
        (lambda: information.entropy([0.5, 0.5]).interval(1.0), "between 0 and 1"),
    ],
)
def test_what_means_nothing_is_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_a_value_that_one_table_lacks_makes_the_divergence_infinite():
    found = information.kl(Counts([1, 2]), Counts([3, 0]))
    assert math.isinf(found.value)
    assert "1 values of p not in q" in found.method
