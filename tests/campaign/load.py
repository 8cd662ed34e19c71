"""A studio under load: 50 people watch one comparison while 10 ask what if, on this machine; then malformed requests.

The part `studio` of the campaign serves a table with an exact model, lets one person ask alone, then all of them for a
minute, and then sends a thousand requests that no page sends. Faults are errors, slow answers, memory that grows, and
malformed requests that get anything but a refusal or leave anything behind.
"""

from __future__ import annotations

import http.client
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import polars as pl

from tests.studio.test_security import malformed

ROOT = Path(__file__).resolve().parent.parent.parent
WATCHERS, ASKERS = 50, 10
MOST_SECONDS = 0.5  # at the 95th percentile of exact answers
MOST_ALONE = 0.2  # the same, where one person asks
N_ALONE, N_MALFORMED = 60, 1000
PAUSE = 0.2  # between what a person asks: the page waits longer than a tenth of a second itself
MEGABYTES = 30.0  # by which memory may grow in the second half: what was computed is remembered up to a limit
COMPARED = "m-independent=1&m-mixture=1&m-autoregressive=1&m-circuit=1&m-vae=1"


@dataclass
class Seen:
    """What clients met with."""

    seconds: list[float] = field(default_factory=list)
    events: int = 0
    errors: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)  # megabytes of the server, twice a second


class Client:
    """A browser with the cookie, as far as it matters here."""

    def __init__(self, address: str):
        self.host, self.cookie = urlsplit(address).netloc, ""
        with self.send("GET", address.partition(self.host)[2]) as answer:
            self.cookie = answer.getheader("set-cookie", "").partition(";")[0]

    @contextmanager
    def send(
        self, method: str, path: str, body: str | bytes | None = None, headers: dict[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """A request and its answer, on a connection of its own."""
        if headers is None:
            kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}"}
            headers = kind if body else {}
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path, body, {"cookie": self.cookie} | headers)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[str, int]]:
    """A running studio: its address and process."""
    command = [sys.executable, "-c", "from likely.cli import main; main()", "studio", *arguments, "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("Studio: ").strip(), process.pid
        finally:
            process.send_signal(signal.SIGINT)


def prepare(folder: Path, n: int = 2000) -> None:
    """A table of people, and an exact model of it."""
    import likely

    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, n).round().clip(18, 90)
    income = np.exp(rng.normal(9 + 0.015 * age, 0.25))
    city = rng.choice(["Rome", "Oslo", "Lima", "Bonn"], n)
    pl.DataFrame({"age": age, "income": income, "city": city}).write_csv(folder / "people.csv")
    data = likely.datasets.load(folder / "people.csv")
    likely.Mixture(4, schema=data.schema, random_state=0).fit(data.train).save(folder / "model.likely")


def _watch(client: Client, seen: Seen, end: float) -> None:
    """Watch the comparison, again when it is over, as somebody who opens the page anew."""
    while time.monotonic() < end:
        with client.send("GET", "/compare/0001/events") as answer:
            if answer.status != 200:
                seen.errors.append(f"events: {answer.status}")
            while time.monotonic() < end and (line := answer.readline()):
                seen.events += line.startswith(b"data:")
        time.sleep(min(1.0, max(0.0, end - time.monotonic())))


def _ask(client: Client, seen: Seen, end: float, seed: int) -> None:
    """Pin an age and an income that hardly anybody has asked for before."""
    random_ = random.Random(seed)
    while time.monotonic() < end:
        _ask_once(client, seen, random_)
        time.sleep(PAUSE)


def _ask_once(client: Client, seen: Seen, random_: random.Random) -> None:
    path = f"/what-if/answer?a0={random_.randint(18, 90)}&a1={random_.uniform(5e3, 5e4):.2f}"
    start = time.monotonic()
    with client.send("GET", path) as answer:
        text = answer.read()
    seen.seconds.append(time.monotonic() - start)
    if answer.status != 200 or b"log p of what is pinned" not in text:
        seen.errors.append(f"{path}: {answer.status}")


def _refused(client: Client, seed: int, n: int, folder: Path) -> list[str]:
    """What malformed requests got that were not refused, and files that they left."""
    rng, faults = np.random.default_rng(seed), []
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for _ in range(n):
        method, path, headers, body = malformed(rng, client.host)
        with client.send(method, quote(path, safe="/?&=%.,;:!$()*@[]^~"), body or None, headers) as answer:
            answer.read()
        if not 400 <= answer.status < 500:
            faults.append(f"{method} {path[:80]}: {answer.status}")
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    return faults + [f"written: {path}" for path in after if after[path] != before.get(path)]


def _guarded(work: Any, seen: Seen, *arguments: Any) -> None:
    try:
        work(*arguments)
    except (OSError, http.client.HTTPException) as error:
        seen.errors.append(f"{type(error).__name__}: {error}")


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    text = Path(f"/proc/{process}/status").read_text()
    return float(text.split("VmRSS:")[1].split()[0]) / 1024


def studio(seed: int, small: bool) -> dict[str, Any]:
    """What became of a minute of load, and of malformed requests.

    Parameters
    ----------
    seed : of what people ask, and of malformed requests. small : three seconds, and fifty requests.
    """
    folder, alone, seen = Path(tempfile.mkdtemp()), Seen(), Seen()
    seconds, compared = (3.0, "m-independent=1") if small else (60.0, COMPARED)
    n_malformed = 50 if small else N_MALFORMED
    prepare(folder)
    with served(folder, "people.csv", "model.likely") as (address, process):
        client, random_ = Client(address), random.Random(seed)
        with client.send("GET", "/what-if/answer?a0=40&a1=15000") as answer:  # compiles what follows
            answer.read()
        for _ in range(5 if small else N_ALONE):
            _ask_once(client, alone, random_)
        left = _refused(client, seed, n_malformed, folder)
        with client.send("POST", "/compare/start", compared) as answer:
            seen.errors += [] if answer.status == 303 else [f"start: {answer.status}"]
        _crowd(client, process, seen, seconds, seed)
    grown = seen.memory[-1] - seen.memory[len(seen.memory) // 2]
    own, others = (1000 * float(np.quantile(found.seconds, 0.95)) for found in (alone, seen))
    faults = [*alone.errors, *seen.errors, *left]
    if not small:  # a busy machine may answer three seconds slowly, but not wrongly
        faults += [f"alone: {own:.0f} ms"] if own > 1000 * MOST_ALONE else []
        faults += [f"beside others: {others:.0f} ms"] if others > 1000 * MOST_SECONDS else []
        faults += [f"memory grew by {grown:.0f} MB"] if grown > MEGABYTES else []
    return {
        "answers": len(seen.seconds),
        "events": seen.events,
        "alone": round(own),
        "beside others": round(others),
        "megabytes": round(seen.memory[-1]),
        "grown": round(grown),
        "malformed": n_malformed,
        "wanted": round(os.getloadavg()[0]),
        "faults": faults,
    }


def _crowd(client: Client, process: int, seen: Seen, seconds: float, seed: int) -> None:
    """All at a time, for so long."""
    end = time.monotonic() + seconds
    people = [threading.Thread(target=_guarded, args=(_watch, seen, client, seen, end)) for _ in range(WATCHERS)]
    people += [
        threading.Thread(target=_guarded, args=(_ask, seen, client, seen, end, seed + 1 + i)) for i in range(ASKERS)
    ]
    for person in people:
        person.start()
    while time.monotonic() < end:
        seen.memory.append(memory(process))
        time.sleep(0.5)
    for person in people:
        person.join()
