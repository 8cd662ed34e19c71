"""Convolutions by patches against XLA's own, and the image networks made of them."""

import equinox as eqx
import jax
import numpy as np
import pytest

from likely.nets import Convolution, ImageDecoder, ImageEncoder, TransposedConvolution
from tests.nets.convolution_checks import check_convolution, check_transposed


@pytest.mark.parametrize(("size", "stride", "shape"), [(4, 2, (7, 6)), (3, 1, (5, 1))])
def test_convolution_is_xlas(x64, size, stride, shape, global_random_seed):
    check_convolution(Convolution, jax.random.key(global_random_seed), shape, size, stride)


@pytest.mark.parametrize(("size", "stride", "shape"), [(4, 2, (7, 6)), (3, 1, (5, 1)), (6, 3, (7, 2))])
def test_transposed_convolution_is_the_transpose_of_xlas(x64, size, stride, shape, global_random_seed):
    check_transposed(TransposedConvolution, jax.random.key(global_random_seed), shape, size, stride)


def test_window_that_the_stride_does_not_divide_is_refused():
    with pytest.raises(ValueError, match=r"`size` must be a multiple of `stride` \(2\), got 3"):
        TransposedConvolution(jax.random.key(0), 1, 1, size=3, stride=2)


@pytest.mark.parametrize("net", [ImageEncoder, ImageDecoder])
def test_image_networks_have_no_maxout(net):
    given = ((4, 4), 2) if net is ImageEncoder else (2, (4, 4))
    with pytest.raises(ValueError, match=r"of an image network must be one of absolute.*got 'maxout'"):
        net(jax.random.key(0), *given, channels=(1,), activation="maxout")


@eqx.filter_jit
def _there_and_back(key, rows):
    """Colour pictures with an odd side through an encoder and its mirror image, and what a shift does to codes."""
    there, back, shift_key = jax.random.split(key, 3)
    encoder = ImageEncoder(there, (7, 4, 3), 6, channels=(5,), hidden=(11,), activation="identity")
    codes = encoder(rows)
    shift = jax.random.normal(shift_key, (*rows.shape[:-1], encoder.n_first))
    by_shift = encoder(rows, shift) - codes, encoder.head(shift)
    return codes, ImageDecoder(back, 6, (7, 4, 3), channels=(5,), hidden=(11,))(codes), by_shift


def test_image_networks_take_rows_of_pixels_any_leading_axes_and_a_shift(x64):
    codes, rows, by_shift = _there_and_back(jax.random.key(0), jax.random.normal(jax.random.key(1), (2, 3, 84)))
    assert codes.shape == (2, 3, 6)
    assert rows.shape == (2, 3, 84)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(*by_shift, rtol=1e-10, atol=1e-12)  # these layers are linear, and their biases are 0
