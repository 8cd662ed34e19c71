import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from likely.gradients import (
    ESTIMATORS,
    Bernoulli,
    Categorical,
    GumbelSoftmax,
    LocationScale,
    Problem,
    Rebar,
    ScoreFunction,
    StraightThroughGumbel,
    Transformed,
    descend,
    exact_gradient,
    make_estimator,
    measure,
)
from tests.gradients.gradient_checks import (
    N_DRAWS,
    bits,
    check_perturbed_given,
    check_slope,
    check_unbiased,
    enumerated_mean,
    normal,
    units,
)


# ------------------------------------------------------------------ the oracle
def test_enumeration_is_the_gradient_of_a_plain_sum(x64):
    problem = bits()
    check_slope(jax.jit(lambda t: exact_gradient(problem, t))(problem.theta), enumerated_mean, problem.theta)


@pytest.mark.parametrize(
    ("base", "mean", "variance"),
    [("normal", 0.0, 1.0), ("logistic", 0.0, np.pi**2 / 3), ("gumbel", np.euler_gamma, np.pi**2 / 6)],
)
def test_quadrature_knows_the_moments_of_the_noise(x64, base, mean, variance):
    """E z² = (l + s m)² + s² v; the Gumbel density is exp(-(g + e^-g)), with two minus signs."""
    problem = Problem(LocationScale(base), lambda z: (z**2).sum(axis=-1), (jnp.array([0.7]), jnp.array([1.3])))
    location, scale = jax.jit(lambda t: exact_gradient(problem, t))(problem.theta)
    np.testing.assert_allclose(location[0], 2 * (0.7 + 1.3 * mean), rtol=1e-8)
    np.testing.assert_allclose(scale[0], 2 * (0.7 + 1.3 * mean) * mean + 2 * 1.3 * variance, rtol=1e-8)
    noise = np.linspace(-3, 5, 7)
    law = {"normal": stats.norm, "logistic": stats.logistic, "gumbel": stats.gumbel_r}[base]
    ours = problem.family.log_prob(problem.theta, jnp.asarray(noise)[:, None])
    np.testing.assert_allclose(ours, law.logpdf(noise, 0.7, 1.3), rtol=1e-8)


# ------------------------------------------------------------------ bias
@pytest.mark.parametrize(
    "name",
    ["enumeration", "score", "score_running_mean", "score_leave_one_out", "score_learned", "rebar", "vimco"],
)
def test_unbiased_on_bits(x64, name, global_random_seed):
    assert ESTIMATORS[name]().unbiased
    measured = check_unbiased(name, bits(), global_random_seed)
    assert measured.seconds > 0
    assert name in str(measured)


def test_unbiased_on_one_hot_units(x64, global_random_seed):
    check_unbiased("score_leave_one_out", units(), global_random_seed)


@pytest.mark.parametrize("name", ["score", "pathwise", "gaussian_identities"])
def test_unbiased_on_a_gaussian(x64, name, global_random_seed):
    check_unbiased(name, normal(), global_random_seed)


def test_pathwise_through_any_transformation(x64, global_random_seed):
    """z = exp(m + s ε): E z = exp(m + s²/2)."""
    family = Transformed(lambda theta, noise: jnp.exp(theta[0] + theta[1] * noise))
    problem = Problem(family, lambda z: z[..., 0], jnp.array([0.2, 0.5]))
    measured = check_unbiased("pathwise", problem, global_random_seed)
    np.testing.assert_allclose(measured.exact, np.exp(0.2 + 0.125) * np.array([1, 0.5]), rtol=1e-8)


def test_gumbel_softmax_trades_bias_for_variance(x64, global_random_seed):
    """At temperature 1 it must fail the test that the others pass; colder, the bias falls and the variance grows."""
    with pytest.raises(AssertionError):
        check_unbiased(GumbelSoftmax(1.0), bits(), global_random_seed)
    runs = [measure(GumbelSoftmax(t), bits(), n_draws=N_DRAWS, seed=global_random_seed) for t in (1.0, 0.5, 0.25)]
    bias, variance = [np.linalg.norm(run.bias) for run in runs], [run.variance for run in runs]
    noise = max(np.linalg.norm(run.stderr) for run in runs)
    assert bias[0] > bias[1] + 5 * noise > bias[2] + 10 * noise
    assert variance[0] < variance[1] < variance[2]
    assert not GumbelSoftmax().unbiased


@pytest.mark.parametrize("name", ["straight_through", "straight_through_gumbel"])
def test_straight_through_is_biased(x64, name, global_random_seed):
    assert not measure(name, bits(), n_draws=N_DRAWS, seed=global_random_seed).is_unbiased


def test_straight_through_is_exact_for_what_is_linear(x64):
    """The slope of E w·z is w p (1 - p), whatever was drawn."""
    weights = jnp.array([1.0, -2.0, 0.5])
    problem = Problem(Bernoulli(), lambda z: z @ weights, jnp.array([0.3, -0.2, 2.0]))
    measured = check_unbiased("straight_through", problem, 0)
    assert measured.variance < 1e-20


