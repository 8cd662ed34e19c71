"""Planted bugs in training: each must be caught by the check that guards against it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from likely.training import (
    TrainingConfig,
    batches,
    checkpoints,
    journal,
    loop,
    optimisers,
    program,
    smoothed_cross_entropy,
)
from tests.training.checks import (
    check_average,
    check_best_is_kept,
    check_every_row_visited,
    check_gradient_descent,
    check_minibatches,
    check_resumed_run_is_the_same,
)
from tests.training.problems import least_squares, linear, regression_rows
from tests.training.regularisation_checks import check_smoothing, check_worst_move
from tests.training.test_optimisers import check_optimiser, check_weight_decay

DEAL, DIRECTION, SELECT = batches.deal, optimisers._direction, program.select


@pytest.fixture(autouse=True)
def fresh_programs():
    """Compiled programs are shared between runs; a bug must not be served the sound one, nor the other way round."""
    caches = (program.run, program.first_state, program.validation)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def caught(check, *arguments, **options):
    with pytest.raises(AssertionError):
        check(*arguments, **options)


def numbered(n_rows):
    return np.arange(n_rows, dtype=np.float32).reshape(-1, 1)


MINI = TrainingConfig(n_epochs=2, batch_size=5, optimizer="sgd", learning_rate=0.05)


@pytest.mark.usefixtures("x64")
def test_dropping_the_last_batch(monkeypatch):
    def dropping(random, n_rows, batch_size):
        order = DEAL(random, n_rows, batch_size)
        order[-1] = -1
        return order

    monkeypatch.setattr(batches, "deal", dropping)
    caught(check_every_row_visited, numbered(23), 2, batch_size=5)


def test_drawing_rows_with_replacement(monkeypatch):
    def drawing(random, n_rows, batch_size):
        return random.integers(n_rows, size=(-(-n_rows // batch_size), batch_size), dtype=np.int32)

    monkeypatch.setattr(batches, "deal", drawing)
    caught(check_every_row_visited, numbered(23), 2, batch_size=5)


def test_losing_a_block_of_the_stream(monkeypatch):
    monkeypatch.setattr(batches.Blocks, "_part", lambda self, block: self.rows[: self.block_rows])
    caught(check_every_row_visited, numbered(64), 2, batch_size=4, memory_budget=64)


@pytest.mark.usefixtures("x64")
def test_counting_padding_as_rows(monkeypatch):
    def heavy(*arguments):
        batch = SELECT(*arguments)
        return batches.Batch(batch.x, batch.observed, jnp.ones_like(batch.weight))

    monkeypatch.setattr(program, "select", heavy)
    caught(check_minibatches, DEAL, MINI, 0)


@pytest.mark.usefixtures("x64")
def test_taking_the_rows_in_order(monkeypatch):
    class Orderly:
        def permutation(self, rows):
            return rows

    monkeypatch.setattr(batches.Feed, "_random", lambda *_: Orderly())
    caught(check_minibatches, DEAL, MINI, 0)


@pytest.mark.usefixtures("x64")
def test_a_rate_off_by_a_thousandth(monkeypatch):
    rate = optimisers.learning_rate
    monkeypatch.setattr(optimisers, "learning_rate", lambda spec, peak, n: 1.001 * rate(spec, peak, n))
    rows, config = (
        regression_rows(0, 50),
        TrainingConfig(n_epochs=9, batch_size=None, optimizer="sgd", learning_rate=0.1),
    )
    result = loop.train(linear(3, jnp.float64), least_squares, rows, config=config, key=jax.random.key(0))
    caught(check_gradient_descent, result, rows, 0.1)


def early_adam():
    """Adam with the notes' correction by t - 1."""

    def update(gradient, state, params=None):
        count, first, second = state
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)
        t = jnp.maximum(count, 1)
        step = jax.tree.map(lambda m, v: m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), first, second)
        return step, (count + 1, first, second)

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return jnp.zeros((), jnp.int32), zeros, zeros

    return optax.GradientTransformation(init, update)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("adam", early_adam),
        ("rmsprop", lambda: optax.scale_by_rms(decay=0.9, eps_in_sqrt=False, bias_correction=True)),
        ("adagrad", lambda: optax.scale_by_rss(initial_accumulator_value=0.1)),
        ("nesterov", lambda: optax.trace(0.9)),
        ("momentum", lambda: optax.ema(0.9, debias=False)),
    ],
)
@pytest.mark.usefixtures("x64")
def test_an_optimiser_that_is_another(monkeypatch, name, wrong):
    monkeypatch.setattr(optimisers, "_direction", lambda asked: wrong() if asked == name else DIRECTION(asked))
    caught(check_optimiser, name)


