"""Ways through a code, on a linear model whose decoded rows are known."""

import numpy as np
import pytest

import likely


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return likely.ProbabilisticPCA(2).fit(rng.normal(size=(100, 2)) @ rng.normal(size=(2, 4)) + 1)


def test_a_traverse_changes_one_number_of_the_code(model):
    row = np.array([[1.0, 2.0, 0.0, 1.0]])
    code, values = model.transform(row), np.array([-2.0, 0.0, 2.0])
    first, second = likely.traverse(model, row, values)
    np.testing.assert_allclose(first, model.inverse_transform(np.c_[values, np.repeat(code[0, 1], 3)]), rtol=1e-5)
    np.testing.assert_allclose(second, model.inverse_transform(np.c_[np.repeat(code[0, 0], 3), values]), rtol=1e-5)
    [only] = likely.traverse(model, row, values, components=[1])
    np.testing.assert_array_equal(only, second)


def test_interpolation_goes_from_one_row_to_the_other(model):
    first, last = np.array([[1.0, 2.0, 0.0, 1.0]]), np.array([[0.0, -1.0, 3.0, 1.0]])
    rows = likely.interpolate(model, first, last, n=5)
    np.testing.assert_allclose(rows[[0, -1]], model.denoise(np.vstack([first, last])), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.diff(rows, axis=0), np.repeat((rows[-1:] - rows[:1]) / 4, 4, axis=0), atol=1e-4)


def test_a_manifold_has_the_quantiles_of_a_normal(model):
    rows = likely.manifold(model, n=3)
    assert rows.shape == (9, 4)
    np.testing.assert_allclose(rows[4], model.inverse_transform(np.zeros((1, 2)))[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m, x: likely.traverse(m, x, [0.0]), "one row"),
        (lambda m, x: likely.traverse(m, x[:1], [0.0], components=[2]), r"0\.\.1, got 2"),
        (lambda m, x: likely.traverse(m, x[:1], []), "list of numbers"),
        (lambda m, x: likely.interpolate(m, x[:1], x[1:2], n=1), "at least 2"),
        (lambda m, x: likely.manifold(m, n=1), "at least 2"),
    ],
)
def test_bad_input_is_refused(model, call, text):
    with pytest.raises(ValueError, match=text):
        call(model, np.ones((2, 4)))


def test_a_manifold_needs_two_components(model):
    with pytest.raises(ValueError, match="ProbabilisticPCA has 1"):
        likely.manifold(likely.ProbabilisticPCA(1).fit(np.eye(4)))
