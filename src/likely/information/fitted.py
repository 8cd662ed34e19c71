"""Information of fitted models: exact by enumeration where rows are few and discrete, else an average of draws.

Models are asked for draws and for their evidence, which says whether it is exact, a bound or an estimate, and which
refuses another's on another measure; so the figures inherit kind and refusal. A part of the columns is scored by
leaving the others unobserved, which is its marginal. Cost: scoring all rows that there are, or `n_draws`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.information.quantity import Information

MAX_ROWS = 1 << 14
"""How many rows a model may have for all of them to be enumerated."""
# log p of a row is right to about a float32's rounding of it, so the sum of all may miss 1 by little more than that.
_MASS_ROUNDING = 1e-3

Part = Sequence[int] | None


def is_fitted_model(p: Any) -> bool:
    """Whether something has the verbs of a model of rows."""
    return all(hasattr(p, name) for name in ("evidence", "sample", "schema_"))


class FittedModel:
    """A model with the rows that it is asked about: all that there are, with weights, or draws of it.

    Parameters
    ----------
    model : fitted.
    n_draws, random_state : of the draws, where not all rows are taken.

    Attributes
    ----------
    rows : (n, d) encoded, as its schema has them. weights : (n,) probabilities of all rows; None if they are draws.
    method : how rows were come by. is_exact : draws are of the model itself.
    """

    def __init__(self, model: Any, n_draws: int, random_state: int):
        self.model = model
        self.weights: np.ndarray | None = None
        self.is_exact = True
        if not self._enumerated():
            drawn = model.sample(n_draws, random_state=random_state)
            self.rows, how = model.schema_.encode(drawn), model.sampling_
            self.is_exact = how.is_exact
            self.method = f"{n_draws:,} draws" + ("" if how.is_exact else f" of chains ({how.method})")

    def _enumerated(self) -> bool:
        """Take all rows, if they are few and their evidence is exact."""
        rows = every_row(self.model.schema_)
        if rows is None:
            return False
        evidence = evidence_of(self.model, rows, self.model.schema_)
        if evidence.kind != "exact" or abs(np.exp(evidence.values).sum() - 1) > _MASS_ROUNDING:
            return False
        weights = np.exp(evidence.values)
        self.rows, self.weights, self.method = rows, weights / weights.sum(), f"sum over {len(rows):,} rows"
        return True

    def expected(self, *terms: tuple[float, Any, Part]) -> Information:
        """E Σ c log p(part) of (c, a fitted model, the columns of the part); None is all of them.

        Models must be on one measure, which `check_alike` sees to.
        """
        schema = self.model.schema_
        found = [(c, evidence_of(model, _only(self.rows, part), schema)) for c, model, part in terms]
        values, lower, upper = (
            self._mean(sum(c * getattr(evidence, end if c > 0 else other) for c, evidence in found))
            for end, other in (("values", "values"), ("lower", "upper"), ("upper", "lower"))
        )
        kinds = {evidence.kind for _, evidence in found}
        if not self.is_exact and kinds != {"exact"}:
            lower, upper = -math.inf, math.inf  # Of a bound at rows that are no draws of the model nothing follows.
        noise = [abs(c) * self._noise(evidence) for c, evidence in found]
        methods = sorted({evidence.method for _, evidence in found if evidence.kind != "exact"})
        is_sampled = self.weights is None or any(noise)
        spread = 0.0 if self.weights is not None else _stderr(sum(c * evidence.values for c, evidence in found))
        method = ", ".join([self.method, *methods])
        return Information(values, math.hypot(spread, *noise), lower, upper, method, is_sampled)

    def _mean(self, values: Any) -> float:
        """E of values at the rows."""
        return float(np.mean(values)) if self.weights is None else _weighted(self.weights, values)

    def _noise(self, evidence: Any) -> float:
        """Monte Carlo error of the mean that an evidence has of its own, which its rows share."""
        if evidence.replicates is None:
            return 0.0
        weights = np.full(len(self.rows), 1 / len(self.rows)) if self.weights is None else self.weights
        own = weights @ evidence.replicates
        return float(own.std(ddof=1) / math.sqrt(len(own)))


def check_alike(p: Any, q: Any, rows: np.ndarray) -> None:
    """Refuse two models whose evidences cannot be subtracted, with the evidence's own reason, by one row of p's."""
    evidence_of(p, rows[:1], p.schema_) - evidence_of(q, rows[:1], p.schema_)


def model_jensen_shannon(p: Any, q: Any, n_draws: int, random_state: int) -> Information:
    """½ E_p log p/m + ½ E_q log q/m with m = ½(p + q), over all rows or over draws of both."""
    sides, values, kinds = [], [], set()
    for own, other in ((p, q), (q, p)):
        side = FittedModel(own, n_draws, random_state)
        check_alike(own, other, side.rows)
        mine, theirs = (evidence_of(model, side.rows, own.schema_) for model in (own, other))
        # log p/m = log 2 - log(1 + q/p), which is at most log 2 however far apart the two are.
        values.append(math.log(2) - np.logaddexp(0, theirs.values - mine.values))
        sides.append(side)
        kinds |= {mine.kind, theirs.kind}
    if kinds != {"exact"}:
        raise ValueError(
            "the Jensen-Shannon divergence needs models whose evidence is exact: from a bound or an estimate of log p "
            "nothing is known of the mixture's. Ask for `kl`, which is typed."
        )
    if all(side.weights is not None for side in sides):
        parts = [_weighted(side.weights, value) for side, value in zip(sides, values, strict=True)]  # type: ignore[arg-type]
        return Information.exact(max(0.0, sum(parts) / 2), sides[0].method)
    means = [Information.averaged(value, side.method) for value, side in zip(values, sides, strict=True)]
    stderr = 0.5 * math.hypot(*(mean.stderr for mean in means))
    return Information.estimate(sum(mean.value for mean in means) / 2, stderr, f"{sides[0].method} of each")


def pointwise(model: Any, X: Any, a: list[int], b: list[int]) -> np.ndarray:
    """(n,) log p(a, b) / p(a) p(b) of the columns a and b of a user's rows."""
    if X is None:
        raise ValueError("pointwise information of a model is of rows: give `rows`.")
    rows = model.schema_.encode(X)
    both, one, other = (evidence_of(model, _only(rows, part), model.schema_) for part in ([*a, *b], a, b))
    kinds = {evidence.kind for evidence in (both, one, other)}
    if kinds != {"exact"}:
        raise ValueError(
            f"{type(model).__name__}'s evidence of these columns is {', '.join(sorted(kinds))}: pointwise information "
            "needs an exact one; ask for `mutual_information`, which is typed."
        )
    return both.values - one.values - other.values


