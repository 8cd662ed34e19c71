"""Bagging: p(y | x) = 1/B Σ_b p_b(y | x), each member fitted to rows drawn with replacement.

Breiman (1996). A row is in about 63% of the samples; the others, which have not seen it, give its out-of-bag evidence.
Cost: B times that of the predictor.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any

import jax
import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from likely.columns import Cells, Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.estimator import Arrays, FitRun, check_settings, from_file, to_file, under
from likely.contract.evidence import Evidence
from likely.contract.predictor import Predictor
from likely.contract.settings import Count
from likely.contract.target import TargetKind
from likely.models.prediction.around_models import with_schema
from likely.runtime import generator
from likely.schema import Schema
from likely.storage import registry
from likely.storage.modules import describe_estimator


class Bagged(Predictor):
    """Copies of a predictor, each fitted to a bootstrap sample of the rows, with their probabilities averaged.

    Parameters
    ----------
    predictor : the unfitted predictor, cloned. None takes `likely.LinearPredictor()`.
    n_members : how many copies.
    schema : what the columns of X are; None reads it off the data.
    random_state : seed of the samples, and of the members.

    Attributes
    ----------
    members_ : the fitted predictors.
    oob_evidence_ : log p(y | x) of the rows of the fit, each by the members that have not seen it.
    classes_ : the classes, in order, where y is of classes.

    Notes
    -----
    The average is exact where the members' evidence is. Samples are drawn within each class, so that every member knows
    all of them; settings of y, such as `target_kind`, are the predictor's own.

    Examples
    --------
    >>> import likely
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = Bagged(likely.LinearPredictor("map"), n_members=5, random_state=0).fit(X, y)
    >>> model.oob_evidence_.kind, bool(model.oob_evidence_.mean > -0.2)
    ('exact', True)
    """

    predictor: Predictor | None = None
    _: KW_ONLY
    n_members: Count = 10
    schema: Schema | None = None

    _apart = (*Predictor._apart, "members_")

    @property
    def _inner(self) -> Any:
        return registry.model_class("LinearPredictor")() if self.predictor is None else self.predictor

    @property
    def _target_kind(self) -> TargetKind:  # type: ignore[override]
        return self._inner._target_kind

    @property
    def _uses_unlabelled(self) -> bool:  # type: ignore[override]
        return self._inner._uses_unlabelled

    @property
    def _minus_is_unknown(self) -> bool:  # type: ignore[override]
        return self._inner._minus_is_unknown

    def _kind_of_target(self) -> TargetKind:
        return self._inner._kind_of_target()

    def _check(self) -> None:
        check_settings(self._inner)
        self._inner._check()

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        # Hooks get encoded rows: it is the members that know their cells.
        return Cells.plain(Columns.of(Schema.real(self.schema_.n_columns)))

    def _restored_cells(self, cells: Cells) -> Cells:
        return self._fit_cells(np.empty((0, 0)))

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        return np.asarray(encoded, np.float64)

    def _in_units(self, targets: np.ndarray) -> np.ndarray:
        return self.target_.scaling.apply(targets, np.dtype(np.float64))

    # ---------------------------------------------------------------- learning
    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        rng = generator(key)
        y = self.target_.scaling.invert(targets)
        groups = y[:, 0] if self.target_.classes is not None else np.zeros(len(y))
        outside, work = np.ones((self.n_members, len(rows)), dtype=bool), []
        for number in range(self.n_members):
            chosen = _sample(rng, groups)
            outside[number, chosen] = False
            work.append((self._member(int(rng.integers(2**31 - 1))), chosen))

        def fitted(member: Any, chosen: np.ndarray) -> Any:
            own = _safe_indexing(run.table, chosen), self._given_y(y[chosen])
            return member.fit(*own, valid=run.valid_table)

        # One after the other, unless a `joblib.parallel_config` around the fit says otherwise.
        self.members_: list[Any] = Parallel()(delayed(fitted)(*one) for one in work)
        self.history_ = {}
        params = [member.params_ for member in self.members_]
        self._note_out_of_bag(rows, targets, outside)
        return params

    def _member(self, seed: int) -> Any:
        member = with_schema(clone(self._inner), self.schema_)
        if "target_kind" in member.get_params(deep=False) and self.target_.is_column:
            # A sample may have so few different numbers that they look like classes.
            kind = {"real": "number", "count": "count"}.get(self.target_.schema.kinds[0], "class")
            member.set_params(target_kind=kind)
        return member.set_params(random_state=seed)

    def _given_y(self, encoded: np.ndarray) -> Any:
        """Encoded targets as a user would give them, None and NaN where they are missing."""
        if self.target_.classes is None:
            return self.target_.values(encoded)
        codes = encoded[:, 0]
        if not np.isnan(codes).any():
            return self.target_.classes[codes.astype(np.intp)]
        return np.array([None if code != code else self.target_.classes[int(code)] for code in codes], dtype=object)

    def _note_out_of_bag(self, rows: np.ndarray, targets: np.ndarray, outside: np.ndarray) -> None:
        known = ~np.isnan(targets).any(axis=1)
        log_p = np.full(outside.shape, np.nan)
        kinds = set()
        for number, own in enumerate(outside & known):
            if own.any():
                found = self._of_member(self.members_[number], rows[own], targets[own])
                log_p[number, own] = found.values
                kinds.add(found.kind)
        seen = ~np.isnan(log_p)
        n_out = seen.sum(axis=0)
        total = logsumexp(np.where(seen, log_p, -np.inf), axis=0)
        value = total - np.log(np.maximum(n_out, 1)) + self.target_.scaling.log_jacobian(~np.isnan(targets))
        self.oob_rows_ = np.flatnonzero(n_out > 0).tolist()
        self.oob_values_ = value[n_out > 0].tolist()
        self.oob_kind_ = "exact" if kinds <= {"exact"} else "estimate"

    @property
    def oob_evidence_(self) -> Evidence:
        """log p(y | x) of the rows of the fit, in the order of `oob_rows_`, each by members that have not seen it."""
        check_is_fitted(self)
        measure = self.target_.schema.measure.conditional(self.target_.name)
        make = Evidence.exact if self.oob_kind_ == "exact" else Evidence.estimate
        method = f"{self._how()}, out of bag"
        return make(self.oob_values_, method=method, measure=measure, fingerprint=f"rows {self.oob_rows_} of the fit")

    # ------------------------------------------------------------------- using
    def _how(self) -> str:
        return f"average of {self.n_members} {type(self._inner).__name__}s"

    def _of_member(self, member: Any, rows: np.ndarray, targets: np.ndarray) -> Evidence:
        """A member's evidence in the units of this predictor."""
        observed = ~np.isnan(targets)
        encoded = self.target_.scaling.invert(targets)
        part = member._target_evidence(member._standard(rows), member._in_units(encoded))
        units = member.target_.scaling.log_jacobian(observed) - self.target_.scaling.log_jacobian(observed)
        return part.shifted(units)

    def _evidence(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array) -> Evidence:
        parts = [self._of_member(member, rows, targets) for member in self.members_]
        method = f"{self._how()}: {parts[0].method}"

        def averaged(name: str) -> np.ndarray:
            return logsumexp([getattr(part, name) for part in parts], axis=0) - np.log(len(parts))

        if all(part.kind == "exact" for part in parts):
            return Evidence.exact(averaged("values"), method=method)
        with_error = [part for part in parts if part.replicates is not None]
        if len(with_error) < len(parts):
            return Evidence.estimate(averaged("values"), averaged("lower"), averaged("upper"), method=method)
        size = min(part.replicates.shape[1] for part in with_error if part.replicates is not None)
        parts = [
            replace(part, replicates=None if part.replicates is None else part.replicates[:, :size]) for part in parts
        ]
        limits = averaged("lower"), averaged("upper")
        return Evidence.estimate(averaged("values"), *limits, averaged("replicates"), method=method)

    def _condition(self, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
        parts = [member._conditional_parts(member._standard(rows)) for member in self.members_]
        pairs = list(zip(parts, self.members_, strict=True))
        mean = np.mean([self._in_own_units(np.asarray(p.mean, np.float64), m) for p, m in pairs], axis=0)
        errors = [p.stderr for p in parts if p.stderr is not None]
        stderr = None if not errors else np.sqrt(np.sum(np.square(errors), axis=0)) / len(parts)

        def sample(key: jax.Array, n: int) -> np.ndarray:
            keys = jax.random.split(key, len(parts) + 1)
            draws = np.stack([self._drawn(p, m, k, n) for (p, m), k in zip(pairs, keys[1:], strict=True)])
            which = generator(keys[0]).integers(0, len(parts), (n, len(rows)))
            return draws[which, np.arange(n)[:, None], np.arange(len(rows))]

        return ConditionalParts(mean, sample, f"{self._how()}: {parts[0].method}", stderr)

    def _in_own_units(self, mean: np.ndarray, member: Any) -> np.ndarray:
        """A member's mean statistics in the units of this predictor: of x and x², since others have no units."""
        columns, out = self.target_.columns, mean.copy()
        own, other = self.target_.scaling, member.target_.scaling
        for place in columns.real_places:
            first, second = np.flatnonzero(columns.column_of == place)
            a = other.scale[place] / own.scale[place]
            c = (other.offset[place] - own.offset[place]) / own.scale[place]
            out[:, first] = a * mean[:, first] + c
            out[:, second] = a**2 * mean[:, second] + 2 * a * c * mean[:, first] + c**2
        return out

    def _drawn(self, parts: ConditionalParts, member: Any, key: jax.Array, n: int) -> np.ndarray:
        """(n, n_rows, n_targets) a member's draws in the units of this predictor."""
        own, other = self.target_.scaling, member.target_.scaling
        return (np.asarray(parts.sample(key, n), np.float64) * other.scale + other.offset - own.offset) / own.scale

    # ------------------------------------------------------------------- files
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        parts = [to_file(member) for member in self.members_]
        arrays = {f"members.{i}.{name}": array for i, (own, _) in enumerate(parts) for name, array in own.items()}
        names = getattr(self, "feature_names_in_", None)
        about = describe_estimator(self, self._apart) | {
            "schema": self.schema_.to_json(),
            "feature_names": None if names is None else [str(name) for name in names],
            "target": self.target_.to_json(),
            "members": [meta for _, meta in parts],
        }
        return arrays | self.cells_.to_file()[0], about

    def _restored_params(self, arrays: Arrays, meta: dict[str, Any]) -> Any:
        self.members_ = [from_file(under(f"members.{i}.", arrays), own) for i, own in enumerate(meta["members"])]
        return [member.params_ for member in self.members_]


def _sample(rng: np.random.Generator, groups: np.ndarray) -> np.ndarray:
    """Numbers of rows drawn with replacement, as many of each group as there are; of rows without one as well."""
    parts = [np.flatnonzero(groups == one) for one in np.unique(groups[~np.isnan(groups)])]
    parts += [np.flatnonzero(np.isnan(groups))]
    return np.sort(np.concatenate([rng.choice(part, len(part)) for part in parts if len(part)]))
