"""The recurrent language model against sums over every sentence, plain steps, and what it must learn."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely.datasets.text.vocabulary import BEGIN_ID, END_ID
from likely.models.language.recurrent.generation import Choice, generate
from likely.models.language.recurrent.gradient_flow import gradient_flow
from likely.models.language.recurrent.recurrent_lm import RecurrentLM, stretched
from likely.nets.recurrent import CELLS
from likely.objectives.next_token import Stream, next_token, stretches
from likely.training import Batch

TEXT = ["a b c", "a b d", "b a", "c d a b", "a b c d"]
SMALL = {"layers": (6, 5), "length": 4, "n_streams": 2, "learning_rate": 0.03, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return RecurrentLM(**SMALL, n_epochs=30, dropout=0.1).fit(TEXT * 3)


@pytest.fixture
def double(model, x64):
    """The same model in double precision, in which what should be equal is so to many digits."""
    other = copy.copy(model)
    other.params_ = jax.tree.map(lambda array: jnp.asarray(array, jnp.float64), model.params_)
    return other


def test_scores_are_those_of_plain_steps(double):
    """Padding and batches change nothing: each token's log p is what one step after the other gives."""
    for sentence, scores in zip(TEXT, double.token_scores(TEXT), strict=True):
        ids = double.vocabulary_.ids(sentence.split())
        states, previous = double.params_.first(1), BEGIN_ID
        for token, score in zip([*ids, END_ID], scores, strict=True):
            states, log_probs = double.params_.step(states, jnp.array([previous]))
            np.testing.assert_allclose(score, log_probs[0, token], rtol=1e-12)
            previous = token


def test_next_tokens_sum_to_one_and_never_begin_a_sentence(double):
    _, log_probs = double.params_.step(double.params_.first(1), jnp.array([BEGIN_ID]))
    probabilities = np.exp(np.asarray(log_probs, np.float64))[0]
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-13)
    assert probabilities[BEGIN_ID] == 0


def test_streams_carry_their_state_from_stretch_to_stretch(double):
    """The mean loss along stretches with the state carried on is that of whole sentences."""
    encoded = double._encoded(TEXT)
    rows = stretched(encoded, 1, 4)
    inputs, targets = (
        np.concatenate(np.asarray(part)) for part in stretches(Batch(jnp.asarray(rows), None, jnp.ones(len(rows))))
    )
    n = len(encoded.tokens)
    np.testing.assert_array_equal(targets[:n], encoded.tokens)
    assert (targets[n:] == -1).all()
    assert (inputs[encoded.offsets[:-1]] == BEGIN_ID).all()
    state, total = Stream(double.params_.first(1)), 0.0
    step = jax.jit(
        lambda module, row, state: next_token(
            module, Batch(row, None, jnp.ones(1)), jax.random.key(0), state, start=BEGIN_ID, dropout=0.0
        )
    )
    for row in rows:
        loss, (state, _) = step(double.params_, jnp.asarray(row)[None], state)
        total += float(loss) * (row[4:] != -1).sum()
    np.testing.assert_allclose(-total, double.score_samples(TEXT).sum(), rtol=1e-12)


def test_first_tokens_are_drawn_as_often_as_they_are_likely(model, global_random_seed):
    _, log_probs = model.params_.step(model.params_.first(1), jnp.array([BEGIN_ID]))
    drawn = generate(global_random_seed, model.params_, 2000, [], 1, Choice())
    counts = np.bincount([ids[0] if ids else END_ID for ids in drawn], minlength=log_probs.shape[1])
    expected = 2000 * np.exp(np.asarray(log_probs, np.float64)[0])
    likely_ones = expected > 5
    observed = np.append(counts[likely_ones], counts[~likely_ones].sum())
    assert stats.chisquare(observed, np.append(expected[likely_ones], 2000 - expected[likely_ones].sum())).pvalue > 1e-4


def test_choices_sharpen(model):
    assert len(set(model.generate(20, temperature=0.01, random_state=0))) == 1
    assert model.generate(5, top_k=1, random_state=0) == model.generate(5, temperature=0.01, random_state=3)
    assert all(text.startswith("a b") for text in model.generate(5, prompt="a", top_p=0.3, random_state=0))


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_k": 0}, {"top_p": 1.5}])
def test_senseless_choices_are_refused(model, options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
        model.generate(1, **options)


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell != "lstm"])
def test_every_cell_learns_what_follows(cell):
    model = RecurrentLM((8,), cell=cell, length=4, n_streams=2, learning_rate=0.03, n_epochs=60, random_state=0)
    text = ["a b c", "a b d"] * 4
    assert float(model.fit(text).perplexity(text)) < 1.3  # 2^(1/4) = 1.19 at best, 6 for equally likely tokens


def test_noise_contrast_learns_the_same_scores():
    options = SMALL | {"layers": (8,), "n_epochs": 150}
    text = ["a b c", "a b d"] * 4
    contrast = RecurrentLM(**options, output="nce", n_noise=20, tied=True).fit(text)
    assert float(contrast.perplexity(text)) < 1.35


def test_an_interrupted_fit_goes_on_with_the_same_bits(tmp_path):
    whole = RecurrentLM(**SMALL, n_epochs=6).fit(TEXT)
    first = RecurrentLM(**SMALL, n_epochs=6)
    first.fit(TEXT, checkpoint=likely.Checkpoint(tmp_path / "run.checkpoint", every_steps=3))
    resumed = RecurrentLM(**SMALL, n_epochs=6).fit(TEXT, resume=tmp_path / "run.checkpoint")
    jax.tree.map(np.testing.assert_array_equal, resumed.params_, whole.params_)


def test_gradients_through_a_cell_are_products_of_its_jacobians(double):
    flow = gradient_flow(double, "a b c d")
    assert flow.norms.shape == flow.radius.shape == (5,)
    cell = double.params_.stack.cells[0]
    inputs = double.params_.embedding[jnp.array([BEGIN_ID, *double.vocabulary_.ids(["a", "b", "c", "d"])])]

    def last(state):
        for x in inputs:
            state = cell.step(state, cell.gates(x[None]))
        return jnp.concatenate(state, axis=1)[0]

    blocks = jax.jacrev(last)(cell.first(1))
    jacobian = np.concatenate([np.asarray(block)[:, 0] for block in blocks], axis=1)
    np.testing.assert_allclose(flow.norms[-1], np.linalg.norm(jacobian, 2), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"layers": ()}, "`layers` must hold"),
        ({"layers": (0,)}, "`layers` must hold"),
        ({"tied": True, "n_embedding": 3}, "tied"),
    ],
)
def test_bad_networks_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        RecurrentLM(**SMALL | options).fit(TEXT)


def test_gaps_are_refused():
    with pytest.raises(ValueError, match="gaps"):
        RecurrentLM(**SMALL).fit([["a", None, "b"]])
