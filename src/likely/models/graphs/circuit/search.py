"""How large a hidden tree is: settings that validation rows speak for, tried from small to large.

Pseudo-counts are compared on small trees, then the number of states is doubled for as long as validation rows gain by
it. Trials see some of the rows where there are many, and half of the epochs: what is compared is trees with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from likely.columns import Columns
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.hidden_tree import Start, first_parameters, mixture_plan, tree_blocks, tree_of
from likely.models.graphs.circuit.learning import Learner, Prior, Schedule, learn

FIRST_STATES, MOST_STATES = 16, 128
PSEUDO_COUNTS = (0.03, 0.3, 2.0)
STARTS = (Start(), Start(copying=0.5, leaning=0.3))
_TRIAL_ROWS = 20_000  # that a trial of settings learns from
_RISE = 0.003  # nats a row, less of which is no reason for a larger tree


@dataclass(frozen=True)
class Settings:
    """Of one hidden tree."""

    n_states: int
    pseudo_count: float
    start: Start
    min_variance: float


@dataclass(eq=False)
class Growing:
    """Rows to learn trees from."""

    rows: np.ndarray
    valid: np.ndarray | None
    columns: Columns
    schedule: Schedule
    told: Callable[[int, float, float | None], None]

    def __post_init__(self) -> None:
        self.cells = leaves.cell_rows(self.rows, self.columns)
        self.valid_cells = None if self.valid is None else leaves.cell_rows(self.valid, self.columns)
        self.priors = leaves.prior_statistics(self.rows, self.columns)

    def tree(
        self, settings: Settings, rng: np.random.Generator, *, resampled: bool = False
    ) -> tuple[Learner, float | None]:
        """A tree that was learned, and its mean log p of validation rows."""
        edges = tree_of(self.rows, self.columns, rng if resampled else None)
        blocks = tree_blocks(edges, self.columns.n_columns, settings.n_states)
        plan = mixture_plan([blocks], self.columns)
        first = first_parameters(plan, self.rows, self.priors, settings.start, rng)
        prior = Prior.of(plan, self.priors, settings.pseudo_count, settings.min_variance)
        learner = Learner(prior, *first, n_rows=len(self.rows))
        return learn(learner, self.cells, self.valid_cells, self.schedule, rng, self.told)

    def trial(self, settings: Settings, rng: np.random.Generator) -> float:
        """What validation rows make of settings, by a shorter learning from at most so many rows."""
        n = len(self.rows)
        few = self if n <= _TRIAL_ROWS else replace(self, rows=self.rows[rng.choice(n, _TRIAL_ROWS, replace=False)])
        schedule = replace(self.schedule, n_epochs=max(3, self.schedule.n_epochs // 2), n_full=0)
        _, score = replace(few, schedule=schedule).tree(settings, rng)
        return -np.inf if score is None else score


def chosen_settings(
    growing: Growing, given: Settings, n_states: int | None, pseudo_count: float | None, seed: int
) -> tuple[Settings, list[dict[str, float]]]:
    """Settings by validation, where they are not given; and all trials."""
    trials: list[dict[str, float]] = []

    def score(settings: Settings) -> float:
        found = growing.trial(settings, np.random.default_rng(seed))
        trials.append(
            {
                "n_states": settings.n_states,
                "pseudo_count": settings.pseudo_count,
                "copying": settings.start.copying,
                "valid": found,
            }
        )
        return found

    best = replace(given, n_states=n_states or min(FIRST_STATES, given.n_states))
    options = [best] if pseudo_count is not None else [replace(best, pseudo_count=p) for p in PSEUDO_COUNTS]
    scores = [score(option) for option in options]
    best, top = options[int(np.argmax(scores))], max(scores)
    for start in STARTS[1:]:
        other = replace(best, start=start)
        if (found := score(other)) > top:
            best, top = other, found
    while n_states is None and best.n_states < given.n_states:
        larger = replace(best, n_states=min(2 * best.n_states, given.n_states))
        found = score(larger)
        if found < top + _RISE:
            break
        best, top = larger, found
    return best, trials
