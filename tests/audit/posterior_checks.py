"""Simulation-based calibration of every posterior: the truth's rank among draws is uniform.

Talts et al. (2018). What is hidden and what is seen are drawn together from the model; then the hidden is drawn again
and again given the seen. If the posterior is right, the truth is one draw among equals, and its rank among the others
uniform; too narrow a posterior puts it at the ends, a shifted one at one end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import likely
from likely.models.latent.linear.linear_gaussian import posterior
from tests.audit import findings
from tests.audit.cases import Case, fitted
from tests.audit.density_checks import numbers
from tests.audit.findings import MOST_SURPRISE, Finding, Size
from tests.audit.oracles import array
from tests.audit.sampled_checks import as_if_large

N_DRAWS = 19  # twenty ranks


def ranks(rng: np.random.Generator, truth: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Rank of each truth (n,) among its draws (n_draws, n); among equals, any of theirs."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return below + rng.integers(0, equal + 1)


def calibrated(name: str, check: str, rng: np.random.Generator, truth: np.ndarray, draws: np.ndarray) -> Finding:
    figure = findings.of_ranks(ranks(rng, truth, draws), len(draws))
    return Finding(name, check, figure, MOST_SURPRISE, "surprise")


def cells(case: Case, seed: int, size: Size, conditional: Callable[[Any, np.ndarray], Any] | None = None) -> Finding:
    """Cells of rows of the model, erased and drawn again by `condition(X).sample`."""
    rng, model = np.random.default_rng(seed), fitted(case, seed).model
    rows = numbers(model.sample(size.n_ranked, random_state=seed + 1))
    which = rng.integers(0, rows.shape[1], len(rows))  # the cell that is ranked; others are erased beside it
    erased = rng.random(rows.shape) < 0.3
    erased[np.arange(len(rows)), which] = True
    ask = conditional or (lambda model, queries: model.condition(queries).sample(N_DRAWS, random_state=seed + 2))
    copies = ask(model, np.where(erased, np.nan, rows))
    own = np.arange(len(rows)), which
    draws = np.stack([numbers(copy)[own] for copy in copies])
    return calibrated(str(case), "erased cells, by rank", rng, rows[own], draws)


def clamped_chains(name: str, seed: int, size: Size) -> Finding:
    """The same by clamped chains, of machines that could be summed."""

    def chained(model: Any, queries: np.ndarray) -> Any:
        with as_if_large():
            found = model.condition(queries)
            assert found.method != "exact", "the machine was summed after all"
            return found.sample(N_DRAWS, random_state=seed + 2)

    finding = cells(Case(name, "binary"), seed, size, chained)
    return Finding(name, "clamped chains, by rank", finding.figure, finding.bound, finding.unit)


def codes(name: str, seed: int, size: Size) -> Finding:
    """The code of a linear Gaussian model: h and x drawn together, h drawn again from p(h | x)."""
    rng, model = np.random.default_rng(seed), fitted(Case(name, "real"), seed).model
    p, n = model.params_, size.n_ranked
    loadings, noise = array(p.loadings), np.broadcast_to(array(p.noise), array(p.offset).shape)
    hidden = rng.normal(size=(n, loadings.shape[1]))
    x = hidden @ loadings.T + array(p.offset) + np.sqrt(noise) * rng.normal(size=(n, len(noise)))
    given = posterior(p, jnp.asarray(x, jnp.float32))
    spread = rng.normal(size=(N_DRAWS, n, hidden.shape[1])) @ array(given.root)[0].T
    return calibrated(name, "codes, by rank", rng, hidden[:, 0], (array(given.mean)[None] + spread)[..., 0])


def responsibilities(seed: int, size: Size) -> Finding:
    """The component behind a row of a mixture: drawn with the row, then again by `transform`."""
    rng, model = np.random.default_rng(seed), fitted(Case("Mixture", "binary"), seed).model
    weights = np.exp(array(model.params_.log_weights))
    component = rng.choice(len(weights), size.n_ranked, p=weights / weights.sum())
    rows = rng.random((size.n_ranked, 4)) < 1 / (1 + np.exp(-array(model.params_.eta)[component]))
    below = np.cumsum(model.transform(rows.astype(float)), axis=1)
    draws = (rng.random((N_DRAWS, size.n_ranked))[..., None] > below[None]).sum(axis=-1)
    return calibrated("Mixture", "components, by rank", rng, component, draws)


def classes(seed: int, size: Size) -> Finding:
    """The class of a row: drawn with the row from the joint model, then again by `predict_proba`."""
    rng = np.random.default_rng(seed)
    rows = fitted(Case("Mixture", "binary"), seed).rows
    y = (rows[:, 0] + rows[:, 1] + (rng.random(len(rows)) < 0.3)).astype(int)
    predictor = likely.JointPredictor(likely.Mixture(3, random_state=seed)).fit(rows[:, 1:], y)
    drawn = numbers(predictor.joint_.sample(size.n_ranked, random_state=seed))
    below = np.cumsum(predictor.predict_proba(drawn[:, :-1]), axis=1)
    draws = (rng.random((N_DRAWS, size.n_ranked))[..., None] > below[None]).sum(axis=-1)
    return calibrated("JointPredictor", "classes, by rank", rng, drawn[:, -1], draws)
