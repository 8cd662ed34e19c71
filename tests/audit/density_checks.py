"""Evidence, conditionals and draws of a fitted model against its law over all rows: each check gives a `Finding`.

Where an answer is exact by its own word, it is held to rounding. Where it is a bound or an estimate, it is held to its
own error: an evidence that is a lower bound may lie below the truth, and above it by chance alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tests.audit import findings, tables
from tests.audit.cases import Case, Fitted, fitted
from tests.audit.findings import MOST_SURPRISE, Finding, Size, surprise
from tests.audit.oracles import Law

# Rounding of float32 along a sum of some ten terms of size ten, and of the quadrature that stands for an integral.
NATS, SHARE, DEVIATION = 2e-4, 1e-4, 1e-3
# An average over importance samples or annealed chains is not exact, and says so. Nats by which such a bound may stay
# below the truth at these settings: enough to see a term that is missing.
MOST_GAP = 0.5
N_ROWS = 12  # rows behind a check of every pattern of holes
N_MASSES = 4000  # the most probable nodes of a grid, that evidence is asked for
N_BINS = 3  # of a real cell or a count, where draws are counted


def density(case: Case, seed: int, size: Size) -> list[Finding]:
    """Evidence of the most probable rows against the oracle, and its sum or integral over all rows."""
    one = fitted(case, seed)
    law, rows = one.law, one.law.grid.rows
    # If the grid is too small, nothing that follows means anything.
    whole = [Finding(str(case), "the oracle's own sum", max(abs(law.total - 1), law.beyond), SHARE, "share")]
    every = len(rows) <= 100_000
    asked = np.arange(len(rows)) if every else np.argsort(-law.log_density)[:N_MASSES]
    likely_rows = np.argsort(-law.log_density)[: min(N_MASSES, len(rows))]
    if evidence_is_slow(one):
        asked = likely_rows[:: max(1, len(likely_rows) // 200)]
    evidence = one.model.evidence(rows[asked])
    kept = law.log_density[asked] > law.log_density.max() - 15
    whole += against(case, "complete rows", evidence[np.flatnonzero(kept)], law.log_density[asked][kept])
    if len(asked) == len(rows):
        whole.append(total(case, evidence, law))
    return whole


def total(case: Case, evidence: Any, law: Law) -> Finding:
    """Σ exp(evidence) over all rows: 1 where it is exact, at most 1 where it is a bound, up to the error."""
    masses = np.exp(evidence.values) * np.prod(law.grid.steps)
    off = masses.sum() - 1
    if evidence.kind == "exact":
        return Finding(str(case), "sum over all rows", abs(off), SHARE, "share")
    replicates = np.exp(evidence.replicates) * np.prod(law.grid.steps)
    error = replicates.sum(axis=0).std(ddof=1) / np.sqrt(replicates.shape[1])
    tail = stats.t.sf(max(0.0, off - SHARE) / max(error, 1e-9), replicates.shape[1] - 1)
    return Finding(str(case), "sum over all rows", surprise(tail), MOST_SURPRISE, "surprise")


def against(case: Case, check: str, evidence: Any, exact: np.ndarray) -> list[Finding]:
    """An evidence and what it should be, by its kind."""
    off = evidence.values - exact
    if evidence.kind == "exact":
        return [Finding(str(case), check, float(np.abs(off).max()), NATS, "nats")]
    # By the mean over rows: its error is known from the replicates, which rows share.
    error, n = max(evidence.monte_carlo_stderr, 1e-6), evidence.replicates.shape[1]
    above = surprise(stats.t.sf((off.mean() - NATS) / error, n - 1))
    found = [Finding(str(case), f"{check}, above the truth", above, MOST_SURPRISE, "surprise")]
    below = -off.mean() if evidence.kind == "lower" else -(evidence.upper - exact).mean()
    limit = MOST_GAP + stats.t.isf(findings.ALPHA, n - 1) * error
    found.append(Finding(str(case), f"{check}, below the truth", float(below), float(limit), "nats"))
    return found


def holes(case: Case, seed: int, size: Size) -> list[Finding]:
    """Evidence of every pattern of holes against the marginal of the law."""
    one, (places, rows) = fitted(case, seed), some_rows(fitted(case, seed), seed, N_ROWS)
    erased, exact = [], []
    for observed in tables.patterns(rows.shape[1]):
        erased.append(np.where(observed, rows, np.nan))
        exact.append(one.law.log_marginal(places, observed))
    evidence = one.model.evidence(np.concatenate(erased))
    return against(case, "every pattern of holes", evidence, np.concatenate(exact))


def conditionals(case: Case, seed: int, size: Size) -> list[Finding]:
    """Means of erased cells, and probabilities of categories, against the law."""
    one, queries, mean, std, shares = _queries(case, seed)
    found = one.model.condition(queries)
    if found.method != "exact":
        return [sampled_means(case, one, queries, (mean, std, shares), size.n_runs)]
    kinds = np.array(tables.KINDS[case.kind])
    ordered, named = kinds != "categorical", np.flatnonzero(kinds == "categorical")
    off = (np.abs(numbers(found.mean()) - mean) / np.maximum(std, 1e-3))[:, ordered]
    means = (
        [Finding(str(case), "conditional means", float(off.max()), DEVIATION, "deviations")] if ordered.any() else []
    )
    other = [float(np.abs(found.probabilities(int(c)) - shares[:, c]).max()) for c in named]
    return means + ([Finding(str(case), "conditional probabilities", max(other), SHARE, "share")] if other else [])


def deviations(case: Case, seed: int, size: Size) -> list[Finding]:
    """Standard deviations of erased cells that are called exact, against the law."""
    one, queries, _, std, _ = _queries(case, seed)
    found = one.model.condition(queries)
    ordered = np.array([kind != "categorical" for kind in tables.KINDS[case.kind]])
    if found.method != "exact":
        return []
    off = (np.abs(found.std() - std) / np.maximum(std, 1e-3))[:, ordered]
    return [Finding(str(case), "conditional deviations", float(off.max(initial=0)), 10 * DEVIATION, "deviations")]


def _queries(case: Case, seed: int) -> tuple[Fitted, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of every pattern with some cell seen and some not, and what is exact of them: means, deviations, shares."""
    one = fitted(case, seed)
    places, rows = some_rows(one, seed, 3)
    queries, exact = [], []
    for observed in tables.patterns(rows.shape[1])[1:-1]:
        for place, row in zip(places, rows, strict=True):
            queries.append(np.where(observed, row, np.nan))
            exact.append(moments(one.law, place, observed))
    mean, std, shares = (np.array(part) for part in zip(*exact, strict=True))
    return one, np.array(queries), mean, std, shares


