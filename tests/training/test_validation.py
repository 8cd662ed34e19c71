"""Early stopping keeps the best, validation sees every row once and the same noise each time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.training import TrainingConfig, TrainingError, train
from tests.training.checks import check_best_is_kept, drifting
from tests.training.problems import bits, distance, drift

ROWS, KEY = np.zeros((1, 1), np.float32), jax.random.key(0)


@pytest.mark.parametrize("n_rows", [1, 255, 256, 600])
def test_the_best_is_kept_and_validation_is_the_mean_over_all_rows(n_rows):
    valid = np.linspace(0.0, 10.0, n_rows).reshape(-1, 1) if n_rows > 1 else np.array([[5.0]])
    result = drifting(valid)
    epochs = np.arange(1, 21)
    np.testing.assert_allclose(result.history["valid"], [np.mean((t - valid) ** 2) for t in epochs], rtol=1e-5)
    assert float(result.module[0]) == 5.0
    assert result.n_steps == 20
    assert not result.stopped


@pytest.mark.parametrize("patience", [1, 3])
def test_patience_counts_epochs_after_the_best(patience):
    check_best_is_kept(patience)


def test_validation_every_few_epochs_and_at_the_end():
    result = drifting(np.array([[8.0]]), n_epochs=11, validate_every=3)
    assert (np.flatnonzero(np.isfinite(result.history["valid"])) + 1).tolist() == [3, 6, 9, 11]
    assert float(result.module[0]) == 9.0
    assert drifting(np.array([[6.0]]), validate_every=2, patience=3).n_steps == 10


def test_averaged_parameters_are_validated_and_kept():
    result = drifting(np.array([[5.0]]), averaging=1.0)
    means = [np.mean(np.arange(1, t + 1)) for t in range(1, 21)]
    np.testing.assert_allclose(result.history["valid"], [(mean - 5) ** 2 for mean in means], rtol=1e-5, atol=1e-9)
    assert float(result.module[0]) == 5.0


def test_noise_of_validation_is_the_same_each_time():
    def noisy(params, batch, key):
        return 0 * params[0] + jax.random.normal(key, batch.weight.shape)

    curve = drifting(np.zeros((700, 1)), noisy).history["valid"]
    assert len(set(curve)) == 1
    assert abs(curve[0]) < 5 / 700**0.5


def test_validation_rows_are_streamed_when_they_are_many(tmp_path):
    rows = np.arange(1000, dtype=np.float32).reshape(-1, 1) / 100
    rows.tofile(tmp_path / "valid.bin")
    mapped = np.memmap(tmp_path / "valid.bin", np.float32, shape=rows.shape, mode="r")
    np.testing.assert_allclose(
        drifting(mapped, memory_budget=2000).history["valid"], drifting(rows).history["valid"], rtol=1e-5
    )


def test_padding_of_validation_may_be_anything():
    """A loss that is not finite on padding, which has weight 0, must not show."""

    def fragile(params, batch, key):
        return distance(params, batch, key) / batch.weight

    np.testing.assert_allclose(
        drifting(np.ones((300, 1)), fragile).history["valid"], drifting(np.ones((300, 1))).history["valid"]
    )


def test_infinite_validation_loss_is_no_error_but_nan_is():
    assert drifting(np.array([[5.0]]), lambda p, b, k: b.x[:, 0] * jnp.inf).history["valid"][0] == np.inf
    with pytest.raises(TrainingError, match="the validation loss is nan") as error:
        drifting(np.array([[5.0]]), lambda p, b, k: jnp.where(p[0] > 3, jnp.nan, b.x[:, 0]))
    assert error.value.epoch == 4
    assert float(error.value.module[0]) == 4.0


def test_validation_does_not_change_the_steps():
    alone = train(jnp.zeros(1), drift, ROWS, config=TrainingConfig(n_epochs=7, learning_rate=0.1), key=KEY).history[
        "loss"
    ]
    config = TrainingConfig(n_epochs=7, learning_rate=0.1)
    watched = train(jnp.zeros(1), drift, ROWS, config=config, key=KEY, validate=distance, valid_rows=ROWS)
    assert bits(np.array(watched.history["loss"])) == bits(np.array(alone))


def test_half_a_validation_is_refused():
    for options in ({"validate": distance}, {"valid_rows": ROWS}):
        with pytest.raises(ValueError, match="belong together"):
            train(jnp.zeros(1), drift, ROWS, config=TrainingConfig(), key=KEY, **options)
    with pytest.raises(ValueError, match="`patience` needs validation rows"):
        train(jnp.zeros(1), drift, ROWS, config=TrainingConfig(patience=3), key=KEY)
