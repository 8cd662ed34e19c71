"""The contract of p(y | x): fit, predict, condition, evidence, score, save.

`Predictor` is a scikit-learn estimator. It reads X as models of p(x) do, with NaN for unobserved cells; y may be
classes, a number, or several columns. Its public methods are final; a predictor writes hooks, which work on rows in
standard units and on targets as codes and standardised numbers.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from likely.contract.batches import batches, cells_of, joined
from likely.contract.conditional import Conditional, ConditionalParts
from likely.contract.estimator import Arrays, FitRun
from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint, named_columns
from likely.contract.settings import seed_of
from likely.contract.table_estimator import TableEstimator
from likely.contract.target import Target, TargetKind, split_target
from likely.contract.weights import sum_of, weighable, weighed_rows
from likely.runtime import float_dtype
from likely.schema import Column
from likely.training.batches import fingerprint
from likely.training.progress import showing


class PredictorHooks:
    """What a predictor writes besides `_init` (or `_restored_params`) and `_fit`, all in standard units.

    One of classes writes `_log_proba`, from which the base makes the rest; others write the other two.
    """

    _log_proba: Callable[[np.ndarray, jax.Array], Any]  # (n, K) log p(class | x)
    _condition: Callable[[np.ndarray, jax.Array], ConditionalParts]  # over the target's columns
    _evidence: Callable[[np.ndarray, np.ndarray, jax.Array], Evidence]  # of rows and targets


class Predictor(PredictorHooks, TableEstimator):
    """Base of all predictors; see `docs/adding-a-model.md` for the hooks.

    Fitted attributes
    -----------------
    target_ : what y is, its classes and units. classes_ : the classes in order, where y is of classes.
    params_, schema_, cells_, columns_, history_, seed_ : as of `likely.Model`; the columns are those of X.
    """

    _target_kind: ClassVar[TargetKind] = "auto"  # "class" for predictors that know only classes
    _uses_unlabelled: ClassVar[bool] = False  # rows without y teach it something too
    _minus_is_unknown: ClassVar[bool] = False  # -1 stands for a row without label, as in scikit-learn
    _method: ClassVar[str] = "exact"  # how `_log_proba` comes by its answers, for people

    # ------------------------------------------------------------------ hooks
    @abc.abstractmethod
    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        """Learned parameters from rows (n, d) and targets (n, t), NaN where y is missing; so is `run.valid`, a pair."""

    def _check(self) -> None:
        """Refuse settings that contradict each other, before any work."""

    # ------------------------------------------------------------- the contract
    @weighable
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        valid: Any = None,
        checkpoint: Any = None,
        resume: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Learn the distribution of y given a row.

        Parameters
        ----------
        X : (n_rows, n_columns) array, memory map or data frame; NaN/None cells are unobserved.
        y : (n_rows,) classes or numbers; (n_rows, n_targets) several columns; or the name of a column of the data frame
            X, or a list of names. NaN and None are missing, for predictors that can use rows without y.
        sample_weight : as in `likely.Model.fit`, for predictors that can use it.
        valid : (X, y) of further rows, for early stopping.
        checkpoint, resume : as in `likely.Model.fit`, for predictors trained by gradient.
        progress : as in `likely.Model.fit`.
        """
        self._validate_params()
        self._check()
        self._check_resumable(checkpoint, resume)
        X, y, name = split_target(X, y)
        X, y, weight = weighed_rows(X, y, sample_weight)
        encoded = self._read_new(X, weight)
        self.target_, targets = Target.of(
            y,
            len(encoded),
            whose=type(self).__name__,
            kind=self._kind_of_target(),
            name=name,
            minus_is_unknown=self._minus_is_unknown,
        )
        self._check_targets(targets)
        self.seed_ = seed_of(self.random_state)
        self.history_: dict[str, list[float]] = {}
        pairs = None if valid is None else self._pairs(*_pair(valid), whose="`valid`")
        run = FitRun(pairs, checkpoint, resume, table=X, valid_table=valid, weight=weight)
        rows, wanted = self._standard(encoded), self._in_units(targets)
        self._agree(lambda: {"data": [fingerprint(rows), fingerprint(wanted)], "sample_weight": sum_of(weight)})
        with showing(progress):
            self.params_ = self._fit(rows, wanted, self._key("fit"), run)
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class, or the expected number, of each row; for several targets a table of them."""
        parts = self._conditional_parts(self._inputs(X))
        return self.target_.typical(parts.mean)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n_rows, n_classes) p(class | x), in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """(n_rows, n_classes) log p(class | x), in the order of `classes_`."""
        rows = self._inputs(X)
        if self.target_.classes is None:
            raise AttributeError(
                f"{type(self).__name__} has no probabilities of classes: y was {self._kind_in_words()}; ask "
                "`condition(X)` for its distribution."
            )
        if hasattr(self, "_log_proba"):
            return np.asarray(self._log_proba(rows, self._key("predict")), np.float64)
        with np.errstate(divide="ignore"):  # a class may be impossible
            return np.log(np.asarray(self._conditional_parts(rows).mean, np.float64))

    def condition(self, X: Any) -> Conditional:
        """The distribution of y given each row: mean, deviation, quantiles, intervals, samples, probabilities."""
        rows = self._inputs(X)
        unknown = np.full((len(rows), self.target_.schema.n_columns), np.nan)
        return Conditional(self.target_, unknown, self._conditional_parts(rows), partial(self._key, "predict"))

    def evidence(self, X: Any, y: Any) -> Evidence:
        """Log p(y | x) of each row in nats, typed; of the observed cells of x where a row has NaN.

        It can be compared with the evidence of other predictors of the same y from the same rows, and with no other.
        """
        check_is_fitted(self)
        X, y, _ = split_target(X, y)
        X, targets = self._without_target(X), None

        def parts() -> Iterator[tuple[Evidence, None]]:
            nonlocal targets
            for start, some in batches(X, cells_of(self.columns_)):
                encoded = self._read(some)
                if targets is None:  # after the first rows, so that what is wrong with rows is said first
                    n_rows = len(X) if hasattr(X, "__len__") else len(encoded)
                    targets = self.target_.encode(y, n_rows, minus_is_unknown=self._minus_is_unknown)
                own = targets[start : start + len(encoded)]
                yield (
                    self._finished(self._target_evidence(self._standard(encoded), self._in_units(own)), encoded, own),
                    None,
                )

        return joined(parts(), X)[0]

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """(n_rows,) the evidence's values: log p(y | x) in nats.

        Without y, for classes, what the predictor itself expects of it: Σ_y p(y | x) log p(y | x), minus the entropy.
        """
        if y is not None:
            return self.evidence(X, y).values
        log_proba = self.predict_log_proba(X)
        return np.sum(np.exp(log_proba) * np.maximum(log_proba, -1e30), axis=1)  # 0 log 0 is 0

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As in scikit-learn: the accuracy of classes, R² of a number; over several targets the mean of theirs."""
        check_is_fitted(self)
        X, y, _ = split_target(X, y)
        encoded = self._read(self._without_target(X))
        truth = self.target_.encode(y, len(encoded), minus_is_unknown=self._minus_is_unknown)
        predicted = self.target_.encoded_typical(self._conditional_parts(self._standard(encoded)).mean)
        scores = []
        for column, (kind, known) in enumerate(zip(self.target_.schema.kinds, ~np.isnan(truth).T, strict=True)):
            measure = accuracy_score if kind in ("binary", "categorical") else r2_score
            weight = None if sample_weight is None else np.asarray(sample_weight)[known]
            scores.append(measure(truth[known, column], predicted[known, column], sample_weight=weight))
        return float(np.mean(scores))

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in order."""
        target = vars(self).get("target_")
        if target is None or target.classes is None:
            raise AttributeError("classes_ are known after a fit whose y is of classes.")
        return target.classes

    # ---------------------------------------------------------------- plumbing
    def _kind_of_target(self) -> TargetKind:
        """How y is to be read: a setting, where a predictor has one."""
        return self._target_kind

    def _kind_in_words(self) -> str:
        return "a number" if self.target_.is_column else "several columns"

    def _check_targets(self, targets: np.ndarray) -> None:
        missing = np.isnan(targets).any(axis=1)
        if missing.any() and not self._uses_unlabelled:
            raise ValueError(
                f"Input y contains NaN in row {int(np.argmax(missing))}, and {type(self).__name__} learns nothing from "
                "rows without y: drop them, or use a predictor that does (JointPredictor, PretrainedClassifier)."
            )
        if self._target_kind == "class" and self.target_.classes is None:
            raise ValueError(f"{type(self).__name__} predicts one column of classes, got {self._kind_in_words()}.")

    def _inputs(self, X: Any) -> np.ndarray:
        """Rows in standard units."""
        check_is_fitted(self)
        return self._standard(self._read(self._without_target(X)))

    def _without_target(self, X: Any) -> Any:
        """X less the target's columns, which a data frame that was learned from may still have."""
        names, here = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        extra = [] if names is None or here is None else [n for n in self.target_.schema.names if n in list(here)]
        if not extra or set(extra) & set(names if names is not None else ()):
            return X
        return X.drop(extra) if not hasattr(X, "iloc") else X.drop(columns=extra)

    def _in_units(self, targets: np.ndarray) -> np.ndarray:
        return self.target_.scaling.apply(targets, float_dtype())

    def _pairs(self, X: Any, y: Any, *, whose: str) -> tuple[np.ndarray, np.ndarray]:
        """Further rows and their targets, in standard units."""
        X, y, _ = split_target(X, y)
        encoded = self._read(X)
        targets = self.target_.encode(y, len(encoded), whose=whose, minus_is_unknown=self._minus_is_unknown)
        return self._standard(encoded), self._in_units(targets)

    def _conditional_parts(self, rows: np.ndarray) -> ConditionalParts:
        key = self._key("predict")
        if not hasattr(self, "_log_proba"):
            return self._condition(rows, key)
        return class_parts(np.asarray(self._log_proba(rows, key), np.float64), self._method)

    def _target_evidence(self, rows: np.ndarray, targets: np.ndarray) -> Evidence:
        key = self._key("predict")
        if not hasattr(self, "_log_proba"):
            return self._evidence(rows, targets, key)
        log_proba = np.asarray(self._log_proba(rows, key), np.float64)
        codes = targets[:, 0].astype(np.intp)
        return Evidence.exact(log_proba[np.arange(len(codes)), codes], method=self._method)

    def _finished(self, part: Evidence, encoded: np.ndarray, targets: np.ndarray) -> Evidence:
        """An evidence in the user's units, with what it is of: which target, given which rows."""
        observed = ~np.isnan(targets)
        return replace(
            part.shifted(self.target_.scaling.log_jacobian(observed)),
            measure=self.target_.schema.measure.conditional(self.target_.name),
            dimensions=observed.sum(axis=1),
            fingerprint=pair_fingerprint(self, encoded, self.target_, targets),
        )

    # ------------------------------------------------------------------- files
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._to_file()
        return arrays, meta | {"target": self.target_.to_json()}

    def _restore(self, meta: dict[str, Any]) -> None:
        if "target" in meta:
            self.target_ = Target.from_json(meta["target"])
            return
        # Files of version 0.1.0 hold the classes among what was learned.
        learned = vars(self)
        self.target_ = Target.of_classes(np.array(learned.pop("labels_"), dtype=learned.pop("label_type_")))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        target = vars(self).get("target_")
        if self._target_kind == "class" or (target is not None and target.classes is not None):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif target is not None and target.is_column:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def pair_fingerprint(model: TableEstimator, encoded: np.ndarray, target: Target, targets: np.ndarray) -> Fingerprint:
    """The name of encoded rows with their encoded targets, by the values that codes and classes stand for."""
    columns, about = target.schema.columns, f"{named_columns(getattr(model, 'feature_names_in_', None))} {target.name}"
    if target.classes is not None:
        columns = (Column(target.name, "categorical", tuple(target.classes.tolist())),)
        about += f" in {target.classes.tolist()}"
    return Fingerprint.of(np.hstack([encoded, targets]), (*model.schema_.columns, *columns), about)


def class_parts(log_proba: np.ndarray, method: str) -> ConditionalParts:
    """The distribution of one column of classes from log p(class | x) (n, K)."""

    def sample(key: jax.Array, n: int) -> np.ndarray:
        return np.asarray(jax.random.categorical(key, log_proba, shape=(n, len(log_proba))))[..., None]

    return ConditionalParts(np.exp(log_proba), sample, method)


def _pair(valid: Any) -> Any:
    if not isinstance(valid, tuple | list) or len(valid) != 2:
        raise ValueError("`valid` must be a pair (X, y) of rows and their labels.")
    return valid