def sampled_means(
    case: Case, one: Fitted, queries: np.ndarray, exact: tuple[np.ndarray, np.ndarray, np.ndarray], n_runs: int
) -> Finding:
    """Means and probabilities that are averages over draws: of several seeds, right on average, by Student's t."""
    kinds = np.array(tables.KINDS[case.kind])
    ordered, named = np.flatnonzero(kinds != "categorical"), np.flatnonzero(kinds == "categorical")
    mean, std, shares = exact
    truth = np.hstack([mean[:, ordered], *(shares[:, c] for c in named)])
    spread = np.hstack([std[:, ordered], *(np.sqrt(shares[:, c] * (1 - shares[:, c])) for c in named)])
    unknown = np.isnan(queries)
    unknown = np.hstack([unknown[:, ordered], np.repeat(unknown[:, named], tables.N_CATEGORIES, axis=1)])
    model, runs = one.model, []
    seed = model.seed_
    try:
        for other in range(n_runs):
            model.seed_ = seed + 1 + other
            found = model.condition(queries)
            runs.append(np.hstack([numbers(found.mean())[:, ordered], *(found.probabilities(int(c)) for c in named)]))
    finally:
        model.seed_ = seed
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    # Self-normalised averages are biased by one over their number, which five thousandths of a deviation cover.
    off = np.maximum(np.abs(np.mean(runs, axis=0) - truth) - 5e-3 * spread, 0)
    tails = 2 * stats.t.sf(off[unknown] / np.maximum(error[unknown], 1e-9), len(runs) - 1)
    return Finding(str(case), "conditional means", surprise(tails.min(), tails.size), MOST_SURPRISE, "surprise")


def samples(case: Case, seed: int, size: Size) -> list[Finding]:
    """Rows of `sample` in bins, by chi-square against the law."""
    one = fitted(case, seed)
    drawn = numbers(one.model.sample(size.n_draws, random_state=seed))
    cuts = bins(one.law, np.ones(one.law.shares.ndim, bool), None)
    return [Finding(str(case), "samples", counted(drawn, cuts, one.law.shares), MOST_SURPRISE, "surprise")]


def draws_within(case: Case, seed: int, size: Size) -> list[Finding]:
    """Completed cells of one row, two or more together, by chi-square against their exact joint distribution."""
    one, (places, rows) = fitted(case, seed), some_rows(fitted(case, seed), seed, 2)
    worst = 0.0
    d = rows.shape[1]
    for place, row, kept in zip(places, rows, (0, d - 1), strict=True):
        observed = np.arange(d) == kept
        copies = one.model.condition(np.where(observed, row, np.nan)[None]).sample(size.n_draws, random_state=seed)
        drawn = np.stack([numbers(copy)[0] for copy in copies])[:, ~observed]
        shares = one.law.conditional(place, observed)
        worst = max(worst, counted(drawn, bins(one.law, ~observed, shares), shares))
    worst = max(0.0, worst - np.log10(2))
    return [Finding(str(case), "draws within a row", worst, MOST_SURPRISE, "surprise")]


