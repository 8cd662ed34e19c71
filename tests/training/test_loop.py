"""The loop against closed forms and NumPy; how it is cut into segments or watched changes nothing."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.training import TrainingConfig, train, use_reporter
from likely.training.batches import deal
from likely.training.progress import Bar, Silent, current_reporter
from tests.training.checks import check_average, check_gradient_descent, check_minibatches, train_with_everything
from tests.training.problems import bits, drift, least_squares, linear, regression_rows, without_time


@pytest.mark.usefixtures("x64")
def test_gradient_descent_has_its_closed_form(global_random_seed):
    rows = regression_rows(global_random_seed, 50)
    config = TrainingConfig(n_epochs=200, batch_size=None, optimizer="sgd", learning_rate=0.1)
    result = train(linear(3, jnp.float64), least_squares, rows, config=config, key=jax.random.key(0))
    assert result.n_steps == 200
    check_gradient_descent(result, rows, 0.1)


@pytest.mark.parametrize("batch_size", [1, 7, 10])
@pytest.mark.usefixtures("x64")
def test_minibatches_against_numpy(batch_size, global_random_seed):
    config = TrainingConfig(n_epochs=3, batch_size=batch_size, optimizer="sgd", learning_rate=0.05)
    check_minibatches(deal, config, global_random_seed)


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999, 1.0])
@pytest.mark.usefixtures("x64")
def test_average_has_normalised_geometric_weights(decay):
    check_average(decay)


def test_average_of_slow_decay_is_right_from_the_first_step_in_single_precision():
    """1 - 0.9999^2 loses four digits in float32 when it is computed as written."""
    config = TrainingConfig(n_epochs=2, batch_size=None, optimizer="sgd", learning_rate=1.0, averaging=0.9999)
    result = train(jnp.zeros(1), drift, np.zeros((1, 1)), config=config, key=jax.random.key(0))
    np.testing.assert_allclose(result.module, [(0.9999 + 2) / 1.9999], rtol=1e-6)


def test_history_has_the_means_of_each_epoch():
    """Three steps an epoch, from 0 on: the mean of the parameter before each step is 1, 4, 7 ..."""
    config = TrainingConfig(n_epochs=5, batch_size=1, optimizer="sgd", learning_rate=1.0)
    history = train(jnp.zeros(1), drift, np.zeros((3, 1)), config=config, key=jax.random.key(0)).history
    assert history["epoch"] == [1, 2, 3, 4, 5]
    assert history["place"] == [1.0, 4.0, 7.0, 10.0, 13.0]
    assert history["loss"] == [-1.0, -4.0, -7.0, -10.0, -13.0]
    assert sorted(history["seconds"]) == history["seconds"]
    assert set(history) == {"epoch", "loss", "place", "seconds"}


def test_short_epochs_share_a_span_without_a_trace():
    """More epochs than one span holds, and not a multiple of it."""
    config = TrainingConfig(n_epochs=700, batch_size=1, optimizer="sgd", learning_rate=1.0)
    history = train(jnp.zeros(1), drift, np.zeros((2, 1)), config=config, key=jax.random.key(0)).history
    assert history["place"] == [2 * epoch + 0.5 for epoch in range(700)]


def everything(**options):
    config = TrainingConfig(n_epochs=6, batch_size=4, learning_rate=0.05, averaging=0.9, schedule="cosine")
    return train_with_everything(regression_rows(1, 41).astype(np.float32), config, **options)


def assert_same(one, other):
    assert bits(one.module) == bits(other.module)
    assert bits(one.state) == bits(other.state)
    assert without_time(one.history) == without_time(other.history)


@pytest.mark.parametrize(("first", "seconds"), [(1, 1e-9), (3, 0.002), (100_000, 100.0)])
def test_length_of_segments_changes_nothing(monkeypatch, first, seconds):
    reference = everything()
    monkeypatch.setattr("likely.training.loop.FIRST_STEPS", first)
    monkeypatch.setattr("likely.training.loop.SEGMENT_SECONDS", seconds)
    assert_same(everything(), reference)


class Recorder:
    def __init__(self):
        self.calls = []

    def start(self, total, label):
        self.calls.append(("start", total, label))

    def update(self, done, metrics):
        self.calls.append(("update", done, metrics))

    def finish(self):
        self.calls.append(("finish",))


def test_progress_changes_nothing_and_tells_all():
    recorder = Recorder()
    with use_reporter(None):
        silent = everything()
    with use_reporter(recorder):
        watched = everything(label="a model")
    assert_same(watched, silent)
    assert recorder.calls[0] == ("start", 66, "a model")
    assert recorder.calls[-1] == ("finish",)
    done = [call[1] for call in recorder.calls[1:-1]]
    assert done == sorted(done)
    assert done[-1] == 66
    last = recorder.calls[-2][2]
    assert last["loss"] == silent.history["loss"][-1]
    assert last["valid"] == silent.history["valid"][-1]
    assert "epoch" not in last


def test_bar_on_a_terminal_changes_nothing(monkeypatch, capsys):
    silent = everything()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(current_reporter(), Bar)
    assert_same(everything(label="with a bar"), silent)
    assert "with a bar" in capsys.readouterr().err


def test_pipes_are_silent(capsys):
    assert isinstance(current_reporter(), Silent)
    everything()
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_reporter_is_finished_when_training_breaks():
    recorder = Recorder()

    def broken(params, batch, key, state):
        return jnp.sum(params) * jnp.nan, (state, {})

    with use_reporter(recorder), pytest.raises(RuntimeError):
        train(jnp.zeros(1), broken, np.zeros((1, 1)), config=TrainingConfig(), key=jax.random.key(0))
    assert recorder.calls[-1] == ("finish",)


def test_what_is_not_trained_is_kept_and_the_given_module_is_not_touched():
    module = linear(3)
    rows = regression_rows(0, 20).astype(np.float32)
    config = TrainingConfig(n_epochs=2, batch_size=5)
    trained = train(module, least_squares, rows, config=config, key=jax.random.key(0)).module
    np.testing.assert_array_equal(trained.table, [0, 1, 2])
    assert trained.table.dtype == jnp.int32
    assert trained.power == 2.0
    assert float(jnp.abs(module.weight).sum()) == 0.0
    assert float(jnp.abs(trained.weight).sum()) > 0.0


def test_projection_holds_after_every_step():
    def to_ball(params):
        return params / jnp.maximum(1.0, jnp.linalg.norm(params))

    config = TrainingConfig(n_epochs=30, batch_size=None, optimizer="sgd", learning_rate=0.7)
    result = train(
        jnp.array([0.0, 0.5]), drift, np.zeros((1, 1)), config=config, key=jax.random.key(0), project=to_ball
    )
    np.testing.assert_allclose(result.module, [0.5**0.5, 0.5**0.5], rtol=1e-3)


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey, functools.partial(jax.random.key, impl="rbg")])
def test_any_kind_of_key(make):
    def noise(params, batch, key, state):
        return jnp.sum(params) * jax.random.normal(key), (state, {})

    rows, config = np.zeros((3, 1)), TrainingConfig(n_epochs=2, batch_size=2)
    one, same, other = (train(jnp.zeros(2), noise, rows, config=config, key=make(k)).module for k in (0, 0, 1))
    assert bits(one) == bits(same)
    assert bits(one) != bits(other)


@pytest.mark.parametrize(
    ("objective", "state", "message"),
    [
        (lambda m, b, k, s: m.sum(), None, r"must return \(loss, \(state, metrics\)\)"),
        (lambda m, b, k, s: (m, (s, {})), None, "real scalar"),
        (lambda m, b, k, s: (m.sum(), (s, [m.sum()])), None, "dictionary of scalars"),
        (lambda m, b, k, s: (m.sum(), (s, {"rows": m})), None, "metric 'rows' must be a scalar"),
        (lambda m, b, k, s: (m.sum(), (s, {"valid": m.sum()})), None, "may not be called 'valid'"),
        (lambda m, b, k, s: (m.sum(), ({}, {})), [1.0], "keep it alike"),
        (lambda m, b, k, s: (m.sum(), ([s[0].astype(int)], {})), [jnp.ones(2)], r"state\[0\] from float32\[2\]"),
    ],
)
def test_objective_that_breaks_the_contract(objective, state, message):
    with pytest.raises((TypeError, ValueError), match=message):
        train(jnp.zeros(2), objective, np.zeros((2, 1)), config=TrainingConfig(), key=jax.random.key(0), state=state)


def test_nothing_to_train():
    with pytest.raises(ValueError, match="nothing to train"):
        train(jnp.arange(3), drift, np.zeros((2, 1)), config=TrainingConfig(), key=jax.random.key(0))
