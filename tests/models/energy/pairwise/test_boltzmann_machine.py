"""BoltzmannMachine: gradients, learning to the maximum, conventions, evidence against brute force, bad input."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp

import likely
from likely import BoltzmannMachine
from likely.models.energy.harmonium import answers as inference
from likely.models.energy.pairwise import learning as pairwise_learning
from likely.models.energy.pairwise import machine as pairwise
from likely.models.energy.pairwise.machine import PairwiseParams
from likely.objectives.pseudo_likelihood import pseudo_log_likelihood
from likely.training import Batch
from tests.models.energy.harmonium import brute_force
from tests.models.energy.pairwise.pairwise_checks import (
    all_states,
    check_gradient,
    expectation,
    log_marginal,
    machine,
    number,
)

LBFGS = {"optimizer": "lbfgs", "schedule": "constant", "batch_size": None, "n_epochs": 100, "random_state": 0}
HOLES = np.array([[1, np.nan, 0, np.nan], [np.nan, 1, 1, 0], [np.nan] * 4])


def chained(n, seed):
    """Four bits, each likely to be a copy of the one before."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, 4))
    rows[:, 0] = rng.random(n) < 0.6
    for i in range(1, 4):
        rows[:, i] = np.where(rng.random(n) < 0.8, rows[:, i - 1], rng.random(n) < 0.5)
    return rows


def batch_of(rows, holes=False):
    seen = jnp.asarray(~np.isnan(rows))
    return Batch(jnp.asarray(np.nan_to_num(rows)), seen if holes else None, jnp.ones(len(rows)))


def learning(layout, graph, method, n_gibbs_steps=1):
    n = len(graph)
    return partial(
        pairwise_learning.learn,
        layout=layout,
        graph=jnp.asarray(graph),
        offsets=jnp.linspace(0.2, 0.8, n),
        method=method,
        n_gibbs_steps=n_gibbs_steps,
    )


def gradient_and_value(objective, params, batch):
    """The gradient that learning uses, and its loss as a function of weights and biases laid side by side."""
    n = len(params.bias)

    def loss(flat):
        there = PairwiseParams(flat[: n * n].reshape(n, n), flat[n * n :], params.chains)
        return objective(there, batch, jax.random.key(0), jnp.zeros((2, n)))[0]

    flat = jnp.concatenate([params.weights.ravel(), params.bias])
    both = jax.jit(jax.value_and_grad(loss))  # one program for both
    return np.asarray(both(flat)[1]), lambda there: both(there)[0], np.asarray(flat)


@pytest.mark.parametrize(("kind", "holes"), [("complete", True), ("restricted", False)])
def test_the_exact_gradient_is_that_of_the_log_likelihood(x64, kind, holes, global_random_seed):
    """Against finite differences of its loss; and the loss against brute force."""
    params, layout, graph = machine(kind, 4, 1, global_random_seed)
    rows = HOLES if holes else chained(5, global_random_seed)
    objective = learning(layout, graph, "exact")
    gradient, value, at = gradient_and_value(objective, params, batch_of(rows, holes))
    plain = pairwise_learning.to_natural(params, jnp.linspace(0.2, 0.8, 5))
    log_p = np.mean([log_marginal(plain, row) for row in rows]) - log_marginal(plain, np.full(4, np.nan))
    np.testing.assert_allclose(value(at), -log_p, rtol=1e-10)
    free = np.concatenate([graph.ravel(), np.ones(5, bool)])  # a weight that the graph lacks must not move
    assert (gradient[~free] == 0).all()

    def symmetric(part):
        """The loss reads a weight in two places, and so does the gradient: move them together."""
        whole = np.array(at)
        whole[free] = part
        weights = whole[:25].reshape(5, 5)
        return float(value(np.concatenate([((weights + weights.T) / 2).ravel(), whole[25:]])))

    check_gradient(gradient[free], symmetric, at[free])


def test_pseudo_likelihood_is_that_of_any_energy(x64, global_random_seed):
    """The same number as from flipping one cell after the other, and its gradient."""
    params, layout, graph = machine("complete", 4, 0, global_random_seed)
    rows = chained(6, global_random_seed)
    gradient, value, at = gradient_and_value(learning(layout, graph, "pseudo_likelihood"), params, batch_of(rows))
    plain = pairwise_learning.to_natural(params, jnp.linspace(0.2, 0.8, 4))
    flips = pseudo_log_likelihood(partial(pairwise.energy, plain), jnp.asarray(rows))
    np.testing.assert_allclose(value(at), -flips.mean(), rtol=1e-10)
    check_gradient(gradient, lambda flat: float(value(flat)), at)


# ------------------------------------------------------------------ learning
def best_mean_log_prob(rows):
    """Maximum of the exact likelihood of all pairs, in NumPy."""
    states = all_states(4)
    first, second = np.triu_indices(4, 1)
    features = np.hstack([states, states[:, first] * states[:, second]])
    counts = np.bincount(number(rows), minlength=16) / len(rows)
    found = optimize.minimize(
        lambda theta: logsumexp(features @ theta) - counts @ features @ theta, np.zeros(10), method="BFGS"
    )
    return -found.fun


