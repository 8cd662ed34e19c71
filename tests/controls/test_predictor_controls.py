"""Predictors with a bug planted, which the checks of prediction must catch."""

from dataclasses import replace

import numpy as np
import pytest

import likely
from likely.models.prediction.conditional.companion import GaussianInputs
from likely.models.prediction.linear.gaussian import bayes
from tests.models.prediction import joint_checks, linear_checks
from tests.models.prediction.joint_checks import bits, check_bayes, check_gaussian, holes, reals
from tests.models.prediction.linear_checks import check_holes, check_marginal


@pytest.fixture(scope="module")
def fitted():
    return joint_checks.fitted(0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found, moments: found.log_marginal + 0.5 * np.log(moments.n),  # the intercept not integrated out
        lambda found, moments: found.log_marginal - found.shape * 0.01,  # a rate of σ² that is 1% off
        lambda found, moments: found.log_marginal - 0.5 * np.log(found.precision[0]),  # a prior without its constant
    ],
)
def test_a_wrong_marginal_likelihood_is_caught(wrong):
    def planted(moments, precision):
        found = bayes(moments, precision)
        return replace(found, log_marginal=wrong(found, moments))

    check_marginal(bayes, 0)
    with pytest.raises(AssertionError):
        check_marginal(planted, 0)


@pytest.mark.parametrize("shrunk", [0.9, 1e-3])
def test_unseen_inputs_with_too_small_a_spread_are_caught(shrunk, monkeypatch):
    """Filled-in cells are draws without spread; a tenth too little of it is enough to be seen."""
    x, y = linear_checks.gaussian_rows(3)
    options = {"schema": likely.Schema.real(3), "n_draws": 4096, "random_state": 0}
    model = likely.LinearPredictor("ml", **options).fit(x, y)
    rows = linear_checks.with_holes(x[:40], 0)
    check_holes(model, rows, y[:40])
    drawn = GaussianInputs.completed
    monkeypatch.setattr(GaussianInputs, "completed", lambda self, row, noise: drawn(self, row, shrunk * noise))
    with pytest.raises(AssertionError):
        check_holes(model, rows, y[:40])


def test_the_joint_density_in_place_of_the_conditional_is_caught(fitted):
    def evidence(model, X, y):
        found = model.evidence(X, y)
        return replace(found, values=model.joint_.score_samples(np.column_stack([X, y])))

    with pytest.raises(AssertionError):
        check_gaussian(evidence, fitted["number"], *reals(1))


def test_a_forgotten_change_of_units_is_caught(fitted):
    def evidence(model, X, y):
        found = model.evidence(X, y)
        return replace(found, values=found.values + np.log(model.target_.scaling.scale[0]))

    with pytest.raises(AssertionError):
        check_gaussian(evidence, fitted["number"], *reals(1))


def test_holes_filled_with_means_are_caught(fitted):
    rows = holes(1, bits(1)[0])

    def predict_proba(model, X):
        return model.predict_proba(np.where(np.isnan(X), np.rint(np.nanmean(X, axis=0)), X))

    with pytest.raises(AssertionError):
        check_bayes(predict_proba, fitted["class"], rows)


def test_a_likelihood_without_the_prior_is_caught(fitted):
    def predict_proba(model, X):
        shares = model.predict_proba(X) / model.predict_proba(np.full((1, 4), np.nan))
        return shares / shares.sum(axis=1, keepdims=True)

    with pytest.raises(AssertionError):
        check_bayes(predict_proba, fitted["class"], bits(1)[0])
