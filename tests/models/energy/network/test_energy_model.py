"""Energies: chains, annealing and sums against enumeration and quadrature; learning, noise, and what is refused."""

import copy
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.columns import Cells, Columns
from likely.contract.model import FitRun
from likely.models.energy.network import moves as energy_moves
from likely.models.energy.network.answers import Exact, Sampled
from likely.models.energy.network.function import Given, Kind, energy
from likely.models.energy.network.learning import OBJECTIVES, LearningState, Options, filled, learn
from likely.models.energy.network.noise import make_noise
from likely.models.energy.normaliser.schedule import Settings
from likely.training import Batch
from tests.models.energy.harmonium.learning_checks import check_mean
from tests.models.energy.network.energy_model_checks import (
    BINARY,
    MIXED,
    check_leaves_unchanged,
    check_log_sum,
    exact_log_partition,
    random_energy,
)

SETTINGS = Settings(n_chains=64, n_temperatures=100, n_sweeps=50)
SMALL = {"hidden": (16,), "n_epochs": 20, "batch_size": 20, "n_temperatures": 100, "n_sweeps": 30, "random_state": 0}


def rows_of_bits(seed, n=200, d=5):
    rng = np.random.default_rng(seed)
    return (rng.random((n, d)) < 0.2 + 0.6 * rng.integers(0, 2, (n, 1))).astype(float)


def rows_of_reals(seed, n=200, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + np.sign(rng.normal(size=(n, 1))) * 1.5


# ------------------------------------------------------------------ chains and sums
@pytest.mark.parametrize("kind", [BINARY, MIXED], ids=["binary", "mixed"])
def test_moves_leave_the_model_unchanged(kind, x64, global_random_seed):
    check_leaves_unchanged(partial(energy_moves.move, n_noise=10_000), kind, global_random_seed)


def test_clamped_cells_stay_and_rows_share_their_noise(x64):
    params = random_energy(BINARY, 0)
    x = jnp.asarray([[0.0, 1.0, 0.0, 1.0]] * 4)
    free = jnp.asarray([[False, True, True, False]] * 4)
    chains = energy_moves.look(params, x, BINARY)
    target = energy_moves.Target(params, BINARY, free, jnp.ones(()), params.log_steps)
    keys = jax.random.split(jax.random.key(0), 20)
    for_row = jax.jit(lambda key, c: energy_moves.move(key, c, target, 2))
    for key in keys:
        chains = for_row(key, chains)
    np.testing.assert_array_equal(chains.x[:, [0, 3]], x[:, [0, 3]])
    assert (chains.x != x).any()
    np.testing.assert_array_equal(chains.x[:2], chains.x[2:])


def test_annealing_both_ways_and_holes_against_enumeration(x64, global_random_seed):
    params = random_energy(BINARY, global_random_seed)
    exact, sampled = Exact(params, BINARY), Sampled(params, BINARY, SETTINGS)
    key = jax.random.key(global_random_seed)
    truth = exact_log_partition(params, BINARY)
    np.testing.assert_allclose(exact.log_partition(key).low, truth, rtol=1e-10)
    check_log_sum(sampled.log_partition(key), truth)
    rows = np.array([[1.0, np.nan, 0.0, np.nan], [np.nan, np.nan, 1.0, 1.0]])
    few = sampled.log_sum(key, rows)  # few bits: gone through even here
    np.testing.assert_allclose(few.low, exact.log_sum(key, rows).low, rtol=1e-10)
    truth = exact.condition(key, rows).mean
    np.testing.assert_allclose(sampled.condition(key, rows).mean, truth, atol=1e-10)
    check_mean(sampled.condition(key, rows).sample(key, 4000), truth)


def test_evidence_in_the_plane_against_quadrature(global_random_seed):
    """Two real columns: the density integrates to 1, and a row with a hole has its marginal."""
    rows = rows_of_reals(global_random_seed)
    schema = likely.Schema.real(2)
    model = likely.EnergyModel(objective="sliced", schema=schema, **SMALL).fit(rows)
    assert model.score(rows) > likely.Independent(schema=schema).fit(rows).score(rows) + 0.05
    line = np.linspace(-9, 9, 121)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    evidence = model.evidence(grid)
    assert evidence.kind == "estimate"
    density = np.exp(evidence.values).reshape(121, 121) * (line[1] - line[0])
    error = evidence.stderr[0]
    assert error < 0.1
    assert abs(np.log(density.sum() * (line[1] - line[0]))) < 4.5 * error
    holes = np.array([[line[55], np.nan], [line[70], np.nan]])
    marginal = model.evidence(holes)
    truth = np.log(density.sum(axis=1)[[55, 70]])
    assert (np.abs(marginal.values - truth) < 4.5 * (marginal.stderr + error)).all()
    expected = (density * line[None, :]).sum(axis=1) / density.sum(axis=1)
    check_mean(np.stack([conditional_mean(model, holes, seed)[:, 1] for seed in range(16)]), expected[[55, 70]])


def conditional_mean(model, rows, seed):
    """As the model's own, from chains with another seed."""
    other = copy.copy(model)
    other.seed_ = seed
    return other.condition(rows, budget=120).mean()  # sweeps, of which a few chains of 30 may disagree by chance


# ------------------------------------------------------------------ learning
@pytest.mark.parametrize("objective", ["pcd", "pseudo_likelihood"])
def test_learning_gains_on_independent_columns(objective):
    rows = rows_of_bits(0)
    model = likely.EnergyModel(objective=objective, n_chains=20, n_steps=3, **SMALL).fit(rows)
    assert model.score(rows) > likely.Independent().fit(rows).score(rows) + 0.05
    assert model.log_partition_nce_ is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_takes_rows_with_holes(objective):
    """Traced, not compiled: a scalar loss, and a state of the same shape."""
    kind = Kind(Columns((OBJECTIVES[objective] or "binary",) * 3, (1,) * 3), with_base=False)
    params = random_energy(kind, 0)
    noise = make_noise(
        "independent", np.zeros((1, 3)), params.reference, likely.Schema.binary(3), Cells.plain(kind.columns), None
    )
    state = LearningState(noise, jnp.zeros((5, 3)), jnp.zeros(2))
    batch = Batch(jnp.zeros((4, 3)), jnp.ones((4, 3), bool), jnp.ones(4))
    options = Options(objective, 2, 2, 1, 0.1, 2)
    loss, (after, _) = eqx.filter_eval_shape(
        partial(learn, kind=kind, options=options), params, batch, jax.random.key(0), state
    )
    assert loss.shape == ()
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)


