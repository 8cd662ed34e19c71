"""Pictures shifted, turned and stretched a little, anew at every step (Simard, Steinkraus and Platt, 2003).

All is one displacement of the places at which a picture is read, by linear interpolation between pixels; beyond the
edge there are zeros. Cost: a few operations a pixel, and two products with (side, side) matrices where it is elastic.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates
from jaxtyping import Array, Float, Key


class ImageAugmentation(eqx.Module):
    """Rows of pixels of displaced pictures; for `likely.training.Augmentation`.

    Parameters
    ----------
    image_shape : (height, width) or (height, width, channels) of a row.
    shift : pixels, at most, in either direction.
    rotate : degrees, at most, to either side.
    elastic : root mean square of a smooth random displacement, in pixels.
    smoothness : pixels over which that displacement is alike.

    Examples
    --------
    >>> turn = ImageAugmentation((8, 8), shift=1, rotate=10, elastic=0.5)
    >>> jax.jit(turn)(jax.random.key(0), np.ones((3, 64), np.float32)).shape
    (3, 64)
    """

    image_shape: tuple[int, ...] = eqx.field(static=True)
    shift: float = 0.0
    rotate: float = 0.0
    elastic: float = 0.0
    smoothness: float = eqx.field(default=4.0, static=True)

    def __check_init__(self) -> None:
        if len(self.image_shape) not in (2, 3):
            raise ValueError(f"`image_shape` must be (height, width[, channels]), got {self.image_shape}.")
        for name in ("shift", "rotate", "elastic", "smoothness"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must be at least 0, got {getattr(self, name)}.")

    def __call__(self, key: Key[Array, ""], x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Each row's picture displaced by draws of its own."""
        shift_key, turn_key, elastic_key = jax.random.split(key, 3)
        height, width = self.image_shape[:2]
        shifts = self.shift * jax.random.uniform(shift_key, (len(x), 2), x.dtype, -1, 1)
        angles = self.rotate * jax.random.uniform(turn_key, (len(x),), x.dtype, -1, 1)
        bends = smooth_noise(elastic_key, (len(x), 2, height, width), self.smoothness, x.dtype)
        return displaced(x, self.image_shape, shifts=shifts, angles=angles, bends=self.elastic * bends)


def displaced(
    x: Float[Array, "n d"],
    image_shape: tuple[int, ...],
    *,
    shifts: Float[Array, "n 2"],
    angles: Float[Array, " n"],
    bends: Float[Array, "n 2 h w"] | None = None,
) -> Float[Array, "n d"]:
    """Pictures moved down and right by `shifts`, turned left by `angles` degrees, read at places off by `bends`."""
    height, width = image_shape[:2]
    channels = image_shape[2] if len(image_shape) == 3 else 1
    pictures = x.reshape(len(x), height, width, channels)
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    down, right = np.meshgrid(np.arange(height) - middle[0], np.arange(width) - middle[1], indexing="ij")

    def one(picture: Array, shift: Array, angle: Array, bend: Array | None) -> Array:
        cosine, sine = jnp.cos(jnp.deg2rad(angle)), jnp.sin(jnp.deg2rad(angle))
        # The pixel at a place is read where that place was before: moved back, and then turned back.
        y, z = down - shift[0], right - shift[1]
        places = [cosine * y + sine * z + middle[0], cosine * z - sine * y + middle[1]]
        if bend is not None:
            places = [place + own for place, own in zip(places, bend, strict=True)]
        layers = [map_coordinates(picture[..., c], places, order=1, cval=0.0) for c in range(channels)]
        return jnp.stack(layers, axis=-1)

    return jax.vmap(one)(pictures, shifts, angles, bends).reshape(x.shape)


def smooth_noise(key: Key[Array, ""], shape: tuple[int, ...], smoothness: float, dtype: Any = None) -> Array:
    """Normal noise of variance 1 at every cell, smoothed along the last two axes by a Gaussian window."""
    noise = jax.random.normal(key, shape, dtype)
    return jnp.einsum("hi,...ij,wj->...hw", _window(shape[-2], smoothness), noise, _window(shape[-1], smoothness))


def _window(side: int, smoothness: float) -> np.ndarray:
    """(side, side) weights whose rows have length 1, so that the variance stays 1."""
    apart = np.arange(side)[:, None] - np.arange(side)[None, :]
    weights = np.exp(-0.5 * (apart / max(smoothness, 1e-6)) ** 2)
    return (weights / np.sqrt((weights**2).sum(axis=1, keepdims=True))).astype(np.float32)
