"""Associative memory: descent, fixed points, the notes' 25 units, capacity, the distribution, bad input."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import likely
from likely import Hopfield
from likely.models.energy.pairwise import associative_memory as associative
from tests.models.energy.harmonium.learning_checks import check_frequencies
from tests.models.energy.pairwise.hopfield_checks import (
    check_fixed,
    check_never_rises,
    check_recall,
    letters,
    random_patterns,
)
from tests.models.energy.pairwise.pairwise_checks import all_states, number


def flipped(patterns, n, seed):
    """Patterns with n units of each turned round."""
    rng, out = np.random.default_rng(seed), patterns.copy()
    for row in out:
        row[rng.choice(len(row), n, replace=False)] *= -1
    return out


# ------------------------------------------------------------------ descent
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["pairwise", "dense"]), st.booleans())
def test_the_energy_never_rises_one_unit_at_a_time(seed, n_units, memory, ties):
    """For any symmetric weights, whole numbers among them, which make inputs of exactly zero; and any patterns."""
    rng = np.random.default_rng(seed)
    half = np.triu(rng.integers(-2, 3, (n_units, n_units)) if ties else rng.normal(size=(n_units, n_units)), 1)
    weights, bias = (half + half.T).astype(float), rng.integers(-1, 2, n_units).astype(float)
    patterns, probes = random_patterns(seed, 4, n_units), random_patterns(seed + 1, 6, n_units)
    orders = np.stack([rng.permutation(n_units) for _ in range(30)])
    if memory == "dense":
        trail = associative.recall_dense(patterns, 0.5, probes, orders, 30)
        check_never_rises(np.array(trail), lambda x: associative.dense_energy(patterns, 0.5, x))
    else:
        trail = associative.recall_pairwise(weights, bias, probes, orders, 30)
        check_never_rises(np.array(trail), lambda x: associative.energy(weights, bias, x))
        check_fixed(trail[-1], lambda x: x @ weights + bias)
    assert np.array_equal(trail[-1], trail[-2])  # it settles


def test_every_single_turn_lowers_the_energy_by_twice_its_field(global_random_seed):
    """The rule and the energy belong together, unit by unit."""
    rng = np.random.default_rng(global_random_seed)
    half = np.triu(rng.normal(size=(7, 7)), 1)
    network = Hopfield.from_weights(half + half.T, rng.normal(size=7))
    states = random_patterns(global_random_seed, 5, 7)
    weights, bias = associative_arrays(network)
    for unit in range(7):
        turned = states.copy()
        turned[:, unit] *= -1
        difference = 2 * states[:, unit] * (states @ weights[unit] + bias[unit])
        np.testing.assert_allclose(network.energy(turned) - network.energy(states), difference, atol=1e-10)


def associative_arrays(network):
    return np.asarray(network.params_.weights, float), np.asarray(network.params_.bias, float)


def test_all_at_once_may_swing_between_two_states():
    network = Hopfield.from_weights([[0, -1], [-1, 0]])
    trail = network.recall([1.0, 1.0], "synchronous", return_trajectory=True)
    assert trail.tolist() == [[1, 1], [-1, -1], [1, 1]]
    settled = network.recall([1.0, 1.0])
    assert settled[0] == -settled[1]


# ------------------------------------------------------------------ the notes' experiment
@pytest.mark.parametrize("rule", ["hebb", "pseudo_inverse"])
def test_four_letters_on_25_units(rule):
    """Notes 002: every letter is stable and comes back with two units turned round; and with a fifth of the
    connections cut the letters are still stable or nearly so.
    """
    patterns = letters()
    network = Hopfield(rule, random_state=0).store(patterns)
    check_recall(network.recall(patterns), patterns, 1.0)
    probes = np.concatenate([flipped(patterns, 2, seed) for seed in range(10)])
    check_recall(network.recall(probes), np.tile(patterns, (10, 1)), 0.75)
    damaged = network.lesion(0.2, random_state=0)
    kept = associative_arrays(damaged)[0] != 0
    assert (kept == kept.T).all()
    assert (associative_arrays(network)[0] != 0).sum() > kept.sum()
    assert (damaged.recall(patterns) == patterns).mean() > 0.95
    np.testing.assert_array_equal(network.recall(patterns), patterns)  # the network itself is whole


def test_unknown_units_are_filled_in():
    patterns = letters()
    probes = patterns.copy()
    probes[:, :10] = np.nan  # the two upper rows
    network = Hopfield("pseudo_inverse", random_state=0).store(patterns)
    check_recall(network.recall(probes), patterns, 1.0)
    assert (network.recall(probes, return_trajectory=True)[0, :, :10] == 0).all()


# ------------------------------------------------------------------ capacity
def test_capacity_has_its_cliff(global_random_seed):
    """N = 300: at 0.05 N nearly every unit of every pattern is right, at 0.25 N the memory is lost; by the other two
    ways all 0.25 N patterns come back from a tenth of the units turned.
    """
    few, many = (random_patterns(global_random_seed, p, 300) for p in (15, 75))
    hebb = Hopfield(random_state=0).store(few)
    assert (hebb.recall(flipped(few, 15, 0)) == few).mean() > 0.99
    lost = Hopfield(random_state=0).store(many)
    assert (lost.recall(many) == many).mean() < 0.9
    for other in (Hopfield("pseudo_inverse"), Hopfield(memory="dense")):
        check_recall(other.store(many).recall(flipped(many, 15, 1)), many, 0.95)


def test_pseudo_inverse_projects(global_random_seed):
    patterns = random_patterns(global_random_seed, 5, 20)
    weights = associative.pseudo_inverse(patterns)
    whole = patterns.T @ np.linalg.solve(patterns @ patterns.T, patterns)
    np.testing.assert_allclose(weights, whole - np.diag(np.diag(whole)), atol=1e-12)
    doubled = associative.pseudo_inverse(np.vstack([patterns, patterns[:2]]))  # no more is known
    np.testing.assert_allclose(doubled, weights, atol=1e-12)


def test_hebb_counts_the_rows_that_have_both_units(global_random_seed):
    """Of the cells that are there, each pair's mean product, at the scale of whole patterns."""
    patterns = random_patterns(global_random_seed, 30, 6)
    rng = np.random.default_rng(global_random_seed)
    holed = np.where(rng.random(patterns.shape) < 0.3, np.nan, patterns)
    np.testing.assert_allclose(associative.hebb(patterns), (patterns.T @ patterns) / 6 * (1 - np.eye(6)), atol=1e-12)
    products = holed[:, :, None] * holed[:, None, :]
    np.testing.assert_allclose(associative.hebb(holed), 30 / 6 * np.nanmean(products, axis=0) * (1 - np.eye(6)))


