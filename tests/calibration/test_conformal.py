"""Conformal sets hold y as often as they say, by simulation; what a predictor of the library adds; what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import likely
from likely import calibration
from likely.calibration import CrossConformal, SplitConformal
from tests.calibration.calibration_checks import SEVERAL, check_share


class Zero:
    """Predicts 0, whatever the row."""

    def predict(self, X):
        return np.zeros(len(X))


class Uniform:
    """Three classes with probabilities that the rows hold themselves."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, X):
        return X


def check_split(split, seed, level=0.8, n=39, n_trials=400):
    """With continuous scores the share of new rows held is exactly rank / (n + 1) on average."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(n_trials):
        y = rng.standard_t(2, n + 20)
        low, high = split(Zero()).calibrate(np.zeros((n, 1)), y[:n]).interval(np.zeros((20, 1)), level)
        held += np.mean((low <= y[n:]) & (y[n:] <= high))
    # Shares of 20 rows with one threshold vary as a Beta variable and a binomial one.
    rank = math.ceil((n + 1) * level - 1e-9)
    spread = np.sqrt(stats.beta(rank, n + 1 - rank).var() + level * (1 - level) / 20)
    assert abs(held / n_trials - rank / (n + 1)) < SEVERAL * spread / np.sqrt(n_trials)


def test_split_intervals_hold_as_much_as_they_say(global_random_seed):
    check_split(SplitConformal, global_random_seed)


def test_a_quantile_without_the_new_row_is_caught(global_random_seed):
    class Bold(SplitConformal):
        def threshold(self, level):
            return float(np.quantile(self.scores_, level - 0.05))

    with pytest.raises(AssertionError):
        check_split(Bold, global_random_seed)


@pytest.mark.parametrize("score", ["probability", "cumulative"])
def test_split_sets_hold_as_much_as_they_say(score, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    held, size, n_trials, n = 0.0, 0.0, 300, 49
    for trial in range(n_trials):
        p = rng.dirichlet([2.0, 1.0, 1.0], n + 20)
        y = Uniform.classes_[(p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)]
        conformal = SplitConformal(Uniform(), score=score, random_state=trial).calibrate(p[:n], y[:n])
        sets = conformal.sets(p[n:], 0.8)
        held += np.mean(sets[np.arange(20), np.searchsorted(Uniform.classes_, y[n:])])
        size += sets.sum(axis=1).mean()
    spread = np.sqrt(stats.beta(40, 10).var() + 0.16 / 20)
    assert abs(held / n_trials - 40 / 50) < SEVERAL * spread / np.sqrt(n_trials)
    assert 1 < size / n_trials < 2.5


def test_the_guarantee_is_what_beta_says():
    found = SplitConformal(Zero()).calibrate(np.zeros((99, 1)), np.arange(99.0)).guarantee(0.9)
    assert found.at_least == 0.9
    assert (found.low, found.high) == pytest.approx(stats.beta(90, 10).interval(0.95))
    few = SplitConformal(Zero()).calibrate(np.zeros((5, 1)), np.arange(5.0))
    assert few.threshold(0.9) == math.inf
    assert few.interval(np.zeros((1, 1)), 0.9)[1][0] == math.inf
    assert few.guarantee(0.9).at_least == 1


def test_cross_intervals_hold_at_least_what_they_guarantee(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    held, n_trials, n = 0, 60, 40
    for trial in range(n_trials):
        X = rng.normal(size=(n + 20, 3))
        y = X.sum(axis=1) + rng.standard_t(3, n + 20)
        conformal = CrossConformal(Ridge(1.0), 5, random_state=trial).fit(X[:n], y[:n])
        low, high = conformal.interval(X[n:], 0.8)
        held += int(np.sum((low <= y[n:]) & (y[n:] <= high)))
    assert conformal.guarantee(0.8).at_least == pytest.approx(0.6 - (1 - 5 / 40) / 6)
    # In practice the level itself is kept; 20 rows of a trial share their intervals, so that a trial counts as one.
    assert held / (20 * n_trials) > 0.8 - SEVERAL * np.sqrt(0.8 * 0.2 / n_trials)
    assert held < 20 * n_trials


def test_cross_intervals_without_folds_left_out_are_those_of_the_definition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(12, 1))
    y = X[:, 0] + rng.normal(size=12)
    conformal = CrossConformal(LinearRegression(), 4, random_state=0).fit(X, y)
    low, high = conformal.interval(X[:2], 0.75)
    for row in range(2):  # by the letter: ranks ⌈(n + 1) level⌉ from either side
        centres = np.array([conformal.predictors_[k].predict(X[row : row + 1])[0] for k in conformal.fold_])
        assert high[row] == pytest.approx(np.sort(centres + conformal.scores_)[math.ceil(13 * 0.75) - 1])
        assert low[row] == pytest.approx(np.sort(centres - conformal.scores_)[12 - math.ceil(13 * 0.75)])
    assert np.isinf(conformal.interval(X, 0.99)).all()


def test_cross_sets_of_a_classifier(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(260, 2))
    y = np.where(X[:, 0] + rng.normal(size=260) > 0, "yes", "no")
    conformal = CrossConformal(LogisticRegression(), 4).fit(X[:120], y[:120])
    sets = conformal.sets(X[120:], 0.8)
    codes = np.searchsorted(conformal.predictors_[0].classes_, y[120:])
    check_share(int(sets[np.arange(140), codes].sum()), 140, 0.8, at_least=True)
    assert 1 <= sets.sum(axis=1).mean() < 2


@pytest.fixture(scope="module")
def numbers():
    """A predictor whose p(y | x) is a Gaussian, known exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=400)
    return likely.JointPredictor(likely.FactorAnalysis(1, random_state=0)).fit(X[:100], y[:100]), X, y