def test_filled_cells_follow_the_model(x64, global_random_seed):
    """One hole in four bits: its candidates hold both values, so that the choice is nearly the exact conditional."""
    params = random_energy(BINARY, global_random_seed, scale=0.5)
    rows = np.array([[1.0, np.nan, 0.0, 1.0]])
    exact = float(Exact(params, BINARY).condition(None, rows).mean[0, 1])
    n = 20_000
    x, observed = jnp.tile(jnp.asarray(np.nan_to_num(rows)), (n, 1)), jnp.tile(jnp.asarray(~np.isnan(rows)), (n, 1))
    batch = jax.jit(lambda key: filled(key, params, Batch(x, observed, jnp.ones(n)), BINARY).x)
    found = np.asarray(batch(jax.random.key(global_random_seed)))
    np.testing.assert_array_equal(found[:, [0, 2, 3]], x[:, np.array([0, 2, 3])])
    # 16 candidates: the ratio of means that resampling is has a bias of order 1/16 of the variance of the weights
    assert abs(found[:, 1].mean() - exact) < 4.5 * 0.5 / np.sqrt(n) + 1 / 16 * exact * (1 - exact)


def test_a_fixed_function_s_log_z_is_learned_by_noise_contrast(global_random_seed):
    """Ten thousand rows drawn from the function itself; NCE's c is then an estimate of -log Z, here enumerable."""
    weights = np.linspace(-1, 1, 5)

    def function(x):
        return -(x @ weights + 2 * x[0] * x[1])

    states = np.array(np.meshgrid(*[[0.0, 1.0]] * 5)).reshape(5, -1).T
    logs = np.array([-function(state) for state in states])
    p = np.exp(logs - np.logaddexp.reduce(logs))
    rows = states[np.random.default_rng(global_random_seed).choice(32, 10_000, p=p)]
    options = {"n_epochs": 5, "learning_rate": 0.1, "batch_size": 200, "n_noise": 4}
    model = likely.EnergyModel(function, base=False, random_state=global_random_seed, **options).fit(rows)
    np.testing.assert_allclose(model.log_partition().low, np.logaddexp.reduce(logs), rtol=1e-5)
    # the classifier's c alone has variance 1/(n E[σ(1-σ)(1+k)]), here below 1/n (ten times for the last steps' noise)
    assert abs(model.log_partition_nce_ - np.logaddexp.reduce(logs)) < 4.5 * np.sqrt(10 / 10_000)
    np.testing.assert_allclose(model.score_samples(states), np.log(p), atol=1e-4)
    np.testing.assert_allclose(model.energy(states), -logs, atol=1e-5)


def test_an_equinox_network_is_trained_and_cannot_be_saved(tmp_path):
    network = eqx.nn.MLP(5, "scalar", 8, 1, key=jax.random.key(0))
    rows = rows_of_bits(0)
    model = likely.EnergyModel(network, **SMALL).fit(rows)
    assert isinstance(model.params_.network, Given)
    assert model.n_parameters_ > 50
    assert model.score(rows) > likely.Independent().fit(rows).score(rows) + 0.05
    with pytest.raises(TypeError, match=r"(?s)cannot save network=.*never code"):
        model.save(tmp_path / "model.likely")


