"""Checkpoints: the whole of a training run in one file, so that a killed run goes on as if nothing had been.

The file holds every array of the carry (parameters, optimiser, chains, averages, sums), the best parameters so far and
the key; its description the settings, names of the data, position and history. What is not in it is recomputed from
the key: the order of the rows and the randomness of each step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from likely.runtime import on_device
from likely.storage.files import FileError, read_arrays, write_arrays

KIND = "training checkpoint"
_STORED_AS_THEY_ARE = frozenset(  # names of types
    ["bool", "float16", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))]
)


@dataclass(frozen=True)
class Checkpoint:
    """Where to save a training run, and how often; always at its end, too.

    Parameters
    ----------
    path : the file, replaced as a whole each time.
    every_steps : save each time this many steps were taken.
    every_seconds : save when this much time has passed since the last time; None for never.
    """

    path: str | os.PathLike
    every_steps: int | None = None
    every_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        for name in ("every_steps", "every_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be above 0, or None, got {value!r}.")


def save(path: str | os.PathLike, tree: Any, description: dict[str, Any]) -> None:
    """Write a pytree of arrays and a description; keys and rare number types become plain arrays."""
    arrays, types = {}, {}
    for place, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(place)
        arrays[name], types[name] = _plain(leaf)
    write_arrays(path, arrays, {"kind": KIND, "types": types, **description})


def load(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a checkpoint; `FileError` for any other file."""
    arrays, description = read_arrays(path)
    if description.get("kind") != KIND:
        raise FileError(f"{path} is a likely file, but not a training checkpoint: give `resume` a checkpoint's path.")
    return arrays, description


def restore(path: str | os.PathLike, template: Any, arrays: dict[str, np.ndarray], types: dict[str, Any]) -> Any:
    """The pytree of the template's structure with the arrays of a checkpoint in it."""
    places, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(place) for place, _ in places]
    strangers = sorted(set(names) ^ set(arrays))
    if strangers:
        where = "the checkpoint lacks" if strangers[0] in names else "this run has no place for the checkpoint's"
        raise ValueError(f"cannot resume from {path}: {where} {strangers[0]}. Was the model built in the same way?")
    leaves = []
    for name, (_, leaf) in zip(names, places, strict=True):
        stored = from_plain(arrays[name], types[name])
        if stored.shape != leaf.shape or stored.dtype != leaf.dtype:
            raise ValueError(
                f"cannot resume from {path}: {name} is {stored.dtype}{list(stored.shape)} in the checkpoint and "
                f"{leaf.dtype}{list(leaf.shape)} in this run. Was the model built in the same way?"
            )
        leaves.append(jax.device_put(stored, may_alias=False))
    return jax.tree.unflatten(structure, leaves)


def check_same(path: str | os.PathLike, stored: dict[str, Any], given: dict[str, Any], what: str) -> None:
    """Raise with the first difference between a checkpoint's description and this run's."""
    for name in sorted(set(stored) | set(given)):
        if stored.get(name) != given.get(name):
            raise ValueError(
                f"cannot resume from {path}: {what} {name!r} was {stored.get(name)!r} when it was written and is "
                f"{given.get(name)!r} now. Resume with the same data and settings, or start anew."
            )


def _plain(leaf: Any) -> tuple[np.ndarray, dict[str, Any]]:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf)), {"key": str(jax.random.key_impl(leaf))}
    array = np.asarray(leaf)
    if array.dtype.name in _STORED_AS_THEY_ARE:
        return array, {"dtype": array.dtype.name}
    # Safetensors has no place for bfloat16 and its like from NumPy: the bytes are stored, and what they mean.
    return np.frombuffer(array.tobytes(), np.uint8), {"dtype": array.dtype.name, "shape": list(array.shape)}


def from_plain(array: np.ndarray, kind: dict[str, Any]) -> Any:
    """A stored array as it was: a key, or a NumPy array of its type."""
    if "key" in kind:
        return jax.random.wrap_key_data(on_device(array), impl=kind["key"])
    if "shape" in kind:
        return np.frombuffer(array.tobytes(), np.dtype(kind["dtype"])).reshape(kind["shape"])
    return array
