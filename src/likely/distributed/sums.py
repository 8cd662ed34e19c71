"""What processes of a run give each other: sums of their shares' numbers, the numbers themselves, and their agreement.

Sums are added up in the order of the shares, so that N processes of one device each give the bits of one process of N.
Gloo's own sum would not: it begins each part of the numbers at another process, and adds three in three orders. So each
process is sent a part of everybody's numbers, adds it up in order, and tells the others: 2 (H - 1) / H times the bytes
of the numbers, as in a ring, where a list of what everybody has would take H - 1 times.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import jax
import numpy as np

from likely.distributed.run import company, n_processes, rank

_DIGEST = 32  # bytes of a digest that processes compare
_LISTED = 1 << 12  # Bytes up to which all hear all: two rounds take longer than one, however little is sent.


class Disagreement(ValueError):
    """Processes of one run were given different things."""


def first_word() -> None:
    """Make the connections of all devices, and see that every process has equally many.

    Raises
    ------
    Disagreement : they have not.
    """
    counts = gathered_numbers(jax.local_device_count())
    if len(set(counts)) > 1:
        raise Disagreement(f"every process needs equally many devices, and these have {counts}.")
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("process",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("process"))
    ones = jax.make_array_from_callback((mesh.size,), sharding, lambda place: np.ones(mesh.size, np.float32)[place])
    np.asarray(_everywhere(mesh)(ones))


def shares(n: int) -> list[tuple[int, int]]:
    """Of n rows in their order, the share of each device of this process, as (first, after the last).

    On one device alone this is all of them.
    """
    n_devices, mine = jax.device_count(), jax.local_device_count()
    edges = [number * n // n_devices for number in range(n_devices + 1)]
    first = rank() * mine
    return [(edges[number], edges[number + 1]) for number in range(first, first + mine)]


def process_share(n: int) -> tuple[int, int]:
    """Of n pieces of work in their order, those of this process, as (first, after the last)."""
    return rank() * n // n_processes(), (rank() + 1) * n // n_processes()


def summed(parts: Sequence[Any]) -> Any:
    """The sum over all shares of trees of numbers, of which `parts` has those of this process's shares, in order.

    By NumPy, in double precision where the numbers have it, one share after the other: the same bits on each process.
    """
    if n_processes() == 1:
        return functools.reduce(functools.partial(jax.tree.map, np.add), parts)
    leaves = [[np.asarray(leaf) for leaf in jax.tree.leaves(part)] for part in parts]
    total: list[Any] = list(leaves[0])
    for dtype in sorted({leaf.dtype.str for leaf in total}):  # all of a kind in one message
        places = [place for place, leaf in enumerate(leaves[0]) if leaf.dtype.str == dtype]
        found = _sum(np.stack([np.concatenate([own[place].ravel() for place in places]) for own in leaves]))
        ends = np.cumsum([leaves[0][place].size for place in places])
        for place, own in zip(places, np.split(found, ends[:-1]), strict=True):
            total[place] = own.reshape(leaves[0][place].shape)
    return jax.tree.unflatten(jax.tree.structure(parts[0]), total)


def _sum(own: np.ndarray) -> np.ndarray:
    """The sum over all shares of vectors, of which this process has those of its own (shares, n)."""
    if own[0].nbytes <= _LISTED:
        return _in_order(gathered(list(own)))
    n = own.shape[1]
    width = -(-n // n_processes())
    pieces = np.pad(own, ((0, 0), (0, width * n_processes() - n))).reshape(len(own), n_processes(), width)
    heard = _dealt([np.ascontiguousarray(pieces[:, number]) for number in range(n_processes())])
    return np.concatenate(gathered([_in_order(np.concatenate(heard))]))[:n]


def _in_order(parts: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """The sum of arrays, one after the other."""
    return np.asarray(functools.reduce(np.add, parts))


def gathered(parts: Sequence[Any]) -> list[Any]:
    """The parts of all processes, in the order of their shares; trees of arrays, of one structure and one shape."""
    if n_processes() == 1:
        return list(parts)
    leaves, structure = jax.tree.flatten(list(parts))
    arrays = [np.asarray(leaf) for leaf in leaves]
    packed = b"".join(array.tobytes() for array in arrays)
    # Numbers travel as bytes: JAX would round those of double precision to single.
    everyone = _all_bytes(packed)
    out: list[Any] = []
    for own in everyone:
        at, found = 0, []
        for array in arrays:
            found.append(np.frombuffer(own, array.dtype, array.size, at).reshape(array.shape))
            at += array.nbytes
        out += jax.tree.unflatten(structure, found)
    return out


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of all shares one after the other; they may differ in length along the first axis."""
    if n_processes() == 1:
        return parts[0] if len(parts) == 1 else np.concatenate(list(parts))
    lengths = [int(length) for length in gathered([np.array(len(part)) for part in parts])]
    padded = [_lengthened(part, max(lengths)) for part in parts]
    return np.concatenate([whole[:n] for whole, n in zip(gathered(padded), lengths, strict=True)])


