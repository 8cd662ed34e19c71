"""What an estimator of ∇_θ E_{p(z; θ)}[f(z)] is: a surrogate, whose value is the objective's and whose slope its own.

Schulman et al. (2015), Foerster et al. (2018). One function serves a problem of a few numbers and the training of a
network: differentiate the surrogate in θ, and in whatever else f depends on, and out comes the estimate.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
from jax import lax
from jaxtyping import Array, Float, Key

from likely.gradients.distributions import Family

Objective = Callable[[Array], Array]  # draws (n, *batch, ...) -> values (n, *batch)


class Estimator(eqx.Module):
    """A way to differentiate an expectation.

    Class attributes
    ----------------
    families : the families that it is made for.
    fewest : draws that it needs at least.
    unbiased : whether its mean is the gradient.
    of_bound : it differentiates E log (1/n) Σ exp f(z_s), n draws together, in place of E f(z).
    """

    families: ClassVar[tuple[type[Family], ...]] = (Family,)
    fewest: ClassVar[int] = 1
    unbiased: ClassVar[bool] = True
    of_bound: ClassVar[bool] = False

    def start(self, key: Key[Array, ""], n_context: int = 0, dtype: Any = None) -> Any:
        """The first state: baselines, counts of steps; None for an estimator that remembers nothing."""
        return None

    @abc.abstractmethod
    def surrogate(
        self, key: Key[Array, ""], family: Family, theta: Any, f: Objective, n: int, state: Any, context: Any = None
    ) -> tuple[Float[Array, "*batch"], Any]:
        """The surrogate of each member of the batch from n draws, and the next state.

        Parameters
        ----------
        f : draws (n, *batch, ...) -> values (n, *batch). It may depend on other parameters, and on θ itself.
        state : what `start` or the last call returned.
        context : (*batch, n_context) what a learned baseline may look at.
        """


def box(value: Array) -> Array:
    """Zero, with the derivative of `value`."""
    return value - lax.stop_gradient(value)


def check_suits(estimator: Estimator, family: Family, n: int) -> None:
    """Raise unless the estimator is made for the family and has draws enough."""
    name = type(estimator).__name__
    if not isinstance(family, estimator.families):
        kinds = " or ".join(kind.__name__ for kind in estimator.families)
        raise ValueError(f"{name} is for {kinds} families, got {type(family).__name__}: choose another estimator.")
    if n < estimator.fewest:
        raise ValueError(f"{name} needs at least {estimator.fewest} draws, got {n}: raise `n_samples`.")
