"""EM of joint Gaussians by patterns of holes against the same EM row by row, and components that the rows choose."""

import jax
import numpy as np
import polars as pl
import pytest

import likely
from likely import Column, Schema
from likely.columns import Columns
from likely.models.latent.mixture import choosing, joint, mixture
from likely.models.latent.mixture.components import Layout
from likely.models.latent.mixture.em import blocks_of, em_step, prior_of, seeded
from likely.models.latent.mixture.joint import patterns_of, run_joint
from likely.objectives.em import run_em

COLUMNS = Columns(("binary", "real", "categorical", "real", "real"), (1, 1, 4, 1, 1))
LAYOUT = Layout.of(COLUMNS, "scores")


def rows_of(seed, n=120, holes=0.2):
    rng = np.random.default_rng(seed)
    group, size = rng.integers(0, 3, n), rng.normal(0, 1, n)
    numbers = [size + 2 * group, size + rng.normal(0, 0.3, n), rng.normal(0, 1, n) - group]
    cells = [rng.random(n) < 0.2 + 0.3 * group, numbers[0], (rng.integers(0, 2, n) + group) % 4, *numbers[1:]]
    rows = np.column_stack(cells).astype(float)
    return np.where(rng.random(rows.shape) < holes, np.nan, rows)


def both(rows, weight=None, max_iter=12):
    """Objectives and parameters by both ways, from one start."""
    blocks = (blocks_of(rows, LAYOUT, 4, weight),)
    prior = prior_of(blocks, LAYOUT, 1.0, 0.1)
    start = seeded(jax.random.key(0), rows, prior, LAYOUT, 4)
    step = jax.tree_util.Partial(em_step, layout=LAYOUT)
    dense = run_em(step, start, (blocks, prior), max_iter=max_iter, tol=0.0)
    return dense, run_joint(start, patterns_of(rows, LAYOUT, weight), prior, LAYOUT, max_iter=max_iter, tol=0.0)


def check_both_ways_agree(seed, holes, weight=None):
    dense, found = both(rows_of(seed, holes=holes), weight)
    np.testing.assert_allclose(found.objective, dense.objective[: len(found.objective)], rtol=1e-9)
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(dense.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_patterns_give_the_same_steps_as_rows(global_random_seed, x64, holes):
    check_both_ways_agree(global_random_seed, holes)


def test_weights_are_numbers_of_rows_either_way(global_random_seed, x64):
    check_both_ways_agree(global_random_seed, 0.2, np.random.default_rng(0).integers(0, 3, 120).astype(float))


def test_unobserved_cells_without_their_spread_are_caught(global_random_seed, x64, monkeypatch):
    original = joint._with_unobserved

    def certain(seen, counts, first, second, means, covariances):
        moments = original(seen, counts, first, second, means, covariances)
        missing = np.outer(~seen, ~seen)
        return moments[0], moments[1] - missing * counts[:, None, None] * 0.1

    monkeypatch.setattr(joint, "_with_unobserved", certain)
    with pytest.raises(AssertionError):
        check_both_ways_agree(global_random_seed, 0.2)


def test_many_patterns_of_holes_are_left_to_the_other_way(monkeypatch):
    monkeypatch.setattr(joint, "MOST_PATTERNS", 3)
    assert patterns_of(rows_of(0), LAYOUT, None) is None


def together(n, seed):
    """Three rounded numbers that go together, with a cap, and a word."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(4, 0.7, n)
    return pl.DataFrame(
        {
            "rooms": np.round(size * rng.lognormal(0, 0.05, n)).astype(int),
            "people": np.round(3 * size * rng.lognormal(0, 0.05, n)).astype(int),
            "price": np.minimum(np.round(size * rng.lognormal(0, 0.05, n), 1), 150),
            "shore": rng.choice(["yes", "no"], n),
        }
    )


def test_held_out_rows_choose_joint_gaussians_where_columns_go_together(monkeypatch, tmp_path):
    monkeypatch.setattr(choosing, "_LEAST_ROWS", 400)
    table = together(600, 0)
    model = likely.Mixture(n_init=1, max_iter=10, random_state=0).fit(table)
    assert model.covariance_ == "scores"
    assert model.covariance is None
    assert model.held_out_["scores"] > model.held_out_["diagonal"] + 1
    assert model.n_components_ == 600 // 50
    drawn = model.sample(400)
    assert drawn["price"].max() == 150
    assert 0.5 < (drawn["price"] == 150).mean() / (table["price"] == 150).mean() < 2
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    assert again.covariance_ == "scores"
    assert again.held_out_ == model.held_out_
    assert (again.score_samples(table[:20]) == model.score_samples(table[:20])).all()
    assert again.impute(table[:5].with_columns(pl.lit(None, pl.Int64).alias("people")))["people"].null_count() == 0


def test_many_patterns_of_holes_and_spikes_leave_no_choice():
    table = together(2000, 2)
    schema = Schema.infer(table)
    encoded = schema.encode(table)
    assert choosing.is_open(schema, encoded)
    assert not choosing.is_open(schema, encoded[:1999])
    holes = np.random.default_rng(0).random((2000, 8)) < 0.5
    wide = Schema(tuple(Column(f"x{i}", "grid", step=1) for i in range(8)))
    assert not choosing.is_open(wide, np.where(holes, np.nan, 1.0))
    assert choosing.is_open(wide, np.where(holes[:, :1], np.nan, np.ones((2000, 8))))
    spiked = Schema(tuple(Column(f"x{i}", "real", spikes=(0.0,)) for i in range(8)))
    assert not choosing.is_open(spiked, np.where(holes, 0.0, 1.0))


@pytest.mark.parametrize(
    ("settings", "n"), [({"n_components": 2}, 3000), ({"covariance": "diagonal", "max_iter": 2}, 3000), ({}, 300)]
)
def test_there_is_no_choice_where_one_was_made_or_rows_are_few(settings, n, monkeypatch):
    monkeypatch.setattr(mixture, "held_out", None)
    model = likely.Mixture(**{"n_init": 1, "max_iter": 2} | settings, random_state=0).fit(together(n, 1)[:, :2])
    assert model.covariance_ == "diagonal"
    assert model.held_out_ is None
