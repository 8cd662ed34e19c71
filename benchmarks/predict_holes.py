"""Classes of rows with 30% of their cells hidden: `JointPredictor(Mixture)` beside scikit-learn's boosting.

Wine, breast cancer and digits, split anew several times, cells hidden in training and test rows alike; both learn from
the same rows and name the same ones, so that differences are paired. Which mixture it is, of two, is chosen in each
split by the accuracy, then log p(y | x), of a quarter of the training rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import likely
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words

HIDDEN = 0.3
TABLES: dict[str, tuple[Any, int]] = {  # with the number of splits
    "wine": (load_wine, 12),
    "breast cancer": (load_breast_cancer, 6),
    "digits": (load_digits, 2),
}
# Every component belongs to a class from the start; skewed columns are bent where that is tried.
BY_CLASS: dict[str, Any] = {"start_by": "y", "n_init": 1}
GRID: dict[str, list[dict[str, Any]]] = {
    "wine": [{"n_components": 3, "covariance": "full", "min_variance": ridge} for ridge in (0.1, 0.3)],
    "breast cancer": [{"n_components": k, "covariance": "tied", "min_variance": 0.03, "bent": True} for k in (2, 6)],
    "digits": [
        {"n_components": 10, "covariance": "full", "min_variance": 0.1},
        {"n_components": 30, "covariance": "tied", "min_variance": 0.03},
    ],
}


def run(*, small: bool, seed: int) -> Outcome:
    names = list(TABLES)[: 1 if small else None]
    # Each table in a process of its own: accuracies are compared, and processor times beside them.
    found = joblib.Parallel(n_jobs=len(names))(joblib.delayed(_of_table)(name, seed, small) for name in names)
    figures = dict(zip(names, found, strict=True))
    return Outcome([_line(name, splits) for name, splits in figures.items()], figures)


def _of_table(name: str, seed: int, small: bool) -> list[dict[str, Any]]:
    load, n_splits = TABLES[name]
    X, y = load(return_X_y=True)
    return [_of_split(name, X, y, seed + number, small) for number in range(1 if small else n_splits)]


def _of_split(name: str, X: np.ndarray, y: np.ndarray, seed: int, small: bool) -> dict[str, Any]:
    holes = np.where(np.random.default_rng(seed).random(X.shape) < HIDDEN, np.nan, X)
    rows, test, known, truth = train_test_split(holes, y, test_size=0.25, stratify=y, random_state=seed)
    grid = GRID[name][: 1 if small else None]
    trials = [_judged(_mixture(settings, X, seed), rows, known, seed) for settings in grid]
    best = grid[max(range(len(grid)), key=lambda number: trials[number])]
    seconds, model = cpu_stopwatch(lambda: _mixture(best, X, seed).fit(rows, known))
    evidence = model.evidence(test, truth)
    peer_seconds, peer = cpu_stopwatch(lambda: HistGradientBoostingClassifier(random_state=seed).fit(rows, known))
    log_p = np.log(np.maximum(peer.predict_proba(test)[np.arange(len(test)), truth], 1e-300))
    return {
        "settings": best,
        "validation": trials,
        "ours": float(model.score(test, truth)),
        "peer": float(peer.score(test, truth)),
        "ours_log_p": evidence.mean,
        "kind": evidence.kind,
        "peer_log_p": float(log_p.mean()),
        "seconds": {"ours": seconds, "peer": peer_seconds},
    }


def _judged(model: likely.JointPredictor, rows: np.ndarray, known: np.ndarray, seed: int) -> tuple[float, float]:
    """Accuracy and log p(y | x) of a quarter of the rows, by what the others teach."""
    own, held, y, truth = train_test_split(rows, known, test_size=0.25, stratify=known, random_state=seed)
    model.fit(own, y)
    return float(model.score(held, truth)), model.evidence(held, truth).mean


def _mixture(settings: dict[str, Any], X: np.ndarray, seed: int) -> likely.JointPredictor:
    own = BY_CLASS | settings
    schema, bent = likely.Schema.real(X.shape[1]), own.pop("bent", False)
    schema = replace(schema, columns=tuple(replace(column, is_warped=bent) for column in schema.columns))
    return likely.JointPredictor(likely.Mixture(**own, schema=schema), target_kind="class", random_state=seed)


def _line(name: str, splits: list[dict[str, Any]]) -> Line:
    ours, peer = (np.array([split[who] for split in splits]) for who in ("ours", "peer"))
    gain = ours - peer
    error = f" ± {gain.std(ddof=1) / np.sqrt(len(gain)):.3f}" if len(gain) > 1 else ""
    seconds = float(np.median([split["seconds"]["ours"] for split in splits]))
    log_p = [np.mean([split[who] for split in splits]) for who in ("ours_log_p", "peer_log_p")]
    return Line(
        what=f"JointPredictor(Mixture) on {name}, {HIDDEN:.0%} of the cells hidden, {len(splits)} splits: accuracy",
        ours=f"{ours.mean():.3f}",
        peer=f"{peer.mean():.3f} boosting",
        quality=f"paired difference {gain.mean():+.3f}{error}; log p(y | x) {log_p[0]:.2f}, "
        f"{splits[0]['kind']}, peer {log_p[1]:.2f}; a fit {in_words(seconds)}",
        bar="≥ boosting's",
        reached=bool(ours.mean() >= peer.mean()),
    )
