"""Completed rows: independent of each other, and functions of the row and the key alone, however they are drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import likely
from likely.columns import Columns
from likely.models.energy.harmonium import answers as harmonium
from likely.models.energy.network import answers as energies
from likely.models.energy.network import enumeration as energy_enumeration
from likely.models.energy.normaliser.row_noise import row_numbers
from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.pairwise import answers as pairwise
from tests.models.energy.harmonium import brute_force
from tests.models.energy.network.energy_model_checks import BINARY as FOUR
from tests.models.energy.network.energy_model_checks import random_energy
from tests.models.energy.normaliser.row_noise_checks import (
    all_states,
    check_a_row_is_drawn_alone,
    check_copies_are_independent,
    exact_means,
    rows_with_holes,
)
from tests.models.energy.pairwise import pairwise_checks

SIX = Columns(("binary",) * 6, (1,) * 6)
SETTINGS = Settings(16, 20, 40)
N_COPIES = 500


def none_are_few(rows, *_):
    return np.zeros(len(rows), bool)


def harmonium_case(how, seed, monkeypatch):
    params = brute_force.machine(SIX, 3, seed, scale=0.7)
    logs = logsumexp(brute_force.log_joint(params, all_states(6), SIX), axis=1)
    if how == "chains":
        monkeypatch.setattr(harmonium, "few_holes", none_are_few)
    if how in ("hidden", "visible"):
        return harmonium.Exact(params, SIX, how), logs
    return harmonium.Sampled(params, SIX, SETTINGS), logs


def pairwise_case(how, seed, monkeypatch):
    params, layout, _ = pairwise_checks.machine("complete", 4, 2, seed)
    logs = np.array([pairwise_checks.log_marginal(params, row) for row in all_states(4)])
    if how == "chains":
        monkeypatch.setattr(pairwise.Sampled, "_few", none_are_few_of)
    return pairwise.Exact(params, layout) if how == "exact" else pairwise.Sampled(params, layout, SETTINGS), logs


def none_are_few_of(self, rows):
    return none_are_few(rows)


def energy_case(how, seed, monkeypatch):
    params = random_energy(FOUR, seed, scale=1.0)
    logs = -np.asarray(energies.energies(params, jnp.asarray(all_states(4)), FOUR), float)
    if how == "chains":
        monkeypatch.setattr(energy_enumeration, "few_holes", none_are_few)
    return energies.Exact(params, FOUR) if how == "exact" else energies.Sampled(params, FOUR, SETTINGS), logs


@pytest.mark.parametrize(
    ("case", "how"),
    [
        *((harmonium_case, how) for how in ("hidden", "visible", "few", "chains")),
        *((pairwise_case, how) for how in ("exact", "few", "chains")),
        *((energy_case, how) for how in ("exact", "few", "chains")),
    ],
)
def test_completed_rows_are_independent_and_of_the_row_alone(case, how, x64, monkeypatch, global_random_seed):
    answers, logs = case(how, global_random_seed, monkeypatch)
    rows = rows_with_holes(int(np.log2(len(logs))))
    key = jax.random.key(global_random_seed)

    def draw(some, n=3):
        found = np.asarray(answers.condition(jax.random.key(0), some).sample(key, n))
        return np.where(np.isnan(some), found, some)

    check_a_row_is_drawn_alone(draw, rows)
    check_copies_are_independent(draw(rows, N_COPIES), rows, exact_means(logs, rows))


@pytest.mark.parametrize(
    "model",
    [
        likely.DBN((3, 2), n_epochs=2, n_tuning_epochs=0, random_state=0),
        likely.DBM((3, 2), n_epochs=2, random_state=0),
        likely.Hopfield(memory="dense", random_state=0),
        likely.RBM(3, n_epochs=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_copies_of_a_model_are_independent(model, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    train = (rng.random((60, 6)) < rng.choice([0.3, 0.7], (60, 1))).astype(float)
    model.fit(train)
    rows = rows_with_holes(6)
    draw = lambda some, n=3: np.stack(model.condition(some).sample(n, random_state=global_random_seed))  # noqa: E731
    check_a_row_is_drawn_alone(draw, rows)
    check_copies_are_independent(draw(rows, N_COPIES), rows, exact_means(model.score_samples(all_states(6)), rows))


def test_rows_are_told_apart_by_cells_and_by_holes():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nan], [np.nan, 1.0], [0.0, np.nan]], np.float32)
    numbers = row_numbers(rows)
    assert [tuple(n[:2]) for n in numbers].count(tuple(numbers[0, :2])) == 2  # -0 is 0
    assert len({tuple(n) for n in numbers}) == 5
    assert numbers[:, 2].tolist() == [0, 1, 0, 0, 1]
    np.testing.assert_array_equal(row_numbers(rows.astype(np.float64)), numbers)
