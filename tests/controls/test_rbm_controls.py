"""Planted bugs in samplers, estimators and gradients of the RBM, caught by the checks that the library passes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.contract import effort
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium import rbm_classifier as labelled
from likely.models.energy.harmonium import tempering as replicas
from likely.models.energy.harmonium.annealing import Path
from likely.models.energy.normaliser.schedule import temperatures
from likely.montecarlo import annealed_importance, log_mean_weight
from likely.objectives.contrastive import Offsets, bipartite_gradient
from tests.contract.effort_checks import check_seconds_are_kept
from tests.models.energy.harmonium.brute_force import machine
from tests.models.energy.harmonium.learning_checks import check_ladder, check_leaves_joint_unchanged, worth_optimising
from tests.models.energy.harmonium.rbm_classifier_checks import check_label_probabilities
from tests.models.energy.harmonium.tempering_checks import check_replicas_stay
from tests.objectives.contrastive_checks import check_centred_gradient

SMALL = Columns(("binary",) * 4, (1,) * 4)


def test_a_kernel_with_stale_hidden_units_is_caught(x64, global_random_seed):
    """Both layers are drawn from the state before the step: each is right alone, the pair is not."""
    params = machine(SMALL, 3, global_random_seed)

    def stale(key, x, h):
        down, up = jax.random.split(key)
        new = SMALL.sample(down, harmonium.visible_natural(params, h))
        return new, harmonium.sample_hidden(up, harmonium.hidden_logits(params, SMALL.statistics(x)))

    with pytest.raises(AssertionError):
        check_leaves_joint_unchanged(stale, params, SMALL, global_random_seed)


def test_one_key_for_both_layers_is_caught(x64, global_random_seed):
    params = machine(SMALL, 4, global_random_seed)

    def same_noise(key, x, h):
        new = SMALL.sample(key, harmonium.visible_natural(params, h))
        inner = jax.random.split(key, 1)[0]  # the very key that the columns use
        return new, harmonium.sample_hidden(inner, harmonium.hidden_logits(params, SMALL.statistics(new)))

    with pytest.raises(AssertionError):
        check_leaves_joint_unchanged(same_noise, params, SMALL, global_random_seed)


def estimates(params, seed, log_ratio=None, kernel=None):
    """Forward estimates of log Z along a path, with parts replaced."""
    nothing = jnp.zeros((1, 4))
    unseen = jnp.zeros_like(nothing, dtype=bool)
    exact, mean, _ = enumeration.clamped_sum(params, nothing, unseen, SMALL, "hidden")
    path = Path(params, SMALL.natural(mean[0]), nothing[0], None, SMALL)

    def estimate(n):
        start, move = jax.random.split(jax.random.key(seed))
        stops = jnp.asarray(temperatures(n))
        run = jax.jit(
            lambda: annealed_importance(
                move, path.start(start, 600), stops, log_ratio(path) if log_ratio else path.log_ratio,
                kernel(path) if kernel else path.kernel,
            ),
            compiler_options=worth_optimising(n),
        )  # fmt: skip
        return float(log_mean_weight(run()) + path.base_log_partition())

    return estimate, float(exact[0])


def test_the_ladder_itself_passes(x64, global_random_seed):
    check_ladder(*estimates(machine(SMALL, 4, global_random_seed), global_random_seed))


@pytest.mark.parametrize(
    "bug",
    [
        {"log_ratio": lambda path: lambda x, before, after: path.log_ratio(x, after, before)},  # the wrong sign
        {"kernel": lambda path: lambda key, x, at: path.kernel(key, x, at * 0)},  # chains that stay at the base
        {"kernel": lambda path: lambda key, x, at: path.kernel(key, x, at * 0 + 1)},  # chains that run ahead
    ],
    ids=["sign", "behind", "ahead"],
)
def test_wrong_annealing_is_caught(bug, x64, global_random_seed):
    estimate, exact = estimates(machine(SMALL, 4, global_random_seed, scale=1.5), global_random_seed, **bug)
    with pytest.raises(AssertionError, match="nats off"):
        check_ladder(estimate, exact)


def without_bias_terms(data, model, offsets, rates):
    """The biases' own differences, b - W l and c - Wᵀm forgotten."""
    right, plain = (bipartite_gradient(data, model, o, rates) for o in (offsets, Offsets(*(0 * a for a in offsets))))
    return right._replace(visible_bias=plain.visible_bias, hidden_bias=plain.hidden_bias)


def not_quite(data, model, offsets, rates):
    """One part in a million too large."""
    return jax.tree.map(lambda a: a * (1 + 1e-6), bipartite_gradient(data, model, offsets, rates))


@pytest.mark.parametrize("own_rates", [False, True])
@pytest.mark.parametrize("bug", [without_bias_terms, not_quite], ids=lambda bug: bug.__name__)
def test_a_wrong_centred_gradient_is_caught(bug, own_rates, x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_centred_gradient(bug, own_rates, global_random_seed)


@pytest.mark.parametrize(
    "bug",
    [
        lambda at, linear, logits: -right_ratios(at, linear, logits),  # the wrong sign
        lambda at, linear, logits: jnp.zeros_like(linear[:, 1:]),  # every swap accepted
        lambda at, linear, logits: right_ratios(at, 0 * linear, logits),  # the visible biases forgotten
    ],
    ids=["sign", "always", "biases"],
)
def test_wrong_swaps_of_replicas_are_caught(bug, x64, global_random_seed, monkeypatch):
    monkeypatch.setattr(replicas, "log_ratios", bug)
    with pytest.raises(AssertionError):
        check_replicas_stay(eqx.filter_jit(lambda *args: replicas.tempered_step(*args)), global_random_seed)


right_ratios = replicas.log_ratios


@pytest.mark.parametrize(
    ("bug", "cost"),
    [
        # compiling and what is fixed forgotten
        (lambda cost, seconds: int(seconds / cost.slope), {"compiling": 1.5, "fixed": 0.5, "slope": 0.003}),
        # too careful
        (lambda cost, seconds: int(0.1 * seconds / cost.slope), {"compiling": 0.5, "fixed": 0.0, "slope": 0.02}),
    ],
    ids=["late", "idle"],
)
def test_wrong_use_of_seconds_is_caught(bug, cost, monkeypatch):
    monkeypatch.setattr(effort._Cost, "affordable", bug)
    with pytest.raises(AssertionError, match="of 30"):
        check_seconds_are_kept(
            lambda model, seconds: effort.evidence_within(model, np.zeros((3, 2)), None, seconds, clock=model.clock),
            30.0,
            **cost,
        )


def test_label_probabilities_without_the_hidden_units_share_are_caught(x64, global_random_seed, monkeypatch):
    """The label's biases alone: right on average, wrong for every row."""
    monkeypatch.setattr(
        labelled, "_label_logits", lambda params, x, columns: params.visible_bias[-3:][None] + 0 * x[:, :3]
    )
    with pytest.raises(AssertionError):
        check_label_probabilities(labelled.label_probabilities, global_random_seed)
