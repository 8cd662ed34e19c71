"""A stack: p(x) = Σ_k w_k p_k(x), a mixture of different models of one table, whose weights are learned by EM.

Smyth and Wolpert (1999). The members are as they are; only the weights, K - 1 numbers, are learned, from rows that the
members have not seen, so that a member that knows its own rows by heart gains nothing by it. The mean log p of those
rows is concave in the weights, and is at least that of the best member. Cost: that of the members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp, softmax
from sklearn.base import clone

from likely.columns import Cells, Columns
from likely.columns.scaling import Scaling
from likely.contract.conditional import Conditional, ConditionalParts
from likely.contract.drawing.mixing import FEWEST_EFFECTIVE, DrawnRows, Mixing, Sampling
from likely.contract.estimator import Arrays, FitRun, check_settings, from_file, suited, to_file, under
from likely.contract.evidence import Evidence
from likely.contract.model import Model
from likely.contract.settings import Count, Share, Unchecked
from likely.models.latent.mixture.members import Member, check_same_columns
from likely.runtime import generator
from likely.schema import Schema
from likely.storage import registry
from likely.storage.modules import describe_estimator

DEFAULT = ("Independent", "Mixture", "Autoregressive")
_TOLERANCE = 1e-9  # nats a row, below which a step of EM counts as no progress
_MATTERS = 0.01  # share of a member in a row, below which its sampling is of no concern


class StackParams(eqx.Module):
    """Weights of the members, and what these learned."""

    shares: Float[Array, " k"]
    members: tuple[Any, ...]


def learn_weights(log_p: Float[np.ndarray, "n k"], max_iter: int) -> tuple[np.ndarray, list[float]]:
    """Weights that maximise the mean of log Σ_k w_k p_k(x) over rows, by EM from equal ones; and the mean at each step.

    Examples
    --------
    >>> weights, _ = learn_weights(np.log([[0.5, 0.1], [0.5, 0.1], [0.1, 0.9]]), 1000)
    >>> weights.round(2)                                      # 0.8 / (0.1 + 0.4 w) = 0.8 / (0.9 - 0.8 w) at w = 2/3
    array([0.67, 0.33])
    """
    n_members = log_p.shape[1]
    weights, curve = np.full(n_members, 1 / n_members), []
    for _ in range(max_iter):
        joint = log_p + np.log(np.maximum(weights, np.finfo(float).tiny))
        curve.append(float(logsumexp(joint, axis=1).mean()))
        if len(curve) > 1 and curve[-1] - curve[-2] < _TOLERANCE:
            break
        weights = softmax(joint, axis=1).mean(axis=0)
    return weights / weights.sum(), curve


def mixed_evidence(found: Sequence[Evidence], weights: np.ndarray) -> Evidence:
    """The evidence of a mixture from those of its members: exact if all are, else with the limits that theirs leave.

    Members whose values are logarithms of unbiased estimates, or less, leave such a one: a bound stays a bound.
    """
    used = [(evidence, weight) for evidence, weight in zip(found, weights, strict=True) if weight > 0]
    logs = np.log([weight for _, weight in used])
    total = lambda name: logsumexp([getattr(e, name) + log for (e, _), log in zip(used, logs, strict=True)], axis=0)  # noqa: E731
    values, method = total("values"), "mixture of " + "; ".join(dict.fromkeys(e.method for e, _ in used))
    if all(evidence.kind == "exact" for evidence, _ in used):
        return Evidence.exact(values, method=method)
    return Evidence.estimate(values, total("lower"), total("upper"), _replicates(used, values), method=method)


def _replicates(used: Sequence[tuple[Evidence, float]], values: np.ndarray) -> np.ndarray | None:
    """How the mixture's values move with the members' replicates, to first order, which their shares in a row give."""
    sizes = [evidence.replicates.shape[1] for evidence, _ in used if evidence.replicates is not None]
    if not sizes:
        return None
    out = np.repeat(values[:, None], min(sizes), axis=1)
    for evidence, weight in used:
        if evidence.replicates is not None:
            share = weight * np.exp(evidence.values - values)
            groups = np.array_split(evidence.replicates - evidence.values[:, None], min(sizes), axis=1)
            out += share[:, None] * np.stack([group.mean(axis=1) for group in groups], axis=1)
    return out


class Stack(Model):
    """A mixture of different models of the same columns.

    Parameters
    ----------
    models : models, fitted or not, or names of models; None takes "Independent", "Mixture" and "Autoregressive". Those
        that are fitted stay as they are, and `fit` is to get rows that they have not seen; the others are copied, and
        fitted by `fit`.
    held_out : share of the rows that others are kept from, and the weights learned from, where no `valid` rows are
        given and there is something to fit.
    max_iter : steps of EM, at most.
    schema : what the columns are; None takes that of a fitted member, or reads it off the data.
    random_state : seed, also of the members that have none.

    Attributes
    ----------
    weights_ : of the members, in their order.
    members_ : the fitted models.

    Notes
    -----
    The evidence is exact if that of all members is, and else has the limits that theirs leave. Unobserved cells are a
    mixture of what the members say of them, weighed by each member's evidence of the row.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> members = [likely.Mixture(20, random_state=0).fit(digits.train), likely.Independent().fit(digits.train)]
    >>> stack = Stack(members).fit(digits.valid)
    >>> stack.evidence(digits.test).kind, stack.score(digits.test) >= members[0].score(digits.test) - 0.01
    ('exact', True)
    """

    models: Unchecked = None
    _: KW_ONLY
    held_out: Share = 0.2
    max_iter: Count = 1000

    _is_composite = True
    _apart = (*Model._apart, "members_")
    _why_not: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transform", "fit_transform", "inverse_transform", "denoise"), "its members share no latent code"
    )

    # ---------------------------------------------------------------- reading
    def _given(self) -> list[Any]:
        """The models and names that were given, checked."""
        given = DEFAULT if self.models is None else self.models
        if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
            raise ValueError(f"`models` must be a list of models or of their names, got {given!r}.")
        for one in given:
            if not isinstance(one, str | Model):
                raise TypeError(f"each of `models` must be a likely.Model or the name of one, got {one!r}.")
            cls = registry.model_class(one) if isinstance(one, str) else type(one)
            if not (issubclass(cls, Model) and hasattr(cls, "_evidence")):
                raise TypeError(f"{cls.__name__} has no likelihood of rows to be weighed by: leave it out.")
            if isinstance(one, Model):
                check_settings(one)
        return list(given)

    def _given_schema(self, X: Any) -> Schema:
        fitted = [one for one in self._given() if _is_fitted(one)]
        schema = fitted[0].schema_ if fitted and self.schema is None else super()._given_schema(X)
        for one in fitted:
            Member(one).check_columns(schema)
        return schema

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        offset = np.zeros(self.schema_.n_columns)
        # Times are large numbers, of which single precision would leave minutes.
        for place in np.flatnonzero([kind == "datetime" for kind in self.schema_.kinds]):
            offset[place] = np.rint(np.nanmean(encoded[:, place]))
        return _plain_cells(self.schema_, offset)

    def _restored_cells(self, cells: Cells) -> Cells:
        return _plain_cells(self.schema_, cells.scaling.offset)

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        return self.cells_.apply(encoded, np.float64)  # Members read them again, each in its own way.

    # ------------------------------------------------------------------ hooks
    def _init(self, key: jax.Array, columns: Columns) -> StackParams:
        members = tuple(member._init(key, member.columns_) for member in self.members_)
        return StackParams(jnp.zeros(len(members)), members)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> StackParams:
        learn, judge = self._divided(rows, key, run)
        self.members_ = [self._member(one, learn) for one in self._given()]
        for member in self.members_:
            Member(member).check_columns(self.schema_)
        encoded = self.cells_.invert(judge)
        log_p = np.stack([Member(member).evidence(encoded).values for member in self.members_], axis=1)
        weights, curve = learn_weights(log_p, self.max_iter)
        self.weights_ = tuple(weights.tolist())
        self.history_ = {"objective": curve}
        return StackParams(jnp.asarray(weights), tuple(member.params_ for member in self.members_))

    def _divided(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> tuple[np.ndarray, np.ndarray]:
        """Rows that members learn from, and rows that weights are learned from."""
        if run.valid is not None:
            return rows, run.valid
        if all(_is_fitted(one) for one in self._given()):
            return rows, rows
        if len(rows) < 2:
            raise ValueError("a row to learn from and another to judge by are needed, got 1 sample: give more rows.")
        n_held = max(1, int(self.held_out * len(rows)))
        order = np.asarray(jax.random.permutation(key, len(rows)))
        return rows[order[n_held:]], rows[order[:n_held]]

    def _member(self, one: Any, rows: np.ndarray) -> Model:
        """A fitted model, as it is, or fitted now."""
        if _is_fitted(one):
            return one
        columns = self.schema_
        model = suited(one, len(rows), columns.n_columns, set(columns.kinds)) if isinstance(one, str) else clone(one)
        model.set_params(schema=columns if model.schema is None else model.schema)
        own = model.schema.as_real() if type(model)._real_only else model.schema
        check_same_columns(type(model).__name__, own, columns)  # before the work of a fit
        if model.random_state is None:
            model.set_params(random_state=self.seed_)
        return model.fit(columns.decode(self.cells_.invert(rows)))

    def _evidence(self, rows, key):
        encoded = self.cells_.invert(rows)
        return mixed_evidence([Member(member).evidence(encoded) for member in self.members_], np.array(self.weights_))

    def _sample(self, key, n):
        rng = generator(key)
        whose = rng.choice(len(self.weights_), size=n, p=self.weights_)
        out, how = np.empty((n, self.schema_.n_columns)), []
        for number in np.unique(whose):
            own = np.flatnonzero(whose == number)
            out[own], drawn = Member(self.members_[number]).sample(jax.random.fold_in(key, int(number)), len(own))
            how.append(drawn)
        rows, unsure = self.cells_.apply(out, np.float64), [one for one in how if not one.is_exact]
        return DrawnRows(rows, Sampling("; ".join(one.method for one in how), unsure[0].mixing)) if unsure else rows

    def _condition(self, rows, key):
        encoded, weights = self.cells_.invert(rows), np.array(self.weights_)
        used = [Member(member) for member, weight in zip(self.members_, weights, strict=True) if weight > 0]
        logs = np.stack([member.evidence(encoded).values for member in used], axis=1)
        shares = softmax(logs + np.log(weights[weights > 0]), axis=1)
        found = [member.condition(encoded) for member in used]
        each = [_statistics(one, self.cells_) for one in found]
        mean = np.einsum("nk,knd->nd", shares, np.stack([own[0] for own in each]))
        error = np.sqrt(np.einsum("nk,knd->nd", shares**2, np.stack([own[1] for own in each]) ** 2))
        method = "mixture of " + "; ".join(dict.fromkeys(one.method for one in found))
        draw = lambda key, n: self._draws(found, shares, key, n)  # noqa: E731
        return ConditionalParts(mean, draw, method, error if error.any() else None, _mixing(found, shares))

    def _draws(self, found: Sequence[Conditional], shares: np.ndarray, key: jax.Array, n: int) -> np.ndarray:
        """(n, n_rows, d) draws, each by one of the members."""
        rng = generator(jax.random.fold_in(key, len(found)))
        chosen = (rng.random((n, len(shares), 1)) > np.cumsum(shares, axis=1)[None, :, :-1]).sum(axis=2)
        out = np.empty((n, len(shares), self.schema_.n_columns))
        for number, conditional in enumerate(found):
            if (chosen == number).any():
                draws = conditional.encoded_draws(jax.random.fold_in(key, number), n)
                out[chosen == number] = draws[chosen == number]
        return self.cells_.apply(out.reshape(-1, out.shape[-1]), np.float64).reshape(out.shape)

    # ------------------------------------------------------------------ files
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, described = self.cells_.to_file()[0], []
        for number, member in enumerate(self.members_):
            own, meta = to_file(member)
            arrays |= {f"members.{number}.{name}": array for name, array in own.items()}
            described.append(meta)
        names = getattr(self, "feature_names_in_", None)
        return arrays, describe_estimator(self, self._apart) | {
            "schema": self.schema_.to_json(),
            "feature_names": None if names is None else [str(name) for name in names],
            "members": described,
        }

    def _restored_params(self, arrays: Arrays, meta: dict[str, Any]) -> StackParams:
        self.members_ = [
            from_file(under(f"members.{number}.", arrays), own) for number, own in enumerate(meta["members"])
        ]
        return StackParams(jnp.asarray(self.weights_), tuple(member.params_ for member in self.members_))


def _is_fitted(model: Any) -> bool:
    return isinstance(model, Model) and hasattr(model, "params_")


def _plain_cells(schema: Schema, offset: np.ndarray) -> Cells:
    """Every column as one cell in its own units: what members say of one is then a mean and a mean square."""
    numbers = {"grid": "real", "datetime": "real", "ordinal": "categorical"}
    kinds = tuple(numbers.get(kind, kind) for kind in schema.kinds)
    columns = Columns(kinds, tuple(column.n_categories for column in schema.columns))
    return Cells.plain(columns, Scaling(np.asarray(offset, np.float64), np.ones(schema.n_columns)))


def _statistics(conditional: Conditional, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Mean statistics (n, D) of plain cells as a member has them, and their errors."""
    columns = cells.columns
    mean, deviation = conditional.expected() - cells.scaling.offset, conditional.std()
    mean_error, deviation_error = conditional.stderr(), conditional.stderr("std")
    n = len(mean)
    out, error = np.zeros((n, columns.n_statistics)), np.zeros((n, columns.n_statistics))
    for block in columns.blocks:
        for number, place in enumerate(block.places):
            own = block.start + number + len(block.places) * np.arange(block.n_statistics)
            x, se = mean[:, place], mean_error[:, place]
            if block.kind == "categorical":
                table = conditional.probabilities(place)
                out[:, own[: table.shape[1]]], error[:, own] = table, se[:, None]
            elif block.kind == "real":
                out[:, own] = np.stack([x, x**2 + deviation[:, place] ** 2], axis=1)
                of_square = 2 * np.abs(x) * se + 2 * deviation[:, place] * deviation_error[:, place]
                error[:, own] = np.stack([se, of_square], axis=1)
            else:
                out[:, own[0]], error[:, own[0]] = x, se
    return out, error


def _mixing(found: Sequence[Conditional], shares: np.ndarray) -> Mixing | None:
    """What weighed draws of members are worth, in the rows where they matter."""
    sampled = [(one.mixing, shares[:, k]) for k, one in enumerate(found) if one.mixing is not None]
    if not sampled:
        return None
    effective = np.min([np.where(s > _MATTERS, m.n_effective, np.inf) for m, s in sampled], axis=0)
    unsure = np.any([m.unsure & (s > _MATTERS) for m, s in sampled], axis=0)
    return Mixing(None, np.full(len(shares), np.nan), effective, unsure | (effective < FEWEST_EFFECTIVE))
