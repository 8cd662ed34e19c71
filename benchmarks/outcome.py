"""What a benchmark hands back, how it is shown in the terminal and how it is kept as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from likely.storage.files import write_atomically

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("likely", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Line:
    """One row of the printed table.

    `ours`, `peer` and `quality` are texts with their units; `reached` is None where there is no bar.
    """

    what: str
    ours: str
    peer: str = ""
    ratio: float | None = None
    quality: str = ""
    bar: str = ""
    reached: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """The table's lines, and every figure behind them, as JSON knows it; peers that ran elsewhere with versions."""

    lines: list[Line]
    figures: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict)


def asked(variable: str, known: Iterable[str]) -> tuple[str, ...]:
    """The names that a variable of the environment lists, all that are known where it is not set."""
    given = os.environ.get(variable)
    return tuple(known) if given is None else tuple(name for name in known if name in given.split(","))


def kept(benchmark: str, *variables: str) -> dict[str, Any]:
    """The figures of the record, where one of the variables asks for some of them only; else none."""
    path = RESULTS / f"{benchmark}.json"
    return json.loads(path.read_text())["figures"] if set(variables) & set(os.environ) and path.exists() else {}


def describe(name: str, outcome: Outcome, *, seed: int, small: bool, load_before: tuple[float, ...]) -> dict[str, Any]:
    """Everything that is kept of one run."""
    return {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "small": small,
        "machine": machine() | {"load_average_before": [round(load, 2) for load in load_before]},
        "versions": {package: _version(package) for package in _PACKAGES} | outcome.versions,
        "lines": [asdict(line) for line in outcome.lines],
        "figures": outcome.figures,
    }


def keep(record: dict[str, Any], folder: Path) -> Path:
    """Write a record to `<folder>/<benchmark>.json`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['benchmark']}.json"
    write_atomically(path, (json.dumps(record, indent=1, default=_plain) + "\n").encode())
    return path


def show(records: Iterable[dict[str, Any]], title: str) -> None:
    """Print the lines of some records as one table."""
    table = Table(title=title, title_justify="left", header_style="bold", pad_edge=False, box=None)
    table.add_column("what", max_width=44)
    for heading in ("ours", "peer", "ratio"):
        table.add_column(heading, justify="right", no_wrap=heading == "ratio")
    for heading in ("quality", "bar", "reached"):
        table.add_column(heading)
    for record in records:
        for line in record["lines"]:
            table.add_row(*cells(line, yes="[green]yes[/]", no="[red]no[/]"))
    width = None if os.isatty(1) else 150
    Console(width=width).print(table)


def machine() -> dict[str, Any]:
    """Facts on which seconds depend."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30, 1),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cells(line: dict[str, Any], *, yes: str, no: str) -> list[str]:
    """A record's line as texts, with `yes` or `no` for whether its bar was reached."""
    ratio = "" if line["ratio"] is None else f"{line['ratio']:.3g}×"
    reached = {True: yes, False: no, None: ""}[line["reached"]]
    return [line["what"], line["ours"], line["peer"], ratio, line["quality"], line["bar"], reached]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    return value.tolist()
