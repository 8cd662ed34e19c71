import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely import DiscreteVAE
from likely.gradients import Enumeration, Vimco
from likely.models.latent.variational.discrete.discrete_vae import SUITED
from likely.models.latent.variational.discrete.network import codes, decoded, draw, draw_new, log_prob, weigh_rows
from likely.objectives.discrete_elbo import negative_discrete_elbo
from tests.models.latent.variational.discrete_checks import (
    Loop,
    all_rows,
    batch_of,
    case,
    check_log_prob,
    check_objective_is_unbiased,
    split,
)

KINDS = pytest.mark.parametrize("kind", [{}, {"n_categories": 3, "n_upper": 0}], ids=["two layers", "categories"])
SMALL = {"n_components": 2, "hidden": (4,), "n_epochs": 1, "random_state": 0}
ROWS = (np.random.default_rng(0).random((60, 4)) < 0.4).astype(float)


# ------------------------------------------------------------------ against loops over every latent
@KINDS
def test_evidence_is_the_sum_over_all_latents(x64, kind, global_random_seed):
    check_log_prob(log_prob, case(global_random_seed, **kind), all_rows()[::5])


@KINDS
def test_enumerated_bound_is_that_of_loops(x64, kind, global_random_seed):
    module, rows = case(global_random_seed, **kind), all_rows(with_holes=False)[[0, 6, 13]]
    batch = batch_of(rows)
    loss, _ = jax.jit(
        lambda: negative_discrete_elbo(module, batch, jax.random.key(0), None, estimator=Enumeration(), n_samples=1)
    )()
    expected = np.array([Loop(module).elbo(row) for row in rows])
    np.testing.assert_allclose(-loss, np.asarray(batch.weight) @ expected / batch.weight.sum(), rtol=1e-8)
    assert (expected < [np.log(Loop(module).posterior(row)[0]) for row in rows]).all()


@pytest.mark.parametrize("name", ["rebar", "score_learned"])
def test_gradients_of_the_bound_are_unbiased(x64, name, global_random_seed):
    check_objective_is_unbiased(negative_discrete_elbo, name, global_random_seed)


def test_importance_weights_and_draws_given_a_row(x64, global_random_seed):
    """The bound, the conditional means and the resampled rows, against loops; two layers of categories."""
    module, rows, n = case(global_random_seed, n_categories=3), all_rows()[[5, 26, 47, 80]], 4000
    loop = Loop(module)
    key = jax.random.key(global_random_seed)
    weighted, logits = weigh_rows(key, module, *split(rows), n_importance=n, conditional=True)
    exact, means = zip(*[loop.posterior(row) for row in rows], strict=True)
    spread = np.asarray(weighted.replicates).std(axis=1, ddof=1) / 4
    assert (np.abs(np.asarray(weighted.log_mean) - np.log(exact)) < 6 * spread + 1e-9).all()
    effective = 1 / np.asarray(jnp.exp(2 * jax.nn.log_softmax(weighted.log_weights)).sum(axis=1))
    assert (np.abs(np.asarray(weighted.average) - np.array(means)) < 6 * 0.5 / np.sqrt(effective)[:, None]).all()
    index = np.repeat(np.arange(4), 500)
    drawn = draw(jax.random.key(1), key, module, weighted.log_weights[index], logits[index])
    seen = np.asarray(drawn).reshape(4, 500, 4).mean(axis=1)
    assert (np.abs(seen - np.array(means)) < 6 * 0.5 * np.sqrt(1 / 500 + 1 / effective)[:, None]).all()


def test_samples_follow_the_model(x64, global_random_seed):
    module, rows = case(global_random_seed), all_rows(with_holes=False)
    drawn = np.asarray(draw_new(jax.random.key(global_random_seed), module, 20_000))
    number = (drawn @ [8, 4, 2, 1]).astype(int)
    expected = np.array([Loop(module).posterior(row)[0] for row in rows])
    assert expected.sum() == pytest.approx(1)
    assert stats.chisquare(np.bincount(number, minlength=16), 20_000 * expected).pvalue > 1e-4


def test_vimco_learns_the_importance_weighted_bound(x64, global_random_seed):
    """With fifty draws it is above the plain bound by most of its gap to the evidence."""
    module, rows = case(global_random_seed), all_rows(with_holes=False)
    batch, key = batch_of(rows), jax.random.key(global_random_seed)

    @jax.jit
    def bounds():
        tight, _ = negative_discrete_elbo(module, batch, key, None, estimator=Vimco(), n_samples=50)
        plain, _ = negative_discrete_elbo(module, batch, key, None, estimator=Enumeration(), n_samples=1)
        return -tight, -plain

    tight, plain = bounds()
    share = np.asarray(batch.weight) / float(batch.weight.sum())
    exact = share @ [np.log(Loop(module).posterior(row)[0]) for row in rows]
    assert abs(tight - exact) < 0.3 * (exact - plain)


