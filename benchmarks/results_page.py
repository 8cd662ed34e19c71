"""`docs/results.md`: the newest record of every benchmark in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.outcome import RESULTS, cells

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "results.md"

_HEAD = """# What the benchmarks measured

The newest record of each benchmark, as `make bench BENCH=name` left it in `benchmarks/results/`; the page is written
anew by each run, and by `python -m benchmarks --page`. What is measured, and how to read it, is in [the benchmarks'
own page](../benchmarks/README.md). A ratio is the peer's time over ours, or our rate over the peer's. The load is the
machine's mean over the minute before: well above 2, other work ran on the two cores, and seconds are not to be
trusted. A bar that was not reached stands here like any other figure.
"""


def page(names: Iterable[str], folder: Path = RESULTS) -> str:
    """The whole page, from the records that there are, in the order of the names."""
    records = [json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").exists()]
    lines = ["| what | ours | peer | ratio | quality | bar | reached |", "|---|---:|---:|---:|---|---|---|"]
    made = ["| benchmark | date | load before | seed |", "|---|---|---:|---:|"]
    for record in records:
        lines += [f"| {' | '.join(map(_escaped, cells(line, yes='yes', no='**no**')))} |" for line in record["lines"]]
        load = record["machine"]["load_average_before"][0]
        made.append(f"| `{record['benchmark']}` | {record['date'][:10]} | {load:.1f} | {record['seed']} |")
    return "\n".join([_HEAD, *lines, "", "## When they were made", "", *made, ""])


def _escaped(text: str) -> str:
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", text)
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
