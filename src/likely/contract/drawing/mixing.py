"""How far a sampled answer can be relied on: error, chains, whether they have met, and what its draws are worth.

R-hat compares how far chains lie apart with how far each moves (Gelman and Rubin, 1992; each chain cut in two, so that
one that still drifts is seen). It can be near 1 though a mode was never found; far above it the chains are known to
disagree. An importance sample has no chains: its weights say how many draws it is worth.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.contract.effort import EvidenceWarning, round_up

# Beyond it chains have not met. R-hat² - 1 is about the time in which a chain forgets over the length of a half. At 1.2
# a half holds two or three independent draws, and chains that settle for as long as both halves have forgotten all but
# e^-9 of their starts; at 1.5 it would be e^-3. The usual 1.01 asks for an error far below the one that is stated.
MAX_R_HAT = 1.2
# A Monte Carlo error below this, a hundredth of a probability or of a standard deviation, harms nobody, whatever R-hat.
SMALL_ERROR = 0.01
# Effective draws below which the error of a weighted average is not to be trusted: a few weights decide both.
FEWEST_EFFECTIVE = 10
_MOST_RAISED = 100  # times the effort, at most, that a warning asks for: an R-hat of many says no more than "far more"


@dataclass(frozen=True, eq=False)
class Mixing:
    """What is known of the sampling behind each row of an answer.

    Parameters
    ----------
    n_chains : chains behind a row; None where the draws are weighed, not chained.
    r_hat : (n_rows,) the largest of a row's unobserved cells; 1 where it is exact, NaN where there are no chains.
    n_effective : (n_rows,) how many independent draws the worst cell is worth; inf where it is exact.
    unsure : (n_rows,) rows that should not be relied on.
    """

    n_chains: int | None
    r_hat: np.ndarray
    n_effective: np.ndarray
    unsure: np.ndarray

    @classmethod
    def of_chains(cls, n_chains: int, r_hat: Any, n_effective: Any, stderr: Any, unobserved: np.ndarray) -> Mixing:
        """From figures of every statistic (n, D), of which only the unobserved ones count."""
        r_hat, n_effective = np.where(unobserved, r_hat, 1.0), np.where(unobserved, n_effective, np.inf)
        apart = (r_hat > MAX_R_HAT) & (np.asarray(stderr) > SMALL_ERROR)
        return cls(n_chains, r_hat.max(axis=1), n_effective.min(axis=1), apart.any(axis=1))

    @classmethod
    def of_weights(cls, log_weights: Any, holed: np.ndarray) -> Mixing:
        """From log weights (n, S) of the draws behind rows, of which only those with unobserved cells count."""
        logs = np.asarray(log_weights, np.float64)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        effective = np.where(holed, weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1), np.inf)
        return cls(None, np.full(len(logs), np.nan), effective, effective < FEWEST_EFFECTIVE)

    @property
    def is_sure(self) -> bool:
        """Whether every row can be relied on, as far as is known."""
        return not self.unsure.any()

    @property
    def shortfall(self) -> float:
        """How many times the work it would take to be sure, roughly: R-hat² - 1 falls as 1 / length of a chain."""
        if self.n_chains is None:
            wanted = FEWEST_EFFECTIVE / float(self.n_effective.min(initial=np.inf))
        else:
            wanted = (float(self.r_hat.max(initial=1.0)) ** 2 - 1) / (MAX_R_HAT**2 - 1)
        return min(max(2.0, wanted if math.isfinite(wanted) else math.inf), _MOST_RAISED)

    def __str__(self) -> str:
        worth = f"at least {_rounded(self.n_effective.min(initial=np.inf))} effective draws"
        if self.n_chains is None:
            return worth
        return f"R-hat at most {self.r_hat.max(initial=1.0):.2f}, {worth}"


@dataclass(frozen=True, eq=False)
class Sampling:
    """How a model's last sample was drawn.

    Parameters
    ----------
    method : for people: "exact", "chains of their own, 200 sweeps from the training chains".
    mixing : of chains of the same kind that were watched beside it; None where the draws are exact.
    n_sweeps : of each chain, where there are chains.
    """

    method: str = "exact"
    mixing: Mixing | None = None
    n_sweeps: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether rows are draws of the model itself, and not of chains on their way to it."""
        return self.mixing is None

    @property
    def n_chains(self) -> int | None:
        """Chains that were watched."""
        return None if self.mixing is None else self.mixing.n_chains

    @property
    def r_hat(self) -> float:
        """The largest of all columns; 1 where the draws are exact."""
        return 1.0 if self.mixing is None else float(self.mixing.r_hat.max())

    def __str__(self) -> str:
        if self.mixing is None:
            return self.method
        watched = "" if self.n_chains is None else f"{self.n_chains} watched: "
        return f"{self.method}; {watched}{self.mixing}"


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows (n, d) with how they were drawn, from models that do not draw exactly."""

    rows: Any
    how: Sampling


def warn_if_unsure(
    model: Any,
    what: str,
    mixing: Mixing | None,
    name: str | None,
    effort: int | None,
    call: str,
    stacklevel: int = 3,
) -> None:
    """Warn where a sampled answer should not be relied on, saying what to raise, and about how far.

    Parameters
    ----------
    what : of the model: "conditional", "sample".
    name, effort : its hyper-parameter that says how much work goes into that, and how much did.
    call : what was called, with {} for a budget.
    """
    if mixing is None or mixing.is_sure or name is None or effort is None:
        return
    enough = round_up(effort * mixing.shortfall)
    where = f" in {int(mixing.unsure.sum())} of {len(mixing.unsure)} rows" if len(mixing.unsure) > 1 else ""
    if mixing.n_chains is None:
        known = f"rests on a few weighed draws{where} (as few as {_rounded(mixing.n_effective.min())})"
    else:
        known = f"comes from chains that have not met{where} (R-hat up to {mixing.r_hat.max():.2f})"
    warnings.warn(
        f"{type(model).__name__}'s {what} {known} and should not be relied on: raise `{name}` from {effort} to about "
        f"{enough}, or give {call.format(enough)}.",
        EvidenceWarning,
        stacklevel=stacklevel,
    )


def _rounded(number: float) -> str:
    return "inf" if math.isinf(number) else f"{number:.3g}" if number < 1000 else f"{number:.0f}"
