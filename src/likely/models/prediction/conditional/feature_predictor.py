"""Predictors of y from the features of a row: what they write is the law of y given complete features.

Rows with holes are averaged over draws of a companion density of the inputs: p(y | what is seen), an estimate with its
Monte Carlo error, and never a prediction from filled-in cells.
"""

from __future__ import annotations

import abc
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import jax
import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.estimator import Arrays, FitRun, check_settings, from_file, to_file, under
from likely.contract.evidence import Evidence
from likely.contract.model import Model
from likely.contract.predictor import Predictor
from likely.contract.settings import Several
from likely.contract.target import TargetKind
from likely.models.prediction.conditional.companion import GaussianInputs, ModelInputs, paired_noise, versions_of
from likely.models.prediction.conditional.features import features
from likely.models.prediction.conditional.laws import Laws, put_together
from likely.runtime import BLOCK_ROWS, generator
from likely.schema import Schema

_FIT, _DRAWS = 1, 2  # folds of keys: of the companion's fit, of completions


class FeaturePredictor(Predictor):
    """Base of predictors that read features; hooks get encoded rows in float64.

    Fitted attributes
    -----------------
    params_ : named arrays. inputs_ : the companion density of the inputs.
    """

    _: KW_ONLY
    target_kind: TargetKind = "auto"
    companion: Model | None = None
    n_draws: Several = 64
    schema: Schema | None = None

    _numbers = "real"
    _several: ClassVar[bool] = False  # predicts several columns at once
    _apart = (*Predictor._apart, "inputs_")

    # ------------------------------------------------------------------ hooks
    @abc.abstractmethod
    def _learn(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        """Learned parameters from encoded rows; `inputs_` is there where rows have holes."""

    @abc.abstractmethod
    def _laws(self, x: np.ndarray) -> Laws:
        """The law of y given complete features (n, p); it is asked for blocks of one size."""

    @abc.abstractmethod
    def _how(self) -> str:
        """How p(y | x) of a complete row is come by, in words."""

    # ---------------------------------------------------------------- learning
    def _check(self) -> None:
        if self.companion is not None:
            check_settings(self.companion)

    def _kind_of_target(self) -> TargetKind:
        return self.target_kind

    def _check_targets(self, targets: np.ndarray) -> None:
        super()._check_targets(targets)
        if not self._several and not self.target_.is_column:
            raise ValueError(
                f"{type(self).__name__} predicts one column, and y has {len(self.target_.schema.names)}: fit one "
                "predictor for each, or use NetworkPredictor or JointPredictor, which predict several."
            )

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        # Hooks get encoded rows: a companion may be a model with units of its own.
        return np.asarray(encoded, np.float64)

    def _in_units(self, targets: np.ndarray) -> np.ndarray:
        return self.target_.scaling.apply(targets, np.dtype(np.float64))

    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        vars(self).pop("inputs_", None)
        if self.companion is not None:
            model = clone(self.companion).set_params(schema=self.schema_)
            if model.random_state is None:
                model.set_params(random_state=self.seed_)
            self.inputs_: Any = ModelInputs(model.fit(run.table), self.cells_)
        elif has_holes(rows):
            self.inputs_ = self._gaussian_inputs(rows, key, run.weight)
        params = self._learn(rows, targets, key, run)
        if not hasattr(self, "inputs_"):
            self.inputs_ = self._gaussian_inputs(rows, key, run.weight)
        return params

    def _gaussian_inputs(self, rows: np.ndarray, key: jax.Array, weight: np.ndarray | None) -> GaussianInputs:
        rng = generator(jax.random.fold_in(key, _FIT))
        return GaussianInputs.fit(self._features(rows), rng, weight)

    def _features(self, rows: np.ndarray) -> np.ndarray:
        return features(self.cells_, rows)

    # ------------------------------------------------------------------- using
    def _condition(self, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
        whole, holed = self._split(rows)
        laws = [self._laws_of(self._features(rows[whole]))] if len(whole) or not len(holed) else []
        averaged = [self._averaged(row) for row in rows[holed]]
        places = [whole] * len(laws) + [holed[i : i + 1] for i in range(len(holed))]
        columns = self.target_.columns
        mean, stderr = put_together(columns, [*laws, *averaged], places)
        # Of one column of classes the average is all there is to draw from.
        kept = [_collapsed(columns, law) for law in averaged]

        def sample(key: jax.Array, n: int) -> np.ndarray:
            keys = jax.random.split(key, len(places) + 1)
            out = np.empty((n, len(rows), columns.n_columns))
            for law, own, k in zip([*laws, *kept], places, keys, strict=False):
                out[:, own] = law.sample(k, n)
            return out

        return ConditionalParts(mean, sample, self._in_words(len(holed) > 0), stderr)

    def _evidence(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array) -> Evidence:
        whole, holed = self._split(rows)
        method = self._in_words(len(holed) > 0)
        parts, places = [], []
        if len(whole) or not len(holed):
            parts.append(self._laws_of(self._features(rows[whole])).evidence(targets[whole], method))
            places.append(whole)
        for place in holed:
            parts.append(self._averaged(rows[place]).evidence(targets[place][None], method))
            places.append(np.array([place]))
        return _joined(parts, places, method)

    def _split(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of complete rows, and of rows that are averaged over draws."""
        holed = self._holed(rows)
        return np.flatnonzero(~holed), np.flatnonzero(holed)

    def _holed(self, rows: np.ndarray) -> np.ndarray:
        """(n,) whether what a row lacks is to be drawn."""
        return np.isnan(rows).any(axis=1)

    def _laws_of(self, x: np.ndarray) -> Laws:
        """Laws in blocks of one size, so that a row's bits do not depend on how many others are asked for."""
        found = []
        for start in range(0, max(1, len(x)), BLOCK_ROWS):
            block = x[start : start + BLOCK_ROWS]
            padded = np.zeros((BLOCK_ROWS, x.shape[1]))
            padded[: len(block)] = block
            found.append(_first(self._laws(padded), len(block)))
        return _stacked(found)

    def _averaged(self, row: np.ndarray) -> Laws:
        """The law of y given what is seen of an encoded row, over completions of it."""
        return self._laws(self._completions(row, self.n_draws)).as_members(versions_of(self.n_draws))

    def _completions(self, row: np.ndarray, n: int) -> np.ndarray:
        """(n, p) features of draws of an encoded row (d,)."""
        if isinstance(self.inputs_, ModelInputs):
            return self.inputs_.completed(row, n)
        x = self._features(row[None])[0]
        key = jax.random.fold_in(self._key("predict"), _DRAWS)
        return self.inputs_.completed(x, self._noise(key, n, len(x)))

    def _noise(self, key: jax.Array, n: int, p: int) -> np.ndarray:
        kept = vars(self).get("_kept_noise")
        if kept is None or kept[0] != (self.seed_, n, p):
            kept = (self.seed_, n, p), paired_noise(key, n, p)
            vars(self)["_kept_noise"] = kept
        return kept[1]

    def _in_words(self, has_holes: bool) -> str:
        if not has_holes:
            return self._how()
        model = getattr(self.inputs_, "model", None)
        who = "a Gaussian of the inputs" if model is None else type(model).__name__
        return f"{self._how()}, holes by {self.n_draws} draws of {who}"

    # ------------------------------------------------------------------- files
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._to_file()
        if isinstance(self.inputs_, ModelInputs):
            own, about = to_file(self.inputs_.model)
            return arrays | {f"companion.{name}": array for name, array in own.items()}, meta | {"companion": about}
        moments = {"inputs.mean": self.inputs_.mean, "inputs.covariance": self.inputs_.covariance}
        return arrays | moments, meta | {"companion": None}

    def _restored_params(self, arrays: Arrays, meta: dict[str, Any]) -> Any:
        if meta["companion"] is None:
            self.inputs_ = GaussianInputs(arrays["inputs.mean"], arrays["inputs.covariance"])
        else:
            self.inputs_ = ModelInputs(from_file(under("companion.", arrays), meta["companion"]), self.cells_)
        return self._params_from(under("params", arrays))

    def _params_from(self, arrays: Arrays) -> Any:
        # Every bit of float64, which JAX would round; a path to a dictionary's array is ['name'].
        return {name.strip("[]'"): array for name, array in arrays.items()}

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept_noise"}


def has_holes(rows: np.ndarray) -> bool:
    """Whether a cell is NaN; by a sum, which needs no room for a mask."""
    return bool(np.isnan(rows.sum()))


def _first(laws: Laws, n: int) -> Laws:
    weights = laws.log_weights if laws.log_weights.ndim == 1 else laws.log_weights[:n]
    return replace(laws, parts=tuple(part[:n] for part in laws.parts), log_weights=weights)


def _stacked(laws: list[Laws]) -> Laws:
    one = laws[0]
    parts = tuple(np.concatenate(pieces) for pieces in zip(*(law.parts for law in laws), strict=True))
    weights = one.log_weights if one.log_weights.ndim == 1 else np.concatenate([law.log_weights for law in laws])
    return replace(one, parts=parts, log_weights=weights)


def _collapsed(columns: Columns, law: Laws) -> Laws:
    """A law of one column of classes with a single member; others as they are."""
    if columns.kinds != ("categorical",):
        return law
    return Laws.single(columns, logsumexp(law.parts[0] + law.log_weights[..., None], axis=1))


def _joined(parts: list[Evidence], places: list[np.ndarray], method: str) -> Evidence:
    """The evidences of rows at these places as one; a row without Monte Carlo error has replicates that agree."""
    n = sum(len(own) for own in places)
    values, lower, upper = (np.empty(n) for _ in range(3))
    sizes = [part.replicates.shape[1] for part in parts if part.replicates is not None]
    replicates = np.empty((n, max(sizes))) if sizes else None
    for part, own in zip(parts, places, strict=True):
        values[own], lower[own], upper[own] = part.values, part.lower, part.upper
        if replicates is not None:
            known = part.replicates if part.replicates is not None else part.values[:, None]
            # Versions of fewer draws go round: their mean stays, and their spread.
            replicates[own] = known[:, np.arange(replicates.shape[1]) % known.shape[1]]
    if replicates is None and all(part.kind == "exact" for part in parts):
        return Evidence.exact(values, method=method)
    if np.isposinf(upper).all() and np.array_equal(lower, values):
        return Evidence.lower_bound(values, replicates, method=method)
    return Evidence.estimate(values, lower, upper, replicates, method=method)