def test_a_predictor_of_the_library_is_assessed_by_draws(numbers):
    model, X, y = numbers
    found = calibration.assess(model, X[100:], y[100:], n_draws=64)
    known = model.condition(X[100:])
    exact = calibration.crps_gaussian(np.ravel(known.mean()), np.ravel(known.std()), y[100:])
    gap = found.scores["CRPS"] - exact
    assert abs(gap.mean) < SEVERAL * gap.stderr
    assert gap.stderr < exact.stderr / 3
    truth = stats.norm.cdf((y[100:] - np.ravel(known.mean())) / np.ravel(known.std()))
    # F by 64 draws is off by √(F(1-F)/64) and a step of 1/65.
    assert np.abs(found.pit.values - truth).max() < SEVERAL * 0.5 / 8 + 1 / 65
    assert "90% intervals hold" in str(found)


def test_scaled_intervals_of_a_predictor_of_the_library(numbers):
    model, X, y = numbers
    conformal = SplitConformal(model).calibrate(X[100:250], y[100:250])
    assert conformal.score == "scaled"
    low, high = conformal.interval(X[250:], 0.9)
    held = int(np.sum((low <= y[250:]) & (y[250:] <= high)))
    spread = np.sqrt(stats.beta(136, 15).var() + 0.09 / 150)
    assert abs(held / 150 - 136 / 151) < SEVERAL * spread
    plain = SplitConformal(model, score="residual").calibrate(X[100:250], y[100:250])
    widths = np.subtract(*plain.interval(X[250:], 0.9))
    np.testing.assert_allclose(widths, widths[0], rtol=1e-6)


def test_a_classifier_of_scikit_learn_is_assessed(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    forest = RandomForestClassifier(10, random_state=0).fit(X[:100], y[:100])
    found = calibration.assess(forest, X[100:], y[100:])
    assert set(found.scores) == {"log score", "Brier score"}
    assert found.error.n_rows == 200
    assert found.reliability.counts.sum() == 200
    other = calibration.assess(LogisticRegression().fit(X[:100], y[:100]), X[100:], y[100:])
    assert (other.scores["Brier score"] - found.scores["Brier score"]).mean < 0
    assert "calibration error" in str(other)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SplitConformal(Zero()).interval(np.zeros((1, 1))), "call `calibrate"),
        (lambda: SplitConformal(Zero(), score="probability"), "must be one of residual, scaled"),
        (lambda: SplitConformal(Zero(), score="scaled"), "predicts no deviation"),
        (lambda: SplitConformal(Zero()).calibrate(np.zeros((2, 1)), [0, 1.0]).sets([[0.0]]), "ask for `interval"),
        (
            lambda: SplitConformal(Zero()).calibrate(np.zeros((2, 1)), [0, 1.0]).interval([[0.0]], 1.5),
            "between 0 and 1",
        ),
        (lambda: SplitConformal(Uniform()).calibrate(np.full((1, 3), 1 / 3), ["d"]), "y has 'd'"),
        (lambda: CrossConformal(Ridge(), 5).fit(np.zeros((3, 1)), [0.0, 1.0, 2.0]), "from 2 to the number of rows"),
        (lambda: calibration.assess(Zero(), np.zeros((2, 1)), [0.0, 1.0]), "no distribution"),
        (lambda: calibration.assess(LinearSVC().fit([[0.0], [1.0]], [0, 1]), [[0.0]], [0]), "no probabilities"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
