"""Bayesian linear regression of 1,000,000 rows of 50 numbers, beside scikit-learn's `Ridge` and `BayesianRidge`.

Ours includes the exact marginal likelihood and the precision at its maximum. Seconds of processor time on one thread:
of matrix products on a machine that others use as well, wall time says little.
"""

from __future__ import annotations

import statistics

import numpy as np
from sklearn.linear_model import BayesianRidge, Ridge
from threadpoolctl import threadpool_limits

import likely
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words

RIDGE_BAR, BAYES_BAR = 1.5, 5.0


def run(*, small: bool, seed: int) -> Outcome:
    n_rows, n_columns, n_rounds = (2_000, 5, 1) if small else (1_000_000, 50, 5)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    y = X @ rng.normal(size=n_columns) + rng.normal(size=n_rows)
    schema = likely.Schema.real(n_columns)
    makers = {
        "ours": lambda: likely.LinearPredictor(schema=schema).fit(X, y),
        "ridge": lambda: Ridge().fit(X, y),
        "bayesian_ridge": lambda: BayesianRidge().fit(X, y),
    }
    seconds: dict[str, list[float]] = {who: [] for who in makers}
    fitted = {}
    with threadpool_limits(1):
        for _ in range(n_rounds):
            for who, maker in makers.items():
                took, fitted[who] = cpu_stopwatch(maker)
                seconds[who].append(took)
    medians = {who: statistics.median(every) for who, every in seconds.items()}
    slower, faster = medians["ours"] / medians["ridge"], medians["bayesian_ridge"] / medians["ours"]
    ours, peer = fitted["ours"], fitted["bayesian_ridge"]
    # In posterior deviations of a weight, as scikit-learn has them.
    off = float(np.abs((ours.coef_ - peer.coef_) / np.sqrt(np.diag(peer.sigma_))).max())
    what = f"LinearPredictor, {n_rows:,} × {n_columns}, evidence included"
    evidence = ours.marginal_likelihood_
    lines = [
        Line(
            what=f"{what}, beside Ridge",
            ours=in_words(medians["ours"]),
            peer=in_words(medians["ridge"]),
            ratio=1 / slower,
            quality=f"log p(y | X) {evidence.mean:,.0f} nats, {evidence.kind}",
            bar=f"≤ {RIDGE_BAR:g}× its time",
            reached=bool(slower <= RIDGE_BAR),
        ),
        Line(
            what=f"{what}, beside BayesianRidge",
            ours=in_words(medians["ours"]),
            peer=in_words(medians["bayesian_ridge"]),
            ratio=faster,
            quality=f"weights differ by {off:.0e} posterior deviations",
            bar=f"≥ {BAYES_BAR:g}×, same posterior",
            reached=bool(faster >= BAYES_BAR and off < 0.01),
        ),
    ]
    figures = {"rows": n_rows, "columns": n_columns, "seconds": seconds, "largest_difference_in_deviations": off}
    return Outcome(lines, figures)
