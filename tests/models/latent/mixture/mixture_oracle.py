"""A mixture computed the slow way: SciPy densities, one row, one component, one column at a time."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from likely.columns import Columns


def log_prob(params, rows: np.ndarray, columns: Columns, covariance: str) -> np.ndarray:
    return logsumexp(np.asarray(params.log_weights)[None] + component_table(params, rows, columns, covariance), axis=1)


def component_table(params, rows: np.ndarray, columns: Columns, covariance: str) -> np.ndarray:
    k = len(params.log_weights)
    return np.array([[_one(params, row, c, columns, covariance) for c in range(k)] for row in rows])


def _one(params, row: np.ndarray, component: int, columns: Columns, covariance: str) -> float:
    joint = list(columns.real_places) if covariance in ("full", "tied") else []
    total = 0.0
    if joint:
        seen = [i for i, place in enumerate(joint) if not np.isnan(row[place])]
        if seen:
            factors = np.asarray(params.gaussian.factors()[component])
            dense = (factors @ factors.T)[np.ix_(seen, seen)]
            mean = np.asarray(params.gaussian.means[component])[seen]
            total += stats.multivariate_normal(mean, dense).logpdf(row[joint][seen])
    places = [p for p in range(len(columns.kinds)) if p not in joint]
    if places:
        part = Columns(tuple(columns.kinds[p] for p in places), tuple(columns.n_categories[p] for p in places))
        eta = np.asarray(params.eta[component])
        for block in part.blocks:
            for i, place in enumerate(block.places):
                own = eta[block.start + i : block.stop : len(block.places)]
                total += _cell(block.kind, row[places[place]], own)
    return total


def _cell(kind: str, cell: float, eta: np.ndarray) -> float:
    if np.isnan(cell):
        return 0.0
    if kind == "binary":
        return stats.bernoulli(1 / (1 + np.exp(-eta[0]))).logpmf(int(cell))
    if kind == "categorical":
        return float(eta[int(cell)] - logsumexp(eta))
    if kind == "count":
        return stats.poisson(np.exp(eta[0])).logpmf(int(cell))
    variance = -0.5 / eta[1]
    return stats.norm(eta[0] * variance, np.sqrt(variance)).logpdf(cell)