def evidence_of(model: Any, rows: np.ndarray, schema: Any) -> Any:
    """The evidence of rows that a schema encoded, as if what a model has never seen did not exist.

    A column of words keeps a share of its probability for words that it has never seen, and draws none of them. That
    share is the same for every row, and is divided out, so that the probabilities of all rows have sum 1.
    """
    found = model.evidence(schema.decode(rows))
    if found.kind == "unavailable":
        raise ValueError(f"{type(model).__name__} has no likelihood: {found.reason}")
    kept = np.array([math.log1p(-getattr(codec, "reserve", 0.0) or 0.0) for codec in model.cells_.codecs])
    return found.shifted(np.isnan(rows) @ kept - kept.sum()) if kept.any() else found


def every_row(schema: Any) -> np.ndarray | None:
    """(n, d) all encoded rows of a schema; None where they are more than `MAX_ROWS`, or without end."""
    sizes = []
    for column in schema.columns:
        if column.kind not in ("binary", "categorical", "ordinal"):
            return None
        sizes.append(2 if column.kind == "binary" else column.n_categories)
    if math.prod(sizes) > MAX_ROWS:
        return None
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes)).astype(float)


def places_of(model: Any, columns: Any) -> list[int]:
    """Places of columns that are given by name or by place, one or several."""
    names = list(model.schema_.names)
    given = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    for column in given:
        if column not in names and not (isinstance(column, int | np.integer) and 0 <= column < len(names)):
            raise ValueError(f"there is no column {column!r}; columns: {', '.join(names[:20])}.")
    return [names.index(column) if column in names else int(column) for column in given]


def _only(rows: np.ndarray, part: Part) -> np.ndarray:
    """Rows with all but some columns unobserved."""
    if part is None:
        return rows
    out = np.full_like(rows, np.nan)
    out[:, list(part)] = rows[:, list(part)]
    return out


def _weighted(weights: np.ndarray, values: np.ndarray) -> float:
    """The weighted sum; rows of probability 0 add nothing, whatever another model says of them."""
    some = weights > 0
    return float(np.sum(weights[some] * values[some]))


def _stderr(values: Any) -> float:
    return Information.averaged(np.asarray(values), "").stderr