def test_codes_are_the_means_of_q(x64):
    module = case(0)
    x, observed = split(all_rows()[:5])
    np.testing.assert_allclose(codes(module, x, observed), jax.nn.sigmoid(module.posterior(x, observed)[:, :3]))
    assert decoded(module, jnp.asarray(codes(module, x, observed))).shape == (5, 4)


# ------------------------------------------------------------------ the estimator
def test_many_latents_warn_and_give_a_bound_that_depends_on_the_row_alone():
    with pytest.warns(UserWarning, match="17 latents are more than the 4 columns"):
        model = DiscreteVAE(**SMALL | {"n_components": 17, "n_importance": 50}).fit(ROWS)
    evidence = model.evidence(ROWS)
    assert evidence.kind == "lower"
    assert "50 samples" in evidence.method
    assert evidence.monte_carlo_stderr > 0
    np.testing.assert_array_equal(evidence.values[4:9], model.evidence(ROWS[4:9]).values)


def test_two_layers_of_categories_learn_and_are_kept(tmp_path):
    """Twelve one-hot cells in four latents, two more above them, with a temperature that falls."""
    digits = likely.datasets.load("digits")
    options = {"n_categories": 3, "n_upper": 6, "temperature": (1.0, 0.4), "n_epochs": 30, "hidden": (32,)}
    model = DiscreteVAE(12, **options, random_state=0).fit(digits.train, valid=digits.valid)
    difference = model.evidence(digits.test) - likely.Independent().fit(digits.train).evidence(digits.test)
    assert difference.interval(0.999)[0] > 3
    assert model.evidence(digits.test).kind == "exact"
    assert model.history_["valid"][-1] < model.history_["valid"][0]
    assert model.transform(digits.test).shape == (500, 12)
    np.testing.assert_allclose(model.transform(digits.test).reshape(500, 4, 3).sum(axis=2), 1, rtol=1e-5)
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.score_samples(digits.test), model.score_samples(digits.test))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"estimator": "pathwise"}, "'pathwise' needs continuous latents"),
        ({"estimator": "gaussian_identities"}, "choose one of enumeration, gumbel_softmax, rebar, score"),
        ({"estimator": "reinforce"}, "'estimator' parameter"),
        ({"estimator": "score_leave_one_out", "n_samples": 1}, "`n_samples` must be at least 2"),
        ({"estimator": "vimco", "n_samples": 1}, "`n_samples` must be at least 2"),
        ({"estimator": "enumeration", "n_components": 4, "n_upper": 5}, "at most 8 bits, got 9"),
        ({"temperature": 0.0}, "`temperature` must be above 0"),
        ({"temperature": -1}, "`temperature` must be above 0"),
        ({"temperature": (1.0, 0.0)}, "`temperature` must be above 0"),
        ({"temperature": (1.0, 0.5, 0.2)}, "a pair"),
        ({"estimator": "rebar", "temperature": (1.0, 0.5)}, "must be a number"),
        ({"estimator": "score", "temperature": 0.5}, "means nothing to estimator 'score'"),
        ({"n_categories": 1}, "`n_categories` must be at least 2"),
        ({"n_components": 4, "n_categories": 3}, r"`n_components` must be a multiple of .+ try 6"),
        ({"n_components": 3, "n_categories": 3, "n_upper": 2}, "`n_upper` must be a multiple"),
        ({"n_upper": -1}, "`n_upper` must be a whole number"),
        ({"hidden": (0,)}, "`hidden` must hold sizes"),
    ],
)
def test_what_does_not_go_together_is_refused_before_any_work(setting, message):
    with pytest.raises(ValueError, match=message):
        DiscreteVAE(**SMALL | setting).fit(ROWS)


def test_every_suited_estimator_is_offered():
    assert set(SUITED) >= {"score", "score_learned", "vimco", "rebar", "gumbel_softmax", "straight_through"}
    assert not {"pathwise", "gaussian_identities"} & set(SUITED)
    assert DiscreteVAE(12, n_categories=3, n_upper=6).n_latent_bits_ == pytest.approx(6 * math.log2(3))
