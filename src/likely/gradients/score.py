"""Score function estimator: ∇ E f = E (f(z) - b) ∇ log p(z; θ), with any baseline b that does not depend on z.

Williams (1992), REINFORCE. Unbiased for every f, differentiable or not; the baseline only lowers its variance: the mean
of f so far, the mean of the other draws (Kool, van Hoof and Welling, 2019), or a network of the context (Mnih and
Gregor, 2014). Cost: n values of f, none of its slopes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float

from likely.gradients.estimator import Estimator, box
from likely.nets import MLP
from likely.runtime import float_dtype

BASELINES = ("none", "running_mean", "leave_one_out", "learned")
# A step's weight in the running mean, once there were a hundred of them: the mean of all so far would lag behind an f
# that training changes.
_LEAST_WEIGHT = 0.01
# A network for a baseline costs little beside the model, and one that is a little wrong costs variance, never bias.
_BASELINE_HIDDEN = (64,)
_BASELINE_OPTIMISER = optax.adam(3e-3)


class RunningMean(NamedTuple):
    """Mean of f so far, and the number of steps behind it."""

    mean: Float[Array, ""]
    step: Array

    def after(self, value: Array) -> RunningMean:
        """The mean with another step in it."""
        weight = jnp.maximum(1 / (self.step + 1), _LEAST_WEIGHT).astype(self.mean.dtype)
        return RunningMean(self.mean + weight * (value - self.mean), self.step + 1)


class Learned(NamedTuple):
    """A running mean, and a network that predicts from the context how far f will be from it."""

    mean: RunningMean
    network: MLP
    moments: Any


class ScoreFunction(Estimator):
    """f weighs the slope of the log density.

    Parameters
    ----------
    baseline : "none", "running_mean", "leave_one_out" (needs two draws) or "learned".
    """

    baseline: str = eqx.field(default="none", static=True)

    def __check_init__(self):
        if self.baseline not in BASELINES:
            raise ValueError(f"`baseline` must be one of {', '.join(BASELINES)}, got {self.baseline!r}.")

    @property
    def fewest(self) -> int:  # type: ignore[override]
        return 2 if self.baseline == "leave_one_out" else 1

    def start(self, key, n_context=0, dtype=None):
        dtype = dtype or float_dtype()
        mean = RunningMean(jnp.zeros((), dtype), jnp.zeros((), jnp.int32))
        if self.baseline == "running_mean":
            return mean
        if self.baseline == "learned":
            network = MLP(
                key, max(1, n_context), 1, hidden=_BASELINE_HIDDEN, activation="tanh", output_gain=0.0, dtype=dtype
            )
            return Learned(mean, network, _BASELINE_OPTIMISER.init(network))
        return None

    def surrogate(self, key, family, theta, f, n, state, context=None):
        z = lax.stop_gradient(family.sample(key, theta, n))
        value = f(z)
        signal = lax.stop_gradient(value)
        baseline, state = self._baseline(signal, state, context)
        return (value + box((signal - baseline) * family.log_prob(theta, z))).mean(axis=0), state

    def _baseline(self, signal: Array, state: Any, context: Any) -> tuple[Array, Any]:
        """What to take off each value (n, *batch), and the next state."""
        if self.baseline == "leave_one_out":
            return (signal.sum(axis=0, keepdims=True) - signal) / (len(signal) - 1), state
        if self.baseline == "running_mean":
            return jnp.broadcast_to(state.mean, signal.shape), state.after(signal.mean())
        if self.baseline == "learned":
            return _learn(signal, state, context)
        return jnp.zeros_like(signal), state


def _learn(signal: Array, state: Learned, context: Array | None) -> tuple[Array, Learned]:
    """The network's prediction before it has seen these values, and the network after a step towards them."""
    if context is None:
        context = jnp.ones((*signal.shape[1:], 1), signal.dtype)
    context = lax.stop_gradient(context)
    residual = signal.mean(axis=0) - state.mean.mean

    def loss(network):
        predicted = network(context)[..., 0]
        return jnp.mean((residual - predicted) ** 2), predicted

    slope, predicted = jax.grad(loss, has_aux=True)(state.network)
    change, moments = _BASELINE_OPTIMISER.update(slope, state.moments)
    network = optax.apply_updates(state.network, change)
    baseline = jnp.broadcast_to((state.mean.mean + predicted)[None], signal.shape)
    return baseline, Learned(state.mean.after(signal.mean()), network, moments)
