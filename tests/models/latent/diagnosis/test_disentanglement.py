"""Scores of disentanglement on codes whose answer is known, and on the shapes with known factors."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

import likely
from likely import beta_vae_score, mutual_information_gap
from likely.datasets.named.shapes import FACTORS, LEVELS, draw
from likely.models.latent.diagnosis.disentanglement import Score


@pytest.fixture(scope="module")
def factors():
    return np.stack(np.meshgrid(*map(np.arange, LEVELS), indexing="ij"), axis=-1).reshape(-1, len(LEVELS))


def turned(factors, seed):
    """The factors in coordinates that all of them share."""
    rotation = np.linalg.qr(np.random.RandomState(seed).normal(size=(5, 5)))[0]
    return (factors - factors.mean(axis=0)) / factors.std(axis=0) @ rotation


def peer_gap(codes, factors):
    """By scikit-learn's mutual information."""
    binned = [np.digitize(code, np.linspace(code.min(), code.max(), 21)[1:-1]) for code in codes.T]
    told = np.sort([[mutual_info_score(factor, code) for code in binned] for factor in factors.T])
    return np.mean((told[:, -1] - told[:, -2]) / np.log(LEVELS))


def test_a_code_for_each_factor_scores_one(factors, global_random_seed):
    codes = factors * [1.0, -2.0, 0.5, 3.0, 1.0] + 7
    assert mutual_information_gap(codes, factors) == pytest.approx(1)
    assert beta_vae_score(codes, factors, random_state=global_random_seed) > 0.99


def test_codes_that_share_the_factors_score_less(factors, global_random_seed):
    codes = turned(factors, global_random_seed)
    assert mutual_information_gap(codes, factors) == pytest.approx(peer_gap(codes, factors), abs=1e-12)
    assert mutual_information_gap(codes, factors) < 1
    assert mutual_information_gap(np.hstack([factors, factors]), factors) == pytest.approx(0, abs=1e-12)


def test_codes_of_noise_are_at_chance(factors, global_random_seed):
    codes = np.random.RandomState(global_random_seed).normal(size=(len(factors), 5))
    # 2n times the information between n values that share none is a chi-square of 19 (levels - 1) degrees of freedom,
    # or less where a bin is empty. A factor's gap is the largest of five of them less the second, whose tail is
    # exponential: the mean of five gaps is eight deviations above its own once in a million.
    told = [np.sort(np.random.default_rng(0).chisquare(19 * (n - 1), (20_000, 5))) for n in LEVELS]
    gaps = [(t[:, -1] - t[:, -2]) / (2 * len(factors) * np.log(n)) for t, n in zip(told, LEVELS, strict=True)]
    assert mutual_information_gap(codes, factors) < np.mean(gaps) + 8 * np.std(gaps) / np.sqrt(len(LEVELS))
    # 500 points to judge by, 5 factors: chance is 0.2, with a standard error of 0.018
    assert abs(beta_vae_score(codes, factors, random_state=global_random_seed) - 0.2) < 5 * 0.018


def test_pairs_that_share_nothing_would_be_caught(factors, global_random_seed, monkeypatch):
    """A planted bug: pairs drawn at random. A perfect code must then score no better than chance."""
    from likely.models.latent.diagnosis import disentanglement

    def unrelated(rng, codes, factor, n_pairs):
        first, second = rng.integers(len(codes), size=(2, n_pairs))
        return np.abs(codes[first] - codes[second]).mean(axis=0)

    monkeypatch.setattr(disentanglement, "_difference", unrelated)
    assert beta_vae_score(factors.astype(float), factors, random_state=global_random_seed) < 0.4


def drawn(random, n):
    """Codes that share two factors, with noise."""
    factors = random.randint(4, size=(n, 2))
    return factors @ [[1.0, -0.5], [0.5, 1.0]] + 0.5 * random.normal(size=(n, 2)), factors


def check_gap_over_draws(gap, seed, n_times=100):
    """The spread over draws of the rows is the stated error; less its stated bias the mean is that of many rows.

    A deviation from 100 values has a relative error of 7%: five of those, and a tenth for the delta method's first
    order at 1000 rows. Half of the bias may be of second order.
    """
    random = np.random.RandomState(seed)
    many = gap(*drawn(random, 100_000))
    found = [gap(*drawn(random, 1000)) for _ in range(n_times)]
    spread, stated = np.std(found, ddof=1), np.mean([one.stderr for one in found])
    assert 1 / 1.45 < stated / spread < 1.45
    bias = np.mean([one.bias for one in found])
    error = np.hypot(spread / np.sqrt(n_times), many.stderr)
    assert abs(np.mean(found) - many - bias) < 5 * error + abs(bias) / 2


def test_error_and_bias_of_the_gap_are_those_over_draws(global_random_seed):
    check_gap_over_draws(mutual_information_gap, global_random_seed)


def test_wrong_errors_of_the_gap_are_caught(global_random_seed):
    """Planted bugs: an error of twice the size, and a gap with a bias that it does not state."""

    def too_large(codes, factors):
        right = mutual_information_gap(codes, factors)
        return Score(right, stderr=2 * right.stderr, bias=right.bias, method="")

    def biased(codes, factors):
        right = mutual_information_gap(codes, factors)
        return Score(right + 20 / len(codes), stderr=right.stderr, bias=right.bias, method="")

    for wrong in (too_large, biased):
        with pytest.raises(AssertionError):
            check_gap_over_draws(wrong, global_random_seed)


def test_error_of_the_classifiers_score_is_its_spread_over_seeds(global_random_seed):
    codes, factors = drawn(np.random.RandomState(global_random_seed), 1000)
    found = [beta_vae_score(codes, factors, n_points=400, n_pairs=4, random_state=seed) for seed in range(60)]
    # Five relative errors of a deviation from 60 values, and a fifth for what the classifiers' own halves add.
    assert 1 / 1.65 < np.mean([one.stderr for one in found]) / np.std(found, ddof=1) < 1.65
    assert str(found[0]).startswith(f"{float(found[0]):.3f} ± {found[0].stderr:.3f} (estimate, 200 points of 4 pairs")
    again = pickle.loads(pickle.dumps(found[0]))
    assert (again, again.stderr, again.method) == (found[0], found[0].stderr, found[0].method)


def test_scores_from_too_little_give_a_warning():
    codes, factors = drawn(np.random.RandomState(0), 500)
    with pytest.warns(likely.EvidenceWarning, match=r"raise `n_points` from 12 to about"):
        beta_vae_score(codes, factors, n_points=12, n_pairs=1, random_state=0)


@pytest.mark.parametrize(("codes", "text"), [(np.ones((3, 1)), "two codes"), (np.ones((4, 2)), "same rows")])
def test_bad_codes_are_refused(codes, text):
    with pytest.raises(ValueError, match=text):
        mutual_information_gap(codes, np.arange(6).reshape(3, 2))


def test_shapes_are_every_combination_once():
    data = likely.datasets.load("shapes")
    labels = np.concatenate([data.labels[part] for part in ("train", "valid", "test")])
    assert len(np.unique(labels, axis=0)) == len(labels) == np.prod(LEVELS)
    assert len(FACTORS) == labels.shape[1]
    np.testing.assert_array_equal(data.test[0].reshape(16, 16), draw(*data.labels["test"][0].tolist()))
    pictures = np.concatenate([data.train, data.valid, data.test])
    assert len(np.unique(pictures, axis=0)) == len(pictures)
    edges = pictures.reshape(-1, 16, 16)
    assert not edges[:, [0, -1]].any()  # nothing is cut off
    assert not edges[:, :, [0, -1]].any()
