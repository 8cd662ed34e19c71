"""Lines between the processes of a run, by which each of them learns at once that another has ended.

The first process listens where the others look for it, and every other one holds a line to it as long as it lives. A
process that is killed loses its line, since the system closes it; of a machine that is gone the system finds out by
itself, by asking every few seconds. Whatever is lost is told to all, and ends them in words: JAX would end them with a
dump of its stack, or not before a minute has passed.

Nothing but numbers of processes, ports and these words go over the lines.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HEARTBEAT_SECONDS = 10  # after which a machine that does not answer is lost
_BEATS = 3  # questions without an answer within these seconds
_TO_RAISE, _TO_LEAVE = 3.0, 10.0  # seconds that a script has to raise an error of its own, and to end after it
_IN_COMPANY = 30.0  # seconds that work in common may go on after a process left it; ends of it take their time
_MOST_BYTES = 4096  # of a message

Message = dict[str, Any]


class NotMet(ConnectionError):
    """The processes did not find each other."""


@dataclass
class Lifeline:
    """The end of the lines that is in this process.

    Attributes
    ----------
    lines : of the first process to each other one, by number; of another one to the first.
    loss : what happened, once a process is lost.
    """

    rank: int
    n_processes: int
    lines: dict[int, socket.socket]
    loss: str | None = None
    raised: threading.Event = field(default_factory=threading.Event)
    left: set[int] = field(default_factory=set)
    _all_left: threading.Event = field(default_factory=threading.Event)
    _together: int = 0  # pieces of work in common that are under way
    _leaving: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self) -> None:
        """Look after the lines from now on, in a thread of its own."""
        threading.Thread(target=self._look, name="likely-lifeline", daemon=True).start()

    @contextmanager
    def together(self) -> Iterator[None]:
        """A piece of work that needs all processes."""
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1

    def leave(self) -> None:
        """Say goodbye, and wait until all others have."""
        self._leaving = True
        if self.n_processes > 1:
            self._gone(self.rank)
            self._tell({"left": self.rank})
            self._all_left.wait()

    def close(self) -> None:
        """Give the lines up, once all have left."""
        for line in self.lines.values():
            line.close()

    def fail(self) -> None:
        """Tell the others that this process fails."""
        self._tell({"lost": self.rank, "how": "has failed, and says why"})

    def wait_for_loss(self) -> str | None:
        """What was lost, when JAX has said that something is: it may be the faster one."""
        until = time.monotonic() + _TO_RAISE
        while self.loss is None and time.monotonic() < until:
            time.sleep(0.05)
        return self.loss

    def _look(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for number, line in self.lines.items():
                waiting.register(line, selectors.EVENT_READ, (number, bytearray()))
            while waiting.get_map():
                for key, _ in waiting.select():
                    if not self._read(key.fileobj, *key.data):
                        waiting.unregister(key.fileobj)

    def _read(self, line: Any, number: int, kept: bytearray) -> bool:
        """Take what has come over a line; False once there is nothing more to come."""
        try:
            kept += (some := line.recv(_MOST_BYTES))
        except OSError:
            some = b""
        *whole, rest = kept.split(b"\n")
        kept[:] = rest
        for text in whole:
            self._heard(json.loads(text))
        if not some and not self._all_left.is_set() and not (self.rank == 0 and number in self.left):
            self._heard({"lost": number, "how": "has ended"})
        return bool(some)

    def _heard(self, message: Message) -> None:
        if self.rank == 0:
            self._tell(message)
        if "lost" in message:
            self._lost(f"process {message['lost']} of {self.n_processes} {message['how']}")
        else:
            self._gone(message["left"])

    def _gone(self, number: int) -> None:
        with self._lock:
            self.left.add(number)
            if len(self.left) == self.n_processes:
                self._all_left.set()
        if number != self.rank and self._together:
            threading.Thread(target=self._left_alone, args=(number,), daemon=True).start()

    def _left_alone(self, number: int) -> None:
        """Of work in common that a process has left, find out whether it ends; else it waits for ever."""
        until = time.monotonic() + _IN_COMPANY
        while self._together and time.monotonic() < until:
            time.sleep(0.1)
        if self._together:
            self._lost(f"process {number} of {self.n_processes} came to its end while this one needs it")

    def _lost(self, what: str) -> None:
        with self._lock:
            if self.loss is not None:
                return
            self.loss = what
        threading.Thread(target=self._end, name="likely-end", daemon=True).start()

    def _end(self) -> None:
        """End this process in words, unless the script does so itself: it may hang where nothing can be raised."""
        if not self._leaving and self.raised.wait(_TO_RAISE):
            time.sleep(_TO_LEAVE)
        else:
            with suppress(Exception):
                sys.stderr.write(f"likely: error: {self.words()}\n")
        end_now()

    def words(self) -> str:
        """What is to be said of the loss."""
        return (
            f"another process of this run has ended, so process {self.rank} of {self.n_processes} cannot go on "
            f"({self.loss or 'it cannot be reached'}). Start all of them again; a fit that had a checkpoint goes on "
            "from it with resume= and its path."
        )

    def _tell(self, message: Message) -> None:
        for line in list(self.lines.values()):
            with suppress(OSError):
                send(line, message)


def end_now(code: int = 1) -> None:
    """End this process without the goodbyes of JAX, which would wait for processes that are gone."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def send(line: socket.socket, message: Message) -> None:
    """A message down a line."""
    line.sendall(json.dumps(message).encode() + b"\n")


def receive(line: socket.socket) -> Message:
    """The next message of a line; an OSError where it ends."""
    text = b""
    while not text.endswith(b"\n"):
        byte = line.recv(1)
        if not byte or len(text) > _MOST_BYTES:
            raise ConnectionResetError("the line has ended")
        text += byte
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ConnectionResetError("no message of a run")
    return message


def keep_asking(line: socket.socket) -> None:
    """Have the system ask a line's other end whether it is there, so that a machine that is gone is noticed."""
    line.settimeout(None)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = HEARTBEAT_SECONDS // (_BEATS + 1)
    for name, value in (
        ("TCP_KEEPIDLE", every),
        ("TCP_KEEPALIVE", every),  # macOS
        ("TCP_KEEPINTVL", every),
        ("TCP_KEEPCNT", _BEATS),
        ("TCP_USER_TIMEOUT", 1000 * HEARTBEAT_SECONDS),
    ):
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
