"""Many processes as one: the same script on every host, each with its share of the rows.

`start` joins this process to the others by `jax.distributed`. From then on JAX's devices are those of all processes:
training shares every batch out over them and averages gradients, EM shares rows out and adds up its sums, and what a
fit gives is the same on each process. Every process is given the same rows, as a memory map or a file that all of them
can see, and reads its own share of them. The first process writes files.

Sums are added up in the order of the devices, so two processes of one device each give the bits of one process of two.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import jax
import numpy as np

HEARTBEAT_SECONDS = 10  # after which a silent process counts as lost
_DIGEST = 32  # bytes of a digest that processes compare


class ProcessLost(RuntimeError):
    """Another process of the run has ended, or cannot be reached."""


class Disagreement(ValueError):
    """Processes of one run were given different things."""


def start(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Join this process to a run of several; before anything else is done with JAX.

    The arguments are those of `jax.distributed.initialize`. Under Slurm and Open MPI all of them can be left out: JAX
    finds them. Every process needs as many devices as the others.

    Parameters
    ----------
    coordinator_address : "host:port" of the first process, which the others can reach.
    num_processes : how many there are.
    process_id : which one this is, from 0.

    Raises
    ------
    ValueError : arguments that do not fit together.
    ProcessLost : the others did not come within five minutes.
    """
    _check_start(coordinator_address, num_processes, process_id)
    # Collectives of processors go through Gloo; JAX has its own for other devices.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator_address,
            num_processes,
            process_id,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except RuntimeError as error:
        if "before" in str(error) or "once" in str(error):
            raise RuntimeError(
                "likely.distributed.start must come once, and before anything is computed: call it first in the script."
            ) from error
        raise ProcessLost(f"the {num_processes or ''} processes of this run did not meet: {error}") from error
    counts = gathered_numbers(jax.local_device_count())
    if len(set(counts)) > 1:
        raise Disagreement(f"every process needs equally many devices, and these have {counts}.")


def stop() -> None:
    """Leave the run; waits for the others to get here. A script that ends without it does the same."""
    jax.distributed.shutdown()


def n_processes() -> int:
    """How many processes there are."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def rank() -> int:
    """Which one this is, from 0."""
    return jax.process_index() if jax.distributed.is_initialized() else 0


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return rank() == 0


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
    total = None
    for part in gathered(parts):
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def gathered(parts: Sequence[Any]) -> list[Any]:
    """The parts of all processes, in the order of their shares; trees of arrays, of one structure and one shape."""
    if n_processes() == 1:
        return list(parts)
    leaves, structure = jax.tree.flatten(list(parts))
    arrays = [np.asarray(leaf) for leaf in leaves]
    packed = b"".join(array.tobytes() for array in arrays)
    # As bytes: JAX would take the second half of a double precision number away.
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
    padded = [np.resize(part, (max(lengths), *part.shape[1:])) for part in parts]
    return np.concatenate([whole[:n] for whole, n in zip(gathered(padded), lengths, strict=True)])


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


@contextmanager
def company() -> Iterator[None]:
    """Turn the ways in which JAX says that another process is gone into one that a person understands."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if n_processes() == 1 or not _is_lost(str(error)):
            raise
        raise ProcessLost(_loss()) from error


def _loss() -> str:
    return (
        f"another process of this run has ended, so process {rank()} of {n_processes()} cannot go on. Start all of "
        "them again, with resume= and the path of the last checkpoint if there was one."
    )


def _is_lost(message: str) -> bool:
    signs = ("gloo", "connection", "heartbeat", "unavailable", "deadline", "barrier", "coordination", "peer", "socket")
    return any(sign in message.lower() for sign in signs)


def _all_bytes(own: bytes) -> list[bytes]:
    """Equally long bytes of every process, in their order."""
    padded = np.frombuffer(own + b"\0" * (-len(own) % 4), np.uint32)
    mesh = _process_mesh()
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("process"))
    with company():
        row = jax.device_put(padded[None], mesh.local_devices[0])
        shape = (n_processes(), len(padded))
        whole = jax.make_array_from_single_device_arrays(shape, sharding, [row])
        table = np.asarray(_everywhere(mesh)(whole))
    return [line.tobytes()[: len(own)] for line in table]


@functools.lru_cache(maxsize=1)
def _process_mesh() -> jax.sharding.Mesh:
    """One device of each process."""
    firsts: dict[int, Any] = {}
    for device in jax.devices():
        firsts.setdefault(device.process_index, device)
    return jax.sharding.Mesh(np.array([firsts[number] for number in sorted(firsts)]), ("process",))


@functools.lru_cache(maxsize=1)
def _everywhere(mesh: jax.sharding.Mesh) -> Callable[[jax.Array], jax.Array]:
    """An array that is shared out, whole on each process."""
    return jax.jit(lambda array: array, out_shardings=jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def _check_start(address: Any, num_processes: Any, process_id: Any) -> None:
    given = [value is not None for value in (address, num_processes, process_id)]
    if any(given) and not all(given):
        raise ValueError(
            "give all of coordinator_address, num_processes and process_id, or none of them under Slurm or Open MPI."
        )
    if not any(given):
        return
    if not isinstance(address, str) or ":" not in address or not address.rpartition(":")[2].isdigit():
        raise ValueError(f"`coordinator_address` must be 'host:port' of the first process, got {address!r}.")
    if not isinstance(num_processes, int) or num_processes < 1:
        raise ValueError(f"`num_processes` must be a whole number of at least 1, got {num_processes!r}.")
    if not isinstance(process_id, int) or not 0 <= process_id < num_processes:
        raise ValueError(f"`process_id` must be from 0 to {num_processes - 1}, got {process_id!r}.")
