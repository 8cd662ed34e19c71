"""The checks of annealing over latents fail where they should: each gets a wrong part."""

import pytest

from likely.models.latent.diagnosis import annealed_latents
from tests.models.latent.diagnosis.evidence_gap_checks import check_annealed_is_exact

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
