"""Convolution of pictures in three ways: directly, as patches and one matrix product, and by Fourier transforms.

What networks call a convolution slides the kernel without turning it round, a cross-correlation:
(x ⋆ k)[i, j] = Σ_{u, v, c} x[i + u, j + v, c] k[u, v, c]. The convolution proper, (x ∗ k)[i, j] = Σ x[i − u, j − v]
k[u, v], is the correlation with the kernel turned by half a circle (`turned`), commutes, and becomes a product under
Fourier transforms. Either is a linear map, whose matrix (`toeplitz`) has one number along each diagonal.

Cost, for n pictures with N padded cells, p places, kernels of K cells, c channels in and o out: 2 n p K c o operations
directly and as patches, which also take n p K c numbers of memory; 5 N log2(N) (n c + c o + n o) + 4 n N c o by
Fourier transforms, whatever K and the stride are.
"""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from scipy.fft import next_fast_len

from likely.nets.windows import Padding, margins, n_places, surrounded, views

Method = Literal["auto", "direct", "patches", "fft"]
# Where one way overtakes another, forward and backward together, on two cores: `make bench BENCH=convolution`.
_CELLS_FOR_FOURIER, _CELLS_OF_MANY_CHANNELS, _MANY_CHANNELS, _LARGEST_PATCH = 49, 20, 16, 100


def correlate(
    x: Float[Array, "n h w c"],
    kernel: Float[Array, "u v c o"],
    *,
    stride: int = 1,
    padding: Padding = "same",
    method: Method = "auto",
) -> Float[Array, "n a b o"]:
    """The kernel slid over the pictures as it is.

    Parameters
    ----------
    stride, padding : see `likely.nets.windows`.
    method : "direct", "patches" or "fft", which agree up to rounding; "auto" takes the one that `fastest` names.

    Examples
    --------
    >>> x, kernel = jnp.arange(4.0).reshape(1, 1, 4, 1), jnp.array([1.0, 10.0]).reshape(1, 2, 1, 1)
    >>> correlate(x, kernel, padding="valid").ravel().tolist()
    [10.0, 21.0, 32.0]
    """
    if x.shape[-1] != kernel.shape[2]:
        raise ValueError(f"the kernel reads {kernel.shape[2]} channels, the pictures have {x.shape[-1]}.")
    sizes = (kernel.shape[0], kernel.shape[1])
    for side, size in zip(x.shape[1:3], sizes, strict=True):
        n_places(side, size, stride, padding)  # refuses windows that do not fit
    x = surrounded(x, sizes, stride, padding)
    if method == "auto":
        method = fastest(kernel.shape, stride)
    if method == "fft":
        return _by_fourier(x, kernel)[:, ::stride, ::stride]
    if method == "patches":
        return jnp.concatenate(views(x, sizes, stride), axis=-1) @ kernel.reshape(-1, kernel.shape[3])
    if method == "direct":
        return lax.conv_general_dilated(
            x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    raise ValueError(f'`method` must be "auto", "direct", "patches" or "fft", got {method!r}.')


def convolve(
    x: Float[Array, "n h w c"],
    kernel: Float[Array, "u v c o"],
    *,
    stride: int = 1,
    padding: Padding = "full",
    method: Method = "auto",
) -> Float[Array, "n a b o"]:
    """The convolution proper: the correlation with the kernel reversed along both axes."""
    return correlate(x, turned(kernel), stride=stride, padding=padding, method=method)


def turned(kernel: Float[Array, "u v c o"]) -> Float[Array, "u v c o"]:
    """A kernel turned by half a circle."""
    return kernel[::-1, ::-1]


def fastest(kernel: tuple[int, ...], stride: int = 1) -> Method:
    """The quickest way for kernels of a shape (u, v, c, o), as `benchmarks/convolution.py` found.

    The more of the kernel's cells meet a cell of the picture, the better a Fourier transform pays, which does not care
    how many they are. Patches are quick while they are small, a hundred numbers or so.

    >>> fastest((3, 3, 3, 16)), fastest((3, 3, 32, 32)), fastest((9, 9, 3, 16))
    ('patches', 'direct', 'fft')
    """
    cells = kernel[0] * kernel[1]
    if cells >= (_CELLS_FOR_FOURIER if kernel[2] < _MANY_CHANNELS else _CELLS_OF_MANY_CHANNELS) * stride**2:
        return "fft"
    return "patches" if cells * kernel[2] <= _LARGEST_PATCH else "direct"


def toeplitz(kernel: np.ndarray, shape: tuple[int, int], *, stride: int = 1, padding: Padding = "same") -> np.ndarray:
    """The matrix of `correlate`: rows are the places' outputs (a, b, o), columns the cells (h, w, c) of one picture.

    Examples
    --------
    In one dimension every diagonal has one number:

    >>> toeplitz(np.array([1, 2, 3]).reshape(1, 3, 1, 1), (1, 4), padding="same")
    array([[2, 3, 0, 0],
           [1, 2, 3, 0],
           [0, 1, 2, 3],
           [0, 0, 1, 2]])
    """
    kernel = np.asarray(kernel)
    which = [_offsets(side, size, stride, padding) for side, size in zip(shape, kernel.shape[:2], strict=True)]
    (i, y, u), (j, x, v) = which
    matrix = np.zeros((max(i) + 1, max(j) + 1, kernel.shape[3], *shape, kernel.shape[2]), kernel.dtype)
    # Each place and cell of the window meet one cell of the picture, for the rows and for the columns apart.
    matrix[i[:, None], j[None, :], :, y[:, None], x[None, :]] = kernel[u[:, None], v[None, :]].swapaxes(2, 3)
    return matrix.reshape(-1, shape[0] * shape[1] * kernel.shape[2])


def _offsets(side: int, size: int, stride: int, padding: Padding) -> np.ndarray:
    """(3, m) place, cell of the picture and cell of the window, of all that meet inside the picture."""
    places, before = n_places(side, size, stride, padding), margins(side, size, stride, padding)[0]
    place, inside = np.meshgrid(np.arange(places), np.arange(size), indexing="ij")
    cell = place * stride + inside - before
    return np.stack([place, cell, inside])[:, (cell >= 0) & (cell < side)]


def _by_fourier(x: Array, kernel: Array) -> Array:
    """All places of a stride of 1. Sums that reach over the end come round, but no place that is kept has one."""
    (h, w), (u, v) = x.shape[1:3], kernel.shape[:2]
    # Sides with small prime factors are quicker to transform.
    shape = (next_fast_len(h, real=True), next_fast_len(w, real=True))
    pictures, kernels = jnp.fft.rfft2(x, shape, (1, 2)), jnp.fft.rfft2(kernel, shape, (0, 1))
    product = jnp.einsum("nyxc,yxco->nyxo", pictures, jnp.conj(kernels))
    return jnp.fft.irfft2(product, shape, (1, 2))[:, : h - u + 1, : w - v + 1].astype(x.dtype)
