"""Who fills in cells in a report: the best models that can, in their order."""

from types import SimpleNamespace

import numpy as np
import pytest

from likely.contract.estimator import suited
from likely.leaderboard.report import imputation_section, probes


@pytest.fixture
def asked(monkeypatch):
    """Names of the models that were asked, of which the second cannot."""
    names = []

    def completed(entry, holes, schema):
        names.append(entry.name)
        return probes.Outcome(None, "it cannot") if entry.name == "b" else probes.Outcome(holes)

    monkeypatch.setattr(probes, "completed", completed)
    return names


def test_the_five_best_that_can_fill_in_cells(asked):
    entries = [SimpleNamespace(name=name, model=None if name == "a" else object()) for name in "abcdefghij"]
    board = SimpleNamespace(entries=entries)
    found = imputation_section._completed(board, np.zeros((2, 2)), None)
    assert asked == list(found) == list("bcdefg")
    assert [name for name, outcome in found.items() if outcome.rows is None] == ["b"]
    assert imputation_section._whose(board) == "the 5 best models that have it"


def test_all_of_a_few(asked):
    board = SimpleNamespace(entries=[SimpleNamespace(name=name, model=object()) for name in "bc"])
    assert list(imputation_section._completed(board, np.zeros((2, 2)), None)) == ["b", "c"]
    assert imputation_section._whose(board) == "each model"


def test_a_first_look_at_mixed_columns_is_short_for_energy_models():
    assert suited("EnergyModel", 1437, 64, ["binary"]).n_epochs == 200
    assert suited("EnergyModel", 800, 21, ["binary", "grid"]).n_epochs == 25
    assert suited("RBM", 1437, 64, ["binary"]).n_temperatures == 1000
    assert suited("RBM", 800, 21, ["binary", "grid"]).n_temperatures == 300


def test_a_first_look_ends_where_validation_rows_gain_no_more():
    assert {suited(name, 800, 21, ["grid"]).patience for name in ("VAE", "DeepLatentGaussian")} == {25}
    assert suited("DiscreteVAE", 800, 21, ["grid"]).patience == 40
    assert suited("MarkovField", 800, 21, ["grid"]).max_iter == 50
    assert suited("TreeMixture", 800, 21, ["grid"]).n_components is None  # by validation
    assert suited("TreeMixture", 40_000, 21, ["grid"]).n_components == 10
