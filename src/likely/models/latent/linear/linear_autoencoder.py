"""Linear autoencoder: x ≈ b + D E (x - b), the D (d, k) and E (k, d) of least squared error, learned by gradient.

Baldi and Hornik (1989): every minimum spans the k leading principal axes, and D E is the projection onto them, which by
Eckart and Young (1936) no other rank-k map beats. Cost: six matrix products rows × columns × k a step; a row with holes
takes O(d k² + k³).
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count
from likely.contract.trained import Trained
from likely.runtime import by_blocks, float_dtype, on_device
from likely.training import Batch, train
from likely.training.optimisers import Optimizer

# Where a row has fewer observed cells than its code has numbers, many codes fit them equally well. This much on the
# diagonal, in standard units, picks the shortest, and is nothing beside the cells of a row that has enough.
_RIDGE = 1e-4


class LinearAutoencoderParams(eqx.Module):
    """D, E and b; E is None when the weights are tied, and then D transposed."""

    decoder: Float[Array, "d k"]
    encoder: Float[Array, "k d"] | None
    offset: Float[Array, " d"]


def encode(
    params: LinearAutoencoderParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
) -> Float[Array, "n k"]:
    """E (x - b); unobserved cells are first filled by least squares from the observed ones."""
    centred = fill(params, x - params.offset[None, :], observed)
    return centred @ (params.decoder if params.encoder is None else params.encoder.T)


def decode(params: LinearAutoencoderParams, codes: Float[Array, "n k"]) -> Float[Array, "n d"]:
    """b + D z."""
    return codes @ params.decoder.T + params.offset[None, :]


def fill(
    params: LinearAutoencoderParams, centred: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
) -> Float[Array, "n d"]:
    """Unobserved cells of centred rows as D z, with the z for which D z is nearest to the observed cells."""
    if observed is None:
        return centred
    d, k = params.decoder.shape
    seen = observed.astype(centred.dtype)
    outer = (params.decoder[:, :, None] * params.decoder[:, None, :]).reshape(d, k * k)
    normal = (seen @ outer).reshape(-1, k, k) + _RIDGE * jnp.eye(k, dtype=centred.dtype)[None]
    target = jnp.where(observed, centred, 0) @ params.decoder
    codes = jnp.linalg.solve(normal, target[:, :, None])[:, :, 0]
    return jnp.where(observed, centred, codes @ params.decoder.T)


def squared_error(
    params: LinearAutoencoderParams, batch: Batch, key: Key[Array, ""], state: None
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: squared error of the observed cells, a row's sum, its mean over the rows."""
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    error = (x - decode(params, encode(params, x, observed))) ** 2
    if observed is not None:
        error = jnp.where(observed, error, 0)
    weight = jnp.asarray(batch.weight)
    return jnp.sum(weight * error.sum(axis=1)) / jnp.sum(weight), (state, {})


_encode = eqx.filter_jit(encode)


class LinearAutoencoder(Trained, Model):
    """The best linear code of a given length, learned by gradient; reads all columns as real numbers.

    It finds what PCA computes, up to the choice of axes within the subspace; it is here to be compared with, to start
    other networks from, and for rows with holes, of which it fits the observed cells.

    Parameters
    ----------
    n_components : length of the code; at most the number of columns.
    tied : use the decoder's weights, transposed, as the encoder's.
    n_epochs, batch_size, optimizer, learning_rate, schedule : see `likely.training.TrainingConfig`. L-BFGS on all rows
        at once, the default, goes to the optimum; for more rows than that can bear, take "adam" and batches.
    schema : what the columns are; None reads it off the data.
    random_state : seed of the first weights.

    Notes
    -----
    Columns are centred and divided by one common scale, so distances are those of the data. An unobserved cell is read
    as the value that least squares gives it: the code D z nearest to the row's observed cells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(500, 6))
    >>> model = LinearAutoencoder(n_components=2, random_state=0).fit(rows)
    >>> error = np.sum((rows - model.denoise(rows)) ** 2)
    >>> best = np.sum(np.linalg.svd(rows - rows.mean(axis=0))[1][2:] ** 2)
    >>> f"{error / best:.4f}"
    '1.0000'
    """

    n_components: Count = 2
    _: KW_ONLY
    tied: bool = False
    n_epochs: Count = 200
    batch_size: Count | None = None
    optimizer: Optimizer = "lbfgs"

    _real_only = True
    _scaling = "common"
    _resumable = True
    _no_evidence = (
        "a linear autoencoder is a map and no distribution: ask ProbabilisticPCA, whose code spans the same subspace"
    )
    _why_not: ClassVar[dict] = {
        "sample": "it is a map and no distribution; ProbabilisticPCA spans the same subspace",
        "condition": "it is a map and no distribution; denoise fills unobserved cells by least squares",
        "impute": "it is a map and no distribution; denoise fills unobserved cells by least squares",
    }

    def _init(self, key: jax.Array, columns: Columns) -> LinearAutoencoderParams:
        return _first_params(key, columns.n_columns, self.n_components, self.tied)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> LinearAutoencoderParams:
        n_columns = self.columns_.n_columns
        if self.n_components > n_columns:
            raise ValueError(
                f"`n_components` must be at most n_columns ({n_columns}), got {self.n_components}: lower it."
            )
        init_key, train_key = jax.random.split(key)
        result = train(
            self._init(init_key, self.columns_),
            squared_error,
            rows,
            config=self._training(),
            key=train_key,
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="LinearAutoencoder",
        )
        self.history_ = result.history
        return result.module

    def _encode(self, rows, key):
        return by_blocks(partial(_encode, self.params_), rows)

    def _decode(self, codes):
        mean = np.asarray(decode(self.params_, on_device(codes)))
        return np.concatenate([mean, mean**2], axis=1)  # E[x²] of a map is x², without a variance.

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


@eqx.filter_jit
def _first_params(key: Array, d: int, k: int, tied: bool) -> LinearAutoencoderParams:
    """Orthonormal columns of D, and E its transpose: a projection onto a random subspace."""
    decoder = jnp.linalg.qr(jax.random.normal(key, (d, k), float_dtype()))[0]
    return LinearAutoencoderParams(decoder, None if tied else decoder.T, jnp.zeros(d, float_dtype()))
