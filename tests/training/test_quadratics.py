"""Training on quadratics against its theory; curvature against dense Hessians; constrained minima against SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

import likely
from likely.training import TrainingConfig, curvature, minimise_constrained, train
from likely.training.curvature import _problem_of, lanczos
from likely.training.quadratics import (
    decay_shrinkage,
    descent_rate,
    heavy_ball_rate,
    heavy_ball_settings,
    matching_steps,
    nesterov_bound,
    stopping_shrinkage,
)

EIGENVALUES = np.array([0.02, 0.3, 1.0, 4.0])
TARGET = np.array([1.0, -2.0, 0.5, 3.0])


def quadratic(module, batch, key, state):
    return 0.5 * jnp.sum(jnp.asarray(EIGENVALUES) * (module[0] - jnp.asarray(TARGET)) ** 2), (state, {})


def trained(n_steps, **settings):
    config = TrainingConfig(n_epochs=n_steps, batch_size=None, optimizer="sgd", learning_rate=0.2, **settings)
    return np.asarray(
        train(jnp.zeros((1, 4)), quadratic, np.zeros((1, 1)), config=config, key=jax.random.key(0)).module[0]
    )


# ------------------------------------------------------------------ decay and stopping
@pytest.mark.usefixtures("x64")
def test_weight_decay_shrinks_by_its_eigenvalue_and_stopping_alike():
    decayed, stopped = trained(4000, weight_decay=0.5), trained(10)
    np.testing.assert_allclose(decayed / TARGET, decay_shrinkage(EIGENVALUES, 0.5), rtol=1e-9)
    np.testing.assert_allclose(stopped / TARGET, stopping_shrinkage(EIGENVALUES, 0.2, 10), rtol=1e-9)


def test_stopping_acts_like_decay_where_eigenvalues_are_small():
    """1 − (1 − ηλ)^t against λ / (λ + μ) with t = 1 / (ημ): equal to second order, never apart by more than 0.21."""
    eigenvalues = np.logspace(-4, 1, 200)
    rate, decay = 1e-3, 0.1
    stopped = stopping_shrinkage(eigenvalues, rate, int(matching_steps(rate, decay)))
    shrunk = decay_shrinkage(eigenvalues, decay)
    small = eigenvalues < 1e-2 * decay
    # λ/(λ+μ) = u − u² + ..., 1 − e^{−u} = u − u²/2 + ..., u = λ/μ: they differ by u²/2, that is u/2 of themselves.
    assert np.all(np.abs(stopped / shrunk - 1)[small] <= eigenvalues[small] / decay)
    assert 0.2 < np.abs(stopped - shrunk).max() < 0.21


# ------------------------------------------------------------------ rates
def distances(step, n_steps):
    """‖θ − θ*‖ along θ_{t+1} = step(θ_t, θ_{t−1}) from 0."""
    before = theta = np.zeros(4)
    path = []
    for _ in range(n_steps):
        before, theta = theta, step(theta, before)
        path.append(np.linalg.norm(theta - TARGET))
    return np.array(path)


def gradient(theta):
    return EIGENVALUES * (theta - TARGET)


def test_descent_and_the_heavy_ball_fall_at_their_rates():
    low, high = EIGENVALUES[[0, -1]]
    plain = distances(lambda theta, _: theta - 2 / (low + high) * gradient(theta), 2000)
    assert plain[-1] / plain[-2] == pytest.approx(descent_rate(low, high), rel=1e-6)
    ball = distances(lambda theta, before: theta - 0.2 * gradient(theta) + 0.5 * (theta - before), 600)
    assert ball[-1] / ball[-2] == pytest.approx(heavy_ball_rate(low, high, 0.2, 0.5), rel=1e-6)
    # At the best settings all roots have one size.
    assert heavy_ball_rate(low, high) == pytest.approx(np.sqrt(heavy_ball_settings(low, high)[1]), rel=1e-6)
    assert heavy_ball_rate(low, high) < descent_rate(low, high)


def test_nesterovs_risk_is_below_its_bound():
    largest, ahead, theta, weight = EIGENVALUES[-1], np.zeros(4), np.zeros(4), 1.0
    risks = []
    for _ in range(100):
        new = ahead - gradient(ahead) / largest
        after = (1 + np.sqrt(1 + 4 * weight**2)) / 2
        ahead, theta, weight = new + (weight - 1) / after * (new - theta), new, after
        risks.append(0.5 * (EIGENVALUES * (theta - TARGET) ** 2).sum())
    assert np.all(risks <= nesterov_bound(largest, np.linalg.norm(TARGET), np.arange(1, 101)))


def test_the_heavy_ball_boosts_constant_gradients_tenfold():
    velocity = np.zeros(1)
    for _ in range(300):
        velocity = 0.9 * velocity + 1.0
    assert velocity[0] == pytest.approx(1 / (1 - 0.9), rel=1e-12)


@pytest.mark.usefixtures("x64")
def test_lbfgs_directions_are_those_of_dense_bfgs():
    """With memory enough, −M g with M updated by the rank-two formula, scaled by sᵀy / yᵀy of the newest pair."""
    random = np.random.RandomState(0)
    H = random.normal(size=(4, 4))
    H = H @ H.T + np.eye(4)
    transform = optax.scale_by_lbfgs(memory_size=10)
    update = jax.jit(transform.update)
    theta = jnp.asarray(random.normal(size=4))
    state, pairs = transform.init(theta), []
    for _ in range(4):
        slope = H @ np.asarray(theta)
        direction, state = update(jnp.asarray(slope), state, theta)
        if pairs:
            np.testing.assert_allclose(direction, _dense_bfgs(pairs) @ slope, rtol=1e-8)
        new = theta - 0.1 * direction
        pairs.append((np.asarray(new - theta), H @ np.asarray(new - theta)))
        theta = new


def _dense_bfgs(pairs):
    s, y = pairs[-1]
    M = (s @ y) / (y @ y) * np.eye(4)
    for s, y in pairs:
        left = np.eye(4) - np.outer(s, y) / (s @ y)
        M = left @ M @ left.T + np.outer(s, s) / (s @ y)
    return M


# ------------------------------------------------------------------ curvature
def test_lanczos_finds_both_ends_within_its_errors(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    A = random.normal(size=(60, 60))
    A = A + A.T
    exact = np.linalg.eigvalsh(A)
    for n_products in (10, 25, 60):
        values, errors = lanczos(lambda v: A @ v, 60, n_products, seed=global_random_seed)
        for end in (0, -1):
            assert np.abs(exact - values[end]).min() <= errors[end] + 1e-10 * np.abs(exact).max()
        assert exact[0] - 1e-9 <= values[0] <= values[-1] <= exact[-1] + 1e-9
    np.testing.assert_allclose(values, exact, atol=1e-8)


def cubic(module, batch, key, state):
    """A loss with a Hessian that depends on the place."""
    predicted = jnp.tanh(batch.x[:, :3] @ module["w"])
    return jnp.mean(batch.weight * (predicted - batch.x[:, 3]) ** 2) + 0.1 * jnp.sum(module["w"] ** 2), (state, {})


@pytest.mark.usefixtures("x64")
def test_curvature_is_the_dense_hessians(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    rows, w = random.normal(size=(20, 4)), jnp.asarray(random.normal(size=3))
    found = curvature({"w": w}, rows, objective=cubic)
    batch = likely.training.Batch(jnp.asarray(rows), None, jnp.ones(20))
    loss = lambda w: cubic({"w": w}, batch, None, None)[0]  # noqa: E731
    H, g = (np.asarray(own) for own in jax.jit(lambda w: (jax.hessian(loss)(w), jax.grad(loss)(w)))(w))
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(H), rtol=1e-8)
    np.testing.assert_allclose(found.gradient, g, rtol=1e-10)
    bend = g @ H @ g  # Where the loss bends downwards along its gradient, no step is the longest that pays.
    assert found.best_step == pytest.approx((g @ g) / bend if bend > 0 else np.inf, rel=1e-9)
    assert found.largest_error == found.smallest_error == 0
    assert f"{found.largest:.4g}" in str(found)


def test_curvature_of_an_estimator_is_that_of_the_loss_that_its_fit_minimises(global_random_seed):
    """At the parameters it has: the loss there is what a training of no length would report for its first step."""
    X = np.random.RandomState(global_random_seed).normal(size=(24, 3))
    model = likely.Autoencoder(1, hidden=(), n_epochs=3, batch_size=24, random_state=0).fit(X)
    found = curvature(model, X, n_products=3)
    assert found.loss < model.history_["loss"][0]
    params, objective, rows, _ = _problem_of(model, X, None)
    assert params is model.params_
    np.testing.assert_allclose(rows, (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-4, atol=1e-4)
    batch = likely.training.Batch(jnp.asarray(rows, jnp.float32), None, jnp.ones(24))
    assert float(objective(params, batch, jax.random.key(0), None)[0]) == pytest.approx(found.loss, rel=1e-4)


class Fitted(BaseEstimator):
    """An estimator whose fit trains a pair of numbers, or nothing at all, and keeps one."""

    def __init__(self, trains=True):
        self.trains, self.params_ = trains, jnp.ones(1)

    def fit(self, X):
        if self.trains:
            train(jnp.ones((1, 2)), quadratic, X, config=TrainingConfig(), key=jax.random.key(0))
        return self


def test_nothing_bends_without_parameters_or_an_objective():
    with pytest.raises(TypeError, match="a fitted estimator, or a module together with its `objective`"):
        curvature(jnp.ones(2), np.zeros((1, 1)))
    with pytest.raises(ValueError, match="no floating-point arrays"):
        curvature(jnp.ones(2, int), np.zeros((1, 1)), objective=quadratic)
    with pytest.raises(ValueError, match="Fitted is not trained by gradient"):
        curvature(Fitted(trains=False), np.eye(3))
    with pytest.raises(ValueError, match="Fitted keeps other parameters"):
        curvature(Fitted(), np.eye(3))


# ------------------------------------------------------------------ constraints
def test_a_ball_and_a_plane_give_scipys_minimum_and_multipliers(global_random_seed):
    """Least squares in a ball (A + 2αI) x = b, on a plane as well; multipliers of SciPy's SLSQP."""
    random = np.random.RandomState(global_random_seed)
    A = random.normal(size=(3, 3))
    A, b, c = A @ A.T + np.eye(3), 5 * random.normal(size=3), random.normal(size=3)
    found = minimise_constrained(
        lambda x: 0.5 * x @ A @ x - b @ x,
        np.zeros(3),
        equalities=lambda x: jnp.array([x @ c - 0.1]),
        inequalities=lambda x: jnp.stack([x @ x - 1, x[0] - 50]),
    )
    assert found.converged
    peer = minimize(
        lambda x: 0.5 * x @ A @ x - b @ x,
        np.zeros(3),
        jac=lambda x: A @ x - b,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda x: x @ c - 0.1, "jac": lambda x: c},
            {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
        ],
        options={"ftol": 1e-15, "maxiter": 300},
    )
    # Constraints hold to 1e-7, and SciPy's to the root of its tolerance.
    np.testing.assert_allclose(found.x, peer.x, atol=1e-5)
    # SciPy's Lagrangian subtracts constraints, and those of inequalities are at least 0 where ours are at most 0.
    np.testing.assert_allclose(found.equality_multipliers, -peer.multipliers[:1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.inequality_multipliers, [peer.multipliers[1], 0.0], rtol=1e-5, atol=1e-5)
    # The equations of Karush, Kuhn and Tucker themselves.
    alpha, lagrange = found.inequality_multipliers[0], found.equality_multipliers[0]
    np.testing.assert_allclose((A + 2 * alpha * np.eye(3)) @ found.x, b - lagrange * c, atol=1e-5)


def test_a_multiplier_is_the_price_of_its_constraint():
    def least(radius):
        return minimise_constrained(
            lambda x: jnp.sum((x - 2.0) ** 2), np.zeros(2), inequalities=lambda x: jnp.array([x @ x - radius])
        )

    price = (least(1.001).value - least(0.999).value) / -0.002
    assert least(1.0).inequality_multipliers[0] == pytest.approx(price, rel=1e-4)


def test_constraints_that_are_no_vectors_are_refused():
    with pytest.raises(ValueError, match="f must return a number and constraints vectors"):
        minimise_constrained(lambda x: x.sum(), [1.0], equalities=lambda x: x.sum())
