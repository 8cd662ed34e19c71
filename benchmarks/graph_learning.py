"""Learning the graph of alarm beside pyAgrum, and its tables with 30% of the cells missing; CPU seconds of one thread.

Tables of 5,000 rows drawn from alarm: search over BDeu beside pyAgrum's greedy hill climbing, tests of independence,
and the tree of Chow and Liu, with the structural Hamming distance of equivalence classes from the true graph. Rows are
in memory, and the time is that of the graph alone. Then the tables of the true graph by EM: the KL divergence of the
true network from what was learned with holes, over that from the same rows without.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import likely
from benchmarks import peers
from benchmarks.graphs import _holed, _unpacked
from benchmarks.outcome import Line, Outcome
from likely.models.graphs.structure.chow_liu import chow_liu
from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.learning import Learner

SHD_BAR, TESTS_BAR, TIME_BAR, TREE_BAR, KL_BAR = 16, 19, 2.0, 0.2, 1.5


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    n_tables, n_rows, n_rounds = (1, 500, 1) if small else (6, 5_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = _unpacked("alarm", Path(folder))
        net = likely.read_network(path)
        tables = [net.sample(n_rows, random_state=seed + number) for number in range(n_tables)]
        paths = [str(Path(folder) / f"{number}.csv") for number in range(n_tables)]
        for table, own in zip(tables, paths, strict=True):
            table.write_csv(own)
        peer = peers.run("peer_pyagrum_learning", network=str(path), tables=paths, n_rounds=n_rounds)
    rows = [np.asarray(net._rows(table)[1], np.float64) for table in tables]
    theirs = [likely.Graph([tuple(arc) for arc in one["arcs"]], nodes=net.graph_.nodes) for one in peer["tables"]]
    peer_seconds = float(np.mean([one["seconds"] for one in peer["tables"]]))
    peer_apart = float(np.mean([_apart(graph, net) for graph in theirs]))
    searched = _learned(net, rows, Learner("search"), n_rounds)
    tested = _learned(net, rows, Learner("constraint"), n_rounds)
    tree = float(np.mean([_fastest(lambda own=own: chow_liu(own, net._cell_names, net.columns_), n_rounds)[0]
                          for own in rows]))  # fmt: skip
    lines = [
        Line(
            f"search over BDeu, alarm, {n_rows:,} rows, mean of {n_tables} tables, beside pyAgrum's hill climbing",
            f"{searched['seconds']:.3g} s",
            f"{peer_seconds:.3g} s",
            peer_seconds / searched["seconds"],
            f"distance {searched['apart']:.1f} and {peer_apart:.1f}",
            f"≥ {1 / TIME_BAR:g}×, distance ≤ {SHD_BAR}",
            bool(searched["seconds"] <= TIME_BAR * peer_seconds and searched["apart"] <= SHD_BAR),
        ),
        Line(
            "tests of independence (PC) on the same tables",
            f"{tested['seconds']:.3g} s",
            quality=f"distance {tested['apart']:.1f}",
            bar=f"distance ≤ {TESTS_BAR}",
            reached=bool(tested["apart"] <= TESTS_BAR),
        ),
        Line(
            "the tree of Chow and Liu on the same tables",
            f"{tree:.3g} s",
            bar=f"≤ {TREE_BAR:g} s",
            reached=bool(tree <= TREE_BAR),
        ),
    ]
    line, missing = _missing(net, tables, seed)
    figures = {
        "search": searched,
        "constraint": tested,
        "tree_seconds": tree,
        "pyagrum": {"seconds": peer_seconds, "apart": peer_apart, "each": [_apart(graph, net) for graph in theirs]},
        "missing": missing,
    }
    return Outcome([*lines, line], figures, peer["versions"])


def _learned(net: Any, tables: list[np.ndarray], learner: Learner, n_rounds: int) -> dict[str, Any]:
    free, names = Knowledge.nothing(net.columns_), net._cell_names
    seconds, apart = [], []
    learner.learn(tables[0][:100], net.columns_, free)  # for the compiler
    for rows in tables:
        took, edges = _fastest(lambda rows=rows: learner.learn(rows, net.columns_, free), n_rounds)
        seconds.append(took)
        apart.append(_apart(likely.Graph([(names[a], names[b]) for a, b in np.argwhere(edges)], nodes=names), net))
    return {"seconds": float(np.mean(seconds)), "apart": float(np.mean(apart)), "each": apart}


def _apart(graph: likely.Graph, net: Any) -> int:
    return graph.structural_hamming_distance(net.graph_, of_classes=True)


def _fastest(function: Callable[[], Any], n_rounds: int) -> tuple[float, Any]:
    seconds = []
    for _ in range(n_rounds):
        start = time.process_time()
        found = function()
        seconds.append(time.process_time() - start)
    return min(seconds), found


def _missing(net: Any, tables: list[Any], seed: int) -> tuple[Line, dict[str, Any]]:
    """KL from the true network with and without holes, and whether EM ever fell."""
    make = lambda: likely.BayesianNetwork(net.graph_, schema=net.schema_)  # noqa: E731
    whole = [divergence(net, make().fit(rows)) for rows in tables]
    start = time.process_time()
    fitted = [make().fit(_holed(rows, seed + number)) for number, rows in enumerate(tables)]
    seconds = (time.process_time() - start) / len(tables)
    holed = [divergence(net, one) for one in fitted]
    least = min(float(np.diff(one.history_["objective"]).min()) for one in fitted)
    ratio, rises = float(np.mean(holed) / np.mean(whole)), least >= -1e-10
    line = Line(
        f"tables of alarm's graph from {len(tables[0]):,} rows with 30% of the cells missing, mean of {len(tables)}",
        f"KL {np.mean(holed):.3g} nats",
        quality=f"{ratio:.2f} × the {np.mean(whole):.3g} of complete rows; {seconds:.1f} s; "
        f"{'every step of EM rises' if rises else 'a step of EM falls'}",
        bar=f"≤ {KL_BAR:g} ×, every step rises",
        reached=bool(ratio <= KL_BAR and rises),
    )
    return line, {"complete": whole, "missing": holed, "seconds": seconds, "smallest_step": least}


def divergence(true: Any, other: Any) -> float:
    """KL(true || other) in nats of two networks on one graph: a sum over families, weighed by the true one."""
    total, engine = 0.0, true._answers.engine
    nothing = np.full(len(engine.product.names), -1)
    for scope, p, q in zip(
        engine.product.scopes, engine.product.tables, other._answers.engine.product.tables, strict=True
    ):
        joint = engine.joint(scope, nothing)
        seen = joint > 0
        total += float((joint[seen] * np.log(p[seen] / q[seen])).sum())
    return total
