"""Files of estimators that stand around fitted models: detectors and imputers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import Arrays, from_file, to_file, under
from likely.contract.settings import Declared
from likely.storage import registry
from likely.storage.files import write_arrays
from likely.storage.modules import describe_estimator, restore_estimator


class AroundModels(Declared):
    """Base of estimators whose state is fitted models, and a few numbers beside them."""

    _models: ClassVar[str]  # the attribute that holds the fitted models: one, or a list

    def save(self, path: Any) -> None:
        """Write what was fitted into one file, arrays and JSON, no code; `likely.load` reads it."""
        check_is_fitted(self)
        held = getattr(self, self._models)
        parts = [to_file(model) for model in (held if isinstance(held, list) else [held])]
        arrays = {f"{i}.{name}": array for i, (own, _) in enumerate(parts) for name, array in own.items()}
        names = getattr(self, "feature_names_in_", None)
        about = describe_estimator(self, (self._models, "feature_names_in_")) | {
            "models": [meta for _, meta in parts],
            "feature_names": None if names is None else [str(name) for name in names],
        }
        write_arrays(path, arrays, about)

    @classmethod
    def _from_file(cls, arrays: Arrays, meta: dict[str, Any]) -> Any:
        """The estimator that `save` wrote."""
        found = restore_estimator(cls, meta)
        models = [from_file(under(f"{i}.", arrays), own) for i, own in enumerate(meta["models"])]
        setattr(found, cls._models, models if cls._models.endswith("models_") else models[0])
        if meta["feature_names"] is not None:
            found.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
        return found


def with_schema(estimator: Any, schema: Any) -> Any:
    """An unfitted estimator that reads columns as the schema says, it or the model inside it, if they have none."""
    for name in ("predictor", "model", "machine"):
        inner = getattr(estimator, name, None)
        if inner is not None and hasattr(inner, "get_params"):
            with_schema(inner, schema)
            return estimator
    if "schema" in estimator.get_params(deep=False):
        return estimator if estimator.schema is not None else estimator.set_params(schema=schema)
    if "model" in estimator.get_params(deep=False):  # None stands for a mixture
        return estimator.set_params(model=registry.model_class("Mixture")(schema=schema))
    return estimator
