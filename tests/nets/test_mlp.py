import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.nets import ACTIVATIONS, MLP

BY_HAND = {
    "absolute": np.abs,
    "elu": lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))),
    "identity": lambda a: a,
    "leaky_relu": lambda a: np.where(a > 0, a, 0.01 * a),
    "relu": lambda a: np.maximum(a, 0),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "softplus": lambda a: np.logaddexp(a, 0),
    "swish": lambda a: a / (1 + np.exp(-a)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", sorted(BY_HAND))
def test_mlp_is_the_formula(x64, activation, global_random_seed):
    net = MLP(jax.random.key(global_random_seed), 3, 2, hidden=(5, 4), activation=activation)
    x = np.random.RandomState(global_random_seed).normal(size=(7, 3))
    h = x
    for number, layer in enumerate(net.layers):
        h = (h if number == 0 else BY_HAND[activation](h)) @ np.asarray(layer.weight).T + np.asarray(layer.bias)
    np.testing.assert_allclose(net(jnp.asarray(x)), h, rtol=1e-10, atol=1e-12)


def test_mlp_is_equinox_layers_mapped_over_rows(x64):
    net = MLP(jax.random.key(0), 3, 2, hidden=(5,))
    x = jax.random.normal(jax.random.key(1), (7, 3))
    mapped = jax.vmap(net.layers[1])(ACTIVATIONS["gelu"](jax.vmap(net.layers[0])(x)))
    np.testing.assert_allclose(net(x), mapped, rtol=1e-12)


def test_leading_axes_are_rows(x64):
    net = MLP(jax.random.key(0), 3, 2, hidden=(5,))
    x = jax.random.normal(jax.random.key(1), (2, 4, 3))
    assert net(x).shape == (2, 4, 2)
    np.testing.assert_allclose(net(x)[1, 2], net(x[1, 2]), rtol=1e-12)


def test_no_hidden_layer_is_linear(x64):
    net = MLP(jax.random.key(0), 3, 2)
    x, y = jax.random.normal(jax.random.key(1), (2, 5, 3))
    np.testing.assert_allclose(net(x) + net(y) - net(jnp.zeros((5, 3))), net(x + y), rtol=1e-12)
    np.testing.assert_allclose(net(x, jnp.ones((5, 2))), net(x) + 1, rtol=1e-12)


def test_shift_enters_before_the_first_activation(x64):
    net = MLP(jax.random.key(0), 3, 2, hidden=(4,), activation="tanh")
    x, shift = jax.random.normal(jax.random.key(1), (5, 3)), jax.random.normal(jax.random.key(2), (5, 4))
    first, last = net.layers
    expected = jnp.tanh(jax.vmap(first)(x) + shift) @ last.weight.T + last.bias[None]
    np.testing.assert_allclose(net(x, shift), expected, rtol=1e-12)
    assert net.n_first == 4


def test_weights_start_with_variance_one_over_inputs(global_random_seed):
    net = MLP(jax.random.key(global_random_seed), 400, 50, hidden=(300,), output_gain=0.1)
    for layer, gain in zip(net.layers, (1.0, 0.1), strict=True):
        weight = np.asarray(layer.weight, np.float64) * np.sqrt(layer.weight.shape[1]) / gain
        # the variance of n standard normals has standard deviation sqrt(2/n); five of them is a 1e-6 event
        assert abs(weight.var() - 1) < 5 * np.sqrt(2 / weight.size)
        assert not layer.bias.any()


def test_dtype_follows_jax():
    assert MLP(jax.random.key(0), 3, 2).layers[0].weight.dtype == jnp.float32
    with jax.enable_x64(True):
        assert MLP(jax.random.key(0), 3, 2).layers[0].weight.dtype == jnp.float64


def test_unknown_activation_lists_the_known():
    with pytest.raises(ValueError, match=r"`activation` must be one of absolute, elu, gelu.*got 'tan'"):
        MLP(jax.random.key(0), 3, 2, activation="tan")
