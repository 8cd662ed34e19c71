"""`likely fit mixture` of a CSV file of 1,000,000 rows and 10 mixed columns: seconds, and memory beside the table's.

The table is made up: numbers rounded to tenths and to four digits, a rate, ages, counts, money that is mostly 0, two
columns of words, yes and no, and days, all tied together by a hidden group. The command runs in a process of its own.
Its memory is the peak above that of the same command on 2,000 of the rows, which has the libraries and the compiled
programs; the table's is that of its cells as floats, 8 bytes each. Time is of the processor, all cores together, beside
that of the wall.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.commands import Ran, likely_command
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words

N_ROWS, N_FEW = 1_000_000, 2_000
SECONDS, MEMORY = 40, 2.0


def run(*, small: bool, seed: int) -> Outcome:
    table = made_up_table(400 if small else N_ROWS, seed)
    with tempfile.TemporaryDirectory() as folder:
        path, few = Path(folder) / "table.csv", Path(folder) / "few.csv"
        table.write_csv(path, float_precision=4)
        table.head(200 if small else N_FEW).write_csv(few, float_precision=4)
        first = _fitted(few, seed)
        found = _fitted(path, seed)
        n_bytes = path.stat().st_size
    table_bytes = 8 * table.height * table.width
    share = (found.peak - first.peak) / table_bytes
    figures = {
        "rows": table.height,
        "table_bytes": table_bytes,
        "file_bytes": n_bytes,
        "all_rows": found.to_json() | {"answer": found.answer},
        "few_rows": first.to_json(),
        "share": share,
    }
    line = Line(
        what=f"likely fit mixture, CSV of {table.height:,} × {table.width} mixed columns",
        ours=f"{in_words(found.cpu)} of processor time",
        quality=(
            f"{in_words(found.wall)} on the wall; memory {share:.2f} × the table as floats, {n_bytes / 1e6:.0f} MB as "
            f"text; {found.answer['test']['mean']:.3f} nats"
        ),
        bar=f"≤ {SECONDS} s, ≤ {MEMORY:g} × the table",
        reached=bool(found.cpu <= SECONDS and share <= MEMORY),
    )
    return Outcome([line], figures)


def _fitted(path: Path, seed: int) -> Ran:
    """The command on a file."""
    out = path.with_suffix(".likely")
    return likely_command(["fit", "mixture", str(path), "--out", str(out), "--json", "--seed", str(seed)])


def made_up_table(n: int, seed: int) -> pl.DataFrame:
    """Rows of ten mixed columns, tied together by a hidden group."""
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
