"""A table of 3 GB in 1 GB of memory: `likely fit mixture`, `score`, `impute` and `sample` of a Parquet file.

The table is that of `table_million`, four times beside itself and ten million rows long: 40 mixed columns, 3.2 GB as
floats. Each command runs in a process of its own, in a control group that the system kills at 1 GB where this process
may make one (as root), else told to take so much by `--memory`; the peak of its own pages, without those of files that
can be given back, is measured either way. A tenth of the rows is fitted through the disk and in memory besides: their
models must have the same bytes, and what reading from the disk costs is the ratio of the two.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.outcome import Line, Outcome
from benchmarks.table_million import made_up_table
from benchmarks.timing import in_words

MEMORY, SHARE = 1_000_000_000, 0.7
N_ROWS, N_PIECES, N_DRAWN = 10_000_000, 20, 5_000_000
_SCRIPT = "import sys; from likely.cli import main; sys.argv[0] = 'likely'; main()"
_GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")  # of the first version, and of the second


@dataclass
class Held:
    """Seconds on the wall and of the processor, the peak of its own pages in bytes, and whether it was killed."""

    wall: float
    cpu: float
    peak: int
    killed: bool


def run(*, small: bool, seed: int) -> Outcome:
    n_rows, n_drawn, memory = (4_000, 4_000, 300_000) if small else (N_ROWS, N_DRAWN, MEMORY)
    with tempfile.TemporaryDirectory() as folder, _group(None if small else memory) as group:
        place = Path(folder)
        pieces = [_piece(n_rows // N_PIECES, seed + number) for number in range(N_PIECES)]
        table_bytes = 8 * n_rows * pieces[0].width
        pl.concat(pieces[:2]).write_parquet(place / "part.parquet")
        pl.concat(pieces).lazy().sink_parquet(place / "table.parquet")
        del pieces
        told = ["--memory", str(memory)]
        whole = _commands(place, n_drawn, told, group, n_commands=1 if small else 4)
        apart = _fit(place / "part.parquet", place / "apart.likely", ["--memory", str(memory // 10)])
        together = _fit(place / "part.parquet", place / "together.likely", [])
        models = [path.read_bytes() for path in (place / "apart.likely", place / "together.likely") if path.exists()]
        same = len(models) == 2 and models[0] == models[1]
    peak = max(held.peak for held in whole.values())
    how = "killed beyond it" if group else "told to take it"
    equal = "equal" if same else "NOT EQUAL"
    lines = [
        Line(
            what=f"{table_bytes / 1e9:.1f} GB of rows in {memory / 1e9:g} GB, {how}: fit, score, impute, sample",
            ours=f"{peak / 1e6:,.0f} MB",
            quality=", ".join(f"{name} {_word(held)}" for name, held in whole.items()) + " of processor time",
            bar=f"≤ {memory / 1e6:,.0f} MB",
            reached=peak <= memory and not any(held.killed for held in whole.values()),
        ),
        Line(
            what=f"a fit of {2 * n_rows // N_PIECES:,} × 40 through the disk, beside in memory",
            ours=f"{in_words(apart.cpu)} of processor time",
            peer=in_words(together.cpu),
            ratio=together.cpu / apart.cpu,
            quality=f"{apart.peak / 1e6:,.0f} and {together.peak / 1e6:,.0f} MB; models {equal}",
            bar=f"≥ {SHARE:g}×, models equal",
            reached=bool(together.cpu / apart.cpu >= SHARE and same),
        ),
    ]
    figures = {
        "rows": n_rows,
        "table_bytes": table_bytes,
        "group": group is not None,
        "through_the_disk": {name: asdict(held) for name, held in whole.items()},
        "part": {"through_the_disk": asdict(apart), "in_memory": asdict(together), "same": same},
    }
    return Outcome(lines, figures)


def _piece(n: int, seed: int) -> pl.DataFrame:
    """Some rows: four made-up tables beside each other."""
    parts = [made_up_table(n, 4 * seed + number) for number in range(4)]
    named = [part.rename({name: f"{name}_{number}" for name in part.columns}) for number, part in enumerate(parts)]
    return pl.concat(named, how="horizontal")


def _commands(place: Path, n_drawn: int, told: list[str], group: Path | None, n_commands: int) -> dict[str, Held]:
    table, model = str(place / "table.parquet"), str(place / "table.likely")
    held = {"fit": _fit(place / "table.parquet", place / "table.likely", told, group)}
    others = {
        "score": ["score", model, table, "--out", str(place / "scores.parquet")],
        "impute": ["impute", model, table, "--out", str(place / "filled.parquet")],
        "sample": ["sample", model, "-n", str(n_drawn), "--out", str(place / "drawn.parquet")],
    }
    # A fit that was killed leaves no model for the others.
    for name, arguments in list(others.items())[: 0 if held["fit"].killed else n_commands - 1]:
        held[name] = _held([*arguments, *told], group)
        Path(arguments[-1]).unlink(missing_ok=True)
    return held


def _fit(table: Path, out: Path, told: list[str], group: Path | None = None) -> Held:
    return _held(["fit", "mixture", str(table), "--out", str(out), "--set", "n_components=20", *told], group)


def _held(arguments: list[str], group: Path | None) -> Held:
    """What a command took; nothing but the limit may end it."""
    command = [sys.executable, "-c", _SCRIPT, *arguments]
    if group is not None:
        command = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"), *command]
    began, peak = time.perf_counter(), [0]
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **options) as process:
        watch = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
        watch.start()
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    watch.join()
    killed = process.returncode == -signal.SIGKILL
    if status and not killed:
        raise RuntimeError(f"`likely {' '.join(arguments)}` ended with {process.returncode}: {said[-500:]}")
    return Held(round(time.perf_counter() - began, 3), round(used.ru_utime + used.ru_stime, 3), peak[0], killed)


def _word(held: Held) -> str:
    return f"killed after {in_words(held.cpu)}" if held.killed else in_words(held.cpu)


def _watch(pid: int, peak: list[int]) -> None:
    """The greatest RssAnon of a process, looked at 20 times a second until it has ended."""
    while True:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return
        found = [int(line.split()[1]) for line in lines if line.startswith("RssAnon")]
        if not found:
            return
        peak[0] = max(peak[0], 1024 * found[0])
        time.sleep(0.05)


@contextmanager
def _group(most: int | None) -> Iterator[Path | None]:
    """A control group with a limit, where one may be made."""
    limits = {"memory.limit_in_bytes": _GROUPS[0], "memory.max": _GROUPS[1]}
    limit = next((name for name, root in limits.items() if (root / "cgroup.procs").exists()), None)
    if most is None or limit is None:
        yield None
        return
    group = limits[limit] / f"likely-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(most))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()
