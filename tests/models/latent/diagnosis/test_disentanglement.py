"""Scores of disentanglement on codes whose answer is known, and on the shapes with known factors."""

import numpy as np
import pytest

import likely
from likely import beta_vae_score, mutual_information_gap
from likely.datasets.named.shapes import FACTORS, LEVELS, draw


@pytest.fixture(scope="module")
def factors():
    return np.stack(np.meshgrid(*map(np.arange, LEVELS), indexing="ij"), axis=-1).reshape(-1, len(LEVELS))


def turned(factors, seed):
    """The factors in coordinates that all of them share."""
    rotation = np.linalg.qr(np.random.RandomState(seed).normal(size=(5, 5)))[0]
    return (factors - factors.mean(axis=0)) / factors.std(axis=0) @ rotation


def test_a_code_for_each_factor_scores_one(factors, global_random_seed):
    codes = factors * [1.0, -2.0, 0.5, 3.0, 1.0] + 7
    assert mutual_information_gap(codes, factors) == pytest.approx(1)
    assert beta_vae_score(codes, factors, random_state=global_random_seed) > 0.99


def test_codes_that_share_the_factors_score_less(factors, global_random_seed):
    codes = turned(factors, global_random_seed)
    assert mutual_information_gap(codes, factors) < 0.3
    assert mutual_information_gap(np.hstack([factors, factors]), factors) == pytest.approx(0, abs=1e-12)


def test_codes_of_noise_are_at_chance(factors, global_random_seed):
    codes = np.random.RandomState(global_random_seed).normal(size=(len(factors), 5))
    assert mutual_information_gap(codes, factors) < 0.02
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
