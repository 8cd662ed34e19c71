"""Greedy layers: each is the machine or autoencoder that its rows teach, and reads rows as it should."""

import jax
import numpy as np
import pytest

import likely
from likely.columns import Columns
from likely.contract.model import FitRun
from likely.models.energy.harmonium.rbm import RBM
from tests.contracts.table import binary_rows, mixed_frame

SETTINGS = {"n_epochs": 2, "batch_size": 20, "random_state": 3}


@pytest.fixture(scope="module")
def stack():
    return likely.pretrain(binary_rows(0, 80), layers=(5, 4), **SETTINGS)


def test_the_lowest_layer_is_the_rbm_of_that_seed(stack):
    """Bit for bit: the weights of `RBM.fit` with the same settings; and the same probabilities."""
    machine = RBM(5, objective="cd", n_chains=1, **SETTINGS).fit(binary_rows(0, 80))
    layer, rows = stack.encoder.layers[0], binary_rows(1, 30)
    np.testing.assert_array_equal(layer.weights, machine.params_.weights)
    lowest = likely.pretrain(binary_rows(0, 80), layers=(5,), **SETTINGS)
    np.testing.assert_allclose(lowest.transform(rows), machine.transform(rows), rtol=1e-5)


def test_the_next_layer_is_the_rbm_of_the_lower_ones_probabilities(stack):
    lowest = likely.pretrain(binary_rows(0, 80), layers=(5,), **SETTINGS)
    np.testing.assert_array_equal(lowest.encoder.layers[0].weights, stack.encoder.layers[0].weights)
    machine = RBM(4, objective="cd", n_chains=1, **SETTINGS)
    machine.columns_ = Columns(("binary",) * 5, (1,) * 5)
    params = machine._fit(lowest.transform(binary_rows(0, 80)), jax.random.fold_in(jax.random.key(3), 1), FitRun())
    np.testing.assert_array_equal(stack.encoder.layers[1].weights, params.weights)
    np.testing.assert_array_equal(stack.encoder.layers[1].bias, params.hidden_bias)


def test_transform_is_the_way_up(stack):
    rows = binary_rows(1, 30)
    state = rows - np.asarray(stack.encoder.offset)
    for layer in stack.encoder.layers:
        state = 1 / (1 + np.exp(-(state @ np.asarray(layer.weights) + np.asarray(layer.bias))))
    np.testing.assert_allclose(stack.transform(rows), state, rtol=1e-5)
    assert repr(stack) == "PretrainedStack(6-5-4, 'rbm')"
    assert stack.layers == (5, 4)
    assert [len(history["loss"]) for history in stack.histories] == [2, 2]


@pytest.mark.parametrize("kind", ["rbm", "autoencoder"])
def test_any_columns_and_holes(kind):
    frame = mixed_frame(0, 80, holes=0.0 if kind == "rbm" else 0.2)  # the RBM has its own tests of holes
    stack = likely.pretrain(frame, layers=(4,), kind=kind, **SETTINGS)
    codes = stack.transform(mixed_frame(0, 80))
    assert codes.shape == (80, 4)
    assert ((codes > 0) & (codes < 1)).all()
    np.testing.assert_array_equal(stack.transform(mixed_frame(0, 80)[:7]), codes[:7])


def test_an_autoencoder_learns_to_fill_in():
    """Two groups of rows tell each other's cells: the loss falls below that of independent columns."""
    rows = binary_rows(0, 400)
    stack = likely.pretrain(rows, (8,), kind="autoencoder", n_epochs=40, learning_rate=0.02, random_state=0)
    alone = -likely.Independent().fit(rows).score(rows)
    assert stack.histories[0]["loss"][-1] < alone - 0.3


def test_probabilities_are_read_as_they_are():
    grey = np.random.default_rng(0).random((80, 6))
    stack = likely.pretrain(grey, (5,), as_probabilities=True, **SETTINGS)
    assert set(stack.table.columns.kinds) == {"binary"}
    np.testing.assert_array_equal(stack.table.rows(grey), grey.astype(np.float32))
    with pytest.raises(likely.SchemaError, match=r"column 'x2' holds 1\.5 in row 1: divide"):
        stack.transform(np.where(np.arange(6) == 2, np.array([[0.5], [1.5]]), grey[:2]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": (5, 0)}, r"`layers` must hold the sizes of one hidden layer or more.*got \(5, 0\)"),
        ({"layers": ()}, "one hidden layer or more"),
        ({"layers": 5}, "`layers` must hold"),
        ({"kind": "vae"}, "`kind` must be one of rbm, autoencoder, got 'vae'"),
        ({"corruption": 1.0}, "`corruption` must be a share"),
        ({"n_epochs": 0}, "`n_epochs` must be a whole number of at least 1"),
        ({"learning_rate": -1.0}, "`learning_rate` must be a number above 0"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(settings, message, monkeypatch):
    monkeypatch.setattr(likely.Schema, "infer", None)  # nothing is read
    with pytest.raises(ValueError, match=message):
        likely.pretrain(binary_rows(0, 20), **({"layers": (5,)} | settings))


def test_an_empty_column_is_refused():
    rows = binary_rows(0, 20)
    rows[:, 3] = np.nan
    with pytest.raises(likely.SchemaError, match="column 'x3' has no observed cell"):
        likely.pretrain(rows, (5,))
