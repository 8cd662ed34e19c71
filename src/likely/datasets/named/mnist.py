"""MNIST, handwritten digits of 28×28 pixels: the grey original (IDX) and the fixed binarisation (amat).

The last 10,000 training rows are for validation, as in Larochelle and Murray (2011), whose binarisation the second is.
"""

from __future__ import annotations

import numpy as np

from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError
from likely.datasets.folder import find
from likely.datasets.formats.amat import read_binary_amat
from likely.datasets.formats.idx import read_idx
from likely.datasets.formats.pixels import Binarize, check_binarize, convert_pixels
from likely.schema import Schema

_SHAPE = (28, 28)
_N_VALID = 10_000

MNIST_FILES = tuple(
    f"mnist/{part}-{content}-ubyte" for part in ("train", "t10k") for content in ("images-idx3", "labels-idx1")
)
BINARIZED_FILES = tuple(f"binarized_mnist/binarized_mnist_{part}.amat" for part in ("train", "valid", "test"))


def load_mnist(*, binarize: Binarize = "stochastic", dequantize: bool = False, seed: int = 0) -> Dataset:
    """MNIST: 50,000 / 10,000 / 10,000 rows; binary by default, real in [0, 1] with `binarize=None`.

    The options are those of `likely.datasets.formats.pixels.convert_pixels`; the draws are made once, here.
    """
    check_binarize(binarize)
    images, labels = _read("train")
    test_images, test_labels = _read("t10k")
    if len(images) <= _N_VALID:
        raise DataError(f"MNIST's training images are {len(images):,}, more than {_N_VALID:,} are needed.")
    pixels = convert_pixels(images, binarize=binarize, dequantize=dequantize, seed=seed)
    test = convert_pixels(test_images, binarize=binarize, dequantize=dequantize, seed=seed + 1)
    schema = Schema.real(784, _SHAPE) if binarize is None else Schema.binary(784, _SHAPE)
    parts = {"train": labels[:-_N_VALID], "valid": labels[-_N_VALID:], "test": test_labels}
    return Dataset(pixels[:-_N_VALID], pixels[-_N_VALID:], test, schema, "mnist", parts)


def load_binarized_mnist() -> Dataset:
    """MNIST in its fixed binarisation: 50,000 / 10,000 / 10,000 rows, no labels."""
    paths = [find(file, "binarized-mnist") for file in BINARIZED_FILES]
    train, valid, test = (read_binary_amat(path, n_columns=784) for path in paths)
    return Dataset(train, valid, test, Schema.binary(784, _SHAPE), "binarized-mnist")


def _read(part: str) -> tuple[np.ndarray, np.ndarray]:
    image_path = find(f"mnist/{part}-images-idx3-ubyte", "mnist")
    label_path = find(f"mnist/{part}-labels-idx1-ubyte", "mnist")
    images, labels = read_idx(image_path), read_idx(label_path)
    if images.dtype != np.uint8 or images.shape[1:] != _SHAPE:
        raise DataError(f"{image_path} holds {images.dtype} of shape {images.shape}, needed are bytes of (n, 28, 28).")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{label_path} has labels of shape {labels.shape} for {len(images):,} images.")
    return images.reshape(len(images), -1), labels.astype(np.int64)