# ------------------------------------------------------------------ noise
def noise_for(given, X, key=0):
    """Noise, rows in standard units, and what a unit costs."""
    schema = likely.Schema.infer(X)
    cells = Cells.fit(X, schema)
    rows = cells.apply(X, np.dtype(np.float32))
    reference = jnp.zeros(cells.columns.n_statistics, jnp.float32)
    return make_noise(given, rows, reference, schema, cells, jax.random.key(key)), rows, cells.scaling


@pytest.mark.parametrize(
    "given",
    [likely.Mixture(2, covariance="full", random_state=0), likely.FactorAnalysis(1), likely.Independent()],
    ids=lambda model: type(model).__name__,
)
def test_noise_of_a_fitted_model_is_its_density(given):
    X = rows_of_reals(0) * [3.0, 0.1] + [100.0, 0.0]
    given = given.fit(rows_of_reals(1) * [2.0, 0.2] + [90.0, 1.0])  # to other rows, in other units
    noise, rows, scaling = noise_for(given, X)
    ours = np.asarray(noise.log_prob(noise.params, jnp.asarray(rows))) + scaling.log_jacobian(np.ones(X.shape))
    np.testing.assert_allclose(ours, given.score_samples(X), rtol=1e-4, atol=1e-4)
    drawn = scaling.invert(np.asarray(noise.sample(jax.random.key(0), noise.params, 4000)))
    like = given.sample(4000)
    error = np.hypot(drawn.std(axis=0), like.std(axis=0)) / np.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - like.mean(axis=0)) < 4.5 * error).all()


def test_unfitted_and_named_noise_is_fitted_to_the_rows():
    X = rows_of_bits(0)
    noise, rows, _ = noise_for(likely.Mixture(2), X)
    model = likely.Mixture(2).fit(X)
    model.params_ = model._fit(rows, jax.random.key(0), FitRun())  # from where the noise's own fit starts
    named, _, _ = noise_for("mixture", X)
    for one in (noise, named):
        found = np.asarray(one.log_prob(one.params, jnp.asarray(rows)))
        assert found.mean() > likely.Independent().fit(X).score(X)
    found = np.asarray(noise.log_prob(noise.params, jnp.asarray(rows)))
    np.testing.assert_allclose(found, model.score_samples(X), rtol=1e-5)


@pytest.mark.parametrize("model", [likely.Independent(pseudo_count=0), likely.Mixture(1, pseudo_count=0)])
def test_noise_that_rules_a_value_out_names_row_and_column(model):
    X = rows_of_bits(0)
    X[:, 3] = 0
    model.fit(X)
    X[7, 3] = 1
    with pytest.raises(
        ValueError, match=r"no full support: it rules out 1 in column 'x3', as in row 7\. .*pseudo_count"
    ):
        likely.EnergyModel(noise=model, **SMALL).fit(X)


# ------------------------------------------------------------------ what is refused
def nan_at_ones(x):
    return jnp.where(x.sum() > 4.5, jnp.nan, 0.0) * x[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "score_matching"}, "is for real columns, and column 'x0' is binary"),
        ({"hidden": (8, 0)}, "`hidden` must be sizes of layers, each at least 1"),
        ({"network": lambda x: x}, r"one real number for a row of shape \(5,\)"),
        ({"network": lambda x: x @ jnp.ones(3)}, r"must take one row, an array of shape \(5,\)"),
        ({"network": lambda x: x.sum(), "objective": "pcd"}, "has no floating-point arrays"),
        ({"network": nan_at_ones, "base": False}, r"the energy of row \d+ is nan: an energy must be finite"),
        ({"noise": likely.FactorAnalysis(1)}, "FactorAnalysis is a density of real numbers"),
        ({"noise": "uniform"}, "`noise` must be one of independent, mixture, factor_analysis"),
        ({"noise": likely.RBM(2)}, "`noise` must be one of"),
        ({"noise": (1, 2)}, "two functions, sample"),
        ({"noise": likely.Independent().fit(rows_of_reals(0))}, "fitted to other columns"),
    ],
)
def test_bad_input_is_refused_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr(
        "likely.models.energy.network.energy_model.train", lambda *a, **k: pytest.fail("it was trained")
    )
    with pytest.raises((ValueError, likely.SchemaError), match=message):
        likely.EnergyModel(**(SMALL | options)).fit(rows_of_bits(0))


def test_energy_of_rows_with_holes_is_refused():
    model = likely.EnergyModel(**(SMALL | {"n_epochs": 1})).fit(rows_of_bits(0))
    with pytest.raises(ValueError, match="function of all cells"):
        model.energy([[1.0, np.nan, 0.0, 0.0, 1.0]])
    assert float(energy(model.params_, jnp.zeros((1, 5)), model._kind)[0]) == pytest.approx(
        model.energy(np.zeros((1, 5)))[0], rel=1e-5
    )
