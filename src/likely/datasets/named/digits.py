"""scikit-learn's handwritten digits: 1,797 pictures of 8×8 pixels with grey values 0..16, built in.

1,000 / 297 / 500 rows after one fixed shuffle.
"""

from __future__ import annotations

import numpy as np

from likely.datasets.dataset import Dataset, Split, permutation
from likely.datasets.formats.pixels import convert_pixels
from likely.schema import Schema

_SIZES = (1000, 297, 500)
_SHUFFLE_SEED = 0
_SHAPE = (8, 8)


def load_digits() -> Dataset:
    """Binary digits: a pixel is one where its grey value is at least half of the range, 8 of 16."""
    grey, labels, split = _read()
    train, valid, test = split.take(convert_pixels(grey, binarize=0.5, top=16))
    return Dataset(train, valid, test, Schema.binary(64, _SHAPE), "digits", split.take_labels(labels))


def load_digits_gray(*, dequantize: bool = False, seed: int = 0) -> Dataset:
    """Real digits: the grey values divided by 16, so 17 values from 0 to 1.

    A density on so few values has no upper limit: a narrow peak on each is ever more likely. Models that may narrow
    without limit should be compared with `dequantize=True`, which spreads each value evenly over its cell.
    """
    grey, labels, split = _read()
    train, valid, test = split.take(convert_pixels(grey, dequantize=dequantize, seed=seed, top=16))
    return Dataset(train, valid, test, Schema.real(64, _SHAPE), "digits-gray", split.take_labels(labels))


def _read() -> tuple[np.ndarray, np.ndarray, Split]:
    from sklearn.datasets import load_digits as read  # It takes a second to import.

    bunch = read()
    order = permutation(len(bunch.data), _SHUFFLE_SEED)
    parts = np.split(order, np.cumsum(_SIZES)[:-1])
    return bunch.data.astype(np.uint8), bunch.target, Split(*parts)
