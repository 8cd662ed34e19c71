"""Run benchmarks: `python -m benchmarks [NAME ...]`, or all of them; `--list` names them.

A name that is none, such as `rbm`, stands for all that begin with it. Each benchmark runs in a process of its own, so
that none finds programs compiled by another, and writes `benchmarks/results/<name>.json` and `docs/results.md`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.outcome import RESULTS, describe, keep, show
from benchmarks.results_page import DOCUMENT, page
from likely.storage.files import write_atomically

NAMES = (
    "factor_analysis",
    "hopfield",
    "mixture",
    "rbm_epoch",
    "rbm_small",
    "rbm_binarized_mnist",
    "rbm_sandwich",
    "dbn_binarized_mnist",
    "dbm_binarized_mnist",
    "mixture_bernoulli",
    "vae_pythae",
    "vae_family_pythae",
    "vae_binarized_mnist",
    "vae_longer",
    "iwae",
    "discrete_vae",
    "denoising",
    "pretraining",
    "debd",
    "chain",
    "flow",
    "drawn",
    "chain_network",
    "chain_binarized_mnist",
    "scaling",
    "ising",
    "ais_torch",
    "nce",
    "ngram",
    "imputation",
    "holes",
    "tables",
    "table_million",
    "larger_than_memory",
    "mixture_mixed",
    "first_look",
    "anomalies",
    "lstm_torch",
    "lstm",
    "nce_softmax",
    "seq2seq",
    "ntm_copy",
    "skipgram",
    "graphs",
    "graph_learning",
    "convolution",
    "adversarial",
    "linear",
    "uci",
    "predict_adult",
    "predict_housing",
    "predict_holes",
    "predict_mnist",
    "cnn_torch",
)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.page:
        _write_page()
        return 0
    if options.list:
        for name in NAMES:
            print(f"{name:22} {_summary(name)}")
        return 0
    names = _chosen(options.names)
    if names is None:
        print(f"benchmarks: no benchmark begins with {options.names}: there are {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    folder = Path(options.out) if options.out else RESULTS
    if options.small and not options.out:
        print(
            "benchmarks: --small needs --out: its figures mean nothing and must not replace real ones.", file=sys.stderr
        )
        return 2
    if len(names) == 1:
        _run(names[0], options, folder)
        return 0
    return _run_each(names, options, folder)


def _run(name: str, options: argparse.Namespace, folder: Path) -> None:
    """One benchmark, in this process."""
    print(f"{name}: {_summary(name)}", flush=True)
    load_before = os.getloadavg()
    outcome = importlib.import_module(f"benchmarks.{name}").run(small=options.small, seed=options.seed)
    record = describe(name, outcome, seed=options.seed, small=options.small, load_before=load_before)
    keep(record, folder)
    if folder == RESULTS:
        _write_page()
    show([record], "")


def _write_page() -> None:
    write_atomically(DOCUMENT, page(NAMES).encode())


def _run_each(names: list[str], options: argparse.Namespace, folder: Path) -> int:
    """Each benchmark in a process of its own; one that fails does not stop the others."""
    failed = []
    flags = ["--seed", str(options.seed), "--out", str(folder)] + ["--small"] * options.small
    for name in names:
        done = subprocess.run([sys.executable, "-m", "benchmarks", name, *flags], check=False)
        if done.returncode != 0:
            failed.append(name)
    records = [json.loads((folder / f"{name}.json").read_text()) for name in names if name not in failed]
    show(records, "All of them")
    if failed:
        print(f"benchmarks: failed: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else 0


def _chosen(asked: list[str]) -> list[str] | None:
    """Names in the order of NAMES; None if one asked for is none's beginning."""
    if not asked:
        return list(NAMES)
    found = [
        {name for name in NAMES if name == word} or {name for name in NAMES if name.startswith(word)} for word in asked
    ]
    return sorted(set().union(*found), key=NAMES.index) if all(found) else None


def _summary(name: str) -> str:
    """First line of a benchmark's docstring, read without importing what it imports."""
    source = (Path(__file__).parent / f"{name}.py").read_text()
    return source.split('"""')[1].strip().splitlines()[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all of them if none is named")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--page", action="store_true", help="write docs/results.md from the records and stop")
    parser.add_argument("--small", action="store_true", help="tiny sizes that only show that it runs; needs --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder for the JSON files, in place of benchmarks/results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
