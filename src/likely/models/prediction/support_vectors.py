"""Support vector machines with probabilities: f(x) = b + Σ_i α_i k(x, x_i), and p(y | x) calibrated on held-out scores.

Cortes and Vapnik (1995); Platt (2000). scikit-learn's `SVC`, `SVR` and `CalibratedClassifierCV` do the work; what they
learned is kept as arrays. Cost: between n² and n³ for the fit, times the folds of the calibration.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Literal

import jax
import numpy as np
from scipy.special import expit
from scipy.stats import t as student
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC, SVR
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import FitRun
from likely.contract.settings import Count, NonNegative, Positive, Several
from likely.models.prediction.conditional.design import Design, completed
from likely.models.prediction.conditional.feature_predictor import FeaturePredictor
from likely.models.prediction.conditional.features import units_of
from likely.models.prediction.conditional.laws import Laws
from likely.runtime import generator

_N_COMPLETIONS = 4  # draws of a training row with holes: each costs as a row does
_LEAST_PROBABILITY = 1e-12  # of a class whose calibrated score is 0, so that its log is finite


class SupportVectorMachine(FeaturePredictor):
    """A support vector machine: of classes with calibrated probabilities, of numbers with the spread of residuals.

    Parameters
    ----------
    kernel : "rbf" (exp(-γ |x - x'|²)), "linear", "poly" ((γ x·x' + 1)^degree) or "sigmoid" (tanh(γ x·x' + 1)).
    penalty : of rows on the wrong side of the margin, scikit-learn's C.
    gamma : of the kernel; None takes 1 / (number of features × their variance).
    degree : of "poly".
    epsilon : of numbers, in standard units: residuals smaller than that cost nothing.
    calibration : how scores become probabilities: "sigmoid" (Platt) or "isotonic", which needs a thousand rows or so.
    n_folds : parts of the rows by which scores are made for the calibration, each from the other parts.
    target_kind : how a single y is read: "class", "number" or "auto", as in `LinearPredictor`.
    companion, n_draws : for rows with holes, as in `LinearPredictor`.
    schema : what the columns of X are; None reads it off the data.
    random_state : seed of the folds and draws.

    Attributes
    ----------
    support_vectors_ : (m, p) features of the rows that the machine rests on, in standard units.
    alpha_ : (k - 1, m) their signed coefficients, for numbers and two classes (1, m).
    classes_ : the classes, in order, where y is of classes.

    Notes
    -----
    A margin has no likelihood. The evidence is that of the calibrated scores, and its `method` says so: of classes
    p(class | f(x)), of numbers Student's t around f(x) with the spread of the residuals of held-out rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SupportVectorMachine(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    >>> model.evidence(X[1::2], y[1::2]).method
    'calibrated scores of a support vector machine (rbf, sigmoid)'
    """

    kernel: Literal["rbf", "linear", "poly", "sigmoid"] = "rbf"
    _: KW_ONLY
    penalty: Positive = 1.0
    gamma: Positive | None = None
    degree: Count = 3
    epsilon: NonNegative = 0.1
    calibration: Literal["sigmoid", "isotonic"] = "sigmoid"
    n_folds: Several = 5

    def _check_targets(self, targets: np.ndarray) -> None:
        super()._check_targets(targets)
        if self.target_.classes is not None:
            least = int(np.bincount(targets[:, 0].astype(np.intp)).min())
            if least < 2:
                raise ValueError(
                    "the calibration of SupportVectorMachine needs 2 rows of each class, but 1 class has a single row: "
                    "give more rows, or leave it out."
                )
        elif self.target_.schema.kinds[0] == "count":
            raise ValueError("SupportVectorMachine predicts classes or a number: set target_kind='number'.")
        elif len(targets) < 2 * self.n_folds:
            raise ValueError(
                f"`n_folds` must be at most half of n_samples = {len(targets)}, got {self.n_folds}: lower it or give "
                "more rows."
            )

    # ---------------------------------------------------------------- learning
    def _learn(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> dict[str, np.ndarray]:
        y = np.asarray(targets[:, 0], np.float64)
        design = completed(rows, y, None, self._features, self._completions, _N_COMPLETIONS)
        centre, scale = units_of(self.columns_, design.x)
        design = replace(design, x=(design.x - centre) / scale)
        gamma = self.gamma or 1 / (design.x.shape[1] * max(design.x.var(), 1e-12))
        seed = int(generator(key).integers(2**31 - 1))
        learn = self._learn_number if self.target_.classes is None else self._learn_classes
        return learn(design, gamma, seed) | {"centre": centre, "scale": scale}

    def _learn_classes(self, design: Design, gamma: float, seed: int) -> dict[str, np.ndarray]:
        codes = design.y.astype(np.intp)
        owners = design.owners
        _, first = np.unique(owners, return_index=True)
        n_folds = min(self.n_folds, int(np.bincount(codes[first]).min()))
        parts = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(first, codes[first])
        machine = SVC(C=self.penalty, kernel=self.kernel, degree=self.degree, gamma=gamma, coef0=1.0)
        whole = CalibratedClassifierCV(machine, method=self.calibration, cv=_folds(parts, owners), ensemble=False)
        whole.fit(design.x, codes, sample_weight=design.weight)
        fitted, calibrators = whole.calibrated_classifiers_[0].estimator, whole.calibrated_classifiers_[0].calibrators
        return _arrays_of(fitted, gamma) | {"n_support": fitted.n_support_} | _calibration(calibrators)

    def _learn_number(self, design: Design, gamma: float, seed: int) -> dict[str, np.ndarray]:
        owners = design.owners
        machine = SVR(
            C=self.penalty, kernel=self.kernel, degree=self.degree, gamma=gamma, coef0=1.0, epsilon=self.epsilon
        )
        left = np.empty(len(design.y))
        parts = KFold(self.n_folds, shuffle=True, random_state=seed).split(np.unique(owners))
        for train, test in _folds(parts, owners):
            machine.fit(design.x[train], design.y[train], sample_weight=design.weight[train])
            left[test] = design.y[test] - machine.predict(design.x[test])
        freedom, location, scale = student.fit(left)
        # Fewer degrees of freedom would leave no variance, and many are a Gaussian.
        residuals = np.array([location, max(scale, 1e-6), float(np.clip(freedom, 2.5, 1e6))])
        fitted = machine.fit(design.x, design.y, sample_weight=design.weight)
        return _arrays_of(fitted, gamma) | {"residuals": residuals}

    # ------------------------------------------------------------------- using
    def _laws(self, x: np.ndarray) -> Laws:
        params, columns = self.params_, self.target_.columns
        scores = self._scores((x - params["centre"]) / params["scale"])
        if self.target_.classes is None:
            location, scale, freedom = params["residuals"]
            full = np.full(len(x), scale), np.full(len(x), freedom)
            return Laws.single(columns, np.stack([scores[:, 0] + location, *full], axis=1))
        shares = np.stack([_calibrated(params, place, own) for place, own in enumerate(scores.T)], axis=1)
        if shares.shape[1] == 1:
            shares = np.hstack([1 - shares, shares])
        shares = np.maximum(shares, _LEAST_PROBABILITY)
        return Laws.single(columns, np.log(shares / shares.sum(axis=1, keepdims=True)))

    def _scores(self, x: np.ndarray) -> np.ndarray:
        """(n, 1) f(x) of numbers and two classes; (n, k) of more, one class against the others."""
        params = self.params_
        options: dict[str, Any] = {} if self.kernel == "linear" else {"gamma": float(params["gamma"])}
        options |= {"coef0": 1.0} if self.kernel in ("poly", "sigmoid") else {}
        options |= {"degree": self.degree} if self.kernel == "poly" else {}
        near = pairwise_kernels(x, params["support_vectors"], metric=self.kernel, **options)
        dual, intercept = params["dual"], params["intercept"]
        if len(dual) == 1:
            return near @ dual.T + intercept
        return _one_against_others(near, dual, intercept, params["n_support"])

    def _how(self) -> str:
        if self.target_.classes is None:
            return f"residuals around a support vector machine ({self.kernel}), calibrated on held-out rows"
        return f"calibrated scores of a support vector machine ({self.kernel}, {self.calibration})"

    @property
    def support_vectors_(self) -> np.ndarray:
        """(m, p) features of the rows that the machine rests on."""
        check_is_fitted(self)
        return self.params_["support_vectors"]

    @property
    def alpha_(self) -> np.ndarray:
        """(k - 1, m) coefficients α of the kernel at each support vector, signed."""
        check_is_fitted(self)
        return self.params_["dual"]


def _one_against_others(near: np.ndarray, dual: np.ndarray, intercept: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(n, k) scores of each class from those of all pairs, as scikit-learn has them."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    k = len(sizes)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    found = np.empty((len(near), len(pairs)))
    for place, (i, j) in enumerate(pairs):
        own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        found[:, place] = near[:, own] @ dual[j - 1, own] + near[:, other] @ dual[i, other] + intercept[place]
    return _ovr_decision_function(found < 0, -found, k)


def _arrays_of(machine: Any, gamma: float) -> dict[str, np.ndarray]:
    return {
        "support_vectors": np.asarray(machine.support_vectors_, np.float64),
        "dual": np.asarray(machine.dual_coef_, np.float64),
        "intercept": np.asarray(machine.intercept_, np.float64),
        "gamma": np.array(gamma),
    }


def _calibration(calibrators: list[Any]) -> dict[str, np.ndarray]:
    """Of each class the sigmoid's two numbers, or the steps of the isotonic function."""
    out = {}
    for place, found in enumerate(calibrators):
        if hasattr(found, "a_"):
            out[f"sigmoid {place}"] = np.array([found.a_, found.b_])
        else:
            out[f"isotonic {place}"] = np.stack([found.X_thresholds_, found.y_thresholds_])
    return out


def _calibrated(params: dict[str, np.ndarray], place: int, scores: np.ndarray) -> np.ndarray:
    if f"sigmoid {place}" in params:
        slope, offset = params[f"sigmoid {place}"]
        return expit(-(slope * scores + offset))
    return np.interp(scores, *params[f"isotonic {place}"])


def _folds(parts: Any, owners: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits of completed rows, such that all draws of a row are on one side."""
    return [(np.flatnonzero(np.isin(owners, train)), np.flatnonzero(np.isin(owners, test))) for train, test in parts]