@pytest.fixture(scope="module")
def rows():
    return chained(600, 0)


@pytest.fixture(scope="module")
def exact(rows):
    return BoltzmannMachine(**LBFGS).fit(rows)


def test_the_exact_gradient_reaches_the_maximum_and_matches_the_moments(exact, rows):
    assert exact.score(rows) == pytest.approx(best_mean_log_prob(rows), abs=1e-5)
    states = all_states(4)
    p = np.exp(exact.score_samples(states))
    np.testing.assert_allclose((states * p[:, None]).T @ states, rows.T @ rows / len(rows), atol=2e-4)


def test_chains_come_near_the_maximum(rows):
    """With hidden units the chains' noise costs little: n parameters off by their standard error cost n / 2c nats."""
    options = {"n_epochs": 60, "n_chains": 500, "random_state": 0}
    model = BoltzmannMachine(1, graph="semi-restricted", objective="pcd", **options).fit(rows)
    assert model.score(rows) > best_mean_log_prob(rows) - 15 / 500
    base = likely.Independent().fit(rows).score(rows)
    assert best_mean_log_prob(rows) - base > 0.3  # there was something to learn


def test_mean_field_takes_the_hidden_units_means(x64, global_random_seed):
    """Coupled hidden units: the gradient is that of the mean-field moments, minus those of the chains."""
    params, layout, graph = machine("complete", 4, 2, global_random_seed)
    rows, chains = chained(5, global_random_seed), jnp.asarray(all_states(6)[::3])
    objective = learning(layout, graph, "mean_field", n_gibbs_steps=0)  # the chains stay where they are
    loss = lambda p: objective(p, batch_of(rows), jax.random.key(0), chains)[0]  # noqa: E731
    gradient = jax.jit(jax.grad(loss, allow_int=True))(params)
    offsets = jnp.linspace(0.2, 0.8, 6)
    plain = pairwise_learning.to_natural(params, offsets)
    known = jnp.asarray(np.arange(6) < 4)[None] & jnp.ones((5, 1), bool)
    states = pairwise.mean_field(plain, jnp.pad(jnp.asarray(rows), ((0, 0), (0, 2))), known, layout)
    data, model = (np.asarray(a) - np.asarray(offsets) for a in (states, chains))
    expected = (model.T @ model / len(model) - data.T @ data / len(data)) / 2
    np.testing.assert_allclose(gradient.weights, np.where(graph, expected, 0), atol=1e-12)
    np.testing.assert_allclose(gradient.bias, model.mean(axis=0) - data.mean(axis=0), atol=1e-12)


def test_pseudo_likelihood_is_consistent(exact):
    """From the machine's own samples it finds the machine: a KL of about 10 parameters / 2n, doubled for its loss of
    efficiency; five times that is not reached by chance.
    """
    drawn = exact.sample(4000, random_state=1)
    found = BoltzmannMachine(objective="pseudo_likelihood", **LBFGS).fit(drawn)
    states = all_states(4)
    truth, learned = exact.score_samples(states), found.score_samples(states)
    assert np.exp(truth) @ (truth - learned) < 5 * 2 * 10 / (2 * 4000)


def test_units_and_temperature_change_the_parameters_and_nothing_else(exact, rows):
    states = all_states(4)
    signed = BoltzmannMachine(units="pm1", beta=2.0, **LBFGS).fit(rows)
    np.testing.assert_allclose(signed.score_samples(states), exact.score_samples(states), atol=1e-5)
    np.testing.assert_allclose(np.asarray(signed.params_.weights) * 8, exact.params_.weights, rtol=1e-4, atol=1e-5)
    hot = signed.score_samples(states)
    signed.beta = 1.0  # half as cold: log p differs by half, up to log Z
    np.testing.assert_allclose(np.ptp(signed.score_samples(states) - hot / 2), 0, atol=1e-4)


# ------------------------------------------------------------------ evidence
def test_both_conventions_have_equal_probabilities(x64, global_random_seed):
    """Erratum 25, through the model: to the last digits, rows with holes included."""
    rng = np.random.default_rng(global_random_seed)
    half = np.triu(rng.normal(size=(6, 6)), 1)
    weights, bias = half + half.T, rng.normal(size=6)
    signed = BoltzmannMachine.from_weights(weights, bias, units="pm1", beta=0.8, n_components=2)
    binary = BoltzmannMachine.from_weights(4 * 0.8 * weights, 2 * 0.8 * (bias - weights.sum(axis=1)), n_components=2)
    rows = np.vstack([all_states(4), HOLES])
    np.testing.assert_allclose(signed.score_samples(rows), binary.score_samples(rows), rtol=0, atol=1e-12)
    assert np.exp(signed.score_samples(all_states(4))).sum() == pytest.approx(1, abs=1e-12)


