"""How the processes of a run find each other, before JAX joins them.

The first one listens at the address that all were given; the others come there, say their number, and hear at which
port JAX's own coordinator is to be found once all have come. They reach that one through a passage of their own, which
hides from JAX that it is gone: JAX would end them at once, by a dump of its stack, and the lifeline is to speak first.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from likely.distributed.lifeline import Lifeline, NotMet, keep_asking, receive, send

_GREETING_SECONDS = 10.0  # that somebody who calls has to say who it is
_PIECE = 1 << 16


def meet(address: str, n_processes: int, rank: int, seconds: float) -> tuple[Lifeline, str]:
    """The lines of this process, once all have come, and the address at which JAX finds its coordinator.

    Raises
    ------
    NotMet : some did not come, or were refused.
    """
    host, port = split(address)
    until = time.monotonic() + seconds
    if rank == 0:
        lines = _all_others(host, port, n_processes, until)
        inner = _free_port()
        for line in lines.values():
            send(line, {"port": inner})
        return Lifeline(0, n_processes, lines), f"127.0.0.1:{inner}"
    line, inner = _to_first(host, port, n_processes, rank, until)
    return Lifeline(rank, n_processes, {0: line}), f"127.0.0.1:{_passage((host, inner))}"


def split(address: str) -> tuple[str, int]:
    """Host and port; brackets around an address with colons are left out."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _all_others(host: str, port: int, n_processes: int, until: float) -> dict[int, socket.socket]:
    lines: dict[int, socket.socket] = {}
    if n_processes == 1:
        return lines
    with _listening(host, port) as door:
        while len(lines) < n_processes - 1:
            door.settimeout(max(0.01, until - time.monotonic()))
            try:
                line, _ = door.accept()
            except TimeoutError:
                missing = [number for number in range(1, n_processes) if number not in lines]
                for line in lines.values():
                    line.close()
                raise NotMet(
                    f"of {n_processes} processes these did not come to {host}:{port} in time: {_listed(missing)}. "
                    "Start each of them with this address and this number of processes."
                ) from None
            with suppress(OSError, ValueError):  # what calls, and is no process of a run
                _greet(line, lines, n_processes)
            if line not in lines.values():
                line.close()
    return lines


def _greet(line: socket.socket, lines: dict[int, socket.socket], n_processes: int) -> None:
    line.settimeout(_GREETING_SECONDS)
    message = receive(line)
    number = message.get("process")
    if message.get("processes") != n_processes:
        refusal = f"it was told of {message.get('processes')} processes, and process 0 of {n_processes}"
    elif number in lines:
        refusal = f"there is a process {number} already: give each of them a number of its own"
    elif isinstance(number, int) and 0 < number < n_processes:
        keep_asking(line)
        lines[number] = line
        return
    else:
        refusal = f"its number is {number!r}"
    send(line, {"refused": refusal})


def _to_first(host: str, port: int, n_processes: int, rank: int, until: float) -> tuple[socket.socket, int]:
    while True:
        try:
            line = socket.create_connection((host, port), timeout=_GREETING_SECONDS)
            break
        except OSError as error:
            if time.monotonic() > until:
                raise NotMet(
                    f"process {rank} did not find process 0 at {host}:{port} in time ({error}): start process 0 there, "
                    "and let nothing (a firewall) stand between."
                ) from error
            time.sleep(0.2)
    keep_asking(line)
    try:
        send(line, {"process": rank, "processes": n_processes})
        answer = receive(line)
    except (OSError, ValueError) as error:
        line.close()
        raise NotMet(f"process 0 at {host}:{port} ended before the run began: see what it says.") from error
    if "refused" in answer:
        line.close()
        raise NotMet(f"process {rank} was refused by process 0 at {host}:{port}: {answer['refused']}.")
    return line, int(answer["port"])


def _listening(host: str, port: int) -> socket.socket:
    """The door; open to this machine alone where the address is its own."""
    local = host in ("localhost", "::1") or host.startswith("127.")
    try:
        if not local and socket.has_dualstack_ipv6():
            with suppress(OSError):
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
        family = socket.AF_INET6 if host == "::1" else socket.AF_INET
        return socket.create_server((host if local else "", port), family=family, backlog=1024)
    except OSError as error:
        raise NotMet(f"process 0 cannot listen at port {port} ({error.strerror or error}): take another.") from error


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def _passage(target: tuple[str, int]) -> int:
    """A port of this machine that leads to a target, and stays open when the target is gone."""
    door = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_carry_on, args=(door, target), name="likely-passage", daemon=True).start()
    return int(door.getsockname()[1])


def _carry_on(door: socket.socket, target: tuple[str, int]) -> None:
    while True:
        near, _ = door.accept()
        far = _reached(target)
        if far is None:
            near.close()  # JAX tries again
            continue
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, sink, source is near), daemon=True).start()


def _reached(target: tuple[str, int]) -> socket.socket | None:
    """A line to JAX's coordinator, which may take a moment to be there."""
    until = time.monotonic() + _GREETING_SECONDS
    while time.monotonic() < until:
        try:
            far = socket.create_connection(target, timeout=_GREETING_SECONDS)
            far.settimeout(None)
            return far
        except OSError:
            time.sleep(0.05)
    return None


def _pump(source: socket.socket, sink: socket.socket, ends: bool) -> None:
    """Pass bytes on; the near end's end is passed on as well, the far end's is not."""
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
    if ends:
        for line in (source, sink):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"
