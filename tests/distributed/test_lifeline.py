"""How processes find each other and notice that one is gone: threads of one process here, with sockets, without JAX."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from likely.distributed import lifeline, meeting
from likely.distributed.lifeline import Lifeline, NotMet

PASSAGE = meeting._passage


@pytest.fixture
def address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(autouse=True)
def closed(monkeypatch) -> Iterator[None]:
    """Every line is closed in the end, and JAX's passages, which live as long as a process, are not made."""
    made: list[Lifeline] = []
    begin = Lifeline.__init__

    def init(self: Lifeline, *arguments: Any, **more: Any) -> None:
        begin(self, *arguments, **more)
        made.append(self)

    monkeypatch.setattr(Lifeline, "__init__", init)
    monkeypatch.setattr(meeting, "_passage", lambda target: 0)
    yield
    for line in made:
        for one in line.lines.values():
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
    time.sleep(0.1)
    for line in made:
        line.close()


@pytest.fixture
def ends(monkeypatch) -> list[str]:
    """Words of processes that were to be ended, which here they are not."""
    found: list[str] = []
    monkeypatch.setattr(Lifeline, "_end", lambda self: found.append(self.words()))
    return found


def met(address: str, n: int, seconds: float = 20.0) -> list[Lifeline]:
    with ThreadPoolExecutor(n) as pool:
        found = [pool.submit(meeting.meet, address, n, rank, seconds) for rank in range(n)]
        lines = [one.result()[0] for one in found]
    for line in lines:
        line.watch()
    return lines


def close(lines: list[Lifeline]) -> None:
    with ThreadPoolExecutor(len(lines)) as pool:
        list(pool.map(Lifeline.leave, lines))


def until(true: Any, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true())


def test_all_leave_together_and_nobody_is_missed(address, ends):
    lines = met(address, 3)
    first = threading.Thread(target=lines[1].leave)
    first.start()
    time.sleep(0.2)
    assert first.is_alive()  # it waits for the others
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Lifeline.leave, [lines[0], lines[2]]))
    first.join(timeout=10)
    assert not first.is_alive()
    assert ends == []


@pytest.mark.parametrize("victim", [0, 2])
def test_a_line_that_ends_is_told_to_all(address, ends, victim, monkeypatch):
    lines = met(address, 3)
    monkeypatch.setattr(lines[victim], "_tell", lambda message: None)  # A process that is dead says nothing more.
    for one in lines[victim].lines.values():
        one.shutdown(socket.SHUT_RDWR)
    others = [line for line in lines if line.rank != victim]
    assert until(lambda: all(line.loss for line in others))
    assert all(f"process {victim} of 3 has ended" in str(line.loss) for line in others)
    assert any("cannot go on" in words for words in ends)


def test_a_process_that_fails_is_named(address, ends):
    lines = met(address, 2)
    lines[1].fail()
    assert until(lambda: lines[0].loss)
    assert "process 0 of 2 cannot go on (process 1 of 2 has failed, and says why)" in lines[0].words()


def test_work_in_common_ends_where_a_process_left_it(address, ends, monkeypatch):
    monkeypatch.setattr(lifeline, "_IN_COMPANY", 0.2)
    lines = met(address, 2)
    with lines[0].together():
        threading.Thread(target=lines[1].leave, daemon=True).start()
        assert until(lambda: lines[0].loss)
    assert "process 1 of 2 came to its end while this one needs it" in lines[0].words()


def test_work_in_common_that_ends_in_time_is_no_loss(address, ends, monkeypatch):
    monkeypatch.setattr(lifeline, "_IN_COMPANY", 0.5)
    lines = met(address, 2)
    leaving = threading.Thread(target=lines[1].leave)
    with lines[0].together():
        leaving.start()
        assert until(lambda: lines[0].left)
    time.sleep(0.8)
    assert lines[0].loss is None
    close([lines[0]])
    leaving.join(timeout=10)


def test_those_who_do_not_come_are_named(address):
    with pytest.raises(NotMet, match=r"did not come to .* in time: 1, 2\. Start each"):
        meeting.meet(address, 3, 0, 0.3)
    with pytest.raises(NotMet, match="process 1 did not find process 0 at"):
        meeting.meet(address, 2, 1, 0.0)


@pytest.mark.parametrize(
    ("rank", "n_processes", "words"),
    [(1, 3, "there is a process 1 already"), (1, 4, "it was told of 4 processes, and process 0 of 3")],
)
def test_a_process_that_does_not_fit_is_refused(address, rank, n_processes, words):
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(meeting.meet, address, 3, 0, 20.0)
        found = pool.submit(meeting.meet, address, 3, 1, 20.0)
        time.sleep(0.5)
        with pytest.raises(NotMet, match=words):
            meeting.meet(address, n_processes, rank, 20.0)
        last = pool.submit(meeting.meet, address, 3, 2, 20.0)
        lines = [one.result()[0] for one in (first, found, last)]
    for line in lines:
        line.watch()
    close(lines)


def test_what_is_no_process_of_a_run_is_not_let_in(address):
    host, port = meeting.split(address)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(meeting.meet, address, 2, 0, 20.0)
        for noise in (b"GET / HTTP/1.1\n", b'{"process": "x", "processes": 2}\n', b"\xff\xfe\n", b"[]\n"):
            stranger = None
            while stranger is None:
                try:
                    stranger = socket.create_connection((host, port))
                except OSError:
                    time.sleep(0.05)
            stranger.sendall(noise)
            stranger.close()
        second = pool.submit(meeting.meet, address, 2, 1, 20.0)
        lines = [first.result()[0], second.result()[0]]
    for line in lines:
        line.watch()
    close(lines)


def test_a_port_that_is_taken_is_named(address):
    with socket.create_server(meeting.split(address)), pytest.raises(NotMet, match="cannot listen at port"):
        meeting.meet(address, 2, 0, 1.0)


def test_a_passage_stays_open_when_its_end_is_gone():
    """What JAX must not see: that its coordinator is gone."""
    with socket.create_server(("127.0.0.1", 0)) as end:
        port = PASSAGE(end.getsockname())
        with socket.create_connection(("127.0.0.1", port)) as near:
            far, _ = end.accept()
            near.sendall(b"there")
            assert far.recv(5) == b"there"
            far.sendall(b"back")
            assert near.recv(4) == b"back"
            far.close()
            near.settimeout(0.3)
            with pytest.raises(TimeoutError):
                near.recv(1)
