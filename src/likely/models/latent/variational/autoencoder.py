"""Autoencoder: z = encoder(x̃), x ≈ decoder(z), with x̃ a corrupted copy of x in training; penalties as separate terms.

Undercomplete by its bottleneck, sparse by Σ|z|, denoising by what is done to x̃ (Vincent et al., 2008), contractive by
‖∂z/∂x‖² (Rifai et al., 2011). The loss of a row is -log p(x | z) of its columns: cross-entropy of binary and
categorical ones, a Poisson's of counts, half the squared error of real ones. Cost: an epoch takes about
6 x rows x weights floating-point operations, and half as many again for the contraction.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, Fraction, NonNegative, Positive, Sizes
from likely.contract.trained import Trained
from likely.models.latent.variational.column_means import StartingPoint, starting_point
from likely.models.latent.variational.network import layer_sizes
from likely.nets import (
    MLP,
    ImageDecoder,
    ImageEncoder,
    encoder_features,
    location_mean,
    log_density_at,
    n_locations,
)
from likely.nets.mlp import Activation
from likely.objectives.reconstruction import Terms, reconstruction_loss
from likely.runtime import by_blocks, float_dtype
from likely.schema import Schema, SchemaError
from likely.training import train
from likely.training.optimisers import Schedule


class AutoencoderParams(eqx.Module):
    """Both networks, and what stands between them and the columns.

    encoder : features (L,) -> codes (k,).
    decoder : codes (k,) -> locations (L,).
    offset : (L,) mean features, subtracted from what the encoder reads; not trained.
    """

    encoder: MLP | ImageEncoder
    decoder: MLP | ImageDecoder
    offset: Float[Array, " L"]
    columns: Columns = eqx.field(static=True)

    def features(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n L"]:
        """What the encoder reads: centred, so that the 0 of an unobserved cell says "as usual"."""
        return encoder_features(self.columns, x, observed, jax.lax.stop_gradient(self.offset))

    def encode(self, features: Float[Array, "n L"]) -> Float[Array, "n k"]:
        """The code of each row."""
        return self.encoder(features)

    def log_likelihood(
        self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, codes: Float[Array, "n k"]
    ) -> Float[Array, " n"]:
        """log p(x | code) of the observed cells, real columns with unit variance."""
        return log_density_at(self.columns, x, observed, self.decoder(codes), self._log_scale)

    def mean(self, codes: Float[Array, "n k"]) -> Float[Array, "n D"]:
        """E[T(x) | code]."""
        return location_mean(self.columns, self.decoder(codes), self._log_scale)

    @property
    def _log_scale(self) -> Array:
        return jnp.zeros(len(self.columns.real_places), self.offset.dtype)


def first_params(
    key: Key[Array, ""],
    columns: Columns,
    n_latent: int,
    hidden: tuple[int, ...],
    channels: tuple[int, ...],
    activation: str,
    image_shape: tuple[int, ...] | None,
) -> AutoencoderParams:
    """Networks before training: perceptrons, or convolutional ones where there are `channels`."""
    there, back = jax.random.split(key)
    n_cells, options = n_locations(columns), {"hidden": hidden, "activation": activation}
    encoder: MLP | ImageEncoder
    decoder: MLP | ImageDecoder
    if channels:
        assert image_shape is not None  # The model has checked it.
        encoder = ImageEncoder(there, image_shape, n_latent, channels=channels, **options)  # type: ignore[arg-type]
        decoder = ImageDecoder(back, n_latent, image_shape, channels=channels, **options)  # type: ignore[arg-type]
    else:
        encoder = MLP(there, n_cells, n_latent, hidden=hidden, activation=activation)
        decoder = MLP(back, n_latent, n_cells, hidden=hidden[::-1], activation=activation)
    return AutoencoderParams(encoder, decoder, jnp.zeros(n_cells, float_dtype()), columns)


def with_unit_readers(params: AutoencoderParams) -> AutoencoderParams:
    """The same with the decoder's weights from each code unit at most of norm 1.

    A penalty on the size of codes means something only then: else the encoder could shrink them and the decoder make
    up for it.
    """
    weight = _first_weight(params)
    norm = jnp.sqrt((weight**2).sum(axis=0, keepdims=True))
    return eqx.tree_at(_first_weight, params, weight / jnp.maximum(norm, 1))


def _first_weight(params: AutoencoderParams) -> Array:
    head = params.decoder if isinstance(params.decoder, MLP) else params.decoder.head
    return head.layers[0].weight


@eqx.filter_jit
def _centred_params(start: StartingPoint, *args: Any) -> AutoencoderParams:
    """The first parameters, the decoder starting at the columns' own means."""
    params = first_params(*args)
    params = eqx.tree_at(lambda p: p.offset, params, start.offset)
    if isinstance(params.decoder, MLP):
        return eqx.tree_at(lambda p: p.decoder.layers[-1].bias, params, start.location)
    return eqx.tree_at(lambda p: p.decoder.bias, params, start.location)


