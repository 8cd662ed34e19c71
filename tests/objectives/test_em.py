"""The EM driver: when it stops, what it reports, and that it compiles once."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from likely.objectives.em import run_em

pytestmark = pytest.mark.usefixtures("x64")


def halve_the_gap(params, target):
    """A step whose n-th objective is known: the gap halves, the objective is minus its square."""
    return params + (target - params) / 2, -((target - params) ** 2)


def run(step=halve_the_gap, start=0.0, target=1.0, **options):
    return run_em(step, jnp.asarray(start), jnp.asarray(target), **({"max_iter": 50, "tol": 1e-4} | options))


def test_stops_at_the_first_rise_below_tol():
    """The objective before step i is -4^-i, so the rise after it is 3·4^-(i+1): below 1e-4 first at i = 7."""
    result = run()
    assert int(result.n_iter) == 9
    assert bool(result.converged)
    np.testing.assert_allclose(result.objective[:9], -(4.0 ** -np.arange(9)))
    assert np.isnan(result.objective[9:]).all()
    np.testing.assert_allclose(result.params, 1 - 2.0**-9)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_stops_at_max_iter_and_says_that_it_did_not_converge(max_iter):
    result = run(max_iter=max_iter)
    assert int(result.n_iter) == max_iter
    assert not bool(result.converged)
    np.testing.assert_allclose(result.params, 1 - 2.0**-max_iter)


def test_limit_ends_earlier_with_the_same_steps():
    result = run(limit=jnp.asarray(3))
    assert int(result.n_iter) == 3
    np.testing.assert_array_equal(result.objective[:3], run().objective[:3])
    assert int(run(max_iter=4, limit=jnp.asarray(100)).n_iter) == 4


def test_tol_zero_stops_when_the_objective_stands_still_or_falls():
    assert int(run(start=1.0, tol=0.0).n_iter) == 50  # a rise of 0 is not below 0
    falling = run(lambda params, target: (params + 1, -params), tol=0.0)
    assert int(falling.n_iter) == 2


def test_a_nan_objective_is_no_convergence():
    result = run(lambda params, target: (params, params * jnp.nan), max_iter=4)
    assert int(result.n_iter) == 4
    assert not bool(result.converged)


def test_params_may_be_any_pytree():
    def step(params, data):
        better, value = halve_the_gap(params["a"], data)
        return {"a": better, "none": None, "name": params["name"]}, value.sum()

    result = run_em(step, {"a": jnp.zeros(2), "none": None, "name": "x"}, jnp.ones(2), max_iter=3, tol=0.0)
    np.testing.assert_allclose(result.params["a"], 1 - 2.0**-3)
    assert result.params["name"] == "x"


def test_compiles_once_for_new_data_of_one_shape():
    traces = []

    def step(params, target):
        traces.append(1)
        return halve_the_gap(params, target)

    run(step)
    first = len(traces)
    run(step, target=3.0)
    run(step, start=2.0)
    assert len(traces) == first
