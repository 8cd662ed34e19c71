"""Estimators that read tables: scikit-learn's checks, the schema, units, and the file of what was learned of them.

Hooks work on one float matrix in standard units, with NaN for unobserved cells. What is built on a model asks it in
these units by `InStandardUnits`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from likely.columns import Cells, Columns
from likely.columns.cells import Numbers
from likely.contract.estimator import Arrays, Estimator, FitRun, under
from likely.memory import memory_limit
from likely.runtime import float_dtype
from likely.schema import Schema, SchemaError, as_frame, blocks
from likely.storage.modules import describe_estimator, restore_estimator, restore_module, save_module

if TYPE_CHECKING:
    from likely.contract.conditional import ConditionalParts
    from likely.contract.evidence import Evidence
    from likely.contract.model import Model

_BYTES_HELD = 24  # of a cell: as a float, and copies of it
_SMALL = 1 << 20  # bytes that are not worth asking the system how much is free
_STREAMED = ("Independent", "Mixture", "RBM", "VAE")
_CELLS_AT_ONCE = 1 << 20  # of encoded rows that are looked at, or made, together


class TableHooks:
    """What an estimator of tables writes unless it writes `_restored_params`; apart from settings, as `Learned` is."""

    _init: Callable[[jax.Array, Columns], Any]  # parameters of the right structure, from settings and columns alone


class TableEstimator(TableHooks, Estimator):
    """Base of estimators of tables.

    Fitted attributes
    -----------------
    params_ : the learned parameters, a frozen module of arrays in standard units.
    schema_ : what the columns are. cells_ : how their values become cells in standard units, and back.
    columns_ : the exponential family of the cells.
    """

    _scaling: ClassVar[str] = "column"  # or "common": centre, and one scale for all real columns (isotropic models)
    _numbers: ClassVar[Numbers] = "bins"  # how rounded numbers are read; "real" for models of covariances
    _real_only: ClassVar[bool] = False  # reads binary and count columns as real numbers
    _binary_only: ClassVar[bool] = False  # refuses columns that are not binary
    _holds_rows: ClassVar[bool] = False  # its fit holds all rows, as floats of double precision
    _apart: ClassVar[tuple[str, ...]] = (
        "params_", "schema_", "columns_", "cells_", "feature_names_in_", "target_",
    )  # fmt: skip

    @property
    def n_parameters_(self) -> int:
        """Number of learned numbers; states that a model keeps, such as chains, are not floating-point and no such."""
        leaves = jax.tree.leaves(self.params_)
        return sum(int(np.size(leaf)) for leaf in leaves if jax.dtypes.issubdtype(leaf.dtype, np.inexact))

    # ----------------------------------------------------------------- reading
    def _read_new(self, X: Any, weight: np.ndarray | None = None) -> np.ndarray:
        """Rows for a fit: sets the schema and all that follows from it.

        What the columns are is read off the rows, each once; their units and bins go by the weights as well.
        """
        X = self._checked(X, reset=True)
        self._check_memory(X)
        schema = self._given_schema(X)
        self._check_kinds(schema)
        self.schema_ = schema.as_real() if self._real_only else schema
        encoded = self.schema_.encode(X) if weight is not None else self.schema_.encode_by_blocks(X)
        self.n_features_in_ = schema.n_columns + len(schema.left_out)
        self._check_columns(encoded)
        self.cells_ = self._fit_cells(encoded, weight)
        self.columns_ = self.cells_.columns
        return encoded

    def _check_memory(self, X: Any) -> None:
        """Refuse, before any work, a table that a fit would have to hold and memory does not."""
        n_bytes = _BYTES_HELD * len(X) * (np.shape(X)[1] if hasattr(X, "shape") else 1)
        if self._must_hold_rows and n_bytes > _SMALL and n_bytes > memory_limit():
            raise ValueError(
                f"{type(self).__name__} holds all rows while it learns: these take about {n_bytes / 1e9:,.1f} GB, and "
                f"{memory_limit() / 1e9:,.1f} are free: give fewer rows, or use a model that goes over rows block by "
                f"block, such as {', '.join(_STREAMED)}."
            )

    @property
    def _must_hold_rows(self) -> bool:
        """Whether a fit with these settings holds all rows."""
        return self._holds_rows

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        """The cells of the columns, as rows of a fit ask for."""
        numbers: Numbers = "real" if self._real_only else self._numbers
        return Cells.fit(encoded, self.schema_, self._scaling, numbers, weight, self._cut())

    def _cut(self) -> Mapping[int, int]:
        """Places of the columns of numbers that a model takes in bins, and how many."""
        return {}

    def _given_schema(self, X: Any) -> Schema:
        """The schema that is set, else the one that the rows show."""
        given = getattr(self, "schema", None)
        return Schema.infer(X) if given is None else given

    def _check_kinds(self, schema: Schema) -> None:
        odd = next((column for column in schema.columns if column.kind != "binary"), None)
        if self._binary_only and odd is not None:
            raise SchemaError(
                f"column {odd.name!r} is {odd.kind}, and {type(self).__name__} takes binary columns only: drop it, cut "
                "it into 0 and 1, or use a model for any columns (Independent, Mixture, RBM, VAE)."
            )

    def _check_columns(self, encoded: np.ndarray) -> None:
        empty = np.all([np.isnan(block).all(axis=0) for _, block in blocks(encoded, _CELLS_AT_ONCE)], axis=0)
        if empty.any():
            name = self.schema_.names[int(np.argmax(empty))]
            raise SchemaError(f"column {name!r} has no observed cell, so nothing can be learned of it: drop it.")

    def _read(self, X: Any) -> np.ndarray:
        return self.schema_.encode(self._checked(X, reset=False))

    def _read_by_blocks(self, X: Any) -> Any:
        """The same for a fit, which goes over rows by blocks: many rows of a data frame are not encoded at once."""
        return self.schema_.encode_by_blocks(self._checked(X, reset=False))

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        """Encoded rows in standard units."""
        return self.cells_.apply(encoded, float_dtype())

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows, and the same in standard units."""
        check_is_fitted(self)
        encoded = self._read(X)
        return encoded, self._standard(encoded)

    def _checked(self, X: Any, reset: bool) -> Any:
        """scikit-learn's own checks, so that its errors and attributes are the ones users know."""
        frame = as_frame(X)
        if frame is not None:
            if reset or not self.schema_.left_out:
                _check_feature_names(self, X, reset=reset)
            else:
                self._check_names(frame)
            if len(X) == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X
        dtype = None if _is_numeric(X) else object
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite="allow-nan")

    def _check_names(self, frame: Any) -> None:
        """Refuse columns of other names than in the fit; those that it left out may be there or not."""
        left_out = {column.name for column in self.schema_.left_out}
        known = copy.copy(self)
        if hasattr(self, "feature_names_in_"):
            kept = [name for name in self.feature_names_in_ if name not in left_out]
            known.feature_names_in_ = np.array(kept, dtype=object)
        rest = [name for name in frame.columns if name not in left_out]
        _check_feature_names(known, frame.select(rest).to_native(), reset=False)

    # ------------------------------------------------------------------- files
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {f"params{path}": array for path, array in save_module(self.params_).items()}
        units, codecs = self.cells_.to_file()
        names = getattr(self, "feature_names_in_", None)
        return arrays | units, describe_estimator(self, self._apart) | {
            "schema": self.schema_.to_json(),
            "cells": codecs,
            "feature_names": None if names is None else [str(name) for name in names],
        }

    @classmethod
    def _from_file(cls, arrays: Arrays, meta: dict[str, Any]) -> Any:
        model = restore_estimator(cls, meta)
        model._restore_columns(arrays, meta)
        model._restore(meta)
        model.params_ = model._restored_params(arrays, meta)
        return model

    def _restored_params(self, arrays: Arrays, meta: dict[str, Any]) -> Any:
        """What was learned, from a file: arrays in the structure that `_init` makes."""
        template = jax.eval_shape(lambda key: self._init(key, self.columns_), jax.random.key(0))
        return restore_module(template, under("params", arrays))

    def _restore_columns(self, arrays: Arrays, meta: dict[str, Any]) -> None:
        """The columns and their cells, from a file."""
        self.schema_ = Schema.from_json(meta["schema"])
        self.cells_ = self._restored_cells(Cells.from_file(arrays, meta.get("cells"), self.schema_))
        self.columns_ = self.cells_.columns
        if meta["feature_names"] is not None:
            self.feature_names_in_ = np.array(meta["feature_names"], dtype=object)

    def _restored_cells(self, cells: Cells) -> Cells:
        """The cells of a file as this estimator reads them."""
        return cells

    def _restore(self, meta: dict[str, Any]) -> None:
        """What a contract has besides, from the description in a file."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags


def hole_shares(encoded: np.ndarray, weight: np.ndarray | None) -> tuple[float, ...]:
    """Of each column, the share of its cells that are unobserved."""
    if weight is not None:
        return tuple(np.average(np.isnan(encoded), axis=0, weights=weight).tolist())
    n_holes = sum(np.isnan(block).sum(axis=0) for _, block in blocks(encoded, _CELLS_AT_ONCE))
    return tuple((n_holes / len(encoded)).tolist())


def _is_numeric(X: Any) -> bool:
    dtype = getattr(X, "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "O") in "fiubc"


@dataclass(frozen=True)
class InStandardUnits:
    """A model as the estimators that are built on it ask it: in standard units, with no reading and no writing back."""

    model: Model

    def key(self, stream: str, random_state: Any = None) -> jax.Array:
        """The randomness that the model has for a use of it, or that another seed gives."""
        return self.model._key(stream, random_state)

    def read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """A user's rows encoded, and the same in the model's units."""
        return self.model._rows(X)

    def finished(self, part: Evidence, encoded: np.ndarray) -> Evidence:
        """An evidence of rows in the model's units as the user sees it."""
        return self.model._finished(part, encoded)

    def rows(self, encoded: np.ndarray) -> np.ndarray:
        """Encoded rows in the model's units."""
        return self.model._standard(encoded)

    def fit(self, rows: np.ndarray, columns: Columns, key: jax.Array) -> Any:
        """Parameters learned from rows that no schema describes, such as codes that are probabilities."""
        self.model.columns_ = columns
        return self.model._fit(rows, key, FitRun())

    def evidence(self, rows: np.ndarray, key: jax.Array | None = None) -> Evidence:
        """The evidence of rows, less units, measure and fingerprint."""
        return self.model._evidence(rows, self.key("evidence") if key is None else key)

    def condition(self, rows: np.ndarray) -> ConditionalParts:
        """What is unobserved in rows."""
        return self.model._condition(rows, self.key("condition"))