# ------------------------------------------------------------------ variance
def test_baselines_and_control_variates_lower_the_variance(x64, global_random_seed):
    names = ("score", "score_running_mean", "rebar")  # the programs of the tests above
    first, second, third = (measure(n, bits(), n_draws=N_DRAWS, seed=global_random_seed).variance for n in names)
    assert first > 1.5 * second > 1.5 * third * 1.05


# ------------------------------------------------------------------ the notes' example
def test_both_estimators_reach_the_minimum(x64, global_random_seed):
    """z ~ N(2θ + 3, 1), min E z²: at θ = -1.5. There the score function's slope 2z³ has variance 60, the path's 4z 16.

    Averaged over T steps the error is that of T slopes, divided by the curvature, 8.
    """
    link = lambda theta: (jnp.array([2.0]) * theta + 3.0, jnp.ones(1))  # noqa: E731
    problem = Problem(LocationScale(), lambda z: (z**2).sum(axis=-1), jnp.array([1.0]), link)
    for name, variance in (("score", 60.0), ("pathwise", 16.0)):
        key = jax.random.key(global_random_seed)
        path = descend(key, make_estimator(name), problem, n_steps=6000, learning_rate=0.005)
        # the step's own size adds to the score function's variance, which grows away from the minimum
        error = np.sqrt(1.5 * variance / (64 * 5000))
        assert abs(float(path[1001:].mean()) + 1.5) < 5 * error
        assert path.shape == (6001, 1)


# ------------------------------------------------------------------ draws
@pytest.mark.parametrize("from_normal", [False, True])
def test_gumbel_max_draws_the_categorical(x64, global_random_seed, from_normal):
    theta, family = jnp.array([[0.5, -1.0, 0.2, 1.3]]), Categorical()
    key = jax.random.key(global_random_seed)

    @jax.jit
    def draw(key):
        if not from_normal:
            return family.sample(key, theta, 40_000)
        noise = family.noise_from_normal(jax.random.normal(key, (40_000, 1, 4)))
        return family.harden(family.perturb(jnp.broadcast_to(theta[None], noise.shape), noise))

    seen = np.asarray(draw(key)).sum(axis=(0, 1))
    assert stats.chisquare(seen, 40_000 * np.asarray(family.mean(theta))[0]).pvalue > 1e-4


@pytest.mark.parametrize("family", [Bernoulli(), Categorical()])
def test_perturbed_given_the_draw_follows_the_perturbed(x64, family, global_random_seed):
    check_perturbed_given(family, global_random_seed)


def test_cold_relaxed_draw_is_the_one_hot_vector_of_the_argmax():
    hard, soft = GumbelSoftmax(1e-4).draw(jax.random.key(0), Categorical(), jnp.zeros((5, 3)), 20, 0)
    np.testing.assert_allclose(soft, hard, atol=1e-6)
    np.testing.assert_array_equal(hard.sum(axis=-1), 1)


# ------------------------------------------------------------------ state, and errors
def test_running_mean_learns_the_mean(x64):
    state = ScoreFunction("running_mean").start(jax.random.key(0))
    for value in (1.0, 3.0, 5.0):
        state = state.after(jnp.asarray(value))
    assert float(state.mean) == pytest.approx(3.0)


def test_temperature_falls_geometrically():
    estimator = StraightThroughGumbel(2.0, final_temperature=0.5, n_steps=100)
    np.testing.assert_allclose([estimator.temperature_at(s) for s in (0, 50, 100, 500)], [2, 1, 0.5, 0.5], rtol=1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1, float("nan"), float("inf"), True, "warm"])
def test_temperatures_at_or_below_zero_are_refused(wrong):
    for kind in (GumbelSoftmax, StraightThroughGumbel, Rebar):
        with pytest.raises(ValueError, match="`temperature` must be above 0"):
            kind(wrong)
    with pytest.raises(ValueError, match="`final_temperature` must be above 0"):
        GumbelSoftmax(1.0, final_temperature=wrong, n_steps=5)


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="`estimator` must be one of enumeration, gaussian_identities"):
        measure("reinforce", bits())
    with pytest.raises(ValueError, match="Pathwise is for Continuous families, got Bernoulli"):
        measure("pathwise", bits())
    with pytest.raises(ValueError, match="ScoreFunction needs at least 2 draws, got 1"):
        measure("score_leave_one_out", bits(), n_samples=1)
    with pytest.raises(ValueError, match="`n_draws` must be at least 2"):
        measure("score", bits(), n_draws=1)
    with pytest.raises(ValueError, match="`baseline` must be one of none"):
        ScoreFunction("mean")
    with pytest.raises(ValueError, match="`base` must be one of normal"):
        LocationScale("cauchy")
    with pytest.raises(ValueError, match="needs `n_steps`"):
        GumbelSoftmax(1.0, final_temperature=0.5)
    with pytest.raises(ValueError, match=r"at most 1,048,576 configurations, got 30 units with 2\^30"):
        measure("enumeration", Problem(Bernoulli(), lambda z: z.sum(axis=-1), jnp.zeros(30)))
    family = Transformed(lambda theta, noise: theta[None] * noise)
    with pytest.raises(ValueError, match="density of z = g"):
        measure("score", Problem(family, lambda z: z[..., 0], jnp.ones(1)))
