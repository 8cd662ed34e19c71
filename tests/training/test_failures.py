"""Numbers that are not finite stop training at once, with the step, the cause, and the parameters from before."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.training import TrainingConfig, TrainingError, train
from tests.training.problems import bits

ROWS, KEY = np.arange(30, dtype=np.float32).reshape(-1, 1), jax.random.key(2)


def bowl(params):
    return jnp.sum((params["layers"][0] - 1) ** 2) + jnp.sum((params["bias"] - 2) ** 2)


def first():
    return {"layers": [jnp.zeros((2, 2))], "bias": jnp.full(2, 0.5)}


def broken_loss(params, batch, key, count):
    return jnp.where(count == 12, jnp.nan, 1.0) * bowl(params), (count + 1, {})


def broken_gradient(params, batch, key, count):
    """At step 13 the loss is what it should be, but a root is taken at 0 in one array."""
    zero = jnp.where(count == 12, 0.0, 1.0) * jnp.abs(params["bias"][0])
    return bowl(params) + 0.0 * jnp.sqrt(zero), (count + 1, {})


def huge_gradient(params, batch, key, count):
    return 0.01 * bowl(params) + jnp.where(count == 12, 1e38, 0.0) * params["bias"][0], (count + 1, {})


def run(objective, n_epochs=20, **options):
    config = TrainingConfig(n_epochs=n_epochs, batch_size=10, **{"optimizer": "sgd", "learning_rate": 0.1, **options})
    return train(first(), objective, ROWS, config=config, key=KEY, state=jnp.zeros((), jnp.int32))


def sound(params, batch, key, count):
    return bowl(params), (count + 1, {})


@pytest.mark.parametrize(
    ("objective", "cause", "array", "text"),
    [
        (broken_loss, "loss", None, r"step 13 \(epoch 5\): the loss is nan"),
        (broken_gradient, "gradient", "['bias']", r"step 13 \(epoch 5\): the gradient of \['bias'\] is not finite"),
    ],
)
def test_cause_and_parameters_from_before(objective, cause, array, text):
    with pytest.raises(TrainingError, match=text) as error:
        run(objective)
    assert (error.value.step, error.value.epoch) == (13, 5)
    assert (error.value.cause, error.value.array) == (cause, array)
    np.testing.assert_allclose(error.value.module["bias"], np.full(2, 2 - 1.5 * 0.8**12), rtol=1e-6)


def test_parameters_from_before_have_the_bits_of_an_unbroken_run():
    with pytest.raises(TrainingError) as error:
        run(broken_loss)

    def unbroken(params, batch, key, count):
        return jnp.where(count == 99, jnp.nan, 1.0) * bowl(params), (count + 1, {})

    assert bits(error.value.module) == bits(run(unbroken, n_epochs=4).module)


def test_update_that_overflows():
    with pytest.raises(TrainingError, match=r"step 13 .*the update makes \['bias'\] not finite") as error:
        run(huge_gradient, learning_rate=10.0)
    assert error.value.cause == "update"
    assert np.isfinite(error.value.module["bias"]).all()


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov", "adagrad", "rmsprop", "adam", "lbfgs"])
def test_every_optimiser_shows_a_gradient_that_is_not_finite(optimizer):
    with pytest.raises(TrainingError) as error:
        run(broken_gradient, optimizer=optimizer)
    assert error.value.step == 13
    assert error.value.cause == "gradient"


def test_clipping_does_not_hide_it():
    with pytest.raises(TrainingError) as error:
        run(broken_gradient, gradient_clip=1.0)
    assert (error.value.step, error.value.cause, error.value.array) == (13, "gradient", "['bias']")


def test_projection_does_not_hide_it():
    def clip(params):
        return jax.tree.map(lambda a: jnp.clip(jnp.nan_to_num(a), -5, 5), params)

    config = TrainingConfig(n_epochs=20, batch_size=10, optimizer="sgd", learning_rate=0.1)
    with pytest.raises(TrainingError) as error:
        train(first(), broken_gradient, ROWS, config=config, key=KEY, state=jnp.zeros((), jnp.int32), project=clip)
    assert error.value.step == 13


def test_projection_that_breaks():
    config = TrainingConfig(n_epochs=2, batch_size=10, optimizer="sgd", learning_rate=0.1)
    with pytest.raises(TrainingError, match="after the update") as error:
        train(
            first(),
            sound,
            ROWS,
            config=config,
            key=KEY,
            state=jnp.zeros((), jnp.int32),
            project=lambda params: jax.tree.map(lambda a: a / 0, params),
        )
    assert error.value.step == 1


def test_averaged_module_is_what_the_error_holds():
    with pytest.raises(TrainingError) as error:
        run(broken_loss, averaging=1.0)
    steps = 2 - 1.5 * 0.8 ** np.arange(1, 13)
    np.testing.assert_allclose(error.value.module["bias"], np.full(2, steps.mean()), rtol=1e-5)


def test_the_advice_names_a_remedy():
    with pytest.raises(TrainingError, match="learning rate"):
        run(broken_loss)