def draws_across(case: Case, seed: int, size: Size) -> list[Finding]:
    """The same cell of two rows that were asked for together: their draws are independent.

    A contingency table of the two cells against the product of their exact distributions.
    """
    one, (places, rows) = fitted(case, seed), some_rows(fitted(case, seed), seed, 2)
    d = rows.shape[1]
    observed = np.arange(d) == d - 1
    places[1], rows[1] = places[0], rows[0]  # Equal rows, so that noise that is shared shows most.
    copies = one.model.condition(np.where(observed, rows, np.nan)).sample(size.n_draws, random_state=seed)
    drawn = np.stack([numbers(copy)[:, 0] for copy in copies])
    first = one.law.conditional(places[0], observed)
    first = first.sum(axis=tuple(range(1, first.ndim)))
    cut = bins(one.law, np.arange(d) == 0, first) * 2
    return [Finding(str(case), "draws across rows", counted(drawn, cut, np.outer(first, first)), MOST_SURPRISE,
                    "surprise")]  # fmt: skip


# ------------------------------------------------------------------ helpers
def evidence_is_slow(one: Fitted) -> bool:
    """Whether each row costs samples, so that a grid of thousands would take minutes."""
    return one.model.evidence(one.rows[:1]).kind != "exact" and len(one.law.grid.rows) > 1000


def some_rows(one: Fitted, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the law and their places on the grid."""
    places = one.law.draw(np.random.default_rng(seed + 7), n)
    return places, one.law.rows(places)


def numbers(rows: Any) -> np.ndarray:
    return np.asarray(rows, np.float64)


def moments(law: Law, place: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and deviation of every cell given the observed ones, and shares of its first values."""
    shares, free = law.conditional(place, observed), np.flatnonzero(~observed)
    mean = law.rows(place).astype(float)
    std, table = np.zeros(len(mean)), np.zeros((len(mean), tables.N_CATEGORIES))
    for i in np.flatnonzero(observed):
        table[i, min(int(place[i]), tables.N_CATEGORIES - 1)] = 1
    for at, i in enumerate(free):
        own, axis = shares.sum(axis=tuple(a for a in range(len(free)) if a != at)), law.grid.axes[i]
        mean[i] = own @ axis
        std[i] = np.sqrt(max(0.0, own @ (axis - mean[i]) ** 2))
        n = min(len(own), tables.N_CATEGORIES)
        table[i, :n] = own[:n]
    return mean, std, table


def bins(law: Law, which: np.ndarray, shares: np.ndarray | None) -> list[Cut]:
    """For each of some columns the number of the bin that each value of its axis is in: about equal shares."""
    shares = law.shares if shares is None else shares
    out = []
    for at, i in enumerate(np.flatnonzero(which)):
        own = shares.sum(axis=tuple(a for a in range(shares.ndim) if a != at))
        if len(own) <= tables.N_CATEGORIES:
            out.append(Cut(law.grid.axes[i], np.arange(len(own))))
        else:
            below = np.cumsum(own) - own / 2
            out.append(Cut(law.grid.axes[i], np.minimum((below / own.sum() * N_BINS).astype(int), N_BINS - 1)))
    return out


class Cut:
    """A column's axis, and the bin of each value on it; a value between two belongs to the nearer."""

    def __init__(self, axis: np.ndarray, number: np.ndarray):
        self.axis, self.number = axis, number

    def of(self, cells: np.ndarray) -> np.ndarray:
        step = self.axis[1] - self.axis[0]
        return self.number[np.clip(np.rint((cells - self.axis[0]) / step).astype(int), 0, len(self.axis) - 1)]


def counted(drawn: np.ndarray, cuts: list[Cut], shares: np.ndarray) -> float:
    """Surprise of rows (n, c) in bins, where the shares of all values are known."""
    sizes = [int(cut.number.max()) + 1 for cut in cuts]
    expected = np.zeros(sizes)
    np.add.at(expected, np.ix_(*(cut.number for cut in cuts)), shares)
    places = np.ravel_multi_index([cut.of(drawn[:, i]) for i, cut in enumerate(cuts)], sizes)
    return findings.of_counts(np.bincount(places, minlength=expected.size), expected.ravel())


CHECKS = {
    "density": density,
    "holes": holes,
    "conditionals": conditionals,
    "deviations": deviations,
    "samples": samples,
    "draws within": draws_within,
    "draws across": draws_across,
}
