"""A mixture of 20 components for a table of 1,000,000 rows and 30 mixed columns, beside `GaussianMixture`.

Ours is the whole command: it reads a Parquet file, finds what the columns are, fits all 30 of them and scores the rows
that it held back. The peer is scikit-learn's `GaussianMixture` with diagonal covariances and its defaults, which is
given the 18 columns of numbers as a standardised array, and whose `fit` alone is timed. Time is of the processor, all
cores together. Memory is the command's peak above that of the same command on 2,000 of the rows.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.mixture import GaussianMixture

from benchmarks.commands import Ran, likely_command
from benchmarks.outcome import Line, Outcome
from benchmarks.table_million import made_up_table
from benchmarks.timing import in_words

N_ROWS, N_FEW, N_COMPONENTS = 1_000_000, 2_000, 20
RATIO, MEMORY = 4.0, 2.0


def run(*, small: bool, seed: int) -> Outcome:
    n_rows, n_few = (400, 200) if small else (N_ROWS, N_FEW)
    parts = [made_up_table(n_rows, 3 * seed + number) for number in range(3)]
    table = pl.concat(
        [part.rename({name: f"{name}_{number}" for name in part.columns}) for number, part in enumerate(parts)],
        how="horizontal",
    )
    del parts
    with tempfile.TemporaryDirectory() as folder:
        path, few = Path(folder) / "table.parquet", Path(folder) / "few.parquet"
        table.write_parquet(path)
        table.head(n_few).write_parquet(few)
        first, found = _fitted(few, seed), _fitted(path, seed)
    seconds, n_iter = _peer(table, seed)
    share = (found.peak - first.peak) / (8 * n_rows * table.width)
    line = Line(
        what=f"likely fit mixture, {N_COMPONENTS} components, {n_rows:,} × {table.width}, beside GaussianMixture",
        ours=in_words(found.cpu),
        peer=in_words(seconds),
        ratio=seconds / found.cpu,
        quality=f"of processor time; memory {share:.2f} × the table as floats; the peer: 18 columns, {n_iter} steps",
        bar=f"≥ {RATIO:g}×, ≤ {MEMORY:g} × the table",
        reached=bool(seconds / found.cpu >= RATIO and share <= MEMORY),
    )
    figures = {
        "rows": n_rows,
        "all_rows": found.to_json() | {"answer": found.answer},
        "few_rows": first.to_json(),
        "share": share,
        "peer": {"cpu": seconds, "iterations": n_iter},
    }
    return Outcome([line], figures)


def _fitted(path: Path, seed: int) -> Ran:
    """The command on a file."""
    out = str(path.with_suffix(".likely"))
    options = ["--set", f"n_components={N_COMPONENTS}", "--json", "--seed", str(seed)]
    return likely_command(["fit", "mixture", str(path), "--out", out, *options])


def _peer(table: pl.DataFrame, seed: int) -> tuple[float, int]:
    """Seconds of the processor, and iterations, of scikit-learn on the numbers."""
    numbers = table.select(pl.selectors.numeric()).to_numpy().astype(np.float64)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged after its 100 iterations, which is its default
        fitted = GaussianMixture(N_COMPONENTS, covariance_type="diag", random_state=seed).fit(numbers)
    return time.process_time() - began, int(fitted.n_iter_)
