"""EM for circuits: in batches, then over all rows (Cappé and Moulines, 2009).

The expected counts of a batch take the place of a share of those that are remembered, a share that falls as learning
goes on; the parameters are always those that fit the remembered counts best. A pass over all rows is a step of EM
proper, which never lowers the likelihood with its prior. Cost of an epoch: three matrix products, rows × K × K, a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import xlogy

from likely import distributed
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.leaves import CellRows, RowsAsTaken
from likely.models.graphs.circuit.passes import Passes
from likely.models.graphs.circuit.plan import Plan

FIRST_SHARE, LAST_SHARE = 0.3, 0.02  # of a batch's counts in those that are remembered
_SLOWER = 0.4  # what is left of the share after an epoch that validation rows lost by


@dataclass(frozen=True, eq=False)
class Prior:
    """Pseudo-rows: of each term of a sum equally many, of each leaf's state of the column's own distribution."""

    plan: Plan
    pseudo_count: float
    statistics: np.ndarray  # mean statistics of the columns, in the place of every leaf's
    min_variance: float = 1e-4

    @classmethod
    def of(cls, plan: Plan, priors: list[np.ndarray], pseudo_count: float, min_variance: float) -> Prior:
        return cls(plan, pseudo_count, leaves.spread_prior(plan, priors), min_variance)

    def parameters(self, counts: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and mean statistics that fit counts and sums of statistics best, with the prior's rows added."""
        plan = self.plan
        slots = plan.weight_slots.values()
        lengths = np.repeat([length for _, _, length in slots], [rows for _, rows, _ in slots])
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        added = counts + np.repeat((self.pseudo_count + 1e-12) / lengths, lengths)
        weights = added / np.repeat(np.add.reduceat(added, starts), lengths)
        statistics = sums + (self.pseudo_count + 1e-12) * self.statistics
        for place in plan.leaf_slots:
            table = plan.table(statistics, place)
            kind = plan.columns.kinds[plan.blocks[place].cell]  # type: ignore[union-attr]
            table[:] = leaves.normalised(table, kind, self.min_variance)
        return weights, statistics

    def log_density(self, passes: Passes) -> float:
        """Log prior of the parameters, up to a constant: the pseudo-rows' log-likelihood."""
        plan, total = self.plan, 0.0
        for place in plan.weight_slots:
            matrix = plan.matrix(passes.weights, place)
            total += xlogy(1 / matrix.shape[1], matrix).sum()
        for place in plan.leaf_slots:
            own, prior = plan.table(passes.statistics, place), plan.table(self.statistics, place)
            kind = plan.columns.kinds[plan.blocks[place].cell]  # type: ignore[union-attr]
            total += leaves.expected_log_density(prior, own, kind).sum()
        return self.pseudo_count * float(total)


