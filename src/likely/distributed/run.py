"""Joining a run of several processes, leaving it, and what happens when one of them is lost."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import jax

from likely.distributed.lifeline import Lifeline, NotMet, end_now
from likely.distributed.meeting import meet
from likely.memory import hold_own_rows_alone

MEETING_SECONDS = 300.0  # that the processes have to find each other
_JAX_SECONDS = 100  # after which JAX's own coordinator speaks: long after the lifeline


class ProcessLost(ConnectionError):
    """Another process of the run has ended, or cannot be reached."""


class _Here:
    """What this process knows of its run."""

    lifeline: Lifeline | None = None
    exit_code = 0  # other than 0 once it is known that this process fails


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
    ProcessLost : the others did not come within five minutes, or do not fit.
    """
    from likely.distributed.sums import first_word  # which is made of what is here

    address, n_processes, number = _checked(coordinator_address, num_processes, process_id)
    if jax.distributed.is_initialized() or _computed():
        raise RuntimeError(
            "likely.distributed.start must come once, and before anything is computed: call it first in the script."
        )
    try:
        lifeline, inner = meet(address, n_processes, number, MEETING_SECONDS)
    except NotMet as error:
        raise ProcessLost(str(error)) from None
    _Here.lifeline, _Here.exit_code = lifeline, 0
    _watch_for_failure()
    # Registered after JAX's own, which would wait for processes that are gone, and so called before it.
    atexit.register(_at_exit)
    lifeline.watch()
    if n_processes > 1:
        hold_own_rows_alone()
    # Collectives of processors go through Gloo; JAX has its own for other devices.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    with company(), _quiet():
        jax.distributed.initialize(
            inner,
            n_processes,
            number,
            heartbeat_timeout_seconds=_JAX_SECONDS,
            shutdown_timeout_seconds=_JAX_SECONDS,
        )
        first_word()


def stop() -> None:
    """Leave the run; waits for the others to get here. A script that ends without it does the same."""
    if _Here.lifeline is None:
        return
    lifeline = _Here.lifeline
    lifeline.leave()
    _Here.lifeline = None
    jax.distributed.shutdown()
    lifeline.close()


def n_processes() -> int:
    """How many processes there are."""
    # A script may also have joined the others by JAX itself, and has no lifeline then.
    return jax.process_count() if jax.distributed.is_initialized() else 1


def rank() -> int:
    """Which one this is, from 0."""
    return jax.process_index() if jax.distributed.is_initialized() else 0


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return rank() == 0


@contextmanager
def company() -> Iterator[None]:
    """Work that all processes do together: if one of them ends, or has come to its end without it, all others end.

    Raises
    ------
    ProcessLost : where JAX says, in one of its many ways, that another process is gone.
    """
    lifeline = _Here.lifeline
    if lifeline is None or lifeline.n_processes == 1:
        yield
        return
    with words_of_loss(), lifeline.together():
        if lifeline.left:
            raise ProcessLost(
                f"process {min(lifeline.left)} of {lifeline.n_processes} came to its end while this one, process "
                f"{lifeline.rank}, needs it: every process must make the same calls."
            )
        yield


@contextmanager
def words_of_loss() -> Iterator[None]:
    """Turn what JAX says of a process that is gone into words that a person understands."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        lifeline, by_gloo = _Here.lifeline, "Gloo" in str(error)
        if lifeline is None or not (by_gloo or isinstance(error, jax.errors.JaxRuntimeError)):
            raise
        if lifeline.wait_for_loss() is None and not by_gloo:
            raise
        lifeline.raised.set()
        raise ProcessLost(lifeline.words()) from error


def failing(exit_code: int = 1) -> None:
    """Let this process's end be a failure, with an exit code: the others are told, and are not waited for."""
    _Here.exit_code = exit_code


def _at_exit() -> None:
    lifeline = _Here.lifeline
    if lifeline is None:
        return
    if lifeline.loss is not None:
        if not lifeline.raised.is_set():
            sys.stderr.write(f"likely: error: {lifeline.words()}\n")
        end_now(_Here.exit_code or 1)
    if _Here.exit_code:
        lifeline.fail()
        end_now(_Here.exit_code)
    stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Have Gloo say on stderr that it is connected, which it says on stdout, where there may be JSON."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _watch_for_failure() -> None:
    """Know at the end of the process that it came by an error."""
    shown = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        failing(1)
        shown(kind, error, where)
        if _Here.lifeline is not None and "Gloo" in str(error):
            _Here.lifeline.wait_for_loss()  # which is the reason, and is told at the end

    sys.excepthook = note


def _computed() -> bool:
    """Whether JAX has set up its devices, after which no process can join it."""
    from jax._src import xla_bridge  # JAX has no public word for it

    return bool(xla_bridge.backends_are_initialized())


def _checked(address: Any, num_processes: Any, process_id: Any) -> tuple[str, int, int]:
    """The three of them, found by JAX where none is given."""
    given = [value is not None for value in (address, num_processes, process_id)]
    if not any(given):
        address, num_processes, process_id = _found()
    elif not all(given):
        raise ValueError(
            "give all of coordinator_address, num_processes and process_id, or none of them under Slurm or Open MPI."
        )
    if not isinstance(address, str) or not _is_address(address):
        raise ValueError(f"`coordinator_address` must be 'host:port' of the first process, got {address!r}.")
    if isinstance(num_processes, bool) or not isinstance(num_processes, int) or num_processes < 1:
        raise ValueError(f"`num_processes` must be a whole number of at least 1, got {num_processes!r}.")
    if isinstance(process_id, bool) or not isinstance(process_id, int) or not 0 <= process_id < num_processes:
        raise ValueError(f"`process_id` must be from 0 to {num_processes - 1}, got {process_id!r}.")
    return address, num_processes, process_id


def _is_address(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536


def _found() -> tuple[str | None, int | None, int | None]:
    """What JAX finds of the launcher that started this process: Slurm, Open MPI, Kubernetes."""
    from jax._src.clusters import ClusterEnv  # JAX does the same inside `initialize`, and does not tell

    found = ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, int(MEETING_SECONDS))[:3]
    if None in found:
        raise ValueError(
            "this process was not started by Slurm or Open MPI, so it must be told where the others are: give "
            "coordinator_address ('host:port' of the first process), num_processes and process_id."
        )
    return found
