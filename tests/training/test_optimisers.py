"""Every optimiser against the same rule written in NumPy, schedules against their formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.training import TrainingConfig, train
from likely.training.optimisers import OPTIMIZERS, SCHEDULES, OptimiserSpec, learning_rate

ROWS = np.zeros((2, 1))
RATE, N_STEPS = 0.05, 5
CURVATURE = np.diag([1.0, 3.0, 0.5, 7.0, 2.0, 0.1])
SLOPE = np.array([1.0, -2.0, 0.5, 3.0, -0.1, 4.0])
FIRST = np.array([0.3, -1.0, 2.0, 0.7, 1.5, -0.4])


def quadratic(params, batch, key, state):
    """Parameters are a matrix and a vector of three numbers each."""
    theta = jnp.concatenate([params["matrix"].ravel(), params["vector"]])
    return 0.5 * theta @ CURVATURE @ theta - SLOPE @ theta, (state, {})


def gradient(theta):
    return CURVATURE @ theta - SLOPE


def trained(optimizer: str, n_steps: int = N_STEPS, **settings) -> np.ndarray:
    config = TrainingConfig(
        n_epochs=n_steps, batch_size=None, optimizer=optimizer, **{"learning_rate": RATE, **settings}
    )
    first = {"matrix": jnp.asarray(FIRST[:3]).reshape(1, 3), "vector": jnp.asarray(FIRST[3:])}
    module = train(first, quadratic, ROWS, config=config, key=jax.random.key(0)).module
    return np.append(np.asarray(module["matrix"]).ravel(), module["vector"])


def sgd(theta, n_steps):
    for _ in range(n_steps):
        theta = theta - RATE * gradient(theta)
    return theta


def momentum(theta, n_steps):
    velocity = np.zeros_like(theta)
    for _ in range(n_steps):
        velocity = 0.9 * velocity - RATE * gradient(theta)
        theta = theta + velocity
    return theta


def nesterov(theta, n_steps):
    """The gradient is taken after the velocity is applied; the optimiser's parameters are that looked-ahead point."""
    velocity = np.zeros_like(theta)
    for _ in range(n_steps):
        velocity = 0.9 * velocity - RATE * gradient(theta + 0.9 * velocity)
        theta = theta + velocity
    return theta + 0.9 * velocity


def adagrad(theta, n_steps):
    total = np.zeros_like(theta)
    for _ in range(n_steps):
        total = total + gradient(theta) ** 2
        theta = theta - RATE / np.sqrt(total + 1e-14) * gradient(theta)
    return theta


def rmsprop(theta, n_steps):
    """The mean square has weights (1 - rho) rho^(t - s), written out as such."""
    gradients = []
    for t in range(n_steps):
        gradients.append(gradient(theta))
        mean_square = sum(0.1 * 0.9 ** (t - s) * g**2 for s, g in enumerate(gradients))
        theta = theta - RATE / (np.sqrt(mean_square) + 1e-8) * gradients[-1]
    return theta


def adam(theta, n_steps):
    """Raw moments are kept, corrected copies by 1 - rho^t are used, t counted from 1."""
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, n_steps + 1):
        g = gradient(theta)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        theta = theta - RATE * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    return theta


RULES = {rule.__name__: rule for rule in (sgd, momentum, nesterov, adagrad, rmsprop, adam)}


def check_optimiser(name: str) -> None:
    np.testing.assert_allclose(trained(name), RULES[name](FIRST, N_STEPS), rtol=1e-9)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.usefixtures("x64")
def test_optimiser_follows_its_rule(name):
    check_optimiser(name)


@pytest.mark.usefixtures("x64")
def test_lbfgs_reaches_the_optimum_of_a_quadratic():
    np.testing.assert_allclose(trained("lbfgs", 30, learning_rate=None), np.linalg.solve(CURVATURE, SLOPE), rtol=1e-6)


def test_lbfgs_in_single_precision():
    np.testing.assert_allclose(trained("lbfgs", 30, learning_rate=None), np.linalg.solve(CURVATURE, SLOPE), rtol=1e-3)


def noisy(params, batch, key, state):
    noise = jax.random.normal(key, params.shape)
    return jnp.sum((params - noise - state) ** 2), (state, {})


