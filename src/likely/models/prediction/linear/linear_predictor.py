"""Linear prediction: y given x is Gaussian, Bernoulli, categorical or Poisson with a parameter b + W x.

Bishop (2006), chapters 3 and 4; notes Eq. 5.20-5.54. By maximum likelihood, at the mode of the posterior, or with all
of it: exact for numbers, Laplace's approximation for classes and counts. Cost: n p² for numbers, in one pass over the
rows; n p² a Newton step for the others.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal

import jax
import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from likely.columns import Cells
from likely.contract.estimator import FitRun
from likely.contract.evidence import Evidence
from likely.contract.settings import Positive
from likely.models.prediction.conditional.companion import GaussianInputs, versions_of
from likely.models.prediction.conditional.design import Design, completed
from likely.models.prediction.conditional.feature_predictor import FeaturePredictor, has_holes
from likely.models.prediction.conditional.features import feature_names, groups
from likely.models.prediction.conditional.laws import Laws
from likely.models.prediction.linear import exponential, gaussian
from likely.models.prediction.linear.exponential import MAX_CURVATURE, Problem
from likely.models.prediction.linear.gaussian import Moments
from likely.runtime import generator

_POINTS, _POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)  # of a Gaussian: exact for polynomials of degree 63
_N_WEIGHT_DRAWS = 256  # of the posterior of a softmax
_ROWS_FOR_UNITS = 4096  # from which the units of plain columns are read off
_POSTERIOR = 3  # fold of the key of these draws


class LinearPredictor(FeaturePredictor):
    """Linear regression, logistic, softmax or Poisson regression, as y asks for.

    Parameters
    ----------
    method : "bayes", the whole posterior; "map", its mode; "ml", maximum likelihood, without a prior.
    precision : of the weights' prior, in standard units of the features, and of y where that is a number. None takes
        1 for "map", and for "bayes" the one that makes the rows most probable.
    ard : a precision for each feature, by automatic relevance determination; for "bayes" with a number as y.
    target_kind : how a single y is read: "class", "number", "count" (0, 1, 2, ...: Poisson), or "auto": strings,
        booleans and whole numbers with at most 20 different values are classes, other numbers are numbers.
    companion : a density model of the inputs, cloned and fitted, whose draws stand in for unobserved cells. None takes
        a Gaussian of the features.
    n_draws : draws behind a row with holes.
    schema : what the columns of X are; None reads it off the data.
    random_state : seed of draws; complete rows and numbers need none.

    Attributes
    ----------
    coef_, intercept_ : weights of the features, and y where these are 0, in the user's units.
    marginal_likelihood_ : log p(y | x) of all rows of the fit together, typed, with the weights integrated out.
    precision_ : of the prior, one for each feature.
    classes_ : the classes, in order, where y is of classes.

    Notes
    -----
    The evidence of complete rows is exact for "ml" and "map", and for numbers also for "bayes", where y is Student's t.
    Of classes and counts "bayes" is Laplace's approximation, typed an estimate. Rows of the fit that have holes count
    by draws of the companion, each weighed by how well it agrees with y; the marginal likelihood is a lower bound then.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearPredictor().fit(X, y)
    >>> model.marginal_likelihood_.kind, round(model.marginal_likelihood_.mean)
    ('exact', -2420)
    >>> round(model.score(X, y), 2)
    0.52
    """

    method: Literal["bayes", "map", "ml"] = "bayes"
    _: KW_ONLY
    precision: Positive | None = None
    ard: bool = False

    _weighted = True

    # ---------------------------------------------------------------- learning
    def _check(self) -> None:
        super()._check()
        if self.method == "ml" and self.precision is not None:
            raise ValueError(
                "`precision` is of a prior, and method='ml' has none: leave it out, or use 'map' or 'bayes'."
            )
        if self.ard and (self.method != "bayes" or self.precision is not None):
            raise ValueError("`ard` finds the precisions of method='bayes': set that method, and no `precision`.")

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        # The features are standardised once more by the moments of all rows, so that of columns which are cells
        # themselves it is enough to know about where they lie, and two passes over the rows are saved.
        if all(column.is_plain for column in self.schema_.columns):
            return super()._fit_cells(encoded[:: max(1, len(encoded) // _ROWS_FOR_UNITS)])
        return super()._fit_cells(encoded, weight)

    @property
    def _family(self) -> str:
        if self.target_.classes is not None:
            return "logistic" if len(self.target_.classes) == 2 else "softmax"
        return "poisson" if self.target_.schema.kinds[0] == "count" else "gaussian"

    def _learn(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> dict[str, np.ndarray]:
        if self.ard and self._family != "gaussian":
            raise ValueError("`ard` is for numbers as y, and y is of classes or counts: leave it out.")
        y = np.asarray(targets[:, 0], np.float64)
        if not has_holes(rows) and self._family == "gaussian":
            moments = Moments.of(self._features, rows, y, run.weight)
            if not hasattr(self, "inputs_"):
                self.inputs_ = GaussianInputs.of(moments.mean, moments.xx / moments.n)
            return self._gaussian(moments)
        design = completed(rows, y, run.weight, self._features, self._completions, self.n_draws)
        self._check_size(design.x.shape[1])
        params = self._from_design(design)
        while not design.is_settled:
            design = design.weighed(self._log_prob_of(params, design))
            params = self._from_design(design)
        if design.n_each:
            entropy = np.array(design.entropy)
            params |= {"entropy": entropy, "log_marginal": params["log_marginal"] + entropy}
        return params

    def _check_size(self, p: int) -> None:
        n_outputs = len(self.target_.classes) if self._family == "softmax" and self.target_.classes is not None else 1
        size = (p + 1) * n_outputs
        if self.method == "bayes" and self._family != "gaussian" and size > MAX_CURVATURE:
            raise ValueError(
                f"Laplace's approximation of {size} weights needs a matrix of {size} × {size}, and at most "
                f"{MAX_CURVATURE} are taken: use method='map', or fewer columns or classes."
            )

    def _from_design(self, design: Design) -> dict[str, np.ndarray]:
        if self._family == "gaussian":
            return self._gaussian(Moments.of(lambda x: x, design.x, design.y, design.weight))
        return self._exponential(design)

    def _gaussian(self, moments: Moments) -> dict[str, np.ndarray]:
        deviation = np.sqrt(np.maximum(np.diag(moments.xx), 0) / moments.n)
        scale = np.where(deviation > 1e-12, deviation, 1.0)
        # Of weighed rows y has not the units of the target, which are those of each row once.
        y_scale = np.sqrt(moments.yy / moments.n) or 1.0
        own = moments.scaled(scale, y_scale)
        if self.method == "ml":
            found = gaussian.maximum_likelihood(own)
        elif self.method == "map":
            found = gaussian.maximum_a_posteriori(own, self.precision or 1.0)
        else:
            chosen = gaussian.by_evidence(own) if self.precision is None else np.full(len(scale), self.precision)
            found = gaussian.bayes(own, gaussian.by_relevance(own, chosen) if self.ard else chosen)
        named = {name: np.asarray(value, np.float64) for name, value in vars(found).items()}
        units = {"centre": moments.mean, "scale": scale, "y_centre": moments.y_mean, "y_scale": y_scale}
        named["log_marginal"] = named["log_marginal"] - moments.n * np.log(y_scale)
        return named | {name: np.asarray(value, np.float64) for name, value in units.items()}

    def _exponential(self, design: Design) -> dict[str, np.ndarray]:
        total = design.weight.sum()
        centre = design.weight @ design.x / total
        deviation = np.sqrt(design.weight @ (design.x - centre) ** 2 / total)
        scale = np.where(deviation > 1e-12, deviation, 1.0)
        x = np.hstack([np.ones((len(design.x), 1)), (design.x - centre) / scale])
        n_outputs = len(self.classes_) if self._family == "softmax" else 1
        problem = Problem(x, design.y, design.weight, n_outputs, self._family)
        about = {"centre": centre, "scale": scale}
        if self.method == "bayes":
            fixed = self.precision
            found = exponential.by_evidence(problem) if fixed is None else exponential.laplace(problem, fixed)
            named = {name: np.asarray(value, np.float64) for name, value in vars(found).items()}
            return named | about | {"theta": found.theta.reshape(n_outputs, -1)}
        precision = 0.0 if self.method == "ml" else self.precision or 1.0
        theta = exponential.mode(problem, precision).reshape(n_outputs, -1)
        nothing = {"covariance": np.zeros((0, 0)), "log_marginal": np.array(np.nan)}
        return about | nothing | {"theta": theta, "precision": np.array(precision)}

    def _log_prob_of(self, params: dict[str, np.ndarray], design: Design) -> np.ndarray:
        """(n_all,) log p(y | completed row) under parameters that are not settled yet."""
        return self._laws_by(params, design.x).log_prob(design.y[:, None])

    # ------------------------------------------------------------------- using
    def _laws(self, x: np.ndarray) -> Laws:
        return self._laws_by(self.params_, x)

    def _laws_by(self, params: dict[str, np.ndarray], x: np.ndarray) -> Laws:
        columns = self.target_.columns
        z = (x - params["centre"]) / params["scale"]
        if self._family == "gaussian":
            return Laws.single(columns, _student(params, z))
        z = np.hstack([np.ones((len(z), 1)), z])
        a, covariance = z @ params["theta"].T, params["covariance"]
        if not covariance.size:
            return Laws.single(columns, self._parts(a))
        if self._family == "softmax":
            draws = self._weight_draws(params)  # (m, k, 1 + p)
            outputs = np.einsum("np,mkp->nmk", z, draws, optimize=True)
            even = np.full(len(draws), -np.log(len(draws)))
            return Laws(columns, (self._parts(outputs),), even, versions_of(len(draws)), is_exact=False)
        # Of one output the integral over the Gaussian is that of a function of one variable.
        deviation = np.sqrt(np.maximum(np.einsum("np,np->n", z @ covariance, z), 0))
        members = a + deviation[:, None] * _POINTS
        weights = np.log(_POINT_WEIGHTS / _POINT_WEIGHTS.sum())
        return Laws(columns, (self._parts(members[..., None]),), weights, is_exact=False)

    def _parts(self, a: np.ndarray) -> np.ndarray:
        """Parameters of the laws from outputs (..., k)."""
        if self._family == "poisson":
            return a[..., 0]
        if self._family == "softmax":
            return log_softmax(a, axis=-1)
        return -np.logaddexp(0.0, np.concatenate([a, -a], axis=-1))

    def _weight_draws(self, params: dict[str, np.ndarray]) -> np.ndarray:
        """(m, k, 1 + p) draws of the posterior, in pairs around its mean; the same for every row."""
        theta, covariance = params["theta"], params["covariance"]
        rng = generator(jax.random.fold_in(self._key("predict"), _POSTERIOR))
        half = rng.standard_normal((_N_WEIGHT_DRAWS // 2, theta.size)) @ np.linalg.cholesky(covariance).T
        return theta + np.vstack([half, -half]).reshape(-1, *theta.shape)

    def _how(self) -> str:
        names = {"gaussian": "linear regression", "poisson": "Poisson regression"}
        what = names.get(self._family, f"{self._family} regression")
        if self.method != "bayes":
            return f"{what}, {'maximum likelihood' if self.method == 'ml' else 'mode of the posterior'}"
        return f"{what}, {'the whole posterior' if self._family == 'gaussian' else 'Laplace approximation'}"

    # ---------------------------------------------------------------- what was learned
    @property
    def marginal_likelihood_(self) -> Evidence:
        """log p(y | x) of all rows of the fit together, the weights integrated out; one value."""
        check_is_fitted(self)
        if self.method != "bayes":
            reason = f"method={self.method!r} integrates nothing out: use method='bayes'."
            return Evidence.unavailable(1, reason)
        measure = self.target_.schema.measure.conditional(self.target_.name)
        value = np.atleast_1d(self.params_["log_marginal"])
        about: dict[str, Any] = {"method": f"{self._how()}, all rows", "measure": measure}
        if self._family != "gaussian":
            return Evidence.estimate(value, **about)
        value = value - float(self.params_["shape"] - gaussian.NOISE_SHAPE) * 2 * np.log(self.target_.scaling.scale[0])
        bounded = "entropy" in self.params_
        return Evidence.lower_bound(value, **about) if bounded else Evidence.exact(value, **about)

    @property
    def precision_(self) -> np.ndarray:
        """(p,) precisions of the prior of the weights, 0 where there is none."""
        check_is_fitted(self)
        return np.broadcast_to(self.params_["precision"], self.params_["centre"].shape)

    @property
    def feature_names_(self) -> list[str]:
        """What each weight is of: a column, or a category of one."""
        check_is_fitted(self)
        return feature_names(self.schema_, self.cells_)

    @property
    def coef_(self) -> np.ndarray:
        """(p,) weights of the features in the user's units; (k, p) of a softmax."""
        check_is_fitted(self)
        is_number = self._family == "gaussian"
        own = (self.params_["weights"] * self.params_["y_scale"])[None] if is_number else self.params_["theta"][:, 1:]
        found = own / (self.params_["scale"] * self._units()[1]) * self.target_.scaling.scale[0]
        return found if self._family == "softmax" else found[0]

    @property
    def intercept_(self) -> Any:
        """The outputs where all features are 0, in the user's units; (k,) of a softmax."""
        check_is_fitted(self)
        params, is_number = self.params_, self._family == "gaussian"
        own = params["y_centre"] + params["y_scale"] * params["intercept"] if is_number else params["theta"][:, 0]
        base = np.atleast_1d(own) * self.target_.scaling.scale[0] + self.target_.scaling.offset[0]
        offset, scale = self._units()
        found = base - np.atleast_2d(self.coef_) @ (offset + scale * self.params_["centre"])
        return found if self._family == "softmax" else float(found[0])

    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """(p,) offset and scale of each feature that is a real column by itself; 0 and 1 of the others."""
        cells = self.cells_
        of = np.repeat(cells.column_of, [size for _, size in groups(cells.columns)])
        return cells.scaling.offset[of], cells.scaling.scale[of]


def _student(params: dict[str, np.ndarray], z: np.ndarray) -> np.ndarray:
    """(n, 3) location, scale and degrees of freedom of a number at standardised features."""
    location = params["intercept"] + z @ params["weights"]
    if np.isinf(params["shape"]):
        scale = np.full(len(z), np.sqrt(params["rate"]))
    else:
        spread = 1 + params["intercept_variance"] + np.einsum("np,np->n", z @ params["covariance"], z)
        scale = np.sqrt(params["rate"] / params["shape"] * spread)
    location, scale = params["y_centre"] + params["y_scale"] * location, params["y_scale"] * scale
    return np.stack([location, scale, np.full(len(z), 2 * params["shape"])], axis=1)