@pytest.mark.usefixtures("x64")
def test_decay_of_everything(monkeypatch):
    monkeypatch.setattr(optimisers, "_has_two_axes", lambda params: jax.tree.map(lambda _: True, params))
    caught(check_weight_decay)


@pytest.mark.usefixtures("x64")
def test_average_without_correction_of_its_start(monkeypatch):
    def biased(carry, params, log_decay):
        weight = -jnp.expm1(log_decay)
        return jax.tree.map(lambda new, old: old + weight * (new - old), params, carry.averaged)

    monkeypatch.setattr(program, "_average", biased)
    caught(check_average, 0.9)


def test_returning_the_last_in_place_of_the_best(monkeypatch):
    sound = loop._Trainer.result

    def forgetful(self):
        self.journal = loop.replace(self.journal, best=None)
        return sound(self)

    monkeypatch.setattr(loop._Trainer, "result", forgetful)
    caught(check_best_is_kept, 3)


ROWS = regression_rows(1, 41).astype(np.float32)
EVERYTHING = TrainingConfig(n_epochs=4, batch_size=4, learning_rate=0.05, averaging=0.9)


@pytest.mark.parametrize(
    "forgotten",
    ["carry.state.chains", "carry.state.key", "carry.optimiser", "carry.averaged", "carry.sums", "best", "key"],
)
def test_a_checkpoint_that_forgets(monkeypatch, tmp_path, forgotten):
    """The array is in the file, but as it was before the first step."""
    sound = checkpoints.save

    def is_forgotten(path):
        text = jax.tree_util.keystr(path, simple=True, separator=".")
        return text == forgotten or text.startswith(f"{forgotten}.")

    def forget(path, leaf):
        if not is_forgotten(path):
            return leaf
        return jax.random.key(0) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else jnp.zeros_like(leaf)

    def forgetful(path, tree, description):
        sound(path, jax.tree_util.tree_map_with_path(forget, tree), description)

    monkeypatch.setattr(journal.checkpoints, "save", forgetful)
    # the best of this run is an early one, so that what is returned is what was in the file
    config = TrainingConfig(n_epochs=4, batch_size=4, learning_rate=2.0) if forgotten == "best" else EVERYTHING
    caught(check_resumed_run_is_the_same, tmp_path, ROWS, config, 25)


def test_a_checkpoint_without_its_position(monkeypatch, tmp_path):
    sound = checkpoints.save

    def forgetful(path, tree, description):
        sound(path, tree, {**description, "position": [description["position"][0], 0]})

    monkeypatch.setattr(journal.checkpoints, "save", forgetful)
    caught(check_resumed_run_is_the_same, tmp_path, ROWS, EVERYTHING, 25)


def test_an_order_that_depends_on_the_process(monkeypatch, tmp_path):
    shared = np.random.default_rng(0)
    monkeypatch.setattr(batches.Feed, "_random", lambda *_: shared)
    caught(check_resumed_run_is_the_same, tmp_path, ROWS, EVERYTHING, 25)


def test_the_checks_pass_without_a_bug(tmp_path):
    check_every_row_visited(numbered(23), 2, batch_size=5)
    check_every_row_visited(numbered(64), 2, batch_size=4, memory_budget=64)
    check_resumed_run_is_the_same(tmp_path, ROWS, EVERYTHING, 25)
    check_resumed_run_is_the_same(tmp_path, ROWS, TrainingConfig(n_epochs=4, batch_size=4, learning_rate=2.0), 25)
    check_best_is_kept(3)
    with jax.enable_x64(True):
        check_minibatches(DEAL, MINI, 0)
        check_average(0.9)
        check_weight_decay()
        check_optimiser("adam")


# ------------------------------------------------------------------ regularisation
@pytest.mark.usefixtures("x64")
def test_an_attack_along_the_slope_and_not_its_sign_is_caught():
    def along(key, losses, x, epsilon):
        slope = jax.grad(lambda inputs: losses(inputs).sum())(x)
        return x + epsilon * slope / jnp.linalg.norm(slope, axis=1, keepdims=True)

    caught(check_worst_move, along, 0)


@pytest.mark.usefixtures("x64")
def test_smoothing_over_the_other_classes_only_is_caught():
    def others(logits, codes, amount):
        n = logits.shape[1]
        return smoothed_cross_entropy(logits, codes, amount * n / (n - 1))

    caught(check_smoothing, others, 0)
