"""What to say when training breaks: at which step, in which array, and what to do about it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from likely.training.batches import Batch
from likely.training.program import Carry, Inputs, Program, parts, select

_ADVICE = {
    "loss": "Lower the learning rate or set gradient_clip; if it is step 1, look for extreme values in the data.",
    "gradient": "The loss is finite, so a derivative is not (a root or a logarithm at 0?), or it overflows: lower the "
    "learning rate, set gradient_clip, or mend the objective.",
    "update": "The gradient is finite but the step is too large: lower the learning rate or set gradient_clip.",
    "validation": "Look for validation rows that are unlike the training rows.",
}


class TrainingError(RuntimeError):
    """Training stopped because a number was not finite.

    Attributes
    ----------
    step, epoch : where, counted from 1.
    cause : "loss", "gradient", "update" or "validation".
    array : the path of the array in the module, None for a loss.
    module : the module as it was before that step.
    """

    def __init__(self, cause: str, what: str, *, step: int, epoch: int, array: str | None, module: Any) -> None:
        super().__init__(
            f"training stopped at step {step} (epoch {epoch}): {what}. {_ADVICE[cause]} "
            "The parameters from before are this error's `module`."
        )
        self.cause, self.step, self.epoch, self.array, self.module = cause, step, epoch, array, module


def diagnose(
    program: Program, before: Carry, after: Carry, inputs: Inputs, data: Batch, order: Array, number: int
) -> tuple[str, str, str | None]:
    """Cause, description and array of a failed step, by taking it once more and looking at its parts."""
    loss, gradient, params = _look(program)(before, inputs, data, order, number)
    if not jnp.isfinite(loss):
        return "loss", f"the loss is {float(loss):g}", None
    for cause, tree, text in (
        ("gradient", gradient, "the gradient of {} is not finite, at a loss of {:.6g}"),
        ("update", params, "the update makes {} not finite, at a loss of {:.6g}"),
        ("update", _finite(after.params), "{} is not finite after the update, at a loss of {:.6g}"),
    ):
        bad = [jax.tree_util.keystr(path) for path, ok in jax.tree_util.tree_leaves_with_path(tree) if not ok]
        if bad:
            name = bad[0] + (f" (and of {len(bad) - 1} more arrays)" if len(bad) > 1 else "")
            return cause, text.format(name, float(loss)), bad[0]
    return "update", f"the parameters have grown past 1e35, at a loss of {float(loss):.6g}", None


def _look(program: Program) -> Any:
    import optax

    @jax.jit
    def look(carry: Carry, inputs: Inputs, data: Batch, order: Array, number: int | Array) -> tuple[Array, Any, Any]:
        loss_of, optimiser, _ = parts(program, carry, inputs, select(program, data, order, jnp.asarray(number)))
        (loss, _), gradient = jax.value_and_grad(loss_of, has_aux=True)(carry.params)
        updates, _ = optimiser.update(
            gradient, carry.optimiser, carry.params, value=loss, grad=gradient, value_fn=lambda p: loss_of(p)[0]
        )
        return loss, _finite(gradient), _finite(optax.apply_updates(carry.params, updates))

    return look


def _finite(tree: Any) -> Any:
    return jax.tree.map(lambda a: jnp.isfinite(a).all(), eqx.filter(tree, eqx.is_array))
