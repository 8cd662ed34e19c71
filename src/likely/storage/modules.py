"""Modules as named arrays, and hyper-parameters as JSON: what model files and checkpoints have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from likely.runtime import on_device
from likely.schema import Schema
from likely.storage import registry
from likely.storage.files import FileError


def save_module(module: Any) -> dict[str, np.ndarray]:
    """The arrays of a pytree by their path, as ".layers[0].weight"."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(module, eqx.is_array))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restore_module(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The pytree with the structure of `template` (arrays or shapes) and stored arrays in its places."""
    arrays = dict(arrays)

    def fill(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct | jax.Array | np.ndarray):
            return leaf
        name = jax.tree_util.keystr(path)
        if name not in arrays:
            raise FileError(f"array {name!r} is missing from the file.")
        stored = arrays.pop(name)
        if stored.shape != leaf.shape:
            raise FileError(f"array {name!r} has shape {stored.shape}, the model needs {leaf.shape}.")
        return on_device(stored)

    restored = jax.tree_util.tree_map_with_path(fill, template)
    if arrays:
        raise FileError(f"the file holds an array {next(iter(arrays))!r} that the model has no place for.")
    return restored


def describe_estimator(model: Any, apart: Collection[str]) -> dict[str, Any]:
    """Class, hyper-parameters and learned values of a fitted estimator as JSON, but for names that are kept `apart`."""
    from likely import __version__

    learned = {k: v for k, v in vars(model).items() if k.endswith("_") and k not in apart}
    return {
        "class": type(model).__name__,
        "version": __version__,
        "parameters": {k: save_value(k, v) for k, v in model.get_params(deep=False).items()},
        "learned": {k: save_value(k, v) for k, v in learned.items()},
    }


def restore_estimator(cls: type, meta: dict[str, Any]) -> Any:
    """The estimator of a class that `describe_estimator` described."""
    model = cls(**{k: restore_value(v) for k, v in meta["parameters"].items()})
    for name, value in meta["learned"].items():
        setattr(model, name, restore_value(value))
    return model


class _Codec(NamedTuple):
    """A kind of value that JSON lacks, stored as {tag: content}."""

    holds: Callable[[Any], bool]
    content: Callable[[Any, Callable[[Any], Any]], Any]  # of a value, with what saves the values inside it
    value: Callable[[Any], Any]  # of a content


# A file names a kind by its tag, so tags never change.
_CODECS = {
    "schema": _Codec(
        lambda value: isinstance(value, Schema),
        lambda schema, save: schema.to_json(),
        lambda json: Schema.from_json(json),
    ),
    "tuple": _Codec(
        lambda value: isinstance(value, tuple),
        lambda items, save: [save(item) for item in items],
        lambda content: tuple(restore_value(item) for item in content),
    ),
    "dict": _Codec(  # under a tag, as no dictionary of the user's may be taken for one of these
        lambda value: isinstance(value, dict) and all(isinstance(key, str) for key in value),
        lambda items, save: {key: save(item) for key, item in items.items()},
        lambda content: {key: restore_value(item) for key, item in content.items()},
    ),
    "array": _Codec(
        lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biuf",
        lambda array, save: array.tolist(),
        np.array,
    ),
    "graph": _Codec(
        registry.is_graph,
        lambda graph, save: graph.to_json(),
        lambda content: registry.graph_class().from_json(content),
    ),
    "estimator": _Codec(  # to be fitted, as a setting of another
        registry.is_ours,
        lambda model, save: {"class": type(model).__name__, "settings": save(model.get_params(deep=False))},
        lambda content: registry.model_class(content["class"])(**restore_value(content["settings"])),
    ),
}


def save_value(name: str, value: Any) -> Any:
    """A hyper-parameter or learned scalar as JSON; what JSON cannot hold raises TypeError with its name."""
    for tag, codec in _CODECS.items():
        if codec.holds(value):
            return {tag: codec.content(value, partial(save_value, name))}
    if isinstance(value, list):
        return [save_value(name, item) for item in value]
    if isinstance(value, np.random.RandomState):
        return None  # A generator has no place in a file, and needs none: the seed drawn from it is saved as `seed_`.
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"cannot save {name}={value!r}: a model file holds numbers, strings and schemas, never code. "
        "Use a named option in place of an object."
    )


def restore_value(value: Any) -> Any:
    """What `save_value` was given."""
    if isinstance(value, list):
        return [restore_value(item) for item in value]
    if isinstance(value, dict):
        ((tag, content),) = value.items()
        return _CODECS[tag].value(content)
    return value
