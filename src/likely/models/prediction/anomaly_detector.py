"""Odd rows by density: a row is an outlier where a model finds it more surprising than its own draws.

The score is the mean, over the models of a committee, of the surprise -log P(log p(X) ≤ log p(x)): calibrated against
each model's own draws with the same cells observed, it is in the same unit for all of them, which log p is not. A row
that several models of unlike flexibility find odd is odder than one that a single model does; that the mean of
calibrated surprises ranks better than the density of a mixture of the models, or than the mean of ranks, was measured.

Cost: of the default, a pass over the rows for two of its models, fits to 256 rows for three, and five evidences of the
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from likely.contract.model import Model
from likely.contract.scikit_learn import OutlierMixin
from likely.contract.settings import RandomState, Several, Unchecked, seed_of
from likely.contract.surprise import N_DRAWS, Surprise, together
from likely.models.graphs.independent import Independent
from likely.models.latent.mixture.mixture import Mixture
from likely.models.prediction.around_models import AroundModels
from likely.schema import Column, Schema, as_frame

# Rows that a mixture of the committee sees. As in isolation forests (Liu, Ting and Zhou, 2008), a small part of the
# rows holds too few of the odd ones for a component of their own.
_ROWS = 256
_SIZES = (1, 2, 4, 8)  # components
# What a component gains in variance, in units of the column's: covariances of a few dozen rows need that much to be
# sound, that of all rows a fiftieth of it.
_MIN_VARIANCE = 0.05
_MOST_JOINT = 64  # columns up to which covariances of so few rows are full; that of all rows up to eight times as many
_AUTO_TAIL = 0.01  # tail probability below which a row is an outlier, where no share is given


class AnomalyDetector(OutlierMixin, AroundModels):
    """An outlier detector, in scikit-learn's sense, by any model of the library that has an evidence and draws rows.

    Parameters
    ----------
    model : the unfitted model, cloned, or several of them, whose surprise is averaged. None takes a committee that
        suits most tables: independent columns, a Gaussian, and mixtures of 2, 4 and 8 Gaussians, these fitted to 256
        rows each.
    contamination : the share of the rows of `fit` that `predict` takes for outliers, up to 0.5; or "auto": those whose
        tail probability is below 1%, be they many, few or none. Scores do not depend on it.
    n_draws : draws of a model that a row is compared with.
    schema : what the columns are, for models that are not told. None reads it off the data; the committee then takes
        every number for a real one, neither bent nor with spikes.
    random_state : seed.

    Attributes
    ----------
    models_ : the fitted models.
    offset_ : `decision_function` is `score_samples` less this.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> rows[0] = [5.0, -5.0, 5.0]
    >>> detector = AnomalyDetector(random_state=0).fit(rows)
    >>> int(detector.score_samples(rows).argmin()), int(detector.predict(rows)[0])
    (0, -1)
    """

    model: Unchecked = None
    _: KW_ONLY
    contamination: Annotated[float, Interval(Real, 0, 0.5, closed="right")] | Literal["auto"] = 0.1
    n_draws: Several = N_DRAWS
    schema: Schema | None = None
    random_state: RandomState = None

    _models = "models_"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what rows are like. `y` is ignored."""
        self._validate_params()
        self.seed_ = seed_of(self.random_state)
        unfitted = self._members()
        if unfitted is None:
            self.models_ = _default_committee(X, self.schema, self.seed_)
        else:
            self.models_ = [self._seeded(model, number).fit(X) for number, model in enumerate(unfitted)]
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
            if hasattr(self.models_[0], name):
                setattr(self, name, getattr(self.models_[0], name))
        self.offset_ = float(np.log(_AUTO_TAIL))
        if self.contamination != "auto":
            self.offset_ = float(np.percentile(self.score_samples(X), 100 * self.contamination))
        return self

    def surprise(self, X: Any) -> Surprise:
        """How odd each row is, with its tail probability, and the cells that make it odd."""
        check_is_fitted(self)
        found = [model.surprise(X, n_draws=self.n_draws) for model in self.models_]
        return found[0] if len(found) == 1 else together(found)

    def score_samples(self, X: Any) -> np.ndarray:
        """(n_rows,) minus the surprise in nats: the lower, the odder."""
        return -self.surprise(X).values

    def decision_function(self, X: Any) -> np.ndarray:
        """(n_rows,) `score_samples` less `offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """(n_rows,) -1 for outliers, 1 for all others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    # ---------------------------------------------------------------- plumbing
    def _members(self) -> list[Model] | None:
        """The models that were given; None for the committee."""
        if self.model is None:
            return None
        members = [self.model] if isinstance(self.model, Model) else self.model
        if not isinstance(members, Sequence) or not members or not all(isinstance(one, Model) for one in members):
            raise ValueError(
                f"`model` must be a model of likely, a list of them, or None, got {self.model!r}: give such as "
                "likely.Mixture(5)."
            )
        for one in members:
            one.surprise, one.sample  # noqa: B018 - a model that lacks one of them says why
        return list(members)

    def _seeded(self, model: Model, number: int) -> Model:
        """A copy to be fitted, with the detector's schema and a seed of its own where it has none."""
        copy = clone(model)
        if copy.schema is None:
            copy.set_params(schema=self.schema)
        return copy if copy.random_state is not None else copy.set_params(random_state=self.seed_ + number)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _default_committee(X: Any, schema: Schema | None, seed: int) -> list[Model]:
    """Models of unlike flexibility: independent columns and a Gaussian of all rows, and mixtures of parts of them."""
    first = Independent(schema=_with_plain_numbers(Schema.infer(X)) if schema is None else schema, random_state=seed)
    first.fit(X)
    observed = ~np.isnan(first.schema_.encode(X))
    return [first] + [_mixture(X, observed, first.schema_, size, seed) for size in _SIZES]


