"""Noise, augmentation, adversaries and projections, against formulas, SciPy and exact worst cases."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from likely.training import (
    Adversary,
    Augmentation,
    Batch,
    CellNoise,
    ClassNoise,
    ImageAugmentation,
    TrainingConfig,
    WeightNoise,
    displaced,
    fast_gradient_sign,
    limit_norms,
    perturbed,
    projected_gradient,
    smoothed_cross_entropy,
    train,
)
from likely.training.augmentation import smooth_noise
from likely.training.program import comparable, split
from tests.training.regularisation_checks import (
    as_batch,
    check_smoothing,
    check_worst_move,
    logistic_case,
    mean_loss,
    row_losses,
)

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


# ------------------------------------------------------------------ attacks
@pytest.mark.parametrize(
    "attack",
    [
        lambda key, losses, x, epsilon: fast_gradient_sign(losses, x, epsilon),
        lambda key, losses, x, epsilon: projected_gradient(key, losses, x, epsilon, n_steps=10),
    ],
    ids=["sign", "projected"],
)
def test_attacks_on_a_linear_classifier_are_the_worst_there_are(attack, global_random_seed):
    check_worst_move(attack, global_random_seed)


def test_projected_gradients_stay_near_and_within_limits_and_find_what_one_step_misses():
    """The loss is greatest at 0.3, which a step of 0.5 from 0 and from 0.9 oversteps and misses."""

    @jax.jit
    def both(key, x):
        losses = lambda x: -((x - 0.3) ** 2).sum(axis=1)  # noqa: E731
        one = fast_gradient_sign(losses, x, 0.5, low=0.0, high=1.0)
        many = projected_gradient(key, losses, x, 0.5, n_steps=20, n_starts=2, low=0.0, high=1.0)
        return one, many, losses(one), losses(many)

    x = np.array([[0.0, 0.9]])
    one, many, after_one, after_many = both(KEY, x)
    assert after_many > after_one
    assert np.all(np.abs(many - x) <= 0.5 + 1e-12)
    assert np.all((many >= 0) & (many <= 1))
    np.testing.assert_allclose(one, [[0.5, 0.4]])


# ------------------------------------------------------------------ perturbed objectives
def test_an_adversary_moves_inputs_but_not_classes(global_random_seed):
    w, rows = logistic_case(global_random_seed)
    run = jax.jit(
        lambda w, rows: perturbed(mean_loss, Adversary(row_losses, 0.3, 4, share=1.0))(w, as_batch(rows), KEY, None)[0]
    )
    margins = (1 - 2 * rows[:, -1]) * (rows[:, :-1] @ w)
    assert float(run(w, rows)) == pytest.approx(np.logaddexp(0, margins + 0.3 * np.abs(w).sum()).mean(), rel=1e-10)


def test_label_smoothing_is_the_mean_of_label_noise(global_random_seed):
    check_smoothing(smoothed_cross_entropy, global_random_seed)
    rows = np.tile([0.0, 1.0], (4000, 1))
    noise = ClassNoise(0.3, n_classes=4)
    _, batch = jax.jit(lambda key, rows: noise(key, None, as_batch(rows)))(jax.random.key(global_random_seed), rows)
    counts = np.bincount(np.asarray(batch.x[:, 1]).astype(int), minlength=4)
    expected = 4000 * np.array([0.075, 0.775, 0.075, 0.075])
    # Chi-square with 3 degrees of freedom is above 27.9 once in 260,000 runs.
    assert ((counts - expected) ** 2 / expected).sum() < 27.9
    np.testing.assert_array_equal(batch.x[:, 0], 0)


def test_noise_falls_on_observed_cells_of_its_columns_and_leaves_the_objectives_key_alone():
    observed = np.array([[True, True, False]] * 2000)

    def look(module, batch, key, state):
        return jnp.mean(batch.x), (state, {"x": batch.x, "draw": jax.random.normal(key)})

    @jax.jit
    def run(x):
        batch = Batch(x, jnp.asarray(observed), jnp.ones(len(x)))
        return perturbed(look, CellNoise(0.5, 1))(None, batch, KEY, None)[1][1], jax.random.normal(KEY)

    seen, draw = run(np.zeros((2000, 3)))
    noise = np.asarray(seen["x"])
    assert np.all(noise[:, [0, 2]] == 0)
    # The variance of 2,000 draws is within five of its standard errors, sqrt(2 / 2000).
    assert noise[:, 1].var() == pytest.approx(0.25, rel=5 * np.sqrt(2 / 2000))
    assert seen["draw"] == draw


def test_weight_noise_spares_vectors():
    module = {"matrix": jnp.zeros((40, 50)), "vector": jnp.ones(3)}
    noisy, _ = jax.jit(lambda key: WeightNoise(0.1)(key, module, as_batch(np.zeros((1, 1)))))(KEY)
    assert np.std(noisy["matrix"]) == pytest.approx(0.1, rel=5 / np.sqrt(2 * 2000))
    np.testing.assert_array_equal(noisy["vector"], 1)


def test_perturbed_objectives_train_and_share_a_program():
    """The mean of a user's augmentation is what is learned; partial functions of equal parts compare equal."""

    def distance(module, batch, key, state):
        return jnp.mean((batch.x - module[None]) ** 2), (state, {})

    def raised(key, x):
        return x + 2.0

    programs = [split(comparable(perturbed(partial(distance), Augmentation(raised, 1))))[1] for _ in range(2)]
    assert programs[0] == programs[1]
    result = train(
        jnp.zeros(1),
        perturbed(distance, Augmentation(raised, 1)),
        np.ones((4, 1)),
        config=TrainingConfig(n_epochs=40, batch_size=None, optimizer="sgd", learning_rate=0.25),
        key=KEY,
    )
    assert float(result.module[0]) == pytest.approx(3.0, abs=1e-6)