def test_synchronous_dense_recall_is_a_step_of_attention():
    patterns, probe = letters(), flipped(letters(), 5, 0)
    network = Hopfield(memory="dense", beta=0.5).store(patterns)
    scores = 0.5 * probe @ patterns.T
    shares = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    first = network.recall(probe, "synchronous", return_trajectory=True)[1]
    np.testing.assert_array_equal(first, np.sign(shares @ patterns))


# ------------------------------------------------------------------ the distribution
@pytest.mark.parametrize("memory", ["pairwise", "dense"])
@pytest.mark.parametrize("holes", [False, True])
def test_evidence_is_the_boltzmann_distribution_of_the_energy(memory, holes, global_random_seed):
    """All 2^6 states: log p = -βE - log Z, whichever the memory; rows with holes are sums."""
    patterns = random_patterns(global_random_seed, 3, 6)
    if holes:
        patterns[0, 1] = patterns[2, 4] = np.nan
    network = Hopfield(memory=memory, beta=0.7).store(patterns)
    states = 2 * all_states(6) - 1
    if memory == "dense":
        energies = associative.dense_energy(np.nan_to_num(patterns), 0.7, states)
    else:
        energies = network.energy(states)
    truth = -0.7 * energies - logsumexp(-0.7 * energies)
    assert network.evidence(states).kind == "exact"
    np.testing.assert_allclose(network.score_samples(states), truth, atol=1e-4)
    row = np.array([[1, np.nan, -1, np.nan, 1, 1.0]])
    agree = (states[:, [0, 2, 4, 5]] == [1, -1, 1, 1]).all(axis=1)
    np.testing.assert_allclose(network.score_samples(row), logsumexp(truth[agree]), atol=1e-4)
    p = np.exp(truth[agree] - logsumexp(truth[agree]))
    found = network.condition(row)
    np.testing.assert_allclose(found.probabilities(1)[0, 1], p @ (states[agree][:, 1] == 1), atol=1e-4)


