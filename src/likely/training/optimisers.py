"""Optimisers by name, from Optax's parts, with a schedule, clipping and decoupled weight decay around them.

A step is theta <- theta - rate(t) (direction(clip(gradient)) + decay theta), with decay only for arrays of two axes or
more: biases and scales are not shrunk. For "sgd" that is theta <- (1 - rate decay) theta - rate gradient.

The directions are those of Goodfellow, Bengio and Courville (2016), ch. 8, with Adam's moments kept raw and corrected
by 1 - rho^t when they are used, as in Kingma and Ba (2015). "nesterov" keeps the looked-ahead point as its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array

if TYPE_CHECKING:
    import optax  # imported when an optimiser is made: settings of training need only the names

SteppedOptimizer = Literal["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"]  # a step of each batch alone
Optimizer = Literal[SteppedOptimizer, "lbfgs"]
Schedule = Literal["constant", "cosine", "linear", "exponential"]

# Learning rates when none is given. L-BFGS finds its own by a line search that starts from 1.
OPTIMIZERS: dict[Optimizer, float] = {
    "sgd": 1e-2,
    "momentum": 1e-2,
    "nesterov": 1e-2,
    "adagrad": 1e-2,
    "rmsprop": 1e-3,
    "adam": 1e-3,
    "lbfgs": 1.0,
}
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
MOMENTUM = 0.9
FINAL_FRACTION = 0.01  # of the learning rate, at the end of the exponential schedule


@dataclass(frozen=True)
class OptimiserSpec:
    """What of an optimiser is part of the compiled program; hashable, so that equal ones share it."""

    name: str
    schedule: str
    warmup_steps: int
    decays: bool
    clips: bool


def make_optimiser(spec: OptimiserSpec, numbers: Mapping[str, Any]) -> optax.GradientTransformationExtraArgs:
    """The optimiser; its `update` takes value, grad and value_fn, which only L-BFGS uses.

    Parameters
    ----------
    spec : its structure.
    numbers : "learning_rate", "n_steps" of the whole run, "weight_decay", "gradient_clip"; may be traced.
    """
    import optax

    rate = learning_rate(spec, numbers["learning_rate"], numbers["n_steps"])
    if spec.name == "lbfgs":
        return optax.lbfgs(rate)
    parts = [_direction(spec.name)]
    if spec.clips:
        parts.insert(0, optax.clip_by_global_norm(numbers["gradient_clip"]))
    if spec.decays:
        parts.append(optax.add_decayed_weights(numbers["weight_decay"], mask=_has_two_axes))
    parts.append(optax.scale_by_learning_rate(rate))
    return optax.with_extra_args_support(optax.chain(*parts))


def learning_rate(spec: OptimiserSpec, peak: Any, n_steps: Any) -> Any:
    """The rate as a number, or as a function of the step (0, 1, ...).

    Optax's schedules want to know at once how many steps there are. Here their number is an input of the program: a
    table of another length, or another number of epochs, needs no program of its own.

    >>> spec = OptimiserSpec("sgd", "linear", warmup_steps=4, decays=False, clips=False)
    >>> [round(float(learning_rate(spec, 1.0, 14)(step)), 2) for step in (0, 3, 4, 9, 13)]
    [0.2, 0.8, 1.0, 0.5, 0.1]
    """
    warmup = spec.warmup_steps
    if spec.schedule == "constant" and not warmup:
        return peak

    def rate(step: Any) -> Array:
        done = jnp.clip((step - warmup) / jnp.maximum(1.0, n_steps - warmup), 0.0, 1.0)
        # From peak / (warmup + 1), not from 0: a first step of size 0 would be wasted.
        return peak * jnp.where(step < warmup, (step + 1) / (warmup + 1), _FALL[spec.schedule](done))

    return rate


# What is left of the rate when a share of the steps is done.
_FALL: dict[str, Callable[[Array], Any]] = {
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + jnp.cos(jnp.pi * done)),
    "exponential": lambda done: FINAL_FRACTION**done,
}


def _direction(name: str) -> optax.GradientTransformation:
    import optax

    if name == "sgd":
        return optax.identity()
    if name in ("momentum", "nesterov"):
        return optax.trace(MOMENTUM, nesterov=name == "nesterov")
    if name == "adagrad":
        # Sums start from 0, and eps stands under the root: 1e-14 there is the usual 1e-7 outside.
        return optax.scale_by_rss(initial_accumulator_value=0.0, eps=1e-14)
    if name == "rmsprop":
        return optax.scale_by_rms(decay=0.9, eps=1e-8, eps_in_sqrt=False)
    return optax.scale_by_adam()


def _has_two_axes(params: Any) -> Any:
    return jax.tree.map(lambda array: array.ndim >= 2, params)
