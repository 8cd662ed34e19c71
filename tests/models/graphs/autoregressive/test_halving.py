"""Halved classes against products written out, and chains of them against sums over all rows."""

import numpy as np
import pytest
from scipy import stats

import likely
from likely.models.graphs.autoregressive import halving
from likely.schema import Column, Schema
from tests.models.graphs.autoregressive.chain_checks import all_states, check_every_marginal, check_sums_to_one

SIZES = (5, 3, 2)


def _logits(level: int, firsts: np.ndarray) -> np.ndarray:
    return np.sin(3.0 * level + firsts)


@pytest.mark.parametrize("n_classes", range(2, 10))
def test_probabilities_are_products_of_the_shares_of_halves(n_classes):
    """The oracle halves lists of classes, one by one."""
    n_rows = 7.0

    def product(own: list[int], level: int, width: int) -> dict[int, float]:
        if width == 1:
            return {own[0]: 1.0}
        lower, upper = ([k for k in own if (k - own[0] < width // 2) == first] for first in (True, False))
        if not upper:
            return product(lower, level + 1, width // 2)
        learned = 1 / (1 + np.exp(-np.sin(3.0 * level + own[0])))
        share = (n_rows * learned + len(upper) / len(own)) / (n_rows + 1)
        below, above = product(lower, level + 1, width // 2), product(upper, level + 1, width // 2)
        return {k: (1 - share) * p for k, p in below.items()} | {k: share * p for k, p in above.items()}

    classes = np.arange(n_classes)
    found = halving.log_prob(classes, n_classes, n_rows, _logits)
    exact = product(classes.tolist(), 0, 1 << halving.n_levels(n_classes))
    np.testing.assert_allclose(np.exp(found), [exact[k] for k in classes], rtol=1e-12)
    # Draws are the quantiles of these probabilities; beside the steps of their sum, so that rounding decides nothing.
    steps = np.append(0.0, np.cumsum(np.exp(found)))
    middle, near = (steps[:-1] + steps[1:]) / 2, np.concatenate([steps[:-1] + 1e-9, steps[1:] - 1e-9])
    np.testing.assert_array_equal(halving.draw(middle, n_classes, n_rows, _logits), classes)
    np.testing.assert_array_equal(halving.draw(near, n_classes, n_rows, _logits), np.tile(classes, 2))
    assert halving.draw(np.array([1 - 1e-16]), n_classes, n_rows, _logits)[0] == n_classes - 1


def test_boosted_ordered_columns_sum_to_one_with_any_holes():
    rng = np.random.default_rng(0)
    first = rng.binomial(4, 0.5, 600)
    rows = np.column_stack([first, np.clip(first - rng.integers(0, 3, 600), 0, 2), rng.integers(0, 2, 600)]).astype(
        float
    )
    rows[:, 2] = np.where(rng.random(600) < 0.8, first > 2, rows[:, 2])
    rows[rng.random(rows.shape) < 0.1] = np.nan
    schema = Schema(tuple(Column(f"x{i}", "ordinal", tuple(range(n))) for i, n in enumerate(SIZES)))
    options = {"n_chains": 2, "n_rounds": 50, "schema": schema, "random_state": 0}
    model = likely.Autoregressive("boosting", **options).fit(rows)
    states = all_states(SIZES)
    check_sums_to_one(model, states)
    check_every_marginal(model, states)
    whole = rows[~np.isnan(rows).any(axis=1)]
    gained = model.evidence(whole) - likely.Independent(schema=schema).fit(rows).evidence(whole)
    assert gained.interval()[0] > 0.1
    # What is learned of each column alone is how often its values were seen, as far as so many rows tell.
    joint = np.exp(model.score_samples(states))
    for j, size in enumerate(SIZES):
        learned = np.array([joint[states[:, j] == k].sum() for k in range(size)])
        seen = rows[~np.isnan(rows[:, j]), j]
        off = np.bincount(seen.astype(int), minlength=size) - len(seen) * learned
        assert (off**2 / (len(seen) * learned)).sum() < stats.chi2.isf(1e-3, size - 1)
    drawn = model.sample(4000, random_state=1)
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert ((counts - 4000 * joint) ** 2 / (4000 * joint)).sum() < stats.chi2.isf(1e-5, len(states) - 1)
