"""`likely fit mixture` of a CSV file of 1,000,000 rows and 10 mixed columns: seconds, and memory beside the table's.

The table is made up: numbers rounded to tenths and to four digits, a rate, ages, counts, money that is mostly 0, two
columns of words, yes and no, and days, all tied together by a hidden group. The command runs in a process of its own.
Its memory is the peak above that of the same command on 2,000 of the rows, which has the libraries and the compiled
programs; the table's is that of the data frame. Time is of the processor, all cores together, beside that of the wall.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words

N_ROWS, N_FEW = 1_000_000, 2_000
SECONDS, MEMORY = 40, 2.0


def run(*, small: bool, seed: int) -> Outcome:
    table = _table(400 if small else N_ROWS, seed)
    with tempfile.TemporaryDirectory() as folder:
        path, few = Path(folder) / "table.csv", Path(folder) / "few.csv"
        table.write_csv(path, float_precision=4)
        table.head(200 if small else N_FEW).write_csv(few, float_precision=4)
        first = _fitted(few, seed)
        found = _fitted(path, seed)
        n_bytes = path.stat().st_size
    share = (found["peak"] - first["peak"]) / table.estimated_size()
    figures = {
        "rows": table.height,
        "table_bytes": table.estimated_size(),
        "file_bytes": n_bytes,
        "all_rows": found,
        "few_rows": first,
        "share": share,
    }
    line = Line(
        what=f"likely fit mixture, CSV of {table.height:,} × {table.width} mixed columns",
        ours=f"{in_words(found['cpu'])} of processor time",
        quality=f"{in_words(found['wall'])} on the wall; memory {share:.1f} × the table; {found['nats']:.3f} nats",
        bar=f"≤ {SECONDS} s, ≤ {MEMORY:g} × the table",
        reached=bool(found["cpu"] <= SECONDS and share <= MEMORY),
    )
    return Outcome([line], figures)


def _fitted(path: Path, seed: int) -> dict[str, Any]:
    """Seconds and peak memory of the command, and what it says."""
    out = path.with_suffix(".likely")
    script = "import sys; from likely.cli import main; sys.argv[0] = 'likely'; main()"
    command = [
        sys.executable,
        "-c",
        script,
        "fit",
        "mixture",
        str(path),
        "--out",
        str(out),
        "--json",
        "--seed",
        str(seed),
    ]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status:
        raise RuntimeError(f"`likely fit mixture` of {path.name} ended with {os.waitstatus_to_exitcode(status)}.")
    answer = json.loads(said)
    return {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": 1024 * used.ru_maxrss,
        "fit_seconds": answer["fit_seconds"],
        "nats": answer["test"]["mean"],
    }


def _table(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, n)
    words = np.array(["north", "south", "east", "west", "centre"])
    cities = np.array([f"city{number:02d}" for number in range(30)])
    elsewhere = (rng.random(n) < 0.3) * rng.integers(0, 5, n)
    return pl.DataFrame(
        {
            "height": rng.normal(160 + 4 * group, 7).round(1),
            "score": rng.normal(group, 1),
            "rate": rng.beta(2 + group, 5),
            "age": np.clip(rng.normal(30 + 8 * group, 9), 18, 95).astype(int),
            "visits": rng.poisson(1 + group),
            "income": np.where(rng.random(n) < 0.6, 0, np.exp(rng.normal(5 + 0.4 * group, 1))).round(2),
            "region": words[(group + elsewhere) % 5],
            "city": cities[(6 * group + rng.integers(0, 8, n)) % 30],
            "member": np.where(rng.random(n) < 0.1 + 0.18 * group, "yes", "no"),
            "day": np.datetime64("2019-01-01") + rng.integers(0, 1460, n),
        }
    )
