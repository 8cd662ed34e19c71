"""A figure of information in nats, with what is known about it: exact, a bound or an estimate, and its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

_SIGNS = {"exact": "=", "lower": "≥", "upper": "≤", "estimate": "≈"}


@dataclass(frozen=True)
class Information:
    """An entropy, a divergence, an information: a number of nats, typed as an evidence is.

    Parameters
    ----------
    value : nats; may be infinite, as a divergence is from what gives probability 0 to something that occurs.
    stderr : standard error of the value, from draws or from rows; 0 where there is none.
    lower, upper : limits of the true value, ±inf where unknown. Those that come from draws hold in expectation.
    method : how it was found, for people; of an estimate from counts or rows, what was done about its bias.
    is_sampled : it rests on draws or rows, so that nothing about it is exact.

    Examples
    --------
    >>> coin = Information.exact(math.log(2), "sum over 2 values")
    >>> print(coin)
    0.693 nats (exact, sum over 2 values)
    >>> coin.bits, coin.perplexity
    (1.0, 2.0)
    """

    value: float
    stderr: float
    lower: float
    upper: float
    method: str
    is_sampled: bool = False

    @classmethod
    def exact(cls, value: float, method: str) -> Information:
        """A value that is right up to rounding."""
        return cls(float(value), 0.0, float(value), float(value), method)

    @classmethod
    def estimate(cls, value: float, stderr: float, method: str) -> Information:
        """A value with a standard error, from draws or rows."""
        return cls(float(value), float(stderr), float(value), float(value), method, is_sampled=True)

    @classmethod
    def averaged(cls, terms: np.ndarray, method: str) -> Information:
        """The mean of independent terms (n,), with its standard error; infinite where a term is."""
        mean = float(np.mean(terms))
        spread = float(np.std(terms, ddof=1) / math.sqrt(len(terms))) if math.isfinite(mean) else math.nan
        return cls.estimate(mean, spread, method)

    @property
    def kind(self) -> str:
        """What `value` is: "exact", "lower" (the truth is at least that), "upper" or "estimate".

        A bound with a standard error is one in expectation.
        """
        at_lower, at_upper = self.lower == self.value, self.upper == self.value
        if at_lower and at_upper:
            return "estimate" if self.is_sampled else "exact"
        if at_lower and self.upper == math.inf:
            return "lower"
        if at_upper and self.lower == -math.inf:
            return "upper"
        return "estimate"

    @property
    def nats(self) -> float:
        """The value, in units of log e."""
        return self.value

    @property
    def bits(self) -> float:
        """The value in units of log 2."""
        return self.value / math.log(2)

    @property
    def perplexity(self) -> float:
        """Exp of the value: of an entropy, how many equally probable values would be as uncertain."""
        return math.exp(self.value) if self.value < 700 else math.inf

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Limits that hold the truth at this level: `lower` and `upper`, widened by the standard error."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        margin = NormalDist().inv_cdf(0.5 + level / 2) * self.stderr
        return self.lower - margin, self.upper + margin

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        sign = "" if self.kind == "exact" else f"{_SIGNS[self.kind]} "
        error = f" ± {self.stderr:.3f}" if self.is_sampled else ""
        return f"{sign}{self.value:.3f}{error} nats ({self.kind}, {self.method})"
