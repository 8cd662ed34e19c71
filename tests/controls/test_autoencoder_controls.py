"""The checks of autoencoders and convolutions fail where they should: each gets a wrong part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.nets import Convolution, TransposedConvolution
from likely.objectives.reconstruction import contraction_estimate, salt_and_pepper
from tests.models.latent.variational.autoencoder_checks import (
    check_contraction,
    check_eckart_young,
    check_shares,
    line_and_noise,
)
from tests.nets.convolution_checks import check_convolution, check_transposed


class Flipped(Convolution):
    """A true convolution, whose window is turned around, where a correlation is meant."""

    def __call__(self, x):
        return super().__call__(x[:, ::-1, ::-1])[:, ::-1, ::-1]


class Shifted(TransposedConvolution):
    """One pixel off."""

    def __call__(self, x, shape):
        return jnp.roll(super().__call__(x, shape), 1, axis=1)


def test_wrong_convolutions_are_caught(x64):
    with pytest.raises(AssertionError):
        check_convolution(Flipped, jax.random.key(0), (7, 6), 4, 2)
    with pytest.raises(AssertionError):
        check_transposed(Shifted, jax.random.key(0), (7, 6), 4, 2)


@pytest.mark.parametrize("components", [1, 3])
def test_projection_on_other_axes_is_caught(components):
    """Off by a hundredth of a right angle, or with axes that are not the leading ones."""
    rows = line_and_noise(0)
    centred = rows - rows.mean(axis=0)
    axes = np.linalg.svd(centred)[2]
    wrong = axes[[0, components]] + 0.016 * axes[[3, 4]]
    rebuilt = centred @ np.linalg.pinv(wrong) @ wrong + rows.mean(axis=0)
    with pytest.raises(AssertionError):
        check_eckart_young(rebuilt, rows, 2)


def probed_by_ones(key, encode, features):
    codes, pull = jax.vjp(encode, features)
    return (pull(jnp.ones_like(codes))[0] ** 2).sum(axis=1)


def probed_by_halves(key, encode, features):
    return contraction_estimate(key, encode, features) / 2


@pytest.mark.parametrize("wrong", [probed_by_ones, probed_by_halves])
def test_biased_contraction_is_caught(x64, wrong):
    with pytest.raises(AssertionError):
        check_contraction(wrong, 0)


@pytest.mark.parametrize("share", [1.1, 0.5])
def test_wrong_shares_of_salt_and_pepper_are_caught(share):
    with pytest.raises(AssertionError):
        check_shares(lambda key, x, extremes, own: salt_and_pepper(key, x, extremes, share * own), 0)
