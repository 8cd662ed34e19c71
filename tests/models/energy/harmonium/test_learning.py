"""The learning objective: its gradient from exact chains, holes, coordinates, and what it must not depend on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.learning import ChainState, contrast, keep_scales, to_learning, to_natural
from likely.training import Batch
from tests.models.energy.harmonium.brute_force import BINARY, machine

TABLE = Columns(("binary", "real", "categorical", "real"), (1, 1, 3, 1))
N = 8_000


def nothing(columns):
    return jnp.zeros((1, columns.n_columns)), jnp.zeros((1, columns.n_columns), bool)


def exact_rows(seed, params, n, columns):
    key = jax.random.key(seed)
    return enumeration.clamped_draws(key[None], params, n, *nothing(columns), columns, "hidden")[:, 0]


def exact_hidden(seed, params, n, columns):
    up = jax.random.fold_in(jax.random.key(seed), 1)
    return harmonium.sample_hidden(
        up, harmonium.hidden_logits(params, columns.statistics(exact_rows(seed, params, n, columns)))
    )


def options(columns, **changes):
    usual = {"persistent": True, "centring": False, "n_first": 1, "n_last": 1, "n_updates": 1}
    return {"columns": columns} | usual | changes


def plain_state(chains, columns):
    zeros = jnp.zeros(columns.n_statistics), jnp.zeros(chains.shape[1])
    return ChainState(chains, *zeros, jnp.ones(columns.n_statistics), jnp.zeros((), jnp.int32))


def exact_gradient(params, x, observed, columns):
    """Of the mean log-likelihood of the observed cells in learning coordinates; that of log s times s⁴."""

    def mean_log_prob(learning):
        plain = to_natural(learning, columns)
        log_z = enumeration.clamped_sum(plain, *nothing(columns), columns, "hidden")[0][0]
        return jnp.mean(enumeration.clamped_sum(plain, x, observed, columns, "hidden")[0]) - log_z

    learning = to_learning(params, columns)
    units = np.where(columns.is_quadratic, np.exp(4 * np.asarray(learning.visible_bias)), 1)
    gradient = eqx.filter_jit(eqx.filter_grad(mean_log_prob))(learning)
    return eqx.tree_at(lambda g: g.visible_bias, gradient, units * np.asarray(gradient.visible_bias))


def gradients(params, x, observed, columns, seed, n_groups=16):
    """Gradients of the objective from groups of exact chains."""
    learning = to_learning(params, columns)
    chains = exact_hidden(seed, params, N, columns).reshape(n_groups, N // n_groups, -1)
    batch = Batch(x, observed, jnp.ones(len(x)))

    @eqx.filter_jit
    def one(chains, key):
        loss = lambda p: contrast(p, batch, key, plain_state(chains, columns), **options(columns))  # noqa: E731
        return eqx.filter_grad(loss, has_aux=True)(learning)[0]

    keys = jax.random.split(jax.random.key(seed), n_groups)
    return [one(c, k) for c, k in zip(chains, keys, strict=True)]


def check_gradient(params, x, observed, columns, seed):
    exact = exact_gradient(params, x, observed, columns)
    parts = gradients(params, x, observed, columns, seed)
    for name in ("weights", "visible_bias", "hidden_bias"):
        ours = -np.stack([getattr(part, name) for part in parts])
        error = ours.std(axis=0, ddof=1) / np.sqrt(len(ours))
        # Student's t with 15 degrees and some thirty entries: 9 is far beyond chance
        free = ~columns.is_quadratic if name == "weights" else slice(None)  # x² has no weights to learn
        assert (np.abs(ours.mean(axis=0) - getattr(exact, name)) <= 9 * error + 1e-12)[free].all(), name


@pytest.mark.parametrize("columns", [BINARY, TABLE])
def test_gradient_from_exact_chains_is_the_likelihoods(columns, x64, global_random_seed):
    params = machine(columns, 3, global_random_seed, scale=0.7)
    other = machine(columns, 3, global_random_seed + 1, scale=0.7)
    x = exact_rows(global_random_seed, other, 50, columns)
    check_gradient(params, x, None, columns, global_random_seed)


def test_gradient_of_rows_with_holes(x64, global_random_seed):
    params = machine(TABLE, 3, global_random_seed, scale=0.4)
    x = exact_rows(global_random_seed, machine(TABLE, 3, global_random_seed + 1), 400, TABLE)
    observed = jnp.asarray(np.random.default_rng(global_random_seed).random(x.shape) < 0.7)
    check_gradient(params, jnp.where(observed, x, 0), observed, TABLE, global_random_seed)


def test_weights_of_squares_are_never_moved(x64):
    params = machine(TABLE, 3, 0)
    part = gradients(params, exact_rows(0, params, 10, TABLE), None, TABLE, 0, n_groups=1)[0]
    assert (np.asarray(part.weights)[TABLE.is_quadratic] == 0).all()


@pytest.mark.parametrize("persistent", [True, False])
def test_rows_without_weight_do_not_matter(persistent, x64):
    params = machine(BINARY, 3, 0)
    x = exact_rows(0, params, 20, BINARY)
    weight = jnp.asarray(np.arange(20) < 12, float)
    state = plain_state(exact_hidden(0, params, 30, BINARY), BINARY)

    @eqx.filter_jit
    def gradient(x):
        loss = lambda p: contrast(  # noqa: E731
            p, Batch(x, None, weight), jax.random.key(0), state, **options(BINARY, persistent=persistent)
        )
        return eqx.filter_grad(loss, has_aux=True)(params)[0]

    one, other = gradient(x), gradient(x.at[12:].set(1 - x[12:]))
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-14)


def test_coordinates_go_both_ways(x64):
    params = machine(TABLE, 3, 0)
    back = to_natural(to_learning(params, TABLE), TABLE)
    np.testing.assert_allclose(back.visible_bias, params.visible_bias, rtol=1e-12)
    assert to_natural(machine(BINARY, 2, 0), BINARY).visible_bias.shape == (6,)


def test_scales_are_kept_within_limits(x64):
    params = machine(TABLE, 2, 0)
    params = eqx.tree_at(lambda p: p.visible_bias, params, jnp.full(TABLE.n_statistics, -50.0))
    kept = np.asarray(keep_scales(params, TABLE).visible_bias)
    np.testing.assert_allclose(kept, np.where(TABLE.is_quadratic, -np.log(100), -50.0))


def test_gibbs_steps_grow_from_first_to_last():
    params = machine(BINARY, 3, 0)
    batch = Batch(jnp.ones((4, 6)), None, jnp.ones(4))
    chains = jnp.zeros((5, 3))

    def after(step, **changes):
        state = eqx.tree_at(lambda s: s.step, plain_state(chains, BINARY), jnp.array(step, jnp.int32))
        return contrast(params, batch, jax.random.key(0), state, **options(BINARY, n_updates=10, **changes))[1][0]

    growing = {"n_first": 1, "n_last": 5}
    np.testing.assert_array_equal(after(0, **growing).chains, after(0).chains)
    np.testing.assert_array_equal(after(5, **growing).chains, after(0, n_first=3, n_last=3).chains)
    np.testing.assert_array_equal(after(10, **growing).chains, after(0, n_first=5, n_last=5).chains)


def test_centring_follows_the_hidden_units(x64):
    params = machine(BINARY, 3, 0)
    x = exact_rows(0, params, 50, BINARY)
    state = plain_state(jnp.zeros((10, 3)), BINARY)
    batch = Batch(x, None, jnp.ones(50))
    for centring, rate in ((True, 0.01), (False, 0.0)):
        _, (new, _) = contrast(params, batch, jax.random.key(0), state, **options(BINARY, centring=centring))
        mean = jax.nn.sigmoid(harmonium.hidden_logits(params, x)).mean(axis=0)
        np.testing.assert_allclose(new.hidden_offset, rate * mean, rtol=1e-10)
