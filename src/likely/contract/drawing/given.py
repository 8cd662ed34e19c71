"""Rows drawn given an event: exact values by the model's conditional, ranges by drawing until enough rows lie in them.

Rejection is exact: rows that are kept are draws of the model given the event. Its cost is one over the event's
probability, which the error says where that is too much. Where the conditional is itself found by sampling, weighed
draws or chains, and the model's own rows are exact, exact values are waited for as well, unless they are too rare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from likely.contract.drawing.event import Event
from likely.contract.drawing.mixing import DrawnRows, Sampling, warn_if_unsure
from likely.contract.effort import within
from likely.runtime import float_dtype, generator

_MOST_DRAWS = 1 << 20  # of exact draws, before an event is called too rare; a few seconds of most models
_MOST_CHAINS = 1 << 15  # the same of draws by chains, which cost hundreds of sweeps each
_FEWEST, _LARGEST = 1 << 8, 1 << 16  # rows of a round
_TRIAL = 1 << 14  # exact draws by which it is told whether exact values are common enough to be waited for

Draw = Callable[[jax.Array, int], np.ndarray]  # encoded rows (m, d)


def draw_given(model: Any, key: jax.Array, n: int, event: Event, budget: float | None) -> tuple[np.ndarray, Sampling]:
    """(n, d) encoded rows of a model given an event, and how they were drawn."""
    if event.exact and not hasattr(type(model), "_condition"):
        event = event.without_exact(model.schema_, type(model).__name__)
    source, event = _source(model, key, n, event, budget)
    if not event.allowed:
        return source.draw(jax.random.fold_in(key, 0), n), source.how
    rows, n_drawn = _until_enough(source, key, n, event)
    how = replace(source.how, method=f"{source.how.method}; {n:,} kept of {n_drawn:,} drawn, those with {event.words}")
    return rows, how


def _source(
    model: Any, key: jax.Array, n: int, event: Event, budget: float | None
) -> tuple[_Conditional | _Free, Event]:
    """What draws rows, and the tests that they must pass."""
    free = _Free(model, key, budget)
    if not event.exact:
        return free, event
    conditional = _Conditional(model, event, key, budget)
    tests = None if conditional.parts.stderr is None else event.as_tests(model.schema_)
    if tests is not None and _is_common(free, key, n, tests):
        return free, tests
    conditional.warn()
    return conditional, event


class _Free:
    """Rows of the model as it is."""

    def __init__(self, model: Any, key: jax.Array, budget: float | None):
        self.model, self.budget, self.how = model, budget, Sampling()
        self.warned = False

    def draw(self, key: jax.Array, n: int) -> np.ndarray:
        model, name = self.model, self.model._sampling_effort
        is_exact = lambda rows: not isinstance(rows, DrawnRows)  # noqa: E731
        drawn, effort = within(model, name, lambda own: own._sample(key, n), is_exact, self.budget)
        rows, self.how = (drawn.rows, drawn.how) if isinstance(drawn, DrawnRows) else (drawn, Sampling())
        if not self.warned:
            warn_if_unsure(model, "sample", self.how.mixing, name, effort, "sample(n, budget={})", stacklevel=6)
            self.warned = True
        return model.cells_.invert(np.asarray(rows), generator(jax.random.fold_in(key, 1)))


class _Conditional:
    """Rows of the model given exact values."""

    def __init__(self, model: Any, event: Event, key: jax.Array, budget: float | None):
        self.model, self.event, name = model, event, model._conditional_effort
        self.encoded = np.full((1, model.schema_.n_columns), np.nan)
        self.encoded[0, list(event.exact)] = list(event.exact.values())
        self.key = jax.random.fold_in(key, 2**31 - 1)
        run = lambda own: own._condition(self._rows(1), self.key)  # noqa: E731
        self.parts, self.effort = within(model, name, run, lambda found: found.stderr is None, budget)
        self.how = Sampling(self.parts.method, self.parts.mixing)

    def warn(self) -> None:
        """Warn where the conditional should not be relied on."""
        name = self.model._conditional_effort
        warn_if_unsure(
            self.model, "conditional", self.how.mixing, name, self.effort, "sample(n, budget={})", stacklevel=6
        )

    def draw(self, key: jax.Array, n: int) -> np.ndarray:
        if self.parts.stderr is None and n > 1:
            # Many rows at once are faster than many draws of one, where nothing has to be found by sampling first.
            cells = np.asarray(self.model._condition(self._rows(n), self.key).sample(key, 1))[0]
        else:
            cells = np.asarray(self.parts.sample(key, n))[:, 0]
        out = self.model.cells_.invert(cells, generator(jax.random.fold_in(key, 1)))
        return np.where(np.isnan(self.encoded), out, self.encoded)

    def _rows(self, n: int) -> np.ndarray:
        rows = self.model.cells_.apply(self.encoded, float_dtype())
        return np.broadcast_to(rows, (n, rows.shape[1])).copy()


def _is_common(free: _Free, key: jax.Array, n: int, event: Event) -> bool:
    """Whether the model's own rows are exact, and n of them meet an event before it would be called too rare."""
    if free.model._sampling_effort is not None:  # Its rows come from chains.
        return False
    n_met = int(event.holds(free.draw(jax.random.fold_in(key, 2**31 - 2), _TRIAL)).sum())
    # A share three standard errors below what was seen still gives n rows in half of the draws that there may be.
    return n * _TRIAL <= (n_met - 3 * n_met**0.5) * _MOST_DRAWS / 2


def _until_enough(source: Any, key: jax.Array, n: int, event: Event) -> tuple[np.ndarray, int]:
    """Rows that pass the event's tests, and how many were drawn to get them."""
    kept: list[np.ndarray] = []
    n_kept = n_drawn = 0
    size = _round_size(n)
    draw_key = partial(jax.random.fold_in, key)
    number = 0
    while n_kept < n:
        most = _MOST_DRAWS if source.how.is_exact else _MOST_CHAINS
        # After the first round the rest of the work is known about; a hopeless one is not begun.
        expected = n_drawn + (n - n_kept) * (n_drawn + 1) / (n_kept + 1)
        if n_drawn >= most or (n_drawn >= most // 16 and expected > 4 * most):
            raise _too_rare(event, n, n_kept, n_drawn)
        drawn = source.draw(draw_key(number), size)
        fit = drawn[event.holds(drawn)]
        kept.append(fit)
        n_kept, n_drawn, number = n_kept + len(fit), n_drawn + size, number + 1
        if number == 1:  # One more size, and so one more compiled program, for all rounds that follow.
            share = (n_kept + 1) / (n_drawn + 1)
            size = _round_size(1.2 * (n - n_kept) / share)
    return np.concatenate(kept)[:n], n_drawn


def _round_size(n: float) -> int:
    """A power of two, so that few shapes are compiled."""
    return int(np.clip(1 << int(np.ceil(np.log2(max(n, 1)))), _FEWEST, _LARGEST))


def _too_rare(event: Event, n: int, n_kept: int, n_drawn: int) -> ValueError:
    about = f"about 1 in {n_drawn / n_kept:,.0f}" if n_kept else f"fewer than 1 in {n_drawn / 3:,.0f}"
    return ValueError(
        f"of {n_drawn:,} rows drawn, {n_kept:,} have {event.words} ({about}), and {n:,} are asked for: widen a range, "
        "give an exact value instead of a range, or ask for fewer rows."
    )
