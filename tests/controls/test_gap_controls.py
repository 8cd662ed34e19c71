"""The checks of annealing over latents fail where they should: each gets a wrong part."""

import pytest

from likely.models.latent.diagnosis import annealed_latents
from likely.models.latent.diagnosis.evidence_gap import EvidenceGap, evidence_gap
from tests.models.latent.diagnosis.evidence_gap_checks import (
    check_annealed_is_exact,
    check_errors_of_gaps,
    gaps_over_seeds,
    spoiled_case,
)
from tests.models.latent.variational.vae_oracles import fitted

pytestmark = pytest.mark.usefixtures("x64")


def without_proposal(module, rows, u, start):
    base, weight = annealed_latents._right_parts(module, rows, u, start)
    return base, weight + module.posterior(rows.answer).sample(u)[1]


def test_wrong_weights_are_caught(monkeypatch):
    monkeypatch.setattr(annealed_latents, "_right_parts", annealed_latents._log_parts, raising=False)
    monkeypatch.setattr(annealed_latents, "_log_parts", without_proposal)
    run = annealed_latents.anneal.__wrapped__  # not the compiled one, which may be there already
    with pytest.raises(AssertionError):
        check_annealed_is_exact(run, 0, "posterior")


def unpaired(sources, gap):
    """As if the bounds of the two q had noises of their own."""
    return {**sources(gap), "amortisation": [gap.best_replicates, gap.elbo_replicates]}


def of_rows_apart(sources, gap):
    """As if rows had noises of their own, so that their number made errors small."""
    return {name: [part / len(gap.elbo) ** 0.5 for part in parts] for name, parts in sources(gap).items()}


@pytest.mark.parametrize("wrong", [unpaired, of_rows_apart])
def test_wrong_errors_of_gaps_are_caught(wrong, monkeypatch):
    module, rows, _ = spoiled_case(0, n=8)
    found = gaps_over_seeds(evidence_gap, fitted(0, rows, module), rows)
    check_errors_of_gaps(found)
    right = EvidenceGap._sources
    monkeypatch.setattr(EvidenceGap, "_sources", lambda gap: wrong(right, gap))
    with pytest.raises(AssertionError):
        check_errors_of_gaps(found)