def test_an_augmentation_that_changes_the_shape_is_refused():
    with pytest.raises(ValueError, match=r"must keep the shape \(2, 2\), got \(2, 1\)"):
        Augmentation(lambda key, x: x[:, :1])(KEY, None, as_batch(np.zeros((2, 2))))


# ------------------------------------------------------------------ pictures
def test_pictures_are_moved_turned_and_bent_as_scipy_does(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    x, bends = random.uniform(size=(1, 5 * 7)), 0.4 * random.normal(size=(1, 2, 5, 7))
    shift, angle = np.array([0.6, -1.3]), 25.0
    ours = jax.jit(
        lambda x, b: displaced(x, (5, 7), shifts=jnp.asarray(shift)[None], angles=jnp.asarray([angle]), bends=b)
    )(x, bends)
    c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    down, right = np.meshgrid(np.arange(5) - 2 - shift[0], np.arange(7) - 3 - shift[1], indexing="ij")
    places = np.stack([c * down + s * right + 2, c * right - s * down + 3]) + bends[0]
    expected = ndimage.map_coordinates(x.reshape(5, 7), places, order=1, mode="grid-constant")
    np.testing.assert_allclose(np.asarray(ours).reshape(5, 7), expected, rtol=1e-10, atol=1e-12)


def test_a_quarter_turn_and_a_whole_shift_are_numpys():
    picture = np.arange(1.0, 26).reshape(1, 25)
    move = jax.jit(lambda x, s, a: displaced(x, (5, 5), shifts=s, angles=a))
    still = np.zeros((1, 2))
    turned = np.asarray(move(picture, still, np.array([90.0]))).reshape(5, 5)
    np.testing.assert_allclose(turned, np.rot90(picture.reshape(5, 5)), atol=1e-9)
    moved = np.asarray(move(picture, np.array([[1.0, 0.0]]), np.zeros(1))).reshape(5, 5)
    np.testing.assert_allclose(moved, np.vstack([np.zeros(5), picture.reshape(5, 5)[:-1]]), atol=1e-12)


def test_smooth_noise_has_variance_one_and_neighbours_alike(global_random_seed):
    draws = jax.jit(lambda key: smooth_noise(key, (4000, 8, 8), 2.0))(jax.random.key(global_random_seed))
    cells = np.asarray(draws)[:, 3, 3:5]
    assert cells[:, 0].var() == pytest.approx(1.0, rel=5 * np.sqrt(2 / 4000))
    assert np.corrcoef(cells.T)[0, 1] > 0.8
    with pytest.raises(ValueError, match="`rotate` must be at least 0"):
        ImageAugmentation((8, 8), rotate=-1.0)


# ------------------------------------------------------------------ projections
def test_norms_are_limited_for_units_arrays_and_all():
    module = {"a": jnp.array([[3.0, 4.0], [0.3, 0.4]]), "b": jnp.ones(4), "kernel": jnp.full((2, 2, 1, 3), 2.0)}
    run = jax.jit(lambda m: [limit_norms(m, radius=2.0, of=of) for of in ("unit", "array", "all")])
    unit, array, every = (jax.tree.map(np.asarray, own) for own in run(module))
    np.testing.assert_allclose(np.linalg.norm(unit["a"], axis=1), [2.0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(unit["kernel"], axis=(0, 1)), np.full((1, 3), 2.0))
    assert np.linalg.norm(array["a"]) == pytest.approx(2.0)
    assert np.hypot(np.linalg.norm(every["a"]), np.linalg.norm(every["kernel"])) == pytest.approx(2.0)
    for own in (unit, array, every):
        np.testing.assert_array_equal(own["b"], 1)


def test_projected_descent_ends_where_the_constraint_holds():
    """min ‖W − T‖² within the ball of radius 1 is T / ‖T‖."""
    target = np.array([[3.0, 4.0]])

    def distance(module, batch, key, state):
        return jnp.sum((module - jnp.asarray(target)) ** 2) / 2, (state, {})

    config = TrainingConfig(n_epochs=60, batch_size=None, optimizer="sgd", learning_rate=0.3)
    project = partial(limit_norms, radius=1.0)
    result = train(jnp.zeros((1, 2)), distance, np.zeros((1, 1)), config=config, key=KEY, project=project)
    np.testing.assert_allclose(result.module, target / 5, rtol=1e-9)
    assert eqx.is_array(result.module)
