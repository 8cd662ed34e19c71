import numpy as np
import pytest

from likely.datasets import DataError
from likely.datasets.formats.pixels import convert_pixels
from tests.datasets.checks import check_stochastic_binarisation

GREY = np.arange(256, dtype=np.uint8)[None]


def test_stochastic_binarisation_has_the_grey_value_as_probability(global_random_seed):
    check_stochastic_binarisation(
        lambda grey, seed: convert_pixels(grey, binarize="stochastic", seed=seed), global_random_seed
    )


def test_draws_are_those_of_the_seed():
    one, again, other = (convert_pixels(GREY, binarize="stochastic", seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_threshold():
    assert np.array_equal(convert_pixels(GREY, binarize=0.5)[0], np.arange(256) >= 127.5)
    assert np.array_equal(convert_pixels(GREY, binarize=1)[0], np.arange(256) == 255)
    assert np.array_equal(convert_pixels(np.arange(17)[None], binarize=0.5, top=16)[0], np.arange(17) >= 8)


def test_real_pixels():
    real = convert_pixels(GREY)
    assert real.dtype == np.float32
    np.testing.assert_allclose(real[0], np.arange(256) / 255, rtol=1e-6)


def test_dequantized_pixels_stay_in_their_cell(global_random_seed):
    spread = convert_pixels(np.tile(GREY, (500, 1)), dequantize=True, seed=global_random_seed).astype(np.float64)
    offset = spread * 256 - GREY
    assert offset.min() >= -1e-4
    assert offset.max() <= 1 + 1e-4
    # Mean of n uniform numbers: 1/2 with standard error 1/sqrt(12 n).
    assert abs(offset.mean() - 0.5) < 4.9 / np.sqrt(12 * offset.size)


@pytest.mark.parametrize("binarize", ["random", 0, 1.5, -0.5, True, float("nan")])
def test_bad_binarize(binarize):
    with pytest.raises(DataError, match='binarize must be "stochastic", a threshold'):
        convert_pixels(GREY, binarize=binarize)


def test_binary_pixels_cannot_be_dequantized():
    with pytest.raises(DataError, match="give binarize=None"):
        convert_pixels(GREY, binarize=0.5, dequantize=True)
