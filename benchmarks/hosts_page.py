"""The tables of `docs/scale.md`: what was measured of one process and two, and what more hosts would give on paper."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from benchmarks.outcome import RESULTS
from likely.storage.files import write_atomically

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
HOSTS = (2, 8, 64, 1024)
LATENCY, BYTES_A_SECOND = 50e-6, 1.25e9  # of a network of 10 Gbit/s between machines of one hall
# How processes spoke in records that do not say so: added up inside a program, or each heard what all others had.
_SPOKE = {"RBM-500": "sum", "VAE": "sum", "Mixture": "sum", "Circuit": "list"}
# Rows of a step, on paper, beside those that were measured.
LARGE = {"RBM-500": 65_536, "VAE": 65_536, "Mixture": 10_000_000, "Circuit": 10_000_000}


def message(kind: str, n_hosts: int, n_bytes: float, latency: float, bytes_a_second: float, n_arrays: int = 1) -> float:
    """Seconds of a sum or a list over hosts in a ring, which is how Gloo has them go round.

    A sum goes round twice, a part of 1/H at a time: 2 (H - 1) messages of bytes / H, for each of its arrays. A sum
    outside of programs is as much: each host is sent its part by all others, and then tells them. A list goes round
    once, but each of its H - 1 messages is whole.
    """
    if n_hosts == 1:
        return 0.0
    if kind == "list":
        return (n_hosts - 1) * (n_arrays * latency + n_bytes / bytes_a_second)
    return 2 * (n_hosts - 1) * (n_arrays * latency + n_bytes / n_hosts / bytes_a_second)


def measured_message(messages: list[dict[str, float]], kind: str, n_bytes: float, n_arrays: int = 1) -> float:
    """Seconds of a message between the two processes that were measured, along the line between sizes.

    Of several arrays each takes as long as the shortest message, and all bytes together what they take beyond.
    """
    known = sorted((one["bytes"], one[kind]) for one in messages)
    (low, fast), (high, slow) = known[0], known[-1]
    for here, there in itertools.pairwise(known):
        if here[0] <= n_bytes <= there[0]:
            (low, fast), (high, slow) = here, there
    return (n_arrays - 1) * known[0][1] + fast + (slow - fast) * (n_bytes - low) / (high - low)


def step_parts(found: dict[str, Any]) -> tuple[float, float]:
    """Seconds of a step that every process spends, and seconds for each row of the step.

    From passes over all rows of each step and over half of them.
    """
    rows = found["rows"] / found["steps"]
    whole, half = found["busy"] / found["steps"], found["half"]["busy"] / found["steps"]
    a_row = max(0.0, whole - half) / (rows / 2)
    return max(0.0, whole - a_row * rows), a_row


def times_of_words(found: dict[str, Any], words: float, two: float) -> float:
    """How many times as long as its messages by themselves the words of a pass took, at least once.

    Processes also wait for each other, and what a program makes of the answers is work as well.
    """
    return max(1.0, (two - found["half"]["busy"]) / words)


def speed_up(name: str, found: dict[str, Any], rows: float, n_hosts: int, times: float = 1.0) -> float:
    """How many times as fast a step of so many rows is on so many hosts, where words take `times` a message's time."""
    fixed, a_row = step_parts(found)
    words = times * message(_how(name, found), n_hosts, found["bytes"], LATENCY, BYTES_A_SECOND, found.get("arrays", 1))
    return (fixed + a_row * rows) / (fixed + a_row * rows / n_hosts + words)


def _how(name: str, found: dict[str, Any]) -> str:
    return str(found.get("speaks", _SPOKE[name]))


def best_number(name: str, found: dict[str, Any], rows: float, times: float = 1.0) -> int:
    """Of the powers of two up to 4,096, the number of hosts beyond which a step takes no less time."""
    ups = {2**n: speed_up(name, found, rows, 2**n, times) for n in range(13)}
    return max(ups, key=lambda hosts: (round(ups[hosts], 2), -hosts))


def tables(figures: dict[str, Any]) -> str:
    """What stands between the marks of the page."""
    alone, pair = figures["alone"], figures["pair"]
    messages = pair[0]["messages"]
    other = "outside" if "outside" in messages[0] else "list"
    heard = [[_bytes(one["bytes"]), _seconds(one["sum"]), _seconds(one[other])] for one in messages]
    check, paper = [], []
    for name in _SPOKE:
        found = alone[name]
        kind, n_arrays = _how(name, found), found.get("arrays", 1)
        words = found["steps"] * measured_message(messages, kind, found["bytes"], n_arrays)
        predicted = found["half"]["busy"] + words
        two = max(one[name]["busy"] for one in pair)
        times = times_of_words(found, words, two)
        check.append(
            [name, _bytes(found["bytes"]), _seconds(found["busy"]), _seconds(predicted), _seconds(two)]
            + [f"{found['busy'] / two:.2f}", f"{two / predicted:.2f}", f"{times:.1f}"]
        )
        for rows in (found["rows"] / found["steps"], LARGE[name]):
            ups = [_times(speed_up(name, found, rows, hosts, times)) for hosts in HOSTS]
            paper.append([name, f"{rows:,.0f}", *ups, f"{best_number(name, found, rows, times):,}"])
    return "\n\n".join(
        [
            "What a message between two processes of this machine takes:",
            _table(["bytes", "a sum", "a sum outside programs" if other == "outside" else "a list"], heard),
            "Processor time of a pass: of one process; of each of two, by the model (half a pass and messages), and "
            "as it was:",
            _table(
                ["model", "message", "one", "two, by the model", "two", "faster", "two / model", "times of words"],
                check,
            ),
            "How many times as fast a step is on paper, and the number of hosts from which on more give nothing:",
            _table(["model", "rows of a step", *(f"{hosts:,} hosts" for hosts in HOSTS), "ends at"], paper),
        ]
    )


def write_page(figures: dict[str, Any]) -> None:
    """Put the tables into the page."""
    write_atomically(DOCUMENT, with_tables(DOCUMENT.read_text(), figures).encode())


def with_tables(text: str, figures: dict[str, Any]) -> str:
    """The page with these tables."""
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n{tables(figures)}\n{END}{after}"


def kept_figures() -> dict[str, Any]:
    """What was measured last."""
    return dict(json.loads((RESULTS / "hosts.json").read_text())["figures"])


def _table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _times(ratio: float) -> str:
    return f"{ratio:.3g}"


def _seconds(seconds: float) -> str:
    return (
        f"{1e6 * seconds:.0f} µs"
        if seconds < 1e-3
        else f"{1e3 * seconds:.3g} ms"
        if seconds < 1
        else f"{seconds:.3g} s"
    )


def _bytes(n: float) -> str:
    return f"{n / 1024:.0f} KiB" if n < 1 << 20 else f"{n / (1 << 20):.1f} MiB"