@pytest.mark.parametrize("memory", ["pairwise", "dense"])
def test_samples_have_the_exact_frequencies(memory, global_random_seed):
    network = Hopfield(memory=memory, beta=0.4, random_state=0).fit((random_patterns(global_random_seed, 3, 5) + 1) / 2)
    drawn = network.sample(20_000, random_state=global_random_seed)
    check_frequencies(np.bincount(number(drawn), minlength=32), np.exp(network.score_samples(all_states(5))))
    row = np.array([[1.0, np.nan, np.nan, 0.0, 1.0]], np.float32)
    key = jax.random.key(global_random_seed)
    given = network._condition(row, key).sample(key, 20_000)[:, 0]
    given = np.where(np.isnan(row), given, row)
    p = np.exp(network.score_samples(all_states(5)))
    agree = (all_states(5)[:, [0, 3, 4]] == [1, 0, 1]).all(axis=1)
    check_frequencies(np.bincount(number(given), minlength=32), np.where(agree, p, 0))


def test_rows_of_zeros_and_ones_or_of_signs():
    """What goes in comes out: fit takes 0 and 1, store takes signs; denoise is recall."""
    patterns = letters()
    stored, fitted = Hopfield(random_state=0).store(patterns), Hopfield(random_state=0).fit((patterns + 1) / 2)
    with pytest.warns(likely.EvidenceWarning, match="Hopfield's sample comes from chains that have not met"):
        assert set(np.unique(np.asarray(stored.sample(3), float))) == {-1.0, 1.0}
    with pytest.warns(likely.EvidenceWarning, match="raise `n_sweeps` from 200"):
        assert set(np.unique(fitted.sample(3))) == {0.0, 1.0}
    probes = flipped(patterns, 2, 0)
    recalled = fitted.recall(probes)
    np.testing.assert_array_equal(stored.recall(probes), recalled)
    np.testing.assert_array_equal(fitted.denoise((probes + 1) / 2), (recalled + 1) / 2)
    np.testing.assert_array_equal(np.asarray(stored.denoise(probes), float), recalled)


def test_saved_dense_memories_and_stored_ones_come_back(tmp_path):
    for memory in ("pairwise", "dense"):
        network = Hopfield(memory=memory, random_state=0).store(letters())
        network.save(tmp_path / "memory.likely")
        loaded = likely.load(tmp_path / "memory.likely")
        np.testing.assert_array_equal(loaded.recall(letters()), network.recall(letters()))
        assert loaded.schema_ == network.schema_


def test_the_same_seed_recalls_the_same():
    many = random_patterns(0, 30, 40)
    network = Hopfield(random_state=0).store(many)
    first, again = (network.recall(flipped(many, 10, 0), random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(network.recall(many[:3]), network.recall(many)[:3])  # neighbours change nothing


# ------------------------------------------------------------------ bad input
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda h: h.store([[1, 0], [1, -1]]), "got 0 in row 0, column 1"),
        (lambda h: h.store([1, -1]), r"must be \(rows, units\)"),
        (lambda h: h.store(letters()).recall(np.zeros(25)), "must be .1 or -1, or NaN"),
        (lambda h: h.store(letters()).recall(np.ones(24)), "must have 25 units, as the memory has, got 24"),
        (lambda h: h.store(letters()).energy(np.full(25, np.nan)), "must be .1 or -1, got nan in row 0"),
        (lambda h: h.store(letters()).recall(letters(), "parallel"), "'asynchronous' or 'synchronous', got 'parallel'"),
        (lambda h: h.store(letters()).recall(letters(), max_iter=0), "positive whole number, got 0"),
        (lambda h: h.store(letters()).lesion(1.5), "from 0 to 1, got 1.5"),
        (lambda h: Hopfield(memory="dense").store(letters()).lesion(0.5), "memory='dense' keeps patterns"),
        (lambda h: Hopfield.from_weights([[0, 1], [2, 0]]), "`weights` must be symmetric"),
        (lambda h: Hopfield.from_weights(np.zeros((2, 2)), memory="dense"), "use store"),
        (lambda h: h.fit([[0.5, 1.0], [1.0, 2.5]]), "column 'x0' is real"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(act, words):
    with pytest.raises(ValueError, match=words):
        act(Hopfield())
