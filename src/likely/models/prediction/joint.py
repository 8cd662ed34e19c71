"""Prediction by a model of rows and target together: p(y | x) = p(x, y) / p(x), any cells of x unobserved.

Cost: that of fitting the model to one more column, and of its evidence; of classes once for each class.
"""

from __future__ import annotations

import abc
from dataclasses import KW_ONLY, replace
from typing import Any

import jax
import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone

from likely.columns import Cells, Columns, Scaling
from likely.contract.conditional import ConditionalParts
from likely.contract.estimator import Arrays, FitRun, check_settings, from_file, suited, to_file, under
from likely.contract.evidence import Evidence
from likely.contract.model import InStandardUnits, Model
from likely.contract.predictor import Predictor, class_parts
from likely.contract.target import TargetKind, split_target
from likely.schema import Column, Schema, SchemaError, as_frame
from likely.schema.values import decode_values
from likely.storage import registry
from likely.storage.modules import describe_estimator


class JointlyFitted(Predictor):
    """Base of predictors by one model over the columns of X and, last, those of y.

    Fitted attributes
    -----------------
    joint_ : the fitted model. Its evidence is that of p(x, y), and of p(x) for rows whose target is unobserved.
    """

    _resumable = True  # where the model is; it says so itself where it is not
    _uses_unlabelled = True

    @abc.abstractmethod
    def _unfitted(self) -> Model:
        """The model before fitting, a copy; its schema, if any, is that of X."""

    def _check(self) -> None:
        check_settings(self._unfitted())

    def _given_schema(self, X: Any) -> Schema:
        given = self._unfitted().schema
        return Schema.infer(X) if given is None else given

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        # Hooks get encoded rows: it is the model that knows their cells.
        nothing = Schema.real(self.schema_.n_columns)
        return Cells.plain(Columns.of(nothing))

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        return np.asarray(encoded, np.float64)

    def _restored_cells(self, cells: Cells) -> Cells:
        return self._fit_cells(np.empty((0, 0)))

    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        target, model, columns = self.target_, self._unfitted(), self._target_columns()
        twice = [column.name for column in columns if column.name in self.schema_.names]
        if twice:
            raise SchemaError(f"a column of X is called {twice[0]!r}, as the target is: rename it.")
        model.set_params(schema=replace(self.schema_, columns=(*self.schema_.columns, *columns), image_shape=None))
        if model.random_state is None:
            model.set_params(random_state=self.random_state)
        table = joined(run.table, target.scaling.invert(targets), columns)
        others = None if run.valid is None else self._joint_valid(*run.valid_table)
        self.joint_: Any = model.fit(
            table, sample_weight=run.weight, valid=others, checkpoint=run.checkpoint, resume=run.resume
        )
        own, units = len(self.schema_.columns), self.joint_.cells_.scaling
        self.target_ = target.in_units_of(Scaling(units.offset[own:], units.scale[own:]))
        self.history_ = self.joint_.history_
        return self.joint_.params_

    def _joint_valid(self, X: Any, y: Any) -> Any:
        """Validation rows with their target, as the model reads them."""
        X, y, _ = split_target(X, y)
        return joined(X, self.target_.encode(y, len(X), whose="`valid`"), self._target_columns())

    def _target_columns(self) -> tuple[Column, ...]:
        """The target's columns as the model knows them."""
        return self.target_.schema.columns

    def _joint_rows(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Encoded rows, and targets in their own units, in the model's."""
        encoded = np.hstack([rows, self.target_.scaling.invert(targets)])
        return InStandardUnits(self.joint_).rows(encoded)

    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = to_file(self.joint_)
        names = getattr(self, "feature_names_in_", None)
        own = describe_estimator(self, (*self._apart, "joint_")) | {
            "schema": self.schema_.to_json(),
            "feature_names": None if names is None else [str(name) for name in names],
            "target": self.target_.to_json(),
            "joint": meta,
        }
        return {f"joint.{name}": array for name, array in arrays.items()} | self.cells_.to_file()[0], own

    def _restored_params(self, arrays: Arrays, meta: dict[str, Any]) -> Any:
        self.joint_ = from_file(under("joint.", arrays), meta["joint"])
        return self.joint_.params_


class JointPredictor(JointlyFitted):
    """Any density model of the library as a predictor: p(y | observed cells of x).

    Parameters
    ----------
    model : the unfitted model, cloned; its `schema`, if any, is that of X. None takes `likely.Mixture()`.
    target_kind : how a single y is read: "class", "number", or "auto": strings, booleans and whole numbers with at most
        20 different values are classes, other numbers are numbers.
    random_state : seed, where the model has none of its own.

    Attributes
    ----------
    joint_ : the fitted model of x and y.
    classes_ : the classes, in order, where y is of classes.

    Notes
    -----
    Exact for models whose evidence is: classes by the evidence of the row with each class in turn, numbers by
    log p(x, y) - log p(x). For the others both terms have limits and errors, and so has the difference: it is an
    estimate. Rows without y teach the model about x.

    Examples
    --------
    >>> import likely
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = JointPredictor(likely.Mixture(3, random_state=0)).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.evidence(X[1::2], y[1::2]).kind
    'exact'
    """

    model: Model | None = None
    _: KW_ONLY
    target_kind: TargetKind = "auto"

    _weighted = True

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        return {"model": suited("Mixture", n_rows, n_columns, kinds)}

    def _unfitted(self) -> Model:
        if self.model is not None:
            return clone(self.model)
        return registry.model_class("Mixture")()

    def _kind_of_target(self) -> TargetKind:
        return self.target_kind

    def _condition(self, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
        if self.target_.classes is not None:
            return class_parts(self._classes_in_turn(rows)[0], self._described())
        unknown = np.full((len(rows), self.target_.schema.n_columns), np.nan)
        parts = InStandardUnits(self.joint_).condition(self._joint_rows(rows, unknown))
        first, columns = int(self.joint_.cells_.starts[self.schema_.n_columns]), self.joint_.columns_
        return parts.restricted(np.flatnonzero(columns.column_of >= first), np.arange(first, columns.n_columns))

    def _evidence(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array) -> Evidence:
        if self.target_.classes is None:
            unknown = np.full_like(targets, np.nan)
            return minus(self._joint_evidence(rows, targets), self._joint_evidence(rows, unknown), self._described())
        log_proba, replicates, is_exact = self._classes_in_turn(rows)
        every, codes = np.arange(len(rows)), targets[:, 0].astype(np.intp)
        if is_exact:
            return Evidence.exact(log_proba[every, codes], method=self._described())
        spread = None if replicates is None else replicates[every, codes]
        return Evidence.estimate(log_proba[every, codes], replicates=spread, method=self._described())

    def _described(self) -> str:
        return f"p(x, y) / p(x) of {type(self.joint_).__name__}"

    def _classes_in_turn(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Log p(class | x) (n, K) from the evidence of each row with each class; its replicates; is it exact?"""
        codes = range(len(self.classes_))
        found = [self._joint_evidence(rows, np.full((len(rows), 1), code, rows.dtype)) for code in codes]
        log_proba = log_softmax(np.stack([evidence.values for evidence in found], axis=1), axis=1)
        replicates = [evidence.replicates for evidence in found if evidence.replicates is not None]
        spread = log_softmax(np.stack(replicates, axis=1), axis=1) if len(replicates) == len(found) else None
        return log_proba, spread, all(evidence.kind == "exact" for evidence in found)

    def _joint_evidence(self, rows: np.ndarray, targets: np.ndarray) -> Evidence:
        return InStandardUnits(self.joint_).evidence(self._joint_rows(rows, targets))


def minus(both: Evidence, rows: Evidence, method: str) -> Evidence:
    """log p(x, y) - log p(x), typed: exact if both are, else an estimate between the limits that theirs leave."""
    values = both.values - rows.values
    if both.kind == rows.kind == "exact":
        return Evidence.exact(values, method=method)
    limits = both.lower - rows.upper, both.upper - rows.lower
    return Evidence.estimate(values, *limits, _replicates(both, rows), method=f"{method}, {both.method}")


def _replicates(both: Evidence, rows: Evidence) -> np.ndarray | None:
    """Replicates of the difference: paired where the same noise is behind both, else of the one that has any.

    Of two unlike numbers of replicates, groups are averaged until they are as many: each average is as good a version.
    """
    given = [one for one in (both.replicates, rows.replicates) if one is not None]
    if not given:
        return None
    n_groups = min(one.shape[1] for one in given)
    first, second = (_grouped(evidence, n_groups) for evidence in (both, rows))
    return first - second


def _grouped(evidence: Evidence, n_groups: int) -> np.ndarray:
    if evidence.replicates is None:
        return np.repeat(evidence.values[:, None], n_groups, axis=1)
    parts = np.array_split(evidence.replicates, n_groups, axis=1)
    return np.stack([part.mean(axis=1) for part in parts], axis=1)


def joined(X: Any, targets: np.ndarray, columns: tuple[Column, ...]) -> Any:
    """X with the target's columns as its last, in the library that X came from; `targets` are encoded."""
    cells = [decode_values(column, targets[:, i]) for i, column in enumerate(columns)]
    frame = as_frame(X)
    if frame is not None:
        import narwhals as nw

        added = [
            nw.new_series(column.name, _plain(values), backend=frame.implementation)
            for column, values in zip(columns, cells, strict=True)
        ]
        return frame.with_columns(*added).to_native()
    coded = all(column.categories is None or set(map(type, column.categories)) == {int} for column in columns)
    if coded:  # the codes of classes are numbers like any others
        return np.column_stack([np.asarray(X), targets])
    return np.column_stack([np.asarray(X, dtype=object), *cells])


def _plain(cells: np.ndarray) -> list[Any]:
    """Cells as Python values, None where they are missing."""
    return [None if cell is None or cell != cell else cell for cell in cells.tolist()]
