"""Unobserved cells filled by a model, as a transformer of scikit-learn: for pipelines, grids and column transformers.

Cost: that of the model's fit, and of its conditional for every row.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import check_settings
from likely.contract.model import Model
from likely.contract.scikit_learn import OneToOneFeatureMixin, TransformerMixin
from likely.contract.settings import RandomState, seed_of
from likely.models.prediction.around_models import AroundModels
from likely.storage import registry


class Imputer(OneToOneFeatureMixin, TransformerMixin, AroundModels):
    """Any model of the library that has a conditional, as an imputer: NaN in, typical values out.

    Parameters
    ----------
    model : the unfitted model, cloned. None takes `likely.Mixture()`.
    random_state : seed, where the model has none of its own.

    Attributes
    ----------
    model_ : the fitted model, whose `condition` has intervals and draws of the same cells.

    Notes
    -----
    Columns stay as many and keep their order and names. Those that the model leaves out, such as identifiers, come back
    as they were, holes and all. For multiple imputation draw from `model_.condition(X).sample(m)`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.linear_model import Ridge
    >>> X = np.random.default_rng(0).normal(size=(100, 1)) * np.ones(3)
    >>> X[::5, 1] = np.nan
    >>> import likely
    >>> pipeline = make_pipeline(Imputer(likely.FactorAnalysis(1), random_state=0), Ridge()).fit(X, X[:, 0])
    >>> round(pipeline.score(X, X[:, 0]), 2)
    1.0
    """

    model: Model | None = None
    _: KW_ONLY
    random_state: RandomState = None

    _models = "model_"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the distribution of the rows. `y` is ignored."""
        self._validate_params()
        model = registry.model_class("Mixture")() if self.model is None else clone(self.model)
        check_settings(model)
        model.impute  # noqa: B018 - a model that has none says why, and which have it
        if model.random_state is None:
            model.set_params(random_state=seed_of(self.random_state))
        self.model_ = model.fit(X)
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
        return self

    def transform(self, X: Any) -> Any:
        """X with its NaN cells filled, as `Model.impute` fills them."""
        check_is_fitted(self)
        return self.model_.impute(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags
