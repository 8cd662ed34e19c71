"""Exact inference beside pyAgrum, CPU seconds of one thread each: loading, all marginals, rows in batches.

All marginals of five networks of the bnlearn repository, with nothing observed and with five columns observed, from the
network in memory: ordering, tree and propagation are all in it, nothing is kept between calls. Then the evidence and
all conditionals of rows of alarm with 30% of the cells missing, beside pyAgrum's loop over rows; and loading pigs.
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import likely
from benchmarks import data, peers
from benchmarks.outcome import Line, Outcome

NAMES = ("alarm", "insurance", "hailfinder", "win95pts", "pigs")
ROWS_BAR = 20.0
AGREE = 1e-6  # probabilities of both sides


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    n_rounds, n_rows, n_findings = (1, 50, 1) if small else (7, 10_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: _unpacked(name, Path(folder)) for name in NAMES}
        networks = {name: likely.read_network(path) for name, path in paths.items()}
        findings = {name: _findings(net, seed, n_findings) for name, net in networks.items()}
        rows = _holed(networks["alarm"].sample(n_rows, random_state=seed), seed)
        rows.write_csv(Path(folder) / "rows.csv")
        peer = peers.run(
            "peer_pyagrum", networks={name: str(path) for name, path in paths.items()}, findings=findings,
            rows=str(Path(folder) / "rows.csv"), n_rounds=n_rounds,
        )  # fmt: skip
        lines, figures = [], {}
        for name, net in networks.items():
            line, own = _marginals(name, net, findings[name], peer, n_rounds)
            lines.append(line)
            figures[name] = own
        line, figures["rows"] = _rows(networks["alarm"], rows, peer)
        lines.append(line)
        load = _best(lambda: likely.read_network(paths["pigs"]), n_rounds)
        theirs = min(peer["load"]["pigs"])
        lines.append(
            Line("loading pigs, beside pyAgrum", _ms(load), _ms(theirs), theirs / load, "", "≥ 1×", load <= theirs)
        )
        figures["load"] = {"ours": load, "pyagrum": peer["load"]}
    figures["growth"] = growth(small, seed)
    return Outcome(lines, figures, peer["versions"])


# ------------------------------------------------------------------------- how cost grows
MIDDLE = {"nodes": 100, "width": 6, "states": 2, "rows": 1_000}
LADDERS = {
    "nodes": (25, 50, 100, 200, 400, 800),
    "width": (2, 4, 6, 8, 10, 12, 14, 16),
    "states": (2, 3, 4, 5, 6),
    "rows": (100, 1_000, 10_000, 100_000),
}


def growth(small: bool, seed: int) -> dict[str, Any]:
    """CPU seconds of all marginals against nodes, treewidth and states, and of rows with holes against their number."""
    out: dict[str, Any] = {"middle": MIDDLE}
    for axis, ladder in LADDERS.items():
        sizes = ladder[:2] if small else ladder
        seconds = []
        for size in sizes:
            width = {"states": 5, "rows": 3}.get(axis, MIDDLE["width"])
            about = MIDDLE | {"width": width} | {axis: size}
            net = banded(about["nodes"], about["width"], about["states"], seed)
            if axis == "rows":
                rows = _holed(net.sample(size, random_state=seed), seed)
                seconds.append(_best(lambda net=net, rows=rows: _afresh(net).condition(rows).parts.mean, 1))
            else:
                seconds.append(_best(lambda net=net: _afresh(net).marginals(), 3))
        out[axis] = {"sizes": list(sizes), "seconds": seconds}
    return out


def banded(n: int, width: int, n_states: int, seed: int) -> Any:
    """A network in which each column has two parents among the `width` before it, one of them the first of these."""
    rng, edges = np.random.default_rng(seed), []
    for child in range(1, n):
        first = max(0, child - width)
        edges += sorted({(f"x{p}", f"x{child}") for p in (first, int(rng.integers(first, child)))})
    graph = likely.Graph(edges, nodes=[f"x{i}" for i in range(n)])
    shape = lambda name: (n_states,) * len(graph.parents(name))  # noqa: E731
    tables = {name: rng.dirichlet(np.ones(n_states), shape(name)) for name in graph.nodes}
    return likely.BayesianNetwork.from_tables(graph, tables)


def _marginals(name: str, net: Any, findings: list[dict], peer: dict, n_rounds: int) -> tuple[Line, dict[str, Any]]:
    none = _best(lambda: _afresh(net).marginals(), n_rounds)
    five = float(np.mean([_best(lambda given=given: _afresh(net).marginals(given), n_rounds) for given in findings]))
    apart = 0.0
    for given, theirs in zip(findings, peer["marginals"][name], strict=True):
        found = net.marginals(given)
        apart = max(apart, *(np.abs(np.array(list(found[c].values())) - theirs[c]).max() for c in found))
    theirs_none, theirs_five = min(peer["none"][name]), float(np.mean(peer["five"][name]))
    ratio = min(theirs_none / none, theirs_five / five)
    line = Line(
        f"all marginals of {name}, nothing and five columns observed, beside pyAgrum",
        f"{_ms(none)}, {_ms(five)}",
        f"{_ms(theirs_none)}, {_ms(theirs_five)}",
        ratio,
        f"probabilities at most {apart:.1g} apart",
        "≥ 1×",
        bool(ratio >= 1 and apart < AGREE),
    )
    return line, {"none": [none, theirs_none], "five": [five, theirs_five], "apart": apart}


def _rows(net: Any, rows: pl.DataFrame, peer: dict) -> tuple[Line, dict[str, Any]]:
    def both() -> Any:
        own = _afresh(net)
        return own.evidence(rows), own.condition(rows).parts.mean

    both()
    start = time.process_time()
    evidence, _ = both()
    seconds = time.process_time() - start
    theirs = peer["rows_seconds"]
    apart = float(np.abs(evidence.values - np.log(peer["rows_evidence"])).max())
    ratio = theirs / seconds
    line = Line(
        f"evidence and all conditionals of {len(rows):,} rows of alarm with 30% holes, beside pyAgrum's loop",
        f"{seconds:.3g} s",
        f"{theirs:.3g} s",
        ratio,
        f"log p at most {apart:.1g} apart",
        f"≥ {ROWS_BAR:g}×",
        bool(ratio >= ROWS_BAR),
    )
    return line, {"ours": seconds, "pyagrum": theirs, "apart": apart}


def _afresh(net: Any) -> Any:
    """The network without the trees that it kept."""
    vars(net).pop("_kept", None)
    return net


def _best(function: Callable[[], Any], n_rounds: int) -> float:
    function()  # compiles
    seconds = []
    for _ in range(n_rounds):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _findings(net: Any, seed: int, n: int) -> list[dict[str, str]]:
    """Five columns of rows of the network's own, so that findings are possible together."""
    rng = np.random.default_rng(seed)
    rows = net.sample(n, random_state=seed).to_dicts()
    return [{str(c): row[str(c)] for c in rng.choice(list(row), 5, replace=False)} for row in rows]


def _holed(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    erased = {c: pl.Series(rng.random(len(rows)) < 0.3) for c in rows.columns}
    return rows.select([pl.when(erased[c]).then(None).otherwise(pl.col(c)).alias(c) for c in rows.columns])


def _unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.bif"
    path.write_bytes(gzip.decompress((data.folder() / "bif" / f"{name}.bif.gz").read_bytes()))
    return path


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