def joined_shares(arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
    """Of n pieces of work, those that each process has done by its `process_share`, one after the other."""
    if n_processes() == 1:
        return list(arrays)
    lengths = _share_lengths(n)
    everyone = gathered([[_lengthened(array, max(lengths)) for array in arrays]])
    return [np.concatenate([own[i][:m] for own, m in zip(everyone, lengths, strict=True)]) for i in range(len(arrays))]


def summed_shares(arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
    """The sums over n pieces of work, along the first axis, of which each process has done those of its share."""
    most = max(_share_lengths(n))
    padded = [_lengthened(array, most) for array in arrays]  # by nothing, which changes no sum
    return list(summed([[array[number] for array in padded] for number in range(most)]))


def _share_lengths(n: int) -> list[int]:
    edges = [number * n // n_processes() for number in range(n_processes() + 1)]
    return [after - first for first, after in itertools.pairwise(edges)]


def _lengthened(array: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]), array.dtype)])


def of_first(number: int) -> int:
    """The number that the first process has: what depends on a clock is decided there."""
    return number if n_processes() == 1 else gathered_numbers(number)[0]


def gathered_numbers(number: int) -> list[int]:
    """The number of each process."""
    if n_processes() == 1:
        return [number]
    return [int(np.frombuffer(own, np.int64)[0]) for own in _all_bytes(np.int64(number).tobytes())]


def check_agreed(what: dict[str, Any]) -> None:
    """Refuse to go on where processes have different things; `what` is them by name, as JSON holds them.

    Raises
    ------
    Disagreement : with the name of the first that differs, and the process that has another than the first.
    """
    if n_processes() == 1:
        return
    # First one digest of everything, which is all that a run in agreement costs; the digests of each thing are
    # exchanged only to say which of them differs.
    own = {name: json.dumps(value, sort_keys=True, default=str) for name, value in what.items()}
    digests = b"".join(blake2b(f"{name} {text}".encode(), digest_size=_DIGEST).digest() for name, text in own.items())
    everyone = _all_bytes(blake2b(digests, digest_size=_DIGEST).digest())
    if len(set(everyone)) == 1:
        return
    lists = _all_bytes(digests.ljust(_DIGEST * max(gathered_numbers(len(own))), b"\0"))
    for place, name in enumerate(own):
        pieces = [one[place * _DIGEST : (place + 1) * _DIGEST] for one in lists]
        other = next((number for number, piece in enumerate(pieces) if piece != pieces[0]), None)
        if other is not None:
            raise Disagreement(
                f"process {other} was given another {name} than process 0: every process of a run needs the same. "
                f"This is process {rank()}, whose {name} is {own[name][:200]}."
            )
    raise Disagreement("the processes of this run were called in different ways: run the same script on each.")


def _all_bytes(own: bytes) -> list[bytes]:
    """Equally long bytes of every process, in their order."""
    return [line.tobytes()[: len(own)] for line in _exchange(_as_words(own)[None], _everywhere, 1)]


def _dealt(pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What each process has for this one, of equal arrays of which it has one for each of them."""
    own = np.stack([_as_words(piece.tobytes()) for piece in pieces])
    heard = _exchange(own, _swapped, own.shape[0])
    return [np.frombuffer(line.tobytes(), pieces[0].dtype, pieces[0].size).reshape(pieces[0].shape) for line in heard]


def _as_words(own: bytes) -> np.ndarray:
    """Bytes as the numbers that go over the lines: JAX would take the second half of a double precision one away."""
    # In words of 32 bits; what fills up the last of them is cut off again.
    return np.frombuffer(own + b"\0" * (-len(own) % 4), np.uint32)


def _exchange(own: np.ndarray, program: Callable[[jax.sharding.Mesh], Any], n: int) -> np.ndarray:
    """What this process gets where a program of all of them has (n, words) of each."""
    mesh = _process_mesh()
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("process"))
    with company():
        shape = (n * n_processes(), own.shape[1])
        whole = jax.make_array_from_single_device_arrays(shape, sharding, [jax.device_put(own, mesh.local_devices[0])])
        return np.asarray(program(mesh)(whole).addressable_data(0))


@functools.lru_cache(maxsize=1)
def _process_mesh() -> jax.sharding.Mesh:
    """One device of each process."""
    firsts: dict[int, Any] = {}
    for device in jax.devices():
        firsts.setdefault(device.process_index, device)
    return jax.sharding.Mesh(np.array([firsts[number] for number in sorted(firsts)]), ("process",))


@functools.lru_cache(maxsize=2)
def _everywhere(mesh: jax.sharding.Mesh) -> Callable[[jax.Array], jax.Array]:
    """An array that is shared out, whole on each process."""
    return jax.jit(lambda array: array, out_shardings=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


@functools.lru_cache(maxsize=2)
def _swapped(mesh: jax.sharding.Mesh) -> Callable[[jax.Array], jax.Array]:
    """Of (processes, n) of each process, the one of this one's number of each."""
    own = jax.sharding.PartitionSpec("process")
    swap = functools.partial(jax.lax.all_to_all, axis_name="process", split_axis=0, concat_axis=0, tiled=True)
    return jax.jit(jax.shard_map(swap, mesh=mesh, in_specs=own, out_specs=own))
