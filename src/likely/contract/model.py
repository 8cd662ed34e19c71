"""The contract of every model: fit, evidence, sample, condition, impute, denoise, transform, save.

`Model` is a scikit-learn estimator. It validates, converts, scales, and calls a model's hooks, which work on one float
matrix in standard units with NaN for unobserved cells. Its public methods are final; a model writes hooks only.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from functools import partial
from types import MethodType
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from likely.columns import Columns, Scaling
from likely.contract.conditional import Conditional, ConditionalParts
from likely.contract.effort import check_budget, evidence_within, warn_if_wide
from likely.contract.evidence import Evidence, fingerprint
from likely.runtime import float_dtype, use_compilation_cache
from likely.schema import Schema, SchemaError, as_frame
from likely.storage import registry
from likely.storage.files import FileError, read_arrays, write_arrays
from likely.storage.modules import describe_estimator, restore_estimator, restore_module, save_module

use_compilation_cache()

# Each use of randomness has its own stream, so that asking for samples never changes an evidence.
_STREAMS = ("fit", "evidence", "sample", "condition", "transform", "denoise")


@dataclass(frozen=True)
class FitRun:
    """What a fit is given besides rows and randomness."""

    valid: np.ndarray | None = None  # validation rows, standard units
    checkpoint: Any = None
    resume: Any = None
    labels: Any = None  # `y` as it was given


class _offered:
    """A method that a model has only if it implements a hook; asking without says why, and which models have it."""

    def __init__(self, hook: str):
        self.hook = hook

    def __call__(self, function: Any) -> _offered:
        self.function, self.verb, self.__doc__ = function, function.__name__, function.__doc__
        return self

    def __get__(self, model: Model | None, owner: type[Model]) -> Any:
        if model is None:
            return self.function
        if hasattr(owner, self.hook):
            return MethodType(self.function, model)
        default = "it means nothing for this model"
        why = owner._why_not.get(self.verb, (self.hook == "_evidence" and owner._no_evidence) or default).rstrip(".")
        others = ", ".join(registry.models_that_can(self.verb, owner.__name__))
        raise AttributeError(f"{owner.__name__} has no {self.verb}: {why}. Models that have it: {others}.")


class Model(DensityMixin, BaseEstimator, metaclass=abc.ABCMeta):
    """Base of all models; see `docs/adding-a-model.md` for the hooks.

    Fitted attributes
    -----------------
    params_ : the learned parameters, a frozen module of arrays in standard units.
    schema_ : what the columns are. columns_ : their exponential family. scaling_ : units of real columns.
    history_ : learning curves, a dictionary of lists. seed_ : the seed that `random_state` gave.
    """

    _scaling = "column"  # or "common": centre, and one scale for all real columns (isotropic models)
    _real_only = False  # reads binary and count columns as real numbers
    _binary_only = False  # refuses columns that are not binary
    _resumable = False  # `_fit` honours checkpoint and resume
    _effort: ClassVar[str | None] = None  # the hyper-parameter that more work on an evidence means, "n_temperatures"
    _no_evidence = ""  # why there is no likelihood and what to ask instead, of a model without `_evidence`
    _why_not: ClassVar[dict[str, str]] = {}

    # ------------------------------------------------------------------ hooks
    # Besides these two, those of `registry.HOOKS`, each where it means something: `_evidence(rows, key) -> Evidence` of
    # rows in standard units (the base adds units, measure, dimensions and fingerprint), `_sample(key, n)` -> (n, d),
    # `_condition(rows, key) -> ConditionalParts`, `_reconstruct(rows, key)`, `_encode(rows, key)`, `_decode(codes)`.
    @abc.abstractmethod
    def _init(self, key: jax.Array, columns: Columns) -> Any:
        """Parameters of the right structure from hyper-parameters and columns alone."""

    @abc.abstractmethod
    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        """Learned parameters from rows (n, d)."""

    # ------------------------------------------------------------- the contract
    def fit(self, X: Any, y: Any = None, *, valid: Any = None, checkpoint: Any = None, resume: Any = None) -> Model:
        """Learn the distribution of the rows.

        Parameters
        ----------
        X : (n_rows, n_columns) array, memory map or data frame; NaN/None cells are unobserved.
        y : labels, for models that learn from them (`SemiSupervisedVAE`); ignored by all others, which have it so that
            they fit into scikit-learn's pipelines.
        valid : rows for early stopping, for models that use it.
        checkpoint : `likely.Checkpoint(path)`, or a path, to survive a crash, for models trained by gradient.
        resume : path of a checkpoint to go on from; the data and hyper-parameters must be the same.
        """
        self._validate_params()
        self._check_resumable(checkpoint, resume)
        encoded = self._read_new(X)
        self.seed_ = _seed(self.random_state)
        self.scaling_ = Scaling.fit(encoded, self.columns_, self._scaling)
        self.fingerprint_ = fingerprint(encoded)
        rows = self.scaling_.apply(encoded, float_dtype())
        others = None if valid is None else self.scaling_.apply(self._read(valid), float_dtype())
        self.history_: dict[str, list[float]] = {}
        self.params_ = self._fit(rows, self._key("fit"), FitRun(others, checkpoint, resume, y))
        return self

    def evidence(self, X: Any, *, budget: float | None = None) -> Evidence:
        """Log p(x) of each row in nats; of the observed cells where a row has NaN.

        Of a model that has no likelihood it is unavailable, and says why.

        Parameters
        ----------
        X : (n_rows, n_columns) rows.
        budget : how much work goes into an evidence that is sampled. A whole number is a number of temperatures (of
            samples, for models without); a float is seconds. None takes the model's own. Where the evidence is exact
            there is nothing to spend it on, and it is ignored.

        Warns
        -----
        EvidenceWarning : upper and lower limits are more than a nat apart on average; it says what to raise.
        """
        check_budget(budget)
        encoded, rows = self._rows(X)
        if not hasattr(self, "_evidence"):
            return self._finished(Evidence.unavailable(len(rows), self._no_evidence), encoded)
        part, effort = evidence_within(self, rows, self._key("evidence"), budget)
        warn_if_wide(self, part, effort)
        return self._finished(part, encoded)

    @_offered("_evidence")
    def score_samples(self, X: Any) -> np.ndarray:
        """(n_rows,) the evidence's values: log p(x) in nats."""
        return self.evidence(X).values

    @_offered("_evidence")
    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return self.evidence(X).mean

    @_offered("_sample")
    def sample(self, n: int = 1, random_state: int | None = None) -> Any:
        """N new rows, of the kind that `fit` saw: a data frame if that was one."""
        check_is_fitted(self)
        _check_count(n)
        rows = np.asarray(self._sample(self._key("sample", random_state), n))
        return self.schema_.decode(self.scaling_.invert(rows))

    @_offered("_condition")
    def condition(self, X: Any) -> Conditional:
        """The distribution of the NaN cells of each row given the others."""
        encoded, rows = self._rows(X)
        return Conditional(self, encoded, self._condition(rows, self._key("condition")))

    @_offered("_condition")
    def impute(self, X: Any) -> Any:
        """X with its NaN cells filled: expected value of real cells, most probable value of the others."""
        return self.condition(X).typical()

    @_offered("_reconstruct")
    def denoise(self, X: Any) -> Any:
        """X as the model sees it through its code: reconstructed cells, the unobserved ones filled."""
        _, rows = self._rows(X)
        mean = self._reconstruct(rows, self._key("denoise"))
        return self._to_user(self.columns_.typical_rows(mean))

    @_offered("_encode")
    def transform(self, X: Any) -> np.ndarray:
        """(n_rows, n_components) the code of each row."""
        _, rows = self._rows(X)
        return np.asarray(self._encode(rows, self._key("transform")))

    @_offered("_encode")
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """fit, then transform."""
        return self.fit(X, y, **fit_params).transform(X)

    @_offered("_decode")
    def inverse_transform(self, Z: Any) -> Any:
        """Expected rows for codes (n_rows, n_components)."""
        check_is_fitted(self)
        codes = np.asarray(Z, dtype=float_dtype())
        if codes.ndim != 2 or codes.shape[1] != self.n_components:
            raise ValueError(
                f"codes must be (n_rows, {self.n_components}), as transform returns them, got shape {codes.shape}."
            )
        return self._to_user(self.columns_.expected_rows(self._decode(codes)))

    def save(self, path: Any) -> None:
        """Write the fitted model into one file: arrays and JSON, no code."""
        check_is_fitted(self)
        write_arrays(path, *save_model(self))

    # ---------------------------------------------------------------- plumbing
    @property
    def n_parameters_(self) -> int:
        """Number of learned numbers; states that a model keeps, such as chains, are not floating-point and no such."""
        leaves = jax.tree.leaves(self.params_)
        return sum(int(np.size(leaf)) for leaf in leaves if jax.dtypes.issubdtype(leaf.dtype, np.inexact))

    def _key(self, stream: str, random_state: int | None = None) -> jax.Array:
        seed = self.seed_ if random_state is None else _seed(random_state)
        return jax.random.fold_in(jax.random.key(seed), _STREAMS.index(stream))

    def _read_new(self, X: Any) -> np.ndarray:
        """Rows for a fit: sets the schema and all that follows from it."""
        X = self._checked(X, reset=True)
        given = self.schema
        if given is not None and not isinstance(given, Schema):
            raise TypeError(f"schema must be a likely.Schema or None, got {type(given).__name__}.")
        schema = Schema.infer(X) if given is None else given
        self._check_kinds(schema)
        encoded = schema.encode(X)
        self.schema_ = schema.as_real() if self._real_only else schema
        self.columns_ = Columns.of(self.schema_)
        self.n_features_in_ = schema.n_columns
        self._check_columns(encoded)
        return encoded

    def _check_kinds(self, schema: Schema) -> None:
        odd = next((column for column in schema.columns if column.kind != "binary"), None)
        if self._binary_only and odd is not None:
            raise SchemaError(
                f"column {odd.name!r} is {odd.kind}, and {type(self).__name__} takes binary columns only: drop it, cut "
                "it into 0 and 1, or use a model for any columns (Independent, Mixture, RBM, VAE)."
            )

    def _check_columns(self, encoded: np.ndarray) -> None:
        empty = np.isnan(encoded).all(axis=0)
        if empty.any():
            name = self.schema_.names[int(np.argmax(empty))]
            raise SchemaError(f"column {name!r} has no observed cell, so nothing can be learned of it: drop it.")

    def _read(self, X: Any) -> np.ndarray:
        return self.schema_.encode(self._checked(X, reset=False))

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows, and the same in standard units."""
        check_is_fitted(self)
        encoded = self._read(X)
        return encoded, self.scaling_.apply(encoded, float_dtype())

    def _checked(self, X: Any, reset: bool) -> Any:
        """scikit-learn's own checks, so that its errors and attributes are the ones users know."""
        if as_frame(X) is not None:
            _check_feature_names(self, X, reset=reset)
            if len(X) == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X
        dtype = None if _is_numeric(X) else object
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite="allow-nan")

    def _finished(self, part: Evidence, encoded: np.ndarray) -> Evidence:
        """An evidence of rows in standard units, in the user's units, with measure, dimensions and fingerprint."""
        observed = ~np.isnan(encoded)
        shift = self.scaling_.log_jacobian(observed)
        return replace(
            part,
            values=part.values + shift,
            lower=part.lower + shift,
            upper=part.upper + shift,
            replicates=None if part.replicates is None else part.replicates + shift[:, None],
            measure=self.schema_.measure,
            dimensions=observed.sum(axis=1),
            fingerprint=fingerprint(encoded),
        )

    def _check_resumable(self, checkpoint: Any, resume: Any) -> None:
        if not self._resumable and (checkpoint is not None or resume is not None):
            raise ValueError(f"{type(self).__name__} is not trained step by step and has no checkpoints.")

    def _to_user(self, standard: Any) -> Any:
        return self.schema_.decode(self.scaling_.invert(np.asarray(standard)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.non_deterministic = False
        if hasattr(type(self), "_encode"):
            from sklearn.utils import TransformerTags

            tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags


def save_model(model: Model) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A fitted model as named arrays and a JSON description."""
    arrays = {f"params{path}": array for path, array in save_module(model.params_).items()}
    arrays |= {"scaling.offset": model.scaling_.offset, "scaling.scale": model.scaling_.scale}
    apart = {"params_", "schema_", "columns_", "scaling_", "feature_names_in_"}
    names = getattr(model, "feature_names_in_", None)
    return arrays, describe_estimator(model, apart) | {
        "schema": model.schema_.to_json(),
        "feature_names": None if names is None else [str(name) for name in names],
    }


def load(path: Any) -> Model:
    """The model that `Model.save` wrote.

    Raises
    ------
    FileError : the file is absent, truncated, altered, not likely's, or names a model that this version lacks.
    """
    arrays, meta = read_arrays(path)
    try:
        return _rebuild(arrays, meta)
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} does not describe a model of this version of likely: {error}") from error


def _rebuild(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Model:
    model_class: Any = registry.model_class(meta["class"])
    if hasattr(model_class, "_rebuild"):  # models of text have neither schema nor columns
        return model_class._rebuild(arrays, meta)
    model = restore_estimator(model_class, meta)
    model.schema_ = Schema.from_json(meta["schema"])
    model.columns_ = Columns.of(model.schema_)
    model.scaling_ = Scaling(arrays["scaling.offset"], arrays["scaling.scale"])
    if meta["feature_names"] is not None:
        model.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
    template = jax.eval_shape(partial(model._init, columns=model.columns_), jax.random.key(0))
    stored = {name.removeprefix("params"): array for name, array in arrays.items() if name.startswith("params")}
    model.params_ = restore_module(template, stored)
    return model


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _is_numeric(X: Any) -> bool:
    dtype = getattr(X, "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "O") in "fiubc"


def _check_count(n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"the number of rows to draw must be a positive integer, got {n!r}.")


__all__ = ["ConditionalParts", "FitRun", "Model", "load"]
