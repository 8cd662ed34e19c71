"""Arrays on the devices of a run, which may belong to several processes, and back.

A process makes its own devices' pieces of an array and no others, so that of the rows it reads its share alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from likely.distributed import company
from likely.runtime import on_device

AXIS = "batch"  # of a mesh: what rows are shared out along


def device_mesh() -> Mesh | None:
    """A mesh of all devices along one axis; None where there is one device."""
    devices = jax.devices()
    return None if len(devices) == 1 else Mesh(np.array(devices), (AXIS,))


def place(tree: Any, mesh: Mesh | None) -> Any:
    """Arrays on the device; on each of them if there are several."""
    return jax.device_put(tree) if mesh is None else placed(tree, jax.tree.map(lambda _: everywhere(mesh), tree))


def placed(tree: Any, shardings: Any) -> Any:
    """Arrays that every process holds whole, laid out as a tree of shardings says."""
    return jax.tree.map(_placed, tree, shardings)


def everywhere(mesh: Mesh) -> NamedSharding:
    """A copy on each device."""
    return NamedSharding(mesh, PartitionSpec())


def by_rows(mesh: Mesh, axis: int = 0) -> NamedSharding:
    """An axis shared out over the devices."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, AXIS))


def shared_out(make: Callable[[tuple[slice, ...]], Any], shape: tuple[int, ...], mesh: Mesh, axis: int = 0) -> Any:
    """A tree of arrays whose pieces `make(slices)` makes, for each device of this process.

    Parameters
    ----------
    make : the first axes of all arrays, `shape`, are cut by its slices.
    axis : the one of them that is shared out; the number of devices divides it.
    """
    sharding = by_rows(mesh, axis)
    places = sharding.addressable_devices_indices_map(shape)
    pieces = [jax.device_put(make(_full(index or (), shape)), device) for device, index in places.items()]

    def whole(*leaves: jax.Array) -> jax.Array:
        full = (*shape, *leaves[0].shape[len(shape) :])
        return jax.make_array_from_single_device_arrays(full, sharding, list(leaves))

    return jax.tree.map(whole, *pieces)


def rows_together(first: jax.Array, second: jax.Array) -> jax.Array:
    """The rows of two arrays in one, inside a program, for one matrix product; `rows_apart` takes them apart.

    Where devices share rows out, each has its own of both beside each other, and nothing goes from one to another: to
    put one array after the other they would have to send each other half of all rows.
    """
    n = _devices_of(len(first), len(second))
    if n == 1:
        return jnp.concatenate([first, second])
    pieces = [array.reshape(n, len(array) // n, *array.shape[1:]) for array in (first, second)]
    return jnp.concatenate(pieces, axis=1).reshape(len(first) + len(second), *first.shape[1:])


def rows_apart(both: jax.Array, n_first: int) -> tuple[jax.Array, jax.Array]:
    """The rows that were put together, of which the first array had so many."""
    n_second = len(both) - n_first
    n = _devices_of(n_first, n_second)
    if n == 1:
        return both[:n_first], both[n_first:]
    pieces = both.reshape(n, len(both) // n, *both.shape[1:])
    edge, rest = n_first // n, both.shape[1:]
    return pieces[:, :edge].reshape(n_first, *rest), pieces[:, edge:].reshape(n_second, *rest)


def _devices_of(*lengths: int) -> int:
    """Over how many devices rows of all these numbers can be shared out evenly."""
    n = jax.device_count()
    return n if all(length % n == 0 for length in lengths) else 1


def local(tree: Any) -> Any:
    """Arrays of all processes as arrays of this one; others as they are."""
    if all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(tree)):
        return tree
    with company():  # what made them has been begun, and is waited for here
        return jax.tree.map(_local, tree)


def _full(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Slices with both ends, one for each axis."""
    return tuple(slice(*part.indices(length)[:2]) for part, length in zip(index, shape, strict=True))


def _placed(array: Any, sharding: NamedSharding) -> Any:
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    if isinstance(array, jax.Array) and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        data = _placed(jax.random.key_data(array), sharding)
        return _wrapped(str(jax.random.key_impl(array)), sharding)(data)
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    held = np.asarray(_local(array))
    return jax.make_array_from_callback(held.shape, sharding, lambda index: held[index])


@functools.lru_cache(maxsize=8)
def _wrapped(impl: str, sharding: NamedSharding) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(lambda data: jax.random.wrap_key_data(data, impl=impl), out_shardings=sharding)


def _local(leaf: Any) -> Any:
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        impl = str(jax.random.key_impl(leaf))
        return jax.random.wrap_key_data(_local(jax.random.key_data(leaf)), impl=impl)
    if not leaf.is_fully_replicated:
        leaf = _gathering(everywhere(device_mesh()))(leaf)  # type: ignore[arg-type]  # several processes have several devices
    return on_device(np.asarray(leaf))


@functools.lru_cache(maxsize=8)
def _gathering(sharding: NamedSharding) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(lambda array: array, out_shardings=sharding)
