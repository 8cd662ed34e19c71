"""Mutual information between columns: exact values, what chance gives, and who shares most."""

from __future__ import annotations

import numpy as np
import pytest

from likely.information.shared_information import SharedInformation

JOINT = np.array([[0.3, 0.1], [0.1, 0.5]])


def exact() -> float:
    return float(np.sum(JOINT * np.log(JOINT / JOINT.sum(1, keepdims=True) / JOINT.sum(0, keepdims=True))))


def bits(seed: int, n: int) -> np.ndarray:
    """Two columns of that distribution, and one that is independent of them."""
    rng = np.random.default_rng(seed)
    both = rng.choice(4, n, p=JOINT.ravel())
    return np.column_stack([both // 2, both % 2, rng.integers(0, 2, n)]).astype(float)


def check_within_errors(measure, seed: int) -> None:
    """Whether values are within 4.5 standard errors of the exact ones: a false alarm in 10^5 figures."""
    shared = measure(bits(seed, 4000), ["a", "b", "c"], ["binary"] * 3)
    for pair, truth in (((0, 1), exact()), ((0, 2), 0.0), ((1, 2), 0.0)):
        assert abs(shared.values[pair] - truth) < 4.5 * shared.stderr[pair]


def test_information_of_two_bits_is_the_exact_one_within_its_error(global_random_seed):
    check_within_errors(SharedInformation.of, global_random_seed)


@pytest.mark.parametrize(("shift", "share"), [(0.02, 1.0), (0.0, 0.01)])
def test_values_that_are_off_and_errors_that_are_too_small_would_be_seen(shift, share):
    def bold(*args):
        found = SharedInformation.of(*args)
        return SharedInformation(found.names, found.values + shift, found.stderr * share)

    with pytest.raises(AssertionError):
        check_within_errors(bold, 0)


def test_errors_are_those_of_repetition(global_random_seed):
    values, errors = [], []
    for number in range(60):
        shared = SharedInformation.of(bits(1000 * global_random_seed + number, 400), "abc", ["binary"] * 3)
        values.append([shared.values[0, 1], shared.values[0, 2]])
        errors.append([shared.stderr[0, 1], shared.stderr[0, 2]])
    # The deviation of 60 values is off by more than 1/√118 of itself, 4.5 times, once in 10^5; a χ² is wider by half.
    ratio = np.std(values, axis=0, ddof=1) / np.mean(errors, axis=0)
    assert (np.abs(np.log(ratio)) < 4.5 * 1.5 / np.sqrt(118)).all()


def test_the_pair_that_shares_most_comes_first_and_holes_are_left_out(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x = rng.normal(size=(3000, 3))
    rows = np.column_stack([x[:, 0], x[:, 0] + 0.3 * x[:, 1], x[:, 0] + 3 * x[:, 2]])
    rows[rng.random(rows.shape) < 0.2] = np.nan
    shared = SharedInformation.of(rows, ["a", "b", "c"], ["real"] * 3)
    assert shared.pairs()[0] == (0, 1)
    assert np.allclose(shared.values, shared.values.T)
    assert (np.diag(shared.strength) == 1).all()
    # Of Gaussian columns the strength is about the size of the correlation, less what bins lose.
    assert 0.8 < shared.strength[0, 1] <= 1 / np.sqrt(1.09) + 0.02
    assert 0 <= shared.share(0, 2) < shared.share(0, 1) <= 1


def test_columns_that_say_nothing_share_nothing():
    rows = np.column_stack([np.zeros(50), np.arange(50.0), np.full(50, np.nan)])
    shared = SharedInformation.of(rows, "abc", ["real"] * 3)
    assert shared.pairs() == []
    assert shared.share(0, 1) == 0