def test_lbfgs_searches_along_one_function():
    """With the noise of its step held fixed, the first step has length 1 and points to the optimum."""
    config = TrainingConfig(n_epochs=1, batch_size=None, optimizer="lbfgs")
    result = train(jnp.zeros(2), noisy, ROWS, config=config, key=jax.random.key(0), state=jnp.ones(2))
    step_key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 0), 0)
    target = 1.0 + np.asarray(jax.random.normal(step_key, (2,)))
    assert np.linalg.norm(target) > 1.0
    assert result.history["loss"][0] == pytest.approx(np.sum(target**2), rel=1e-6)
    np.testing.assert_allclose(result.module, target / np.linalg.norm(target), rtol=1e-5)


def check_weight_decay() -> None:
    """theta <- (1 - rate decay) theta - rate gradient, for the matrix; without the first factor for the vector."""
    theta, shrink = FIRST, 1.0 - RATE * 0.3 * np.array([1, 1, 1, 0, 0, 0])
    for _ in range(N_STEPS):
        theta = shrink * theta - RATE * gradient(theta)
    np.testing.assert_allclose(trained("sgd", weight_decay=0.3), theta, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_weight_decay_is_decoupled_and_spares_vectors():
    check_weight_decay()


@pytest.mark.usefixtures("x64")
def test_decay_is_not_scaled_by_adam():
    """One step of Adam is rate sign(gradient), whatever decay adds to it."""
    theta = FIRST - RATE * np.sign(gradient(FIRST)) - RATE * 0.3 * FIRST * np.array([1, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(trained("adam", 1, weight_decay=0.3), theta, rtol=1e-7)


@pytest.mark.usefixtures("x64")
def test_clipping_bounds_the_norm_of_the_whole_gradient():
    theta = FIRST
    for _ in range(N_STEPS):
        g = gradient(theta)
        theta = theta - RATE * g * min(1.0, 0.7 / np.linalg.norm(g))
    np.testing.assert_allclose(trained("sgd", gradient_clip=0.7), theta, rtol=1e-10)
    assert not np.allclose(theta, sgd(FIRST, N_STEPS))
    np.testing.assert_allclose(trained("sgd", gradient_clip=1e6), sgd(FIRST, N_STEPS), rtol=1e-10)


def spec(schedule: str, warmup: int) -> OptimiserSpec:
    return OptimiserSpec("sgd", schedule, warmup, False, False)


FORMULAS = {
    "cosine": lambda u: 0.5 * (1 + np.cos(np.pi * u)),
    "linear": lambda u: 1 - u,
    "exponential": lambda u: 0.01**u,
    "constant": lambda u: 1.0,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, 20])
def test_schedule_follows_its_formula(schedule, warmup):
    rate = learning_rate(spec(schedule, warmup), 0.3, 100)
    for step in (0, 1, 7, 19, 20, 21, 63, 99, 100):
        warm = (step + 1) / (warmup + 1)
        expected = 0.3 * (warm if step < warmup else FORMULAS[schedule]((step - warmup) / (100 - warmup)))
        assert float(rate(step) if callable(rate) else rate) == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.usefixtures("x64")
def test_schedule_reaches_the_steps():
    theta = FIRST
    for step in range(N_STEPS):
        theta = theta - RATE * (1 - step / N_STEPS) * gradient(theta)
    np.testing.assert_allclose(trained("sgd", schedule="linear"), theta, rtol=1e-6)


def test_every_optimiser_has_a_default_rate_that_learns():
    target = np.linalg.norm(FIRST - np.linalg.solve(CURVATURE, SLOPE))
    for name in OPTIMIZERS.keys() - {"lbfgs"}:  # which has reached it above
        found = trained(name, 20, learning_rate=None)
        assert np.linalg.norm(found - np.linalg.solve(CURVATURE, SLOPE)) < target


@pytest.mark.parametrize(
    ("optimizer", "dtype"),
    [("adam", jnp.bfloat16), ("adam", jnp.float16), ("momentum", jnp.bfloat16), ("lbfgs", jnp.bfloat16)],
)
def test_types_of_parameters_are_kept(optimizer, dtype):
    def bowl(params, batch, key, state):
        return jnp.sum(jnp.square(params - 1)).astype(jnp.float32), (state, {})

    options = {} if optimizer == "lbfgs" else {"weight_decay": 0.01, "gradient_clip": 1.0, "schedule": "cosine"}
    config = TrainingConfig(n_epochs=3, optimizer=optimizer, averaging=0.9, warmup_steps=1, **options)
    result = train(jnp.zeros((2, 2), dtype), bowl, ROWS, config=config, key=jax.random.key(0))
    assert result.module.dtype == dtype
    assert float(jnp.abs(result.module).max()) > 0
