"""The module of an autoencoder: recognition network, decoder, prior, and what stands between them and the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.settings import are_sizes
from likely.models.latent.variational.column_means import StartingPoint
from likely.models.latent.variational.posteriors import FAMILIES, Diagonal
from likely.models.latent.variational.priors import MixtureOf, StandardNormal
from likely.nets import (
    MLP,
    ImageDecoder,
    ImageEncoder,
    encoder_features,
    location_mean,
    location_natural,
    log_density_at,
    n_locations,
)
from likely.runtime import float_dtype


def layer_sizes(name: str, sizes: Any) -> tuple[int, ...]:
    """Hyper-parameter `name` as sizes of layers.

    >>> layer_sizes("hidden", (8, 0))
    Traceback (most recent call last):
    ValueError: `hidden` must hold sizes of layers, whole numbers of at least 1, got (8, 0).
    """
    if not are_sizes(sizes):
        raise ValueError(f"`{name}` must hold sizes of layers, whole numbers of at least 1, got {sizes!r}.")
    return tuple(int(size) for size in sizes)


class VAEParams(eqx.Module):
    """Both networks, and what stands between them and the columns.

    encoder : features (L,) -> answer, of which `family` makes q(z | x).
    decoder : latents (k,) -> locations (L,).
    holes : (n_first, d) what an unobserved cell adds to the encoder's first layer; None if training rows were complete.
    log_scale : (r,) of the real columns.
    offset : (L,) mean features, subtracted from what the encoder reads; not trained.
    latent_prior : None for N(0, I), a mixture, or the pseudo-inputs (C, L) of a VampPrior.
    """

    encoder: Any
    decoder: Any
    holes: Float[Array, "h d"] | None
    log_scale: Float[Array, " r"]
    offset: Float[Array, " L"]
    columns: Columns = eqx.field(static=True)
    n_latent: int = eqx.field(static=True)
    family: Any = eqx.field(static=True, default=Diagonal)
    latent_prior: MixtureOf | Float[Array, "C L"] | None = None

    def recognise(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n a"]:
        """What the recognition network answers."""
        # Centred, so that the 0 of an unobserved cell says "as usual".
        features = encoder_features(self.columns, x, observed, jax.lax.stop_gradient(self.offset))
        shift = None
        if observed is not None and self.holes is not None:
            shift = (~observed).astype(x.dtype) @ self.holes.T
        return self.encoder(features, shift)

    def posterior(self, answer: Float[Array, "n a"]) -> Any:
        """q(z | x)."""
        return self.family.of(answer, self.n_latent)

    def prior(self) -> Any:
        """p(z)."""
        if self.latent_prior is None:
            return StandardNormal()
        if isinstance(self.latent_prior, MixtureOf):
            return self.latent_prior
        weights = jnp.zeros(len(self.latent_prior), self.latent_prior.dtype)
        return MixtureOf(weights, self.posterior(self.encoder(self.latent_prior)))

    def log_likelihood(
        self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, z: Float[Array, "n s k"]
    ) -> Float[Array, "n s"]:
        """log p(x | z) of the observed cells."""
        seen = None if observed is None else observed[:, None, :]
        return log_density_at(self.columns, x[:, None, :], seen, self.decoder(z), self.log_scale)

    def mean(self, z: Float[Array, "*n k"]) -> Float[Array, "*n D"]:
        """E[T(x) | z]."""
        return location_mean(self.columns, self.decoder(z), self.log_scale)

    def sample(self, key: Key[Array, ""], z: Float[Array, "*n k"]) -> Float[Array, "*n d"]:
        """x ~ p(x | z)."""
        return self.columns.sample(key, location_natural(self.columns, self.decoder(z), self.log_scale))


@dataclass(frozen=True)
class Design:
    """What an autoencoder is to look like: the hyper-parameters that its module depends on."""

    n_latent: int
    hidden: tuple[int, ...]
    activation: str
    posterior: str = "diagonal"
    prior: str = "normal"
    n_prior_components: int = 1
    channels: tuple[int, ...] = ()
    image_shape: tuple[int, ...] | None = None
    reads_holes: bool = False


def first_module(key: Key[Array, ""], columns: Columns, design: Design) -> VAEParams:
    """Networks before training; q starts near N(0, I)."""
    encoder_key, decoder_key = jax.random.split(key)
    n_cells, k, family = n_locations(columns), design.n_latent, FAMILIES[design.posterior]
    options: dict[str, Any] = {"activation": design.activation}
    if design.channels:
        options |= {"hidden": design.hidden, "channels": design.channels}
        shape = cast(tuple[int, ...], design.image_shape)
        encoder: Any = ImageEncoder(encoder_key, shape, family.n_answers(k), output_gain=0.1, **options)
        decoder: Any = ImageDecoder(decoder_key, k, shape, **options)
    else:
        encoder = MLP(encoder_key, n_cells, family.n_answers(k), hidden=design.hidden, output_gain=0.1, **options)
        decoder = MLP(decoder_key, k, n_cells, hidden=design.hidden[::-1], **options)
    module = assemble(encoder, decoder, columns, k, family, design.reads_holes)
    latent_prior = _first_prior(jax.random.fold_in(key, 1), design, n_cells)
    return eqx.tree_at(lambda m: m.latent_prior, module, latent_prior, is_leaf=lambda leaf: leaf is None)


def assemble(
    encoder: Any,
    decoder: Any,
    columns: Columns,
    n_latent: int,
    family: Any,
    reads_holes: bool,
    kind: type[VAEParams] = VAEParams,
) -> VAEParams:
    """A module of two networks, with a standard normal prior."""
    dtype = float_dtype()
    return kind(
        encoder=encoder,
        decoder=decoder,
        holes=jnp.zeros((encoder.n_first, columns.n_columns), dtype) if reads_holes else None,
        log_scale=jnp.zeros(len(columns.real_places), dtype),
        offset=jnp.zeros(n_locations(columns), dtype),
        columns=columns,
        n_latent=n_latent,
        family=family,
    )


@eqx.filter_jit
def built(build: Callable[..., Any], key: Key[Array, ""], columns: Columns) -> Any:
    """What `build(key, columns)` makes; a `jax.tree_util.Partial`, equal ones of which share a program."""
    return build(key, columns)


@eqx.filter_jit
def centred_module(
    start: StartingPoint, build: Callable[..., VAEParams], key: Key[Array, ""], columns: Columns
) -> VAEParams:
    """The module that `build` makes, as in `built`, its decoder starting at the columns' own means.

    Training starts from `Independent`.
    """
    where = lambda m: (_bias(m.decoder), m.offset)  # noqa: E731
    return eqx.tree_at(where, build(key, columns), (start.location, start.offset))


def with_pseudo_inputs(module: VAEParams, x: Float[Array, "C d"], observed: Bool[Array, "C d"]) -> VAEParams:
    """The module with the pseudo-inputs of its VampPrior at the given rows."""
    features = _features(module.columns, x, observed, module.offset)
    return eqx.tree_at(lambda m: m.latent_prior, module, features)


_features = eqx.filter_jit(encoder_features)  # one program in place of seventy small ones


def _bias(decoder: Any) -> Array:
    return decoder.bias if isinstance(decoder, ImageDecoder) else decoder.layers[-1].bias


def _first_prior(key: Array, design: Design, n_cells: int) -> MixtureOf | Array | None:
    size, dtype = design.n_prior_components, float_dtype()
    if design.prior == "normal":
        return None
    if design.prior == "vamp":
        return jnp.zeros((size, n_cells), dtype)
    means = jax.random.normal(key, (size, design.n_latent), dtype)
    return MixtureOf(jnp.zeros(size, dtype), Diagonal(means, jnp.zeros_like(means)))
