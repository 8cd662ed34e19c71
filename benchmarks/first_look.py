"""A first look at a table: `likely compare` of 5,000 × 15 and of 1,000 × 21, and `likely fit mixture` of 1,000 rows.

The tables are made up: one of shop customers, with money, dates, words, rounded and skewed numbers and holes; one as
credit offices keep it, with codes, scales of 1 to 4, amounts and ages. Each command runs twice, in a process of its own
each time. Bars are for the second time, when the cache has all compiled programs; the first time costs what the cache
lacks, which is said by the number of programs (`LIKELY_CACHE` names another folder for it, an empty one for instance).
Bars are on processor time, all cores together, beside which stands that of the wall, which other work lengthens.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from benchmarks.commands import Ran, likely_command
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words
from likely.runtime import use_compilation_cache


def run(*, small: bool, seed: int) -> Outcome:
    n_many, n_few = 200 if small else 5_000, 1_000
    models = ["--models", "independent", "--no-report"] if small else []
    tables = {"customers": (customers(n_many, seed), 60)}
    if not small:  # A small run shows that everything runs, which one table does.
        tables["credit"] = (credit(n_few, seed), 30)
    lines, figures = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, (table, bar) in tables.items():
            path = folder / f"{title}.csv"
            table.write_csv(path)
            command = ["compare", str(path), "--report", str(folder / "report.html"), "--seed", str(seed), *models]
            line, figures[title] = _twice(command, f"compare, {table.height:,} × {table.width}", bar)
            lines.append(line)
        command = ["fit", "mixture", str(path), "--out", str(folder / "model.likely"), "--force", "--seed", str(seed)]
        line, figures["fit"] = _twice(command, f"fit mixture, {table.height:,} × {table.width}", 3)
        lines.append(line)
    return Outcome(lines, figures)


def _twice(command: list[str], what: str, bar: float) -> tuple[Line, dict[str, Any]]:
    """The command two times; its line for the second."""
    before = _n_programs()
    first, again = (likely_command([*command, "--json"]) for _ in range(2))
    added = _n_programs() - before
    line = Line(
        what=f"likely {what} mixed columns, warm cache",
        ours=f"{in_words(again.cpu)} of processor time",
        quality=(
            f"{in_words(again.wall)} on the wall; the first time, {added:,} programs compiled, {in_words(first.cpu)}; "
            f"{_said(again)}"
        ),
        bar=f"≤ {bar:g} s",
        reached=bool(again.cpu <= bar),
    )
    figures = {"first": first.to_json(), "again": again.to_json(), "programs": {"before": before, "added": added}}
    return line, figures | {"answer": again.answer}


def _n_programs() -> int:
    """How many compiled programs the cache has."""
    use_compilation_cache()
    folder = jax.config.values["jax_compilation_cache_dir"]
    return 0 if folder is None else sum(1 for path in Path(folder).glob("*-cache"))


def _said(ran: Ran) -> str:
    """How the models stand, or the evidence of the one."""
    if "test" in ran.answer:
        return f"{ran.answer['test']['mean']:.3f} nats"
    ranked = [entry for entry in ran.answer["entries"] if entry["rank"] is not None]
    best = min(ranked, key=lambda entry: entry["rank"])
    return f"{len(ranked)} models ranked, best {best['name']}, {best['mean']:.3f} nats"


def customers(n: int, seed: int) -> pl.DataFrame:
    """Customers of a shop in 15 columns, tied together by a hidden group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    countries = np.array(["France", "Spain", "Italy", "Poland", "Norway", "Greece", "Malta"])
    ways = np.array(["card", "transfer", "invoice", "cash"])
    rating = np.clip(rng.normal(3 + 0.4 * group, 1), 1, 5).round()
    return pl.DataFrame(
        {
            "age": np.clip(rng.normal(30 + 8 * group, 9), 18, 95).astype(int),
            "height": rng.normal(160 + 4 * group, 7).round(1),
            "score": rng.normal(group, 1),
            "rate": rng.beta(2 + group, 5),
            "temperature": rng.normal(20 - 2 * group, 3),
            "balance": np.exp(rng.normal(6 + 0.4 * group, 1)).round(2),
            "bonus": np.where(rng.random(n) < 0.9, 0, np.exp(rng.normal(7, 1)).round(2)),  # one amount, if any
            "visits": rng.poisson(1 + group),
            "rating": pl.Series(np.where(rng.random(n) < 0.08, np.nan, rating)).fill_nan(None).cast(pl.Int64),
            "percent": np.clip(rng.normal(40 + 10 * group, 15), 0, 100).round(),
            "country": countries[(group + (rng.random(n) < 0.4) * rng.integers(0, 7, n)) % 7],
            "payment": ways[(group + (rng.random(n) < 0.3) * rng.integers(0, 4, n)) % 4],
            "member": np.where(rng.random(n) < 0.1 + 0.2 * group, "yes", "no"),
            "since": np.datetime64("2019-01-01") + rng.integers(0, 1460, n),
            "churned": (rng.random(n) < 0.4 - 0.1 * group).astype(int),
        }
    )


def credit(n: int, seed: int) -> pl.DataFrame:
    """Loans in 21 columns: codes, scales, amounts and ages, most of them tied to whether the loan was paid back (1)."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.7

    def code(prefix: int, n_codes: int, tilt: float) -> np.ndarray:
        """Codes such as A43, of which loans that were paid back have later ones more often."""
        towards = tilt * (good - 0.5)[:, None] * np.arange(n_codes) + rng.gumbel(size=(n, n_codes))
        return np.char.add(f"A{prefix}", np.argmax(towards, axis=1).astype(str))

    def scale(low: int, high: int, tilt: float) -> np.ndarray:
        found = rng.normal((low + high) / 2 + tilt * (good - 0.5), (high - low) / 3)
        return np.clip(found, low, high).round().astype(int)

    months = np.maximum(4, 6 * rng.poisson(3 + 0.8 * ~good) + rng.choice([0, 0, 0, 3], n))
    return pl.DataFrame(
        {
            "status": code(1, 4, 0.9),
            "months": months,
            "history": code(3, 5, 0.5),
            "purpose": code(4, 10, 0.1),
            "amount": np.exp(rng.normal(7 + 0.5 * np.log(months / 18 + 0.2), 0.6)).round().astype(int),
            "savings": code(6, 5, 0.4),
            "employed": code(7, 5, 0.3),
            "instalment": scale(1, 4, -0.4),
            "status_sex": code(9, 4, 0.2),
            "guarantor": code(10, 3, -0.1),
            "residence": scale(1, 4, 0),
            "property": code(12, 4, -0.3),
            "age": np.clip(19 + rng.gamma(2, 8 + good, n), 19, 75).round().astype(int),
            "other_plans": code(14, 3, 0.3),
            "housing": code(15, 3, 0.2),
            "credits": 1 + rng.binomial(3, 0.15, n),
            "job": code(17, 4, 0.1),
            "dependants": 1 + (rng.random(n) < 0.15),
            "telephone": code(19, 2, 0.1),
            "foreign": np.where(rng.random(n) < 0.04, "A202", "A201"),
            "class": np.where(good, 1, 2),
        }
    )
