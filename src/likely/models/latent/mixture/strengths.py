"""How strongly components are drawn to the overall shares of each column, by the rows themselves.

If the components' shares of a column are drawn from a Dirichlet distribution around the overall ones m, of strength s,
the counts N of the components have the marginal likelihood Π_k Γ(s) / Γ(s + N_k) Π_c Γ(s m_c + N_kc) / Γ(s m_c)
(empirical Bayes; Minka, 2000). It is greatest at a small s where components differ, as in a column that they are made
of, and at a large one where they are alike, as in a column that has nothing to do with the others. Cost: a Γ for every
count, of each of the strengths that are compared.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from likely.columns import Columns

# A grid of factors of about two: the likelihood is flat around its maximum. At the least of them a component of a few
# rows still keeps a thousandth for what it has not seen.
CANDIDATES = 2.0 ** np.arange(-6, 13)


def learned_strengths(statistics: np.ndarray, seen: np.ndarray, mean: np.ndarray, columns: Columns) -> np.ndarray:
    """(d,) the strength of each column among `CANDIDATES` with the greatest likelihood; 1 where it has no shares.

    Parameters
    ----------
    statistics : (F, K) sums of the components' statistics.
    seen : (d, K) rows of each component that have the column.
    mean : (F,) overall means of the statistics.
    """
    out = np.ones(columns.n_columns)
    for place, kind in enumerate(columns.kinds):
        own = np.flatnonzero(columns.column_of == place)
        if kind == "categorical":
            counts, shares = statistics[own], mean[own]
        elif kind == "binary":
            counts = np.concatenate([statistics[own], seen[place][None] - statistics[own]])
            shares = np.append(mean[own], 1 - mean[own])
        else:
            continue
        out[place] = CANDIDATES[np.argmax([_log_likelihood(s, np.maximum(counts, 0), shares) for s in CANDIDATES])]
    return out


def _log_likelihood(strength: float, counts: np.ndarray, shares: np.ndarray) -> float:
    """Log of the marginal likelihood of counts (categories, components), less what does not depend on the strength."""
    own = strength * shares / shares.sum()
    total = counts.sum(axis=0)
    inside = (gammaln(own[:, None] + counts) - gammaln(own)[:, None]).sum()
    return float(inside + (gammaln(strength) - gammaln(strength + total)).sum())