@dataclass(eq=False)
class Learner:
    """EM of one circuit: the parameters, and the counts that are remembered, a row's worth."""

    prior: Prior
    weights: np.ndarray
    statistics: np.ndarray
    n_rows: int
    counts: np.ndarray = field(init=False)
    sums: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        # As if each state had had an equal share of the rows.
        plan = self.prior.plan
        self.counts, self.sums = np.empty_like(self.weights), np.empty_like(self.statistics)
        for place in plan.weight_slots:
            matrix = plan.matrix(self.weights, place)
            plan.matrix(self.counts, place)[:] = matrix / len(matrix)
        for place in plan.leaf_slots:
            table = plan.table(self.statistics, place)
            plan.table(self.sums, place)[:] = table / table.shape[1]

    @property
    def plan(self) -> Plan:
        return self.prior.plan

    def passes(self, dtype: type = np.float32) -> Passes:
        """The circuit as it is now."""
        return Passes(self.plan, self.weights, self.statistics, dtype)

    def batch(self, rows: CellRows | RowsAsTaken, share: float) -> float:
        """A step by some rows; the mean log p before it."""
        passes, parts = self.passes(), []
        for first, end in distributed.shares(len(rows)):
            counts, sums, total = np.zeros_like(self.counts), np.zeros_like(self.sums), 0.0
            for start in range(first, end, passes.n_rows):
                up = passes.upward(rows.take(slice(start, min(end, start + passes.n_rows))))
                passes.counts(up, counts, sums)
                total += float(up.log_prob.sum())
            parts.append((counts, sums, np.array(total)))
        counts, sums, total = distributed.summed(parts)
        self.counts += share * (counts / len(rows) - self.counts)
        self.sums += share * (sums / len(rows) - self.sums)
        self.weights, self.statistics = self.prior.parameters(self.n_rows * self.counts, self.n_rows * self.sums)
        return float(total) / len(rows)

    def objective(self, rows: CellRows | RowsAsTaken) -> float:
        """Mean log p of the rows with the prior's part: what a step by all rows never lowers."""
        passes = self.passes(np.float64)
        return float(np.mean(log_prob(passes, rows))) + self.prior.log_density(passes) / len(rows)

    def frozen(self) -> Learner:
        """A copy that later steps leave as it is."""
        copied = replace(self)
        copied.weights, copied.statistics = self.weights, self.statistics
        copied.counts, copied.sums = self.counts.copy(), self.sums.copy()
        return copied


def log_prob(passes: Passes, rows: CellRows | RowsAsTaken, *, shared: bool = False) -> np.ndarray:
    """(n,) log p of rows by cell; `shared` out over all processes, each of which must ask for the same rows then."""
    size, parts = passes.n_rows, []
    for first, end in distributed.shares(len(rows)) if shared else [(0, len(rows))]:
        found = [passes.upward(rows.take(slice(s, min(end, s + size)))).log_prob for s in range(first, end, size)]
        parts.append(np.concatenate(found) if found else np.zeros(0))
    return distributed.joined(parts) if shared else parts[0]


@dataclass(frozen=True)
class Schedule:
    """How long EM goes on."""

    n_epochs: int
    batch_size: int
    patience: int | None = None  # epochs without a better one by validation after which it ends
    n_full: int = 2  # steps by all rows at the end, as far as they help


def learn(
    learner: Learner,
    rows: CellRows | RowsAsTaken,
    valid: CellRows | RowsAsTaken | None,
    schedule: Schedule,
    rng: np.random.Generator,
    told: Callable[[int, float, float | None], None] = lambda *_: None,
) -> tuple[Learner, float | None]:
    """The learner after its epochs, the best by validation rows where there are any, with its mean log p of those.

    Parameters
    ----------
    told : called after each epoch with its number, the mean log p of the rows and that of validation rows.
    """
    n = len(rows)
    n_batches = max(1, n // schedule.batch_size)
    n_steps = max(1, schedule.n_epochs * n_batches - 1)
    best, best_score, waited, slowed = learner, -np.inf, 0, 1.0
    for epoch in range(schedule.n_epochs + schedule.n_full):
        is_full = epoch >= schedule.n_epochs
        if is_full:
            mean = learner.batch(rows, 1.0)
        else:
            means = []
            for number, index in enumerate(np.array_split(rng.permutation(n), n_batches)):
                share = FIRST_SHARE * (LAST_SHARE / FIRST_SHARE) ** ((epoch * n_batches + number) / n_steps)
                share = max(slowed * share, LAST_SHARE / 2)
                means.append(learner.batch(rows.take(index), 1.0 if n_batches == 1 else share))
            mean = float(np.mean(means))
        score = None if valid is None else float(np.mean(log_prob(learner.passes(), valid, shared=True)))
        told(epoch, mean, score)
        if score is None or score > best_score:
            best, best_score, waited = learner.frozen(), -np.inf if score is None else score, 0
            continue
        waited += 1
        if is_full or (schedule.patience is not None and waited >= schedule.patience):
            break
        # A batch that weighs much is learned by heart: back to the best, and on with smaller shares.
        learner, slowed = best.frozen(), slowed * _SLOWER
    return best, None if valid is None else best_score
