"""Grey values to binary or real pixels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from likely.datasets.errors import DataError

Binarize = Literal["stochastic"] | float | None


def convert_pixels(
    grey: np.ndarray, *, binarize: Binarize = None, dequantize: bool = False, seed: int = 0, top: int = 255
) -> np.ndarray:
    """Integer grey values 0..top as float32 pixels.

    Parameters
    ----------
    binarize : "stochastic" draws each pixel once, one with probability grey / top; a number t in (0, 1] is a threshold,
        grey / top >= t; None keeps real pixels grey / top.
    dequantize : real pixels become (grey + u) / (top + 1) with u uniform on [0, 1). Their density is then bounded, and
        its mean log is a lower bound on that of the integers plus log(top + 1) a pixel (Theis et al. 2016).
    seed : of the draws.

    Examples
    --------
    >>> convert_pixels(np.array([[0, 127, 128, 255]], np.uint8), binarize=0.5)
    array([[0., 0., 1., 1.]], dtype=float32)
    """
    check_binarize(binarize)
    if binarize is not None and dequantize:
        raise DataError("dequantize=True is for real pixels: give binarize=None with it.")
    if binarize == "stochastic":
        # r uniform on 0..top-1 is below grey with probability grey / top exactly.
        draws = np.random.RandomState(seed).randint(0, top, size=grey.shape, dtype=np.uint8)
        return (draws < grey).astype(np.float32)
    if binarize is not None:
        return (grey >= binarize * top).astype(np.float32)
    if dequantize:
        noise = np.random.RandomState(seed).random_sample(grey.shape).astype(np.float32)
        # The sum may round up to the next integer, which belongs to the next grey value's cell: a null set.
        return (grey + noise) / np.float32(top + 1)
    return grey / np.float32(top)


def check_binarize(binarize: Binarize) -> None:
    """Refuse what is no way of making pixels binary."""
    if binarize is None or binarize == "stochastic":
        return
    number = isinstance(binarize, int | float) and not isinstance(binarize, bool)
    if not number or not 0 < float(binarize) <= 1:
        raise DataError(f'binarize must be "stochastic", a threshold in (0, 1] or None, got {binarize!r}.')
