"""A studio under load: 50 people watch one comparison while 10 ask what if, on this machine.

`python -m tests.campaign.load [SECONDS]` serves a table with an exact model, lets them at it for so long (60), and
prints errors, the 95th percentile of the answers' times, and the server's memory. It fails on any error, on a
percentile above half a second, and on memory that grows.
"""

from __future__ import annotations

import http.client
import json
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
from urllib.parse import urlsplit

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent.parent
WATCHERS, ASKERS = 50, 10
MOST_SECONDS = 0.5  # at the 95th percentile of exact answers
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
    def send(self, method: str, path: str, body: str | None = None) -> Iterator[http.client.HTTPResponse]:
        """A request and its answer, on a connection of its own."""
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}"}
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path, body, {"Cookie": self.cookie} | (kind if body else {}))
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
        path = f"/what-if/answer?a0={random_.randint(18, 90)}&a1={random_.uniform(5e3, 5e4):.2f}"
        start = time.monotonic()
        with client.send("GET", path) as answer:
            text = answer.read()
        seen.seconds.append(time.monotonic() - start)
        if answer.status != 200 or b"log p of what is pinned" not in text:
            seen.errors.append(f"{path}: {answer.status}")
        time.sleep(PAUSE)


def _guarded(work: Any, seen: Seen, *arguments: Any) -> None:
    try:
        work(*arguments)
    except (OSError, http.client.HTTPException) as error:
        seen.errors.append(f"{type(error).__name__}: {error}")


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    text = Path(f"/proc/{process}/status").read_text()
    return float(text.split("VmRSS:")[1].split()[0]) / 1024


def load(seconds: float, compared: str = COMPARED) -> dict[str, Any]:
    """What became of so many seconds of load."""
    folder = Path(tempfile.mkdtemp())
    prepare(folder)
    seen = Seen()
    with served(folder, "people.csv", "model.likely") as (address, process):
        client = Client(address)
        with client.send("GET", "/what-if/answer?a0=40&a1=15000") as answer:  # compiles what follows
            answer.read()
        with client.send("POST", "/compare/start", compared) as answer:
            started = answer.status
        end = time.monotonic() + seconds
        people = [threading.Thread(target=_guarded, args=(_watch, seen, client, seen, end)) for _ in range(WATCHERS)]
        people += [threading.Thread(target=_guarded, args=(_ask, seen, client, seen, end, i)) for i in range(ASKERS)]
        for person in people:
            person.start()
        while time.monotonic() < end:
            seen.memory.append(memory(process))
            time.sleep(0.5)
        for person in people:
            person.join()
    grown = seen.memory[-1] - seen.memory[len(seen.memory) // 2]
    return {
        "seconds": seconds,
        "started": started,
        "answers": len(seen.seconds),
        "p50": float(np.quantile(seen.seconds, 0.5)),
        "p95": float(np.quantile(seen.seconds, 0.95)),
        "events": seen.events,
        "errors": seen.errors[:10],
        "megabytes": [round(seen.memory[0]), round(seen.memory[len(seen.memory) // 2]), round(seen.memory[-1])],
        "grown": grown,
    }


def main() -> None:
    """Run the campaign, and fail where it does not hold."""
    found = load(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    assert not found["errors"], found["errors"]
    assert found["p95"] <= MOST_SECONDS, f"the 95th percentile is {found['p95']:.2f} s"
    assert found["grown"] <= MEGABYTES, f"memory grew by {found['grown']:.0f} MB"


if __name__ == "__main__":
    main()
