"""What answers of circuits are checked against: sums over all rows of a small table, in float64."""

from __future__ import annotations

from itertools import product

import numpy as np

import likely
from likely.columns import Columns
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.hidden_tree import Start, first_parameters, mixture_plan, tree_blocks
from likely.models.graphs.circuit.learning import Learner, Prior
from likely.models.graphs.circuit.passes import Passes

SIZES = (2, 3, 2, 4)
COLUMNS = Columns(("binary", "categorical", "binary", "categorical"), (1, 3, 1, 4))
MIXED = Columns(("binary", "count", "real", "categorical"), (1, 1, 1, 3))
SCHEMA = likely.Schema(
    tuple(
        likely.Column(f"x{i}", "binary") if size == 2 else likely.Column(f"x{i}", "categorical", tuple(range(size)))
        for i, size in enumerate(SIZES)
    )
)
ALL_ROWS = np.array(list(product(*map(range, SIZES))), np.float64)


def some_rows(seed: int, n: int = 150, holes: float = 0.3) -> np.ndarray:
    """Rows whose cells depend on each other, with holes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    rows = np.stack([(group * (size - 1) + (rng.random(n) < 0.3)) % size for size in SIZES], axis=1).astype(float)
    return np.where(rng.random(rows.shape) < holes, np.nan, rows)


def mixed_rows(seed: int, n: int = 150, holes: float = 0.3) -> np.ndarray:
    """Rows of all kinds of cells, with holes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    columns = [group, rng.poisson(1 + 3 * group), rng.normal(2 * group), (group + rng.integers(0, 2, n)) % 3]
    rows = np.stack(columns, axis=1).astype(float)
    return np.where(rng.random(rows.shape) < holes, np.nan, rows)


def learner(rows: np.ndarray, columns: Columns, seed: int, pseudo_count: float = 0.1) -> Learner:
    """Two hidden trees of different shapes and numbers of states, as a mixture, before the first step."""
    rng = np.random.default_rng(seed)
    chain, star = [(2, 0), (0, 1), (1, 3)], [(0, 1), (0, 2), (0, 3)]
    plan = mixture_plan([tree_blocks(chain, 4, 3), tree_blocks(star, 4, 2)], columns)
    priors = leaves.prior_statistics(rows, columns)
    first = first_parameters(plan, rows, priors, Start(), rng)
    return Learner(Prior.of(plan, priors, pseudo_count, 1e-4), *first, n_rows=len(rows))


def check_sums(passes: Passes) -> None:
    """Probabilities of all rows sum to one, and those of rows with holes are sums of theirs."""
    p = np.exp(passes.log_prob(ALL_ROWS))
    assert abs(p.sum() - 1) < 1e-12
    rows = some_rows(5, 40)
    fits = ((rows[:, None] == ALL_ROWS) | np.isnan(rows)[:, None]).all(axis=2)
    np.testing.assert_allclose(passes.log_prob(rows), np.log(fits @ p), rtol=0, atol=1e-12)


def check_counts(model: Learner, rows: np.ndarray) -> None:
    """Expected counts of all terms are the gradient of log p by the logarithm of the weights, by differences."""
    passes = model.passes(np.float64)
    counts, sums = np.zeros_like(model.counts), np.zeros_like(model.sums)
    up = passes.upward(leaves.CellRows.of(rows, model.plan.columns))
    passes.counts(up, counts, sums)
    step = 1e-5
    for place in np.random.default_rng(0).choice(len(counts), 12, replace=False):
        ends = []
        for sign in (1, -1):
            moved = model.weights.copy()
            moved[place] *= np.exp(sign * step)
            ends.append(Passes(model.plan, moved, model.statistics).log_prob(rows).sum())
        # The error of a central difference is step² times a third derivative, at most some hundreds here.
        assert abs((ends[0] - ends[1]) / (2 * step) - counts[place]) < 1e-6


def check_rising(model: Learner, rows: np.ndarray, n_steps: int = 8) -> None:
    """No step by all rows lowers the likelihood with its prior, but for what single precision rounds."""
    cells = leaves.CellRows.of(rows, model.plan.columns)
    objective = [model.objective(cells)]
    for _ in range(n_steps):
        model.batch(cells, 1.0)
        objective.append(model.objective(cells))
    assert np.diff(objective).min() > -1e-6
    assert objective[-1] > objective[0] + 0.1
