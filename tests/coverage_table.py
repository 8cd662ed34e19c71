"""Lines and branches of each package that the tests ran, out of coverage's JSON report; fails below the floor.

`make coverage` runs it. What Numba compiles is left out (`exclude_also` in pyproject.toml).
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path, PurePath

from rich.console import Console
from rich.table import Table

FLOOR = 92.0  # percent of lines, of the whole library
COUNTS = ("covered_lines", "num_statements", "covered_branches", "num_branches")


def package_of(path: str) -> str:
    """Two folders deep, which tells apart the families of models: "models.latent"; modules at the top are "likely"."""
    folders = PurePath(path).parent.parts
    return ".".join(folders[folders.index("likely") + 1 :][:2]) or "likely"


def by_package(report: dict) -> dict[str, Counter]:
    """Counts of each package, by name, and those of all of them under "in all"."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for path, file in sorted(report["files"].items()):
        own = {name: file["summary"][name] for name in COUNTS}
        counts[package_of(path)].update(own)
        counts["in all"].update(own)
    return {name: counts[name] for name in sorted(counts, key=lambda name: (name == "in all", name))}


def percent(covered: int, of: int) -> float:
    return 100 * covered / of if of else 100.0


def main(path: str) -> int:
    """Print the table; the exit code is 1 where too few lines ran."""
    packages = by_package(json.loads(Path(path).read_text()))
    table = Table("package")
    for heading in ("lines", "ran", "branches", "ran"):
        table.add_column(heading, justify="right")
    for name, counts in packages.items():
        lines, branches = counts["num_statements"], counts["num_branches"]
        ran = percent(counts["covered_lines"], lines), percent(counts["covered_branches"], branches)
        table.add_row(name, str(lines), f"{ran[0]:.1f}%", str(branches), f"{ran[1]:.1f}%")
    console = Console()
    console.print(table)
    share = percent(packages["in all"]["covered_lines"], packages["in all"]["num_statements"])
    if share < FLOOR:
        console.print(f"{share:.1f}% of the lines ran; at least {FLOOR:.0f}% must.")
    return int(share < FLOOR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