def test_a_bipartite_machine_is_an_rbm(x64, global_random_seed):
    """The same weights in both classes give the same exact evidence, of rows with holes as well."""
    params = brute_force.machine(brute_force.BINARY, 3, global_random_seed)
    weights = np.zeros((9, 9))
    weights[:6, 6:] = params.weights
    bias = np.concatenate([params.visible_bias, params.hidden_bias])
    rbm = inference.Exact(params, brute_force.BINARY, "hidden")
    machine = BoltzmannMachine.from_weights(weights + weights.T, bias, n_components=3)
    rng = np.random.default_rng(global_random_seed)
    rows = np.where(rng.random((20, 6)) < 0.3, np.nan, rng.integers(0, 2, (20, 6)))
    assert machine.evidence(rows).kind == "exact"
    expected = rbm.log_sum(None, rows).low - rbm.log_partition(None).low
    np.testing.assert_allclose(machine.score_samples(rows), expected, rtol=0, atol=1e-8)


def test_larger_machines_have_an_interval(x64, monkeypatch, global_random_seed):
    """It contains the exact value. Few units, of which not even eight configurations may be enumerated."""
    params, _, _ = machine("complete", 4, 2, global_random_seed)
    options = {"n_chains": 64, "n_ais_chains": 2000, "n_temperatures": 20, "n_sweeps": 100, "random_state": 0}
    model = BoltzmannMachine.from_weights(params.weights, params.bias, n_components=2, **options)
    rows = np.vstack([all_states(4), HOLES])
    truth = model.score_samples(rows)
    monkeypatch.setattr("likely.models.energy.pairwise.enumeration.MAX_CONFIGURATIONS", 8)
    del model._log_partition
    found = model.evidence(rows)
    assert found.kind == "estimate"
    error = 5 * found.stderr + 1e-9
    assert (found.lower - error < truth).all()
    assert (truth < found.upper + error).all()
    assert np.ptp((found.upper - truth)[:-1]) < 1e-9  # few holes: rows add nothing to the error of log Z
    assert found.values[-1] == 0


def test_codes_and_reconstructions(rows):
    """Codes are E[h | v]; without hidden units a cell is reconstructed from all the others."""
    params, _, _ = machine("complete", 4, 2, 0)
    model = BoltzmannMachine.from_weights(params.weights, params.bias, n_components=2)
    np.testing.assert_allclose(model.transform(rows[:3]), [expectation(params, row)[4:] for row in rows[:3]], rtol=1e-4)
    assert model.inverse_transform(model.transform(rows[:3])).shape == (3, 4)
    pulled = BoltzmannMachine.from_weights([[0, 9], [9, 0]], [-4.5, -4.5])
    np.testing.assert_array_equal(pulled.denoise([[1.0, np.nan], [0.0, np.nan]]), [[1, 1], [0, 0]])
    with pytest.raises(ValueError, match="fit with `n_components` above 0"):
        pulled.transform([[1.0, 0.0]])


def test_a_graph_that_was_given_is_kept_in_the_file(rows, tmp_path):
    params, _, graph = machine("ring", 4, 0, 0)
    model = BoltzmannMachine.from_weights(params.weights, params.bias, graph=graph)
    model.save(tmp_path / "ring.likely")
    loaded = likely.load(tmp_path / "ring.likely")
    np.testing.assert_array_equal(loaded.graph, graph)
    np.testing.assert_array_equal(loaded.score_samples(rows[:5]), model.score_samples(rows[:5]))


# ------------------------------------------------------------------ bad input
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "pseudo_likelihood", "n_components": 2}, "needs n_components=0, got 2"),
        ({"objective": "exact", "n_components": 20}, "at most 20 units, got 24"),
        ({"objective": "pcd", "optimizer": "lbfgs"}, "'pcd' has noise"),
        ({"graph": np.ones((3, 3), bool)}, r"must be \(4, 4\) for 4 visible and 0 hidden"),
        ({"graph": np.triu(np.ones((4, 4), bool), 1)}, "must be symmetric"),
        ({"graph": "bipartite"}, "'graph' parameter"),
        ({"beta": 0.0}, "'beta' parameter"),
    ],
)
def test_bad_hyper_parameters_are_refused_before_any_work(options, words, rows, monkeypatch):
    monkeypatch.setattr("likely.models.energy.pairwise.boltzmann_machine.train", None)
    with pytest.raises(ValueError, match=words):
        BoltzmannMachine(**options).fit(rows)


def test_machines_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="must leave a visible unit of 2, got 2"):
        BoltzmannMachine.from_weights(np.zeros((2, 2)), n_components=2)
    with pytest.raises(ValueError, match="zero where the graph has no edge"):
        BoltzmannMachine.from_weights([[0, 1], [1, 0]], graph=np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="the schema has 3 columns"):
        BoltzmannMachine.from_weights([[0, 1], [1, 0]], schema=likely.Schema.binary(3))
