"""Surprise: how odd a row is under a model, calibrated against the model's own draws, and which cells make it odd.

The log p of a row says little by itself: it depends on units, and a row with holes has fewer factors. Here a row's is
compared with that of draws *with the same cells observed*. Draws are made once and masked for each pattern of holes;
their evidence is computed in blocks of one shape, so that thousands of patterns compile no more than two programs.

Cost: an evidence of `n_draws` rows a pattern, of at most 2^18 in all. Beyond, the commonest patterns have all draws,
and each of the others 32, which give the location and the scale of its evidence; the shape is that of the commonest
pattern most like it. `n_draws` of the result says how many are behind each row.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.effort import check_budget, warn_if_wide
from likely.contract.notebook import columns_of
from likely.contract.surprise.results import FEW, CellSurprise, Surprise
from likely.contract.surprise.tail import Tail, tail_of

N_DRAWS = 1000  # a tail probability of 5% is then known to 0.7%
_MOST_MASKED = 1 << 18  # masked draws of a call, beyond which rare patterns share their shape
_MOST_CELLS = 1 << 24  # of masked draws that are in memory at a time: 128 MB


def surprise_of(model: Any, X: Any, n_draws: int, random_state: Any, budget: float | None) -> Surprise:
    """What `Model.surprise` returns."""
    if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 2:
        raise ValueError(f"`n_draws` must be a whole number of at least 2, got {n_draws!r}: {N_DRAWS} is the default.")
    check_budget(budget)
    check_is_fitted(model)
    encoded = model._read(X)
    evidence, effort = model._evidence_of(encoded, budget)
    warn_if_wide(model, evidence, effort)
    if evidence.kind == "unavailable":
        raise ValueError(f"{type(model).__name__} cannot say how odd a row is: {evidence.reason}")
    source = Source(model, encoded, _draws(model, int(n_draws), random_state), effort)
    patterns, pattern_of = _patterns(~np.isnan(encoded))
    calibration = Calibration.of(source, patterns, np.bincount(pattern_of, minlength=len(patterns)))
    if model.cells_.is_rounded:  # as the draws are: by the first of several bounds, which has the error of one
        n_bounds = evidence.replicates.shape[1]
        tail = calibration.tails(evidence.replicates[:, 0], evidence.stderr * np.sqrt(n_bounds), pattern_of)
    else:
        tail = calibration.tails(evidence.values, evidence.stderr, pattern_of)
    return Surprise(
        evidence, tail.probability, tail.stderr, tail.surprise, calibration.worth[pattern_of], source.explain
    )


@dataclass(frozen=True)
class Source:
    """What a surprise was asked of: the model, the rows as encoded, its draws, and the effort of an evidence."""

    model: Any
    encoded: np.ndarray  # (n_rows, d)
    draws: np.ndarray  # (n_draws, d)
    effort: int | None

    def log_p(self, encoded: np.ndarray) -> np.ndarray:
        """Log p of encoded rows, in the user's measure, by the same effort whatever their number."""
        return self.model._log_p_to_compare(encoded, self.effort)

    def masked(self, patterns: np.ndarray, n: int) -> np.ndarray:
        """(n_patterns, n) log p of the first n draws with the cells observed that each pattern has."""
        out = np.empty((len(patterns), n))
        step = max(1, _MOST_CELLS // max(1, n * patterns.shape[1]))
        for start in range(0, len(patterns), step):
            some = patterns[start : start + step]
            rows = np.where(some[:, None, :], self.draws[None, :n], np.nan)
            out[start : start + step] = self.log_p(rows.reshape(-1, rows.shape[-1])).reshape(len(some), n)
        return out

    def explain(self, numbers: np.ndarray) -> CellSurprise:
        """The surprise of each observed cell of some rows given the rest of its row."""
        encoded = self.encoded[numbers]
        m, d = encoded.shape
        observed = ~np.isnan(encoded)
        # One row for each cell that is left out, the whole row last.
        without = np.where(np.eye(d + 1, d, dtype=bool)[None], np.nan, encoded[:, None, :])
        log_p = self.log_p(without.reshape(-1, d)).reshape(m, d + 1)
        given_rest = np.where(observed, log_p[:, -1:] - log_p[:, :-1], np.nan)
        patterns, pattern_of = _patterns(observed)
        n = int(np.clip(_MOST_MASKED // (len(patterns) * (d + 1)), min(100, len(self.draws)), len(self.draws)))
        tail, expected = Tail(*(np.full((m, d), np.nan) for _ in range(3))), np.full((m, d), np.nan)
        for rows in _groups(pattern_of):
            pattern = patterns[pattern_of[rows[0]]]
            masked = self.masked(np.vstack([pattern & ~np.eye(d, dtype=bool)[pattern], pattern]), n)
            for j, of_draws in zip(np.flatnonzero(pattern), masked[-1] - masked[:-1], strict=True):
                tail.put((rows, j), tail_of(given_rest[rows, j], of_draws))
                expected[rows, j] = of_draws.mean()
        schema = self.model.schema_
        cells, names = columns_of(schema.decode(encoded), schema.names), tuple(map(str, schema.names))
        return CellSurprise(numbers, names, cells, given_rest, expected, tail.surprise, tail.probability, tail.stderr)


def _draws(model: Any, n: int, random_state: Any) -> np.ndarray:
    """(n, d) draws of the model, encoded as its rows are; of a stream of their own, not those that `sample` gives."""
    seed = int(jax.random.randint(model._key("surprise", random_state), (), 0, 2**31 - 1))
    drawing = copy.copy(model)  # so that `sampling_` goes on speaking of the user's own samples
    return model.schema_.encode(drawing.sample(n, random_state=seed))


def _patterns(observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of a table of bits, and for each row its place among them."""
    if observed.all():
        return observed[:1], np.zeros(len(observed), np.intp)
    words = np.ascontiguousarray(np.packbits(observed, axis=1))
    _, first, place = np.unique(words.view(f"V{words.shape[1]}")[:, 0], return_index=True, return_inverse=True)
    return observed[first], place


def _groups(labels: np.ndarray) -> list[np.ndarray]:
    """Numbers of the rows that share a label, for each label."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


@dataclass(frozen=True)
class Calibration:
    """Log p of draws with the same cells observed as a pattern has.

    Rare patterns, if there are many, have a few draws of their own: these tell how log p under the pattern goes with
    log p under the one that it is most like, log p ≈ offset + scale × log p', and its draws serve instead.
    """

    reference: np.ndarray  # (·, n_draws) log p of draws under the common patterns
    like: np.ndarray  # (n_patterns,) which of them is a pattern's own, or the one that it is most like
    offset: np.ndarray  # (n_patterns,) 0 for a pattern that has its own
    scale: np.ndarray  # (n_patterns,) and 1
    worth: np.ndarray  # (n_patterns,) how many draws are behind each

    @classmethod
    def of(cls, source: Source, patterns: np.ndarray, counts: np.ndarray) -> Calibration:
        n, n_patterns = len(source.draws), len(patterns)
        n_whole, n_few = n_patterns, min(FEW, n)
        if n_patterns * n > max(_MOST_MASKED, n):
            n_whole = max(1, (_MOST_MASKED - n_few * n_patterns) // n, _MOST_MASKED // (4 * n))
        by_count = np.argsort(-counts, kind="stable")
        whole, rare = by_count[:n_whole], by_count[n_whole:]
        reference = source.masked(patterns[whole], n)
        like, worth = np.empty(n_patterns, np.intp), np.full(n_patterns, n)
        offset, scale = np.zeros(n_patterns), np.ones(n_patterns)
        like[whole], like[rare] = np.arange(len(whole)), _nearest(patterns[rare], patterns[whole])
        if len(rare):
            worth[rare] = n_few
            offset[rare], scale[rare] = _line(source.masked(patterns[rare], n_few), reference, like[rare])
        return cls(reference, like, offset, scale, worth)

    def tails(self, log_p: np.ndarray, stderr: np.ndarray, pattern_of: np.ndarray) -> Tail:
        """The tail of each row among the draws of its pattern."""
        out = Tail(*(np.empty(len(log_p)) for _ in range(3)))
        scale, worth = self.scale[pattern_of], self.worth[pattern_of]
        values, stderr = (log_p - self.offset[pattern_of]) / scale, stderr / scale
        like = self.like[pattern_of]
        for rows in _groups(like):
            out.put(rows, tail_of(values[rows], self.reference[like[rows[0]]], stderr[rows], worth[rows]))
        return out


def _nearest(rare: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """For each rare pattern the place in `whole` of the one from which it differs in the fewest columns."""
    bits, others = rare.astype(np.float32), whole.astype(np.float32)
    return np.argmin(bits.sum(1)[:, None] + others.sum(1)[None] - 2 * bits @ others.T, axis=1)


def _line(few: np.ndarray, reference: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offset and scale by which log p of draws under other patterns becomes that under rare ones, from a few draws.

    Scale is the ratio of deviations. The same draws stand behind both patterns, so that by how much the few are off is
    known from the other one, of which all are there: its mean corrects that of the few, as a control variate's does.
    """
    first = reference[like, : few.shape[1]]
    spread = np.maximum(first.std(axis=1), 1e-12)
    scale = np.maximum(few.std(axis=1) / spread, 1e-12)
    centred = (few - few.mean(axis=1, keepdims=True)) * (first - first.mean(axis=1, keepdims=True))
    slope = centred.mean(axis=1) / spread**2
    whole = reference.mean(axis=1)[like]
    return few.mean(axis=1) + slope * (whole - first.mean(axis=1)) - scale * whole, scale
