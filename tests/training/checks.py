"""Checks of the loop that are shared with the planted bugs of tests/controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.training import Checkpoint, TrainingConfig, TrainingResult, train, use_reporter
from tests.training.problems import (
    bits,
    chains_objective,
    chains_state,
    distance,
    drift,
    least_squares,
    linear,
    regression_rows,
    squares,
    visits,
    without_time,
)


def check_every_row_visited(rows: Any, n_epochs: int, **settings: Any) -> None:
    """Each epoch shows each row to the objective once."""
    config = TrainingConfig(n_epochs=n_epochs, optimizer="sgd", **settings)
    result = train(jnp.zeros(1), visits, rows, config=config, key=jax.random.key(3), state=jnp.zeros(len(rows)))
    np.testing.assert_array_equal(result.state, np.full(len(rows), float(n_epochs)))


def check_gradient_descent(result: TrainingResult, rows: np.ndarray, rate: float) -> None:
    """Full-batch gradient descent from 0 on least squares: w_t = w* - (I - rate H)^t w*."""
    x = np.column_stack([rows[:, :-1], np.ones(len(rows))])
    curvature = x.T @ x / len(rows)
    best = np.linalg.solve(curvature, x.T @ rows[:, -1] / len(rows))
    powered = np.linalg.matrix_power(np.eye(len(best)) - rate * curvature, result.n_steps)
    found = np.append(result.module.weight[0], result.module.bias)
    np.testing.assert_allclose(found, best - powered @ best, rtol=1e-10)


def check_minibatches(deal: Any, config: TrainingConfig, seed: int) -> None:
    """Minibatch gradient descent against one written in NumPy, row by row; `deal` says which rows make a batch."""
    rows, key = regression_rows(seed, 23), jax.random.key(seed)
    result = train(linear(3, jnp.float64), least_squares, rows, config=config, key=key)
    theta = np.zeros(4)
    words = np.asarray(jax.random.key_data(key)).tolist()
    for epoch in range(config.n_epochs):
        for batch in deal(np.random.default_rng([*words, epoch, 1]), len(rows), config.batch_size):
            chosen = rows[[row for row in batch if row >= 0]]
            x = np.column_stack([chosen[:, :-1], np.ones(len(chosen))])
            theta = theta - config.learning_rate * x.T @ (x @ theta - chosen[:, -1]) / len(chosen)
    np.testing.assert_allclose(np.append(result.module.weight[0], result.module.bias), theta, rtol=1e-10)


def check_average(decay: float) -> None:
    """The average of the iterates 1, 2, ... has weights proportional to decay^(t - s)."""
    config = TrainingConfig(n_epochs=40, batch_size=None, optimizer="sgd", learning_rate=1.0, averaging=decay)
    result = train(jnp.zeros(1), drift, np.zeros((1, 1)), config=config, key=jax.random.key(0))
    steps = np.arange(1, 41)
    np.testing.assert_allclose(result.module, [np.average(steps, weights=decay ** (40.0 - steps))], rtol=1e-7)


def drifting(valid_rows: Any, validate: Any = distance, **settings: Any) -> TrainingResult:
    """A run of one step an epoch whose parameter is the number of the epoch."""
    config = TrainingConfig(batch_size=None, optimizer="sgd", learning_rate=1.0, **{"n_epochs": 20, **settings})
    key = jax.random.key(0)
    return train(
        jnp.zeros(1), drift, np.zeros((1, 1)), config=config, key=key, validate=validate, valid_rows=valid_rows
    )


def check_best_is_kept(patience: int) -> None:
    """The best is epoch 5; training goes on for `patience` epochs and returns that one."""
    result = drifting(np.array([[5.0]]), patience=patience)
    assert result.stopped
    assert result.n_steps == 5 + patience
    assert len(result.history["valid"]) == 5 + patience
    assert float(result.module[0]) == 5.0


class StopAt:
    """A reporter that interrupts, as Ctrl-C does, once a number of steps is reached."""

    def __init__(self, step: int) -> None:
        self.step = step

    def start(self, total: int, label: str) -> None: ...

    def update(self, done: int, metrics: Any) -> None:
        if done >= self.step:
            raise KeyboardInterrupt

    def finish(self) -> None: ...


def train_with_everything(rows: Any, config: TrainingConfig, **options: Any) -> TrainingResult:
    """A run with chains, noise and validation."""
    return train(
        linear(3),
        chains_objective,
        rows,
        config=config,
        key=jax.random.key(11),
        state=chains_state(),
        validate=squares,
        valid_rows=regression_rows(99, 17).astype(np.float32),
        **options,
    )


def check_resumed_run_is_the_same(folder: Path, rows: Any, config: TrainingConfig, stop_at: int) -> None:
    """A run that is interrupted, and resumed from its file, gives the bits of one that was not."""
    straight = train_with_everything(rows, config)
    path = folder / "run.checkpoint"
    with use_reporter(StopAt(stop_at)), pytest.raises(KeyboardInterrupt):
        train_with_everything(rows, config, checkpoint=Checkpoint(path, every_steps=stop_at))
    resumed = train_with_everything(rows, config, resume=path)
    assert bits(resumed.module) == bits(straight.module)
    assert bits(resumed.state) == bits(straight.state)
    assert without_time(resumed.history) == without_time(straight.history)
    assert (resumed.n_steps, resumed.stopped) == (straight.n_steps, straight.stopped)
