"""Rows on their way: nothing lost, nothing twice, nothing from padding, in memory or streamed."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.training import TrainingConfig, train
from likely.training.batches import Blocks, deal, fingerprint
from likely.training.program import run
from tests.training.checks import check_every_row_visited
from tests.training.problems import least_squares, linear, regression_rows


def numbered(n_rows: int) -> np.ndarray:
    return np.column_stack([np.arange(n_rows), np.ones(n_rows)]).astype(np.float32)


def mapped(folder, rows: np.ndarray) -> np.memmap:
    path = folder / "rows.bin"
    rows.tofile(path)
    return np.memmap(path, dtype=rows.dtype, shape=rows.shape, mode="r")


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 9))
@settings(deadline=None, max_examples=50)
def test_deal_is_a_permutation_in_even_parts(n_rows, batch_size, seed):
    order = deal(np.random.default_rng(seed), n_rows, batch_size)
    sizes = (order >= 0).sum(axis=1)
    assert sorted(order[order >= 0]) == list(range(n_rows))
    assert sizes.max() - sizes.min() <= 1
    assert sizes.max() <= batch_size
    assert len(order) == -(-n_rows // batch_size)


@pytest.mark.parametrize("n_rows", [1, 7, 40, 301])
@pytest.mark.parametrize("batch_size", [1, 8, 40, None])
def test_every_row_is_visited_once_an_epoch(n_rows, batch_size):
    check_every_row_visited(numbered(n_rows), 3, batch_size=batch_size)


@pytest.mark.parametrize("n_rows", [97, 128])
def test_every_row_is_visited_once_an_epoch_when_streamed(tmp_path, n_rows):
    rows = mapped(tmp_path, numbered(n_rows))
    check_every_row_visited(rows, 4, batch_size=5, memory_budget=400)


def test_streaming_reads_blocks_within_the_budget(tmp_path):
    rows = mapped(tmp_path, numbered(1000))
    blocks = Blocks(rows, np.float32, budget=1600, multiple=10)
    assert blocks.streamed
    assert blocks.n_blocks == 20
    assert all(blocks.read(block).x.nbytes * 4 <= 1600 for block in range(blocks.n_blocks))
    read = np.concatenate([blocks.read(block).x for block in range(blocks.n_blocks)])
    np.testing.assert_array_equal(read, rows)


def test_last_block_is_padded_with_weight_zero(tmp_path):
    blocks = Blocks(mapped(tmp_path, numbered(95)), np.float32, budget=320, multiple=10)
    last = blocks.read(blocks.n_blocks - 1)
    assert last.x.shape == (10, 2)
    assert last.weight.tolist() == [1.0] * 5 + [0.0] * 5


def test_streamed_rows_with_holes(tmp_path):
    rows = numbered(60)
    rows[41, 1] = np.nan
    blocks = Blocks(mapped(tmp_path, rows), np.float32, budget=160, multiple=5)
    assert not blocks.complete
    held = [blocks.read(block) for block in range(blocks.n_blocks)]
    observed = np.concatenate([batch.observed for batch in held])
    np.testing.assert_array_equal(observed, ~np.isnan(rows))
    assert np.concatenate([batch.x for batch in held])[41, 1] == 0.0


def test_streamed_training_learns_what_training_in_memory_learns(tmp_path):
    """Without noise the least-squares optimum is the same for every order of rows."""
    rows = regression_rows(0, 500, noise=0.0).astype(np.float32)
    settings_ = {"n_epochs": 30, "batch_size": 20, "optimizer": "momentum", "learning_rate": 0.02, "schedule": "linear"}
    for budget in (1 << 30, 2000):
        config = TrainingConfig(memory_budget=budget, **settings_)
        module = train(linear(3), least_squares, mapped(tmp_path, rows), config=config, key=jax.random.key(0)).module
        np.testing.assert_allclose(np.append(module.weight, module.bias), [1, 2, 3, 0.5], rtol=1e-4)


def test_one_program_serves_all_blocks_and_other_rates(tmp_path, monkeypatch):
    rows = mapped(tmp_path, regression_rows(0, 97).astype(np.float32))
    used = set()

    def spy(program):
        used.add(run(program))
        return run(program)

    monkeypatch.setattr("likely.training.loop.run", spy)
    for rate in (0.1, 0.2):
        config = TrainingConfig(n_epochs=3, batch_size=5, learning_rate=rate, memory_budget=512, averaging=0.9)
        objective = functools.partial(scaled_squares, scale=2.0)  # another object each time, but an equal one
        train(linear(3), objective, rows, config=config, key=jax.random.key(0))
    assert [program._cache_size() for program in used] == [1]


def scaled_squares(module, batch, key, state, scale):
    loss, rest = least_squares(module, batch, key, state)
    return scale * loss, rest


class _Seen(Exception):
    pass


@pytest.mark.parametrize("with_hole", [False, True])
def test_observed_is_none_exactly_when_rows_are_complete(with_hole):
    rows = numbered(6)
    if with_hole:
        rows[2, 1] = np.nan

    def objective(module, batch, key, state):
        assert (batch.observed is not None) == with_hole
        raise _Seen

    with pytest.raises(_Seen):
        train(jnp.zeros(1), objective, rows, config=TrainingConfig(n_epochs=1), key=jax.random.key(0))


def test_unobserved_cells_are_zero_and_padding_has_no_weight():
    rows = np.full((5, 2), 2.0, np.float32)
    rows[1, 0] = np.nan

    def objective(module, batch, key, total):
        seen = jnp.sum(jnp.where(batch.observed, 0.0, jnp.abs(batch.x)))
        return 0.0 * module.sum(), (total + jnp.sum(batch.weight[:, None] * batch.x) + 100 * seen, {})

    config = TrainingConfig(n_epochs=1, batch_size=3)
    result = train(jnp.zeros(1), objective, rows, config=config, key=jax.random.key(0), state=jnp.zeros(()))
    assert float(result.state) == 18.0


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_, np.float16, np.float64])
def test_rows_of_any_real_type(dtype):
    check_every_row_visited((numbered(2)).astype(dtype), 2, batch_size=1)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.zeros(3), ValueError, "must be a table"),
        (np.zeros((0, 2)), ValueError, "at least one"),
        (np.array([["a"]]), TypeError, "real numbers"),
    ],
)
def test_wrong_rows(rows, error, message):
    with pytest.raises(error, match=message):
        train(linear(1), least_squares, rows, config=TrainingConfig(), key=jax.random.key(0))


def test_fingerprint_knows_shape_type_and_content():
    rows = numbered(10)
    changed = rows.copy()
    changed[3, 1] = 5.0
    names = {fingerprint(a) for a in (rows, changed, rows.reshape(5, 4), rows.astype(np.float64))}
    assert len(names) == 4
    assert fingerprint(rows.copy()) == fingerprint(rows)


def test_fingerprint_of_many_rows_reads_a_part(monkeypatch):
    monkeypatch.setattr("likely.training.batches._HASHED_BYTES", 1000)
    rows = numbered(10_000)
    changed = rows.copy()
    changed[-1, 1] = 5.0
    assert fingerprint(rows) == fingerprint(rows.copy())
    assert fingerprint(rows) != fingerprint(changed)
