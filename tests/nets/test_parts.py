"""Convolution three ways, pooling, normalisation, dropout and backpropagation, against plain NumPy and SciPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from likely.nets import (
    ACTIVATIONS,
    MLP,
    BatchNorm,
    Convolution,
    RunningMoments,
    averaged_masks,
    backpropagate,
    convolve,
    correlate,
    fastest,
    folded_into_next,
    folded_into_previous,
    geometric_mean,
    jacobians,
    local_response,
    max_pool,
    mean_pool,
    n_places,
    parametric,
    rescaled,
    toeplitz,
    turned,
)
from tests.nets.parts_checks import METHODS, all_masks, check_backpropagation, check_correlation, check_folding


# ------------------------------------------------------------------ convolution
def test_toeplitz_is_scipys_correlation(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    x, kernel = random.normal(size=(5, 4)), random.normal(size=(3, 2))
    for padding in ("valid", "full"):
        expected = signal.correlate2d(x, kernel, mode=padding)
        ours = toeplitz(kernel[:, :, None, None], x.shape, padding=padding) @ x.ravel()
        np.testing.assert_allclose(ours, expected.ravel(), rtol=1e-12, atol=1e-14)
    strided = toeplitz(kernel[:, :, None, None], x.shape, stride=2, padding=1) @ x.ravel()
    around = signal.correlate2d(np.pad(x, 1), kernel, mode="valid")[::2, ::2]
    np.testing.assert_allclose(strided, around.ravel(), rtol=1e-12, atol=1e-14)


def test_toeplitz_has_one_number_a_diagonal():
    matrix = toeplitz(np.arange(1.0, 4).reshape(1, 3, 1, 1), (1, 6), padding="same")
    assert all(len(set(np.diag(matrix, k))) == 1 for k in range(-5, 6))


@pytest.mark.parametrize(("stride", "padding"), [(1, "same"), (2, "same"), (1, "valid"), (2, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_three_ways_agree_forward_and_backward(x64, method, stride, padding, global_random_seed):
    check_correlation(correlate, global_random_seed, stride, padding, method)


def test_three_ways_agree_in_single_precision(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    x, kernel = random.normal(size=(1, 8, 8, 2)), random.normal(size=(5, 5, 2, 2))
    run = jax.jit(lambda x, k: [correlate(x, k, method=method) for method in METHODS])
    outputs = run(x.astype(np.float32), kernel.astype(np.float32))
    for own in outputs[1:]:  # 1e-5 of the largest
        assert np.abs(np.asarray(own) - outputs[0]).max() <= 1e-5 * np.abs(outputs[0]).max()


def test_convolution_turns_the_kernel_and_commutes(x64, global_random_seed):
    random = np.random.RandomState(global_random_seed)
    x, kernel = random.normal(size=(1, 5, 4, 1)), random.normal(size=(3, 2, 1, 1))
    ours = jax.jit(lambda x, k: (convolve(x, k), convolve(k[None, ..., 0], x[0, ..., None]), turned(k)))
    there, back, other = ours(x, kernel)
    np.testing.assert_allclose(there[0, ..., 0], signal.convolve2d(x[0, ..., 0], kernel[..., 0, 0]), rtol=1e-10)
    np.testing.assert_allclose(there, back, rtol=1e-10)
    np.testing.assert_array_equal(other[..., 0, 0], np.rot90(kernel[..., 0, 0], 2))


@pytest.mark.parametrize(
    ("side", "size", "stride", "padding", "expected"),
    [(32, 5, 1, 0, 28), (32, 5, 1, 2, 32), (227, 11, 4, "valid", 55), (7, 3, 2, "same", 4), (5, 3, 1, "full", 7)],
)
def test_places_of_a_window(side, size, stride, padding, expected):
    assert n_places(side, size, stride, padding) == expected


@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_is_refused():
    x, kernel = np.zeros((1, 4, 4, 2), np.float32), np.zeros((5, 5, 2, 1), np.float32)
    with pytest.raises(ValueError, match="a window of 5 does not fit into 4 cells"):
        correlate(x, kernel, padding="valid")
    with pytest.raises(ValueError, match="the kernel reads 3 channels, the pictures have 2"):
        correlate(x, np.zeros((3, 3, 3, 1), np.float32))
    with pytest.raises(ValueError, match="`method` must be"):
        correlate(x, kernel, method="winograd")
    with pytest.raises(ValueError, match='`padding` must be "same"'):
        n_places(4, 3, 1, "reflect")


def test_auto_is_one_of_the_three():
    assert {fastest((k, k, c, 4)) for c in (1, 64) for k in (1, 3, 7)} == set(METHODS)


# ------------------------------------------------------------------ pooling
pooled, largest_of_three = jax.jit(lambda x: (max_pool(x), mean_pool(x))), jax.jit(lambda x: max_pool(x, 3))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 9)), min_size=4, max_size=4),
    st.integers(0, 1),
    st.integers(0, 1),
)
def test_max_pooling_does_not_see_shifts_within_a_window(spots, down, right):
    """Each window of 3 × 3 has one spot, which a shift by one cell cannot drive out of it."""
    picture = np.zeros((1, 6, 6, 1), np.float32)
    for (y, x, height), (top, left) in zip(spots, ((0, 0), (0, 3), (3, 0), (3, 3)), strict=True):
        picture[0, top + y, left + x, 0] = height
    shifted = np.roll(picture, (down, right), axis=(1, 2))
    np.testing.assert_array_equal(largest_of_three(picture), largest_of_three(shifted))
    np.testing.assert_array_equal(np.asarray(largest_of_three(picture)).ravel(), [height for *_, height in spots])


def test_pooling_moves_with_the_picture_and_forgets_places_within_windows(global_random_seed):
    random = np.random.default_rng(global_random_seed)
    x = random.normal(size=(1, 6, 6, 1)).astype(np.float32)
    by_window = x.reshape(3, 2, 3, 2).swapaxes(1, 2).reshape(3, 3, 4)
    largest, mean = pooled(x)
    np.testing.assert_array_equal(largest[0, ..., 0], by_window.max(axis=2))
    np.testing.assert_allclose(mean[0, ..., 0], by_window.mean(axis=2), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pooled(np.roll(x, 2, axis=1))[0], np.roll(largest, 1, axis=1))
    mixed = random.permuted(by_window, axis=2).reshape(3, 3, 2, 2).swapaxes(1, 2).reshape(x.shape)
    np.testing.assert_array_equal(pooled(mixed)[0], largest)


def test_margins_count_neither_for_a_maximum_nor_for_a_mean():
    x = -np.ones((1, 3, 3, 1), np.float32)
    run = jax.jit(lambda x: (max_pool(x, 3, stride=2, padding="same"), mean_pool(x, 3, stride=2, padding="same")))
    for own in run(x):
        np.testing.assert_array_equal(own, -np.ones((1, 2, 2, 1)))


# ------------------------------------------------------------------ normalisation
def test_local_response_is_its_formula(x64, global_random_seed):
    a = np.random.RandomState(global_random_seed).normal(size=(3, 7))
    expected = np.zeros_like(a)
    for i in range(7):
        around = a[:, max(0, i - 1) : min(6, i + 1) + 1]
        expected[:, i] = a[:, i] / (2.0 + 0.3 * (around**2).sum(axis=1)) ** 0.75
    np.testing.assert_allclose(jax.jit(lambda a: local_response(a, size=3, alpha=0.3))(a), expected, rtol=1e-12)


def test_batch_moments_and_running_moments(x64, global_random_seed):
    """Rows of weight 0 count for nothing; running moments are the means of the batches' while these are few."""
    x = np.random.RandomState(global_random_seed).normal(size=(2, 5, 3, 3, 2)) * 3 + 1
    weight = np.array([1.0, 1, 1, 1, 0])

    @jax.jit
    def learn(x, moments):
        return BatchNorm(2).learn(x, moments, jnp.asarray(weight))

    first, moments = learn(x[0], RunningMoments.start(2))
    _, moments = learn(x[1], moments)
    cells = x[:, :4].reshape(2, -1, 2)
    np.testing.assert_allclose(first[:4].mean(axis=(0, 1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(
        first[:4].var(axis=(0, 1, 2)), cells[0].var(axis=0) / (cells[0].var(axis=0) + 1e-5), rtol=1e-10
    )
    np.testing.assert_allclose(moments.mean, cells.mean(axis=1).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.variance, cells.var(axis=1, ddof=1).mean(axis=0), rtol=1e-12)


def test_running_moments_fade():
    moments = RunningMoments(jnp.zeros(1), jnp.ones(1), jnp.asarray(1000))
    np.testing.assert_allclose(moments.after(jnp.ones(1), jnp.ones(1), decay=0.9).mean, 0.1, rtol=1e-5)


def test_normalising_folds_into_the_next_layer(x64, global_random_seed):
    check_folding(folded_into_next, global_random_seed)


def test_normalising_folds_into_the_layer_before(x64, global_random_seed):
    random = np.random.RandomState(global_random_seed)
    norm = eqx.tree_at(lambda n: (n.scale, n.shift), BatchNorm(3), tuple(jnp.asarray(random.normal(size=(2, 3)))))
    moments = RunningMoments(jnp.asarray(random.normal(size=3)), jnp.asarray(random.gamma(2, size=3)), jnp.asarray(1))
    x = random.normal(size=(2, 4, 4, 2))

    @jax.jit
    def both(key, x):
        layer, linear = Convolution(key, 2, 3, size=3, stride=1), MLP(key, 2, 3).layers[0]
        of_linear = (
            jax.vmap(folded_into_previous(linear, norm, moments))(x[:, 0, 0]),
            norm(jax.vmap(linear)(x[:, 0, 0]), moments),
        )
        return (folded_into_previous(layer, norm, moments)(x), norm(layer(x), moments)), of_linear

    for folded, expected in both(jax.random.key(global_random_seed), x):
        np.testing.assert_allclose(folded, expected, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------ dropout
def test_rescaled_weights_are_the_geometric_mean_over_all_masks(x64, global_random_seed):
    """Exactly, for one softmax layer that reads masked inputs."""
    masks, weights = all_masks(5, 0.3)
    x = np.random.RandomState(global_random_seed).normal(size=(3, 5))

    @jax.jit
    def both(key, x):
        net = MLP(key, 5, 4)
        each = jax.nn.log_softmax(net(x[None] * masks[:, None]))
        return geometric_mean(each, jnp.asarray(weights)), jax.nn.softmax(rescaled(net, input_dropout=0.3)(x))

    np.testing.assert_allclose(*both(jax.random.key(global_random_seed), x), rtol=1e-10)


def test_averaged_masks_estimate_the_mean_over_all_masks(x64, global_random_seed):
    masks, weights = all_masks(4, 0.5)
    x = np.random.RandomState(global_random_seed).normal(size=(2, 3))

    @jax.jit
    def both(key, x):
        net = MLP(key, 3, 2, hidden=(4,), activation="tanh")
        hidden = net.active(0, x @ net.layers[0].weight.T + net.layers[0].bias[None])
        outputs = (hidden[None] * masks[:, None] / 0.5) @ net.layers[1].weight.T + net.layers[1].bias[None, None]
        exact = jnp.einsum("m,mnk->nk", jnp.asarray(weights), jax.nn.softmax(outputs))
        return averaged_masks(key, net, x, dropout=0.5, n_masks=2000), exact

    (mean, error), exact = both(jax.random.key(global_random_seed), x)
    assert np.all(np.abs(mean - exact) <= 5 * error)  # five standard errors: 4 numbers, once in 400,000 runs
    assert np.all(error < 0.01)


# ------------------------------------------------------------------ activations, and gradients by hand
def test_maxout_and_parametric_units_are_their_formulas(x64, global_random_seed):
    x = np.random.RandomState(global_random_seed).normal(size=(5, 3))
    outputs = jax.jit(
        lambda key, x: [
            (net := MLP(key, 3, 2, hidden=(4,), activation=name, pieces=3), net(x)) for name in ("maxout", "parametric")
        ]
    )(jax.random.key(global_random_seed), x)
    for net, y in outputs:
        first, last = net.layers
        a = x @ np.asarray(first.weight).T
        h = a.reshape(5, 4, 3).max(axis=2) if net.activation == "maxout" else np.where(a > 0, a, 0.25 * a)
        np.testing.assert_allclose(y, h @ np.asarray(last.weight).T, rtol=1e-10, atol=1e-12)


def test_absolute_and_leaky_units_are_parametric_ones(x64):
    slopes = {"absolute": -1.0, "leaky_relu": 0.01, "relu": 0.0}

    @jax.jit
    def both(a):
        return [(parametric(a, jnp.full(2, slope)), ACTIVATIONS[name](a)) for name, slope in slopes.items()]

    for own, other in both(np.array([[-2.0, 0.5]])):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_chain_of_jacobians_is_automatic_differentiation(x64, activation, global_random_seed):
    check_backpropagation(backpropagate, jacobians, global_random_seed, activation)


def test_maxout_has_no_gradients_by_hand():
    with pytest.raises(ValueError, match="functions of one number, not for 'maxout'"):
        jacobians(outline(lambda key: MLP(key, 1, 1, hidden=(1,), activation="maxout")), jnp.ones(1))


def outline(make):
    """A module's shapes, which cost no compiling."""
    return eqx.filter_eval_shape(make, jax.random.key(0))