def _with_plain_numbers(schema: Schema) -> Schema:
    """Every number as a real one, neither bent nor with spikes.

    What is far from the others is then odd. A column bent into a Gaussian has no outliers left but in its tails' slope,
    and a value that is rare beside spikes would be odd wherever it lies.
    """
    numbers = [Column(column.name, "real") if _is_number(column) else column for column in schema.columns]
    return replace(schema, columns=tuple(numbers))


def _is_number(column: Column) -> bool:
    """Whether a column measures something; a few whole numbers may be codes, fractions that recur are none."""
    if column.kind == "ordinal":
        return any(isinstance(value, float) and not value.is_integer() for value in column.categories or ())
    return column.kind in ("count", "grid", "real")


def _mixture(X: Any, observed: np.ndarray, schema: Schema, size: int, seed: int) -> Model:
    """A Gaussian of all rows, or a mixture of some of them; the schema is of all, which some may not show."""
    n_seen = len(observed) if size == 1 else min(_ROWS, len(observed))
    model = Mixture(
        min(size, n_seen),
        covariance="full" if schema.n_columns <= (_MOST_JOINT if size > 1 else 8 * _MOST_JOINT) else "diagonal",
        n_init=1,
        max_iter=50,
        min_variance=_MIN_VARIANCE if size > 1 else _MIN_VARIANCE / 50,
        schema=schema,
        random_state=seed + size,
    )
    return model.fit(X if n_seen == len(observed) else _taken(X, _some(observed, n_seen, seed + size)))


def _some(observed: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Numbers of n rows, drawn so that every column is observed in one of them at least."""
    order = np.random.default_rng(seed).permutation(len(observed))
    bare = np.flatnonzero(~observed[order[:n]].any(axis=0))
    first = {int(order[np.argmax(observed[order, column])]) for column in bare}
    return np.sort([*first, *[row for row in order[:n].tolist() if row not in first][: n - len(first)]])


def _taken(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a table, whatever library it came from."""
    frame = as_frame(X)
    return np.asarray(X)[rows] if frame is None else frame[rows.tolist()].to_native()
