"""EM over coded cells against the same EM by products of matrices, and EM that starts on parts of the rows."""

import jax
import numpy as np
import pytest

import likely
from likely.columns import Columns
from likely.models.latent.mixture import coded_loop, mixture
from likely.models.latent.mixture.coded import coded, coded_prior, run_coded, suits
from likely.models.latent.mixture.components import Layout
from likely.models.latent.mixture.em import blocks_of, em_step, prior_of, seeded
from likely.objectives.em import run_em

COLUMNS = Columns(("real", "categorical", "binary", "count", "categorical"), (1, 14, 1, 1, 7))
LAYOUT = Layout.of(COLUMNS, "diagonal")


def rows_of(seed, n=120, holes=0.2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    cells = [
        rng.normal(2 * group, 1),
        rng.integers(0, 14, n) * (group > 0),
        rng.random(n) < 0.2 + 0.3 * group,
        rng.poisson(1 + 2 * group),
        (rng.integers(0, 5, n) + group) % 7,
    ]
    rows = np.column_stack(cells).astype(float)
    return np.where(rng.random(rows.shape) < holes, np.nan, rows)


def both(rows, max_iter=12):
    """Objectives and parameters by both ways, from one start."""
    blocks = (blocks_of(rows, LAYOUT, 4),)
    prior = prior_of(blocks, LAYOUT, 1.0, 0.1)
    start = seeded(jax.random.key(0), rows, prior, LAYOUT, 4)
    step = jax.tree_util.Partial(em_step, layout=LAYOUT)
    dense = run_em(step, start, (blocks, prior), max_iter=max_iter, tol=0.0)
    cells = coded(rows, LAYOUT)
    looked_up = run_coded(start, cells, coded_prior(cells, LAYOUT, 1.0, 0.1), LAYOUT, max_iter=max_iter, tol=0.0)
    return dense, looked_up


def check_both_ways_agree(seed, holes):
    dense, looked_up = both(rows_of(seed, holes=holes))
    np.testing.assert_allclose(looked_up.objective, dense.objective[: len(looked_up.objective)], rtol=1e-9)
    for one, other in zip(jax.tree.leaves(looked_up.params), jax.tree.leaves(dense.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_looking_up_gives_the_same_steps_as_products(global_random_seed, x64, holes):
    assert suits(LAYOUT)
    check_both_ways_agree(global_random_seed, holes)


def test_a_hole_that_counts_as_seen_is_caught(global_random_seed, x64, monkeypatch):
    original = coded_loop.add_rows

    def forgetful(*arguments):
        unseen = arguments[8]
        total = original(*arguments)
        unseen[:] = 0
        return total

    monkeypatch.setattr(coded_loop, "add_rows", forgetful)
    with pytest.raises(AssertionError):
        check_both_ways_agree(global_random_seed, 0.2)


def test_a_weight_is_so_many_rows(global_random_seed, x64):
    rows = rows_of(global_random_seed, n=60)
    times = np.random.default_rng(global_random_seed).integers(0, 3, len(rows))
    repeated = rows[np.repeat(np.arange(len(rows)), times)]
    prior = coded_prior(coded(repeated, LAYOUT), LAYOUT, 1.0, 0.1)
    start = seeded(jax.random.key(1), rows, prior, LAYOUT, 3)
    runs = [
        run_coded(start, cells, prior, LAYOUT, max_iter=5, tol=0.0)
        for cells in (coded(repeated, LAYOUT), coded(rows, LAYOUT, times))
    ]
    np.testing.assert_allclose(runs[0].objective, runs[1].objective, rtol=1e-10)


def test_a_large_table_is_learned_from_parts_of_it(global_random_seed, monkeypatch):
    rows = rows_of(global_random_seed, n=600, holes=0.0)
    schema = likely.Schema.infer(rows, kinds=dict(enumerate(COLUMNS.kinds)))
    at_once = likely.Mixture(3, schema=schema, random_state=0).fit(rows)
    for name, size in (("_MOST_ROWS_AT_ONCE", 500), ("_FIRST_ROWS", 60), ("_FIRST_ROWS_A_COMPONENT", 1)):
        monkeypatch.setattr(mixture, name, size)
    model = likely.Mixture(3, schema=schema, random_state=0).fit(rows)
    assert model.history_["n_rows"] == [60, 600]
    assert "n_rows" not in at_once.history_
    assert np.diff(model.history_["objective"]).min() > -1e-6
    # Both end at a mode of the likelihood of all rows, and modes differ by less than an independent model lacks.
    gained = at_once.score(rows) - likely.Independent(schema=schema).fit(rows).score(rows)
    assert abs(at_once.score(rows) - model.score(rows)) < 0.25 * gained
