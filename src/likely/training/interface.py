"""What `train` asks of modules, objectives and rows, checked before any work."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.training.batches import Batch, Feed, check_rows
from likely.training.config import TrainingConfig
from likely.training.program import Static, join, split

RESERVED = ("epoch", "loss", "seconds", "valid")


def prepare(module: Any, key: Array, state: Any) -> tuple[Array, Any, Any, Any, Any]:
    """Key, trainable arrays, the rest of the module, first state, and the type that rows should have."""
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    params, state = jax.tree.map(definite, (params, state))
    leaves = jax.tree.leaves(params)
    if not leaves:
        raise ValueError("the module has no floating-point arrays: there is nothing to train.")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    dtype: Any = np.dtype(np.float32)  # at least: counts and codes above 256 do not fit into bfloat16
    for leaf in leaves:
        dtype = jnp.promote_types(dtype, np.zeros((), leaf.dtype).real.dtype)
    return key, params, rest, state, dtype


def definite(leaf: Any) -> Any:
    """A leaf as an array of definite type, so that it compiles as what the loop will return in its place."""
    leaf = jnp.asarray(leaf) if not isinstance(leaf, jax.Array) else leaf
    return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else jnp.asarray(leaf, dtype=leaf.dtype)


def outline(module: Any, objective: Any, feed: Feed, key: Array, state: Any) -> tuple[list[str], Any]:
    """Trace the objective on a batch's shape: the names of loss and metrics, and the type to sum them in.

    Tracing takes longer than many a short fit; what was traced once is known for all fits of the same shapes.
    """
    blocks, shape = feed.blocks, (feed.batch_size, feed.blocks.rows.shape[1])
    arrays, static = split((module, objective))
    loss, metrics = _traced(static, shape, blocks.complete, blocks.dtype).eval_shape(arrays, key, state)
    return ["loss", *sorted(metrics)], np.promote_types(loss.dtype, np.float32)


@functools.lru_cache(maxsize=32)
def _traced(static: Static, shape: tuple[int, int], complete: bool, dtype: Any) -> Any:
    """The function (arrays, key, state) -> (loss, metrics), which refuses what is not the loop's as it is traced."""

    def call(arrays: Any, key: Array, state: Any) -> Any:
        module, objective = join(arrays, static)
        batch = Batch(jnp.zeros(shape, dtype), None if complete else jnp.ones(shape, bool), jnp.ones(shape[0], dtype))
        returned = objective(module, batch, key, state)
        try:
            loss, (new_state, metrics) = returned
        except (TypeError, ValueError):
            raise TypeError("the objective must return (loss, (state, metrics)).") from None
        _check_scalars(loss, metrics)
        _check_state(state, new_state)
        return loss, metrics

    return jax.jit(call)


def check_validation(config: TrainingConfig, validate: Any, valid_rows: Any) -> None:
    """Raise unless validation is there as a whole or not at all."""
    if (validate is None) != (valid_rows is None):
        raise ValueError("`validate` and `valid_rows` belong together: give both or neither.")
    if valid_rows is not None:
        check_rows(valid_rows)
    elif config.patience is not None:
        raise ValueError("`patience` needs validation rows to wait for: give `valid` to fit, or set patience=None.")


def _check_scalars(loss: Any, metrics: Any) -> None:
    if getattr(loss, "shape", None) != () or not jnp.issubdtype(loss.dtype, jnp.floating):
        raise TypeError(f"the objective's loss must be a real scalar, got {getattr(loss, 'aval', loss)}.")
    if not isinstance(metrics, dict):
        raise TypeError(f"the objective's metrics must be a dictionary of scalars, got {type(metrics).__name__}.")
    for name, value in metrics.items():
        if name in RESERVED:
            raise ValueError(f"a metric may not be called {name!r}: the history has a column of that name.")
        if jnp.shape(value) != ():
            raise TypeError(f"metric {name!r} must be a scalar, got shape {jnp.shape(value)}.")


def _check_state(state: Any, new_state: Any) -> None:
    old_structure, new_structure = str(jax.tree.structure(state)), str(jax.tree.structure(new_state))
    if old_structure != new_structure:
        raise TypeError(f"the objective was given a state {old_structure} and returned {new_structure}: keep it alike.")
    for (path, old), new in zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(new_state), strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise TypeError(
                f"the objective turned state{jax.tree_util.keystr(path)} from {old.dtype}{list(old.shape)} into "
                f"{new.dtype}{list(new.shape)}: it must keep shape and type."
            )
