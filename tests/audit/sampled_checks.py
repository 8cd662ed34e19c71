"""Answers that are sampled, of machines so small that they are known: how often intervals hold the truth.

Models sum a small machine exactly. `as_if_large` takes that way from them, so that annealing and clamped chains answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import numpy as np
from scipy import stats

from likely.models.energy.harmonium.answers import Sampled as SampledHarmonium
from likely.models.energy.network.answers import Sampled as SampledNetwork
from likely.models.energy.pairwise.answers import Sampled as SampledPairwise
from tests.audit import findings, tables
from tests.audit.cases import Case, fitted, shaken
from tests.audit.findings import MOST_SURPRISE, Finding, Size
from tests.audit.oracles import Law

LEVEL = 0.95
MACHINES = ("Hopfield", "BoltzmannMachine", "RBM", "DBN", "DBM", "EnergyModel")
N_TEMPERATURES, N_SWEEPS, N_CHAINS = 60, 30, 64


@contextlib.contextmanager
def as_if_large() -> Iterator[None]:
    """No machine can be enumerated, and no row with holes either."""
    complete = lambda self, rows: ~np.isnan(rows).any(axis=1)  # noqa: E731
    energy = "likely.models.energy"
    with contextlib.ExitStack() as stack:
        for name, value in (
            (f"{energy}.harmonium.enumeration.smaller_side", lambda *_: None),
            (f"{energy}.pairwise.enumeration.can_enumerate", lambda *_: False),
            (f"{energy}.network.energy_model.enumerable", lambda *_: False),
            (f"{energy}.layered.dbn.network.enumerable", lambda *_: False),
        ):
            stack.enter_context(mock.patch(name, value))
        for cls in (SampledHarmonium, SampledNetwork, SampledPairwise):
            stack.enter_context(mock.patch.object(cls, "_few", complete))
        yield


def coverage(name: str, seed: int, size: Size) -> list[Finding]:
    """Intervals of the evidence of a complete row and of one with holes, over many machines of a kind."""
    case = Case(name, "binary")
    model, rows, _ = fitted(case, seed)
    learned, first_seed = model.params_, model.seed_
    model.set_params(n_temperatures=N_TEMPERATURES, n_sweeps=N_SWEEPS, n_ais_chains=N_CHAINS)
    grid, held = tables.grid("binary", rows, np.ones(4)), np.zeros((size.n_machines, 2), bool)
    observed = np.array([True, False, True, False])
    try:
        for number in range(size.n_machines):
            model.params_, model.seed_ = shaken(learned, seed + number), seed + number
            law = Law(model, grid)
            place = law.draw(np.random.default_rng(number), 1)
            row = law.rows(place)
            exact = np.concatenate([law.log_marginal(place, observed | True), law.log_marginal(place, observed)])
            with as_if_large():
                evidence = model.evidence(np.vstack([row, np.where(observed, row, np.nan)]))
            assert evidence.kind != "exact", "the machine was summed after all"
            wide = stats.norm.ppf((1 + LEVEL) / 2) * evidence.stderr
            held[number] = (evidence.lower - wide <= exact) & (exact <= evidence.upper + wide)
    finally:
        model.params_, model.seed_ = learned, first_seed
    found = []
    for what, covered in zip(("complete rows", "rows with holes"), held.sum(axis=0), strict=True):
        figure = findings.of_coverage(int(covered), size.n_machines, LEVEL)
        found.append(Finding(name, f"95% intervals, {what} ({covered} of {size.n_machines})", figure, MOST_SURPRISE,
                             "surprise"))  # fmt: skip
    return found