@eqx.filter_jit
def _codes(params: AutoencoderParams, x: Array, observed: Array | None) -> Array:
    return params.encode(params.features(x, observed))


@eqx.filter_jit
def _mean(params: AutoencoderParams, codes: Array, observed: None) -> Array:
    return params.mean(codes)


class Autoencoder(Trained, Model):
    """A code learned by reconstruction, with penalties that combine freely; no likelihood.

    Parameters
    ----------
    n_components : length of the code.
    hidden : sizes of the encoder's hidden layers; the decoder has them in reverse. () makes both linear.
    channels : filters of convolutions of stride 2 before the hidden layers, and transposed after them, for tables that
        are pictures (`Schema.image_shape`); () for none.
    activation : "gelu", "tanh", "relu", "softplus", "sigmoid", "elu", "swish" ...
    noise : deviation of Gaussian noise on what the encoder reads, in standard units.
    masking : share of cells erased from what the encoder reads.
    salt_and_pepper : share of cells set to their column's least or greatest value in what the encoder reads.
    sparsity : weight of Σ|z|.
    contraction : weight of ‖∂z/∂x‖², the squared Frobenius norm of the encoder's Jacobian in standard units; estimated
        with one random direction a row and step, without bias.
    n_epochs, batch_size, learning_rate, schedule, weight_decay, memory_budget : see `likely.training.TrainingConfig`;
        the optimiser is Adam.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    The encoder reads x, one-hot categories and log(1 + count), less their mean over the training rows, and 0 for an
    unobserved or erased cell; unobserved cells are not counted in the loss. Real columns of a picture share one scale,
    so that noise means the same in every pixel. With `sparsity` or `contraction` the decoder's weights from each code
    unit are kept at most of norm 1, without which codes would just shrink.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.Autoencoder(8, hidden=(32,), masking=0.3, n_epochs=20, random_state=0).fit(digits.train)
    >>> bool((model.denoise(digits.test) == digits.test).mean() > 0.85)
    True
    """

    n_components: Count = 16
    _: KW_ONLY
    hidden: Sizes = (200,)
    channels: Sizes = ()
    activation: Activation = "gelu"
    noise: NonNegative = 0.0
    masking: Fraction = 0.0
    salt_and_pepper: Fraction = 0.0
    sparsity: NonNegative = 0.0
    contraction: NonNegative = 0.0
    batch_size: Count = 100
    learning_rate: Positive = 3e-3
    schedule: Schedule = "cosine"
    weight_decay: NonNegative = 0.01
    memory_budget: Count = 2 << 30

    _resumable = True
    _no_evidence = "an autoencoder is a map and no distribution: ask a VAE, which has networks of the same kind"
    _why_not: ClassVar[dict] = {
        "sample": "it is a map and no distribution; a VAE has the same networks and can",
        "condition": "it is a map and no distribution; denoise fills unobserved cells with one guess",
        "impute": "it is a map and no distribution; denoise fills unobserved cells with one guess",
    }

    @property
    def _scaling(self) -> str:  # type: ignore[override]
        return "column" if self.schema_.image_shape is None else "common"

    def _init(self, key, columns):
        return first_params(key, columns, *self._architecture())

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> AutoencoderParams:
        architecture = self._architecture()
        if len(self.channels):
            check_image(self.schema_, "channels")
        init_key, train_key = jax.random.split(key)
        start = starting_point(rows, self.columns_)
        terms = Terms(**{name: float(getattr(self, name)) for name in Terms._fields})
        result = train(
            _centred_params(start, init_key, self.columns_, *architecture),
            partial(reconstruction_loss, terms=terms, extremes=start.extremes),
            rows,
            config=self._training(),
            key=train_key,
            checkpoint=run.checkpoint,
            resume=run.resume,
            project=with_unit_readers if terms.sparsity or terms.contraction else None,
            label="Autoencoder",
        )
        self.history_ = result.history
        return result.module

    def _architecture(self) -> tuple[Any, ...]:
        hidden, channels = layer_sizes("hidden", self.hidden), layer_sizes("channels", self.channels)
        return self.n_components, hidden, channels, self.activation, self.schema_.image_shape

    def _encode(self, rows, key):
        return by_blocks(partial(_codes, self.params_), rows)

    def _decode(self, codes):
        return by_blocks(partial(_mean, self.params_), np.asarray(codes))

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


def check_image(schema: Schema, option: str) -> None:
    """Raise unless a row is a picture whose pixels are all of one kind of number."""
    if schema.image_shape is None:
        raise SchemaError(
            f"`{option}` is for pictures, and the schema of these {schema.n_columns} columns has no image_shape: give "
            f"schema=Schema.infer(X, image_shape=(height, width)), or set {option}=()."
        )
    kinds = sorted(set(schema.kinds))
    if len(kinds) > 1 or kinds == ["categorical"]:
        raise SchemaError(
            f"`{option}` needs pixels of one kind, binary, count or real, and these are {' and '.join(kinds)}: set "
            f"{option}=()."
        )
