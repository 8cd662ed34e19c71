"""Seq2Seq, SequenceLabeller, SequenceClassifier and NeuralTuringMachine: oracles, what they learn, files, errors."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import likely
from likely.contract.sequence_predictor import side_by_side
from likely.datasets.named.sequence_tasks import copy_task, reversal_task
from likely.models.language.pairs.seq2seq_network import seq2seq_losses
from tests.models.language.pairs.sequence_checks import (
    check_attention,
    check_normalised,
    check_reader,
    small_network,
)

OPTIONS = {"n_embedding": 4, "batch_size": 50, "learning_rate": 0.02, "random_state": 0}
TASKS = {
    "Seq2Seq": (
        {"n_hidden": 16, "cell": "rnn", "n_epochs": 40, **OPTIONS},
        reversal_task(150, lengths=(1, 4), letters="ab", seed=0),
    ),
    "SequenceLabeller": (
        {"n_hidden": 8, "cell": "rnn", "n_epochs": 30, **OPTIONS},
        (X := reversal_task(150, lengths=(1, 4), letters="ab", seed=0)[0], [x[1:] + "." for x in X]),
    ),
    "SequenceClassifier": (
        {"n_hidden": 8, "cell": "tree", "n_epochs": 60, **OPTIONS},
        (X, [int(x.count("a") > x.count("b")) for x in X]),
    ),
    "NeuralTuringMachine": (
        {"n_slots": 6, "width": 4, "n_hidden": 12, "n_epochs": 40, "learning_rate": 0.03, "random_state": 0},
        copy_task(96, lengths=(1, 2), n_bits=2, seed=0),
    ),
}
NAMES = list(TASKS)


@pytest.fixture(scope="module")
def fitted():
    """Models by name, fitted when first asked for."""
    known = {}

    def of(name):
        if name not in known:
            options, (X, y) = TASKS[name]
            known[name] = getattr(likely, name)(**options).fit(X, y)
        return known[name]

    return of


@pytest.fixture
def double_machine(fitted):
    """The Turing machine in double precision, in which what should be equal is so to many digits."""
    machine = fitted("NeuralTuringMachine")  # fitted before double precision is on
    with jax.enable_x64(True):
        other = copy.copy(machine)
        other.params_ = jax.tree.map(lambda array: jnp.asarray(array, jnp.float64), machine.params_)
        yield other


@pytest.mark.usefixtures("x64")
def test_a_reader_reads_padded_rows_as_each_alone():
    check_reader(jax.jit(lambda reader, tokens: reader(tokens)), small_network().reader)


@pytest.mark.usefixtures("x64")
def test_attention_is_additive():
    check_attention(jax.jit(lambda own, q, h, there: own.weights(q, own.places(h), there)), small_network().attention)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("attention", [True, False])
def test_targets_sum_to_one(attention):
    check_normalised(jax.jit(seq2seq_losses), small_network(attention))


@pytest.mark.parametrize("name", NAMES)
def test_learns(name, fitted):
    X, y = TASKS[name][1]
    model = fitted(name)
    assert model.score(X, y) > 0.95
    assert model.history_["loss"][-1] < model.history_["loss"][0] / 3


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_is_the_same_to_the_bit(name, fitted, tmp_path):
    X, y = TASKS[name][1]
    model = fitted(name)
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.log_prob(X[:9], y[:9]), model.log_prob(X[:9], y[:9]))
    assert again.get_params() == model.get_params()
    assert str(again.predict(X[:3])) == str(model.predict(X[:3]))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_alone_is_what_it_is_among_others(name, fitted):
    X, y = TASKS[name][1]
    model = fitted(name)
    together = model.log_prob(X[:5], y[:5])
    for row in range(5):
        np.testing.assert_array_equal(model.log_prob(X[row : row + 1], y[row : row + 1])[0], together[row])
    assert (together <= 0).all()


@pytest.mark.parametrize("name", ["Seq2Seq", "SequenceClassifier"])
def test_an_interrupted_fit_goes_on_with_the_same_bits(name, fitted, tmp_path):
    options, (X, y) = TASKS[name]
    path = tmp_path / "run.checkpoint"
    getattr(likely, name)(**options).fit(X, y, checkpoint=likely.Checkpoint(path, every_steps=50))
    resumed = clone(fitted(name)).fit(X, y, resume=path)
    jax.tree.map(np.testing.assert_array_equal, resumed.params_, fitted(name).params_)


def test_greedy_decoding_takes_the_likeliest_token(fitted):
    model = fitted("Seq2Seq")
    sources = jnp.array([[1, 2, 2, 3, -1], [2, 1, 3, -1, -1]])
    chosen = np.asarray(jax.jit(lambda n, s: n.decode(s, 4))(model.params_, sources))
    log_probs = np.asarray(jax.jit(lambda n, s, t: n.teach(s, t)[0])(model.params_, sources, jnp.asarray(chosen)))
    np.testing.assert_array_equal(log_probs.argmax(axis=2), chosen)


def test_attention_maps_have_a_row_for_each_token_and_its_end(fitted):
    weights = fitted("Seq2Seq").attention_map("abb", "bba")
    assert weights.shape == (4, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=4 * np.finfo(np.float32).eps)  # an ulp for each of four


def test_without_attention_there_is_no_map(fitted):
    model = clone(fitted("Seq2Seq")).set_params(attention=False)
    model.params_ = fitted("Seq2Seq").params_
    with pytest.raises(ValueError, match="no attention"):
        model.attention_map("a", "a")


def test_a_machine_s_trajectory_is_its_prediction(double_machine):
    model, x = double_machine, TASKS["NeuralTuringMachine"][1][0][0]
    path = model.trajectory(x)
    t = 2 * len(x) + 1
    assert path.memory.shape == (t, 6, 4)
    np.testing.assert_allclose(path.outputs[-len(x) :], model.predict_proba([x])[0], rtol=1e-12)
    for weights in (path.reading, path.writing):
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-13)
    assert path.inputs[:, -1].tolist() == [0] * len(x) + [1] + [0] * len(x)


def test_log_prob_of_bits_is_that_of_the_probabilities(double_machine):
    model, (X, y) = double_machine, TASKS["NeuralTuringMachine"][1]
    wanted = [np.log(np.where(b, p, 1 - p)).sum() for p, b in zip(model.predict_proba(X[:5]), y[:5], strict=True)]
    np.testing.assert_allclose(model.log_prob(X[:5], y[:5]), wanted, rtol=1e-10)


def test_unknown_tokens_are_read_and_unknown_targets_refused(fitted):
    model = fitted("SequenceLabeller")
    assert len(model.predict(["azb"])[0]) == 3
    with pytest.raises(ValueError, match="holds 'z', which no target had"):
        model.log_prob(["ab"], ["bz"])


def test_rows_hold_padded_sequences_side_by_side():
    rows = side_by_side(([np.array([1, 2]), np.array([3])], [np.ones((1, 2)), np.zeros((2, 2))]), (2, 2))
    assert rows.tolist() == [[1, 2, 1, 1, -1, -1], [3, -1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("name", "X", "y", "text"),
    [
        ("Seq2Seq", ["ab"], ["a", "b"], "X has 1 sequences and y has 2"),
        ("Seq2Seq", "ab", ["a"], "must be a list of sequences"),
        ("Seq2Seq", [["a", None]], ["a"], "holds None"),
        ("Seq2Seq", ["ab"], [""], "has no tokens"),
        ("SequenceLabeller", ["ab"], ["a"], "2 tokens and 1 labels"),
        ("SequenceLabeller", ["ab", ""], ["ab", ""], "sequence 1 of X is empty"),
        ("SequenceLabeller", [["a", 1]], [["x", "y"]], "mixes strings and numbers"),
        ("SequenceClassifier", ["ab", "b"], [1, 1], "at least two classes"),
        ("NeuralTuringMachine", [[[0, 2]]], [[[0, 1]]], "must hold bits"),
        ("NeuralTuringMachine", [[[0, 1]], [[1]]], [[[0]], [[1]]], r"a matrix \(steps, 2\)"),
    ],
)
def test_bad_sequences_are_refused(name, X, y, text):
    with pytest.raises(ValueError, match=text):
        getattr(likely, name)().fit(X, y)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="n_hidden"):
        likely.Seq2Seq(0).fit(["a"], ["b"])
    with pytest.raises(ValueError, match="patience"):
        likely.Seq2Seq(patience=2).fit(["a"], ["b"])
