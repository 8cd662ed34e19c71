"""Small problems whose training can be followed with pencil and paper, or at least with NumPy."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Linear(eqx.Module):
    """y = weight x + bias, and two things that are not trained."""

    weight: Any
    bias: Any
    table: Any
    power: float = eqx.field(static=True, default=2.0)


def linear(n_columns: int, dtype: Any = None) -> Linear:
    return Linear(jnp.zeros((1, n_columns), dtype), jnp.zeros(1, dtype), jnp.arange(3))


def squares(module: Linear, batch: Any, key: Any = None) -> Any:
    """(rows,) half squared errors; the last column is the one to predict."""
    predicted = batch.x[:, :-1] @ module.weight[0] + module.bias
    return 0.5 * jnp.abs(predicted - batch.x[:, -1]) ** module.power


def least_squares(module: Linear, batch: Any, key: Any, state: Any) -> Any:
    loss = jnp.sum(batch.weight * squares(module, batch)) / jnp.sum(batch.weight)
    return loss, (state, {"rows": jnp.sum(batch.weight)})


def regression_rows(seed: int, n_rows: int, n_columns: int = 3, noise: float = 0.1) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n_rows, n_columns))
    y = x @ np.arange(1.0, n_columns + 1) + 0.5 + noise * random.normal(size=n_rows)
    return np.column_stack([x, y])


def visits(parameter: Any, batch: Any, key: Any, counts: Any) -> Any:
    """An objective that counts in its state how often each row came; column 0 is the row's number."""
    counts = counts.at[batch.x[:, 0].astype(jnp.int32)].add(batch.weight)
    return 0.0 * parameter.sum(), (counts, {})


def drift(params: Any, batch: Any, key: Any, state: Any) -> Any:
    """Gradient -1: with plain gradient descent at rate 1 the parameter is the number of steps taken."""
    return -jnp.sum(params), (state, {"place": params[0]})


def distance(params: Any, batch: Any, key: Any) -> Any:
    """Least where the parameter is the row's number: on average, at the mean of the rows."""
    return (params[0] - batch.x[:, 0]) ** 2


def chains_objective(module: Linear, batch: Any, key: Any, state: Any) -> Any:
    """Everything at once: noise from the key, chains of several types in the state, metrics."""
    noise = jax.random.normal(key, (len(batch.weight),), batch.x.dtype)
    loss = jnp.sum(batch.weight * (squares(module, batch) + 0.1 * noise * module.bias)) / jnp.sum(batch.weight)
    chains = 0.9 * state["chains"] + jax.random.normal(jax.random.fold_in(key, 1), state["chains"].shape)
    loss = loss + 0.01 * jnp.mean(chains) * jnp.sum(module.weight)
    state = {
        "chains": chains,
        "count": state["count"] + 1,
        "flags": ~state["flags"],
        "key": jax.random.fold_in(state["key"], 7),
        "short": (state["short"] * 1.01).astype(jnp.bfloat16),
    }
    return loss, (state, {"mean_chain": jnp.mean(chains)})


def chains_state() -> dict[str, Any]:
    return {
        "chains": jnp.zeros((4, 3)),
        "count": jnp.zeros((), jnp.int32),
        "flags": jnp.array([True, False]),
        "key": jax.random.key(5),
        "short": jnp.ones(3, jnp.bfloat16),
    }


def bits(tree: Any) -> list[bytes]:
    """Every array of a pytree as bytes, keys included."""

    def raw(leaf: Any) -> bytes:
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes()

    return [raw(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def without_time(history: dict[str, list[float]]) -> str:
    return repr({name: curve for name, curve in history.items() if name != "seconds"})
