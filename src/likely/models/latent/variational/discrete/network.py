"""The module of an autoencoder with discrete latents, and what is computed of it: sums, weights, draws.

Units are bits, or one-hot over c values. Those of both layers lie side by side, the lower first: z (s, n, k) of bits,
(s, n, k, c) of one-hot units. A relaxed z goes wherever a hard one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.gradients import Bernoulli, Categorical
from likely.gradients.distributions import Discrete
from likely.montecarlo.enumeration import configurations, log_sum
from likely.montecarlo.importance import Weighted, resample, weigh
from likely.nets import MLP, encoder_features, location_mean, location_natural, log_density_at, n_locations
from likely.objectives.discrete_elbo import draws_of_noise, log_weights
from likely.runtime import BLOCK_ROWS, float_dtype

MAX_EXACT_BITS = 16  # of latents, up to which the evidence is summed over all their values
# Real columns forbid a matrix product, and take a cell for each row, configuration and column: so many in one go.
_CELLS_AT_ONCE = 1 << 22


class DiscreteAutoencoder(eqx.Module):
    """Networks, the prior of the latents, and what stands between them and the columns.

    encoder : features (L,) -> logits of all units.
    decoder : lower units -> locations (L,).
    upper : upper units -> logits of the lower ones; None for one layer.
    prior : logits of the topmost units, (k,) or (k, c).
    holes : (n_first, d) what an unobserved cell adds to the encoder's first layer; None if training rows were complete.
    log_scale : (r,) of the real columns.
    offset : (L,) mean features, subtracted from what the encoder reads; not trained.
    n_lower : number of lower units.
    """

    encoder: MLP
    decoder: MLP
    upper: MLP | None
    prior: Array
    holes: Float[Array, "h d"] | None
    log_scale: Float[Array, " r"]
    offset: Float[Array, " L"]
    family: Discrete
    columns: Columns = eqx.field(static=True)
    n_lower: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one z, the units of both layers."""
        n_upper = 0 if self.upper is None else self.prior.shape[0]
        return (self.n_lower + n_upper, *self.prior.shape[1:])

    def posterior(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n ..."]:
        """Logits of q(z | x)."""
        shift = None
        if observed is not None and self.holes is not None:
            shift = (~observed).astype(x.dtype) @ self.holes.T
        return self.encoder(self.context(x, observed), shift).reshape(len(x), *self.shape)

    def context(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n L"]:
        """What the encoder reads; centred, so that the 0 of an unobserved cell says "as usual"."""
        return encoder_features(self.columns, x, observed, lax.stop_gradient(self.offset))

    def location(self, z: Array) -> Float[Array, "*n L"]:
        """The columns' locations at latents (..., units) or (..., units, categories), of both layers or the lower."""
        return self.decoder(_flat(self._take(z, 0, self.n_lower), self.prior.ndim))

    def log_likelihood(self, x, observed, z) -> Float[Array, "s n"]:
        """log p(x | z) of the observed cells."""
        seen = None if observed is None else observed[None]
        return log_density_at(self.columns, x[None], seen, self.location(z), self.log_scale)

    def log_lower_prior(self, z) -> Float[Array, "s n"]:
        """log p(lower units | upper units)."""
        if self.upper is None:
            return jnp.zeros(z.shape[:2], z.dtype)
        lower, logits = self._take(z, 0, self.n_lower), self.lower_logits(self._take(z, self.n_lower, None))
        return jax.vmap(lambda own, draw: self.family.log_prob(own, draw[None])[0])(logits, lower)

    def log_upper_prior(self, z) -> Float[Array, "s n"]:
        """log p(topmost units)."""
        top = self._take(z, 0 if self.upper is None else self.n_lower, None)
        return self.family.log_prob(jnp.broadcast_to(self.prior[None], top.shape[1:]), top)

    def lower_logits(self, upper: Array) -> Array:
        """Logits of the lower units given the upper ones."""
        assert self.upper is not None  # The type checker cannot know.
        out = self.upper(_flat(upper, self.prior.ndim))
        return out.reshape(*out.shape[:-1], self.n_lower, *self.prior.shape[1:])

    def mean(self, z: Array) -> Float[Array, "*n D"]:
        """E[T(x) | z]."""
        return location_mean(self.columns, self.location(z), self.log_scale)

    def sample(self, key: Key[Array, ""], z: Array) -> Float[Array, "*n d"]:
        """x ~ p(x | z)."""
        return self.columns.sample(key, location_natural(self.columns, self.location(z), self.log_scale))

    def _take(self, z: Array, start: int, stop: int | None) -> Array:
        """Some units, of z with any axes before them."""
        return z[..., start:stop] if self.prior.ndim == 1 else z[..., start:stop, :]


@dataclass(frozen=True)
class Design:
    """What the module is to look like."""

    n_components: int
    n_categories: int
    n_upper: int
    hidden: tuple[int, ...]
    activation: str
    reads_holes: bool


def first_module(design: Design, key: Key[Array, ""], columns: Columns) -> DiscreteAutoencoder:
    """The module before training; q starts near fair coins."""
    encoder_key, decoder_key, upper_key = jax.random.split(key, 3)
    n_cells, n_lower, n_upper = n_locations(columns), design.n_components, design.n_upper
    options: dict[str, Any] = {"activation": design.activation}
    encoder = MLP(encoder_key, n_cells, n_lower + n_upper, hidden=design.hidden, output_gain=0.1, **options)
    decoder = MLP(decoder_key, n_lower, n_cells, hidden=design.hidden[::-1], **options)
    bits, dtype = design.n_categories == 2, float_dtype()
    own = () if bits else (design.n_categories,)
    per_unit = 1 if bits else design.n_categories
    upper = None
    if n_upper:
        upper = MLP(upper_key, n_upper, n_lower, hidden=design.hidden[-1:], output_gain=0.1, **options)
    return DiscreteAutoencoder(
        encoder=encoder,
        decoder=decoder,
        upper=upper,
        prior=jnp.zeros(((n_upper or n_lower) // per_unit, *own), dtype),
        holes=jnp.zeros((encoder.n_first, columns.n_columns), dtype) if design.reads_holes else None,
        log_scale=jnp.zeros(len(columns.real_places), dtype),
        offset=jnp.zeros(n_cells, dtype),
        family=Bernoulli() if bits else Categorical(),
        columns=columns,
        n_lower=n_lower // per_unit,
    )


# ------------------------------------------------------------------ sums over all latents
@eqx.filter_jit
def log_prob(module: DiscreteAutoencoder, x: Array, observed: Array | None) -> Float[Array, " n"]:
    """Log p of the observed cells of each row, summed over every configuration of the latents."""
    template = jnp.zeros(module.shape, x.dtype)
    radices, has_real = module.family.radices(template), len(module.columns.real_places) > 0
    block = max(1, min(1024, _CELLS_AT_ONCE // (BLOCK_ROWS * x.shape[1]))) if has_real else 1024

    def log_weight(numbers):
        z = module.family.from_codes(configurations(numbers, radices), template)[:, None]
        prior = (module.log_lower_prior(z) + module.log_upper_prior(z))[:, 0]
        return _log_density_table(module, x, observed, z[:, 0]) + prior[None]

    return log_sum(math.prod(radices), log_weight, lambda m: jnp.zeros((len(m), 0), x.dtype), block=block)[0]


def _log_density_table(module: DiscreteAutoencoder, x: Array, observed: Array | None, z: Array) -> Float[Array, "n m"]:
    """log p(x_i | z_j)."""
    columns, location = module.columns, module.location(z)
    if len(columns.real_places) == 0:
        return columns.log_density_table(x, observed, location_natural(columns, location, module.log_scale))
    # The natural parameters of a Gaussian lose the digits of float32 when its scale is small.
    seen = None if observed is None else observed[:, None]
    return log_density_at(columns, x[:, None], seen, location[None], module.log_scale)


# ------------------------------------------------------------------ importance sampling
@eqx.filter_jit
def weigh_rows(
    key: Key[Array, ""],
    module: DiscreteAutoencoder,
    x: Array,
    observed: Array | None,
    *,
    n_importance: int,
    conditional: bool = False,
) -> tuple[Weighted, Array]:
    """Importance samples of each row's latents, weighed, and the logits of the q they came from.

    `conditional` also averages the columns' mean statistics and keeps the weights.
    """
    logits = module.posterior(x, observed)

    def sampler(normal):
        z = _latents(module, logits, normal)
        means = jnp.moveaxis(module.mean(z), 0, 1) if conditional else None
        return log_weights(module, x, observed, logits, z).T, means

    size = math.prod(module.shape)
    options: dict[str, Any] = {"n_samples": n_importance, "n_latent": size, "dtype": x.dtype}
    return weigh(key, sampler, keep_weights=conditional, **options), logits


@eqx.filter_jit
def draw(key: Array, noise_key: Array, module: DiscreteAutoencoder, log_weights: Array, logits: Array) -> Array:
    """A row for each q and its weights: latents resampled by weight, then the columns."""
    latent_key, column_key = jax.random.split(key)
    normal = resample(latent_key, noise_key, log_weights, math.prod(module.shape))
    noise = module.family.noise_from_normal(normal.reshape(logits.shape))
    return module.sample(column_key, module.family.harden(module.family.perturb(logits, noise)))


@eqx.filter_jit
def draw_new(key: Array, module: DiscreteAutoencoder, n: int) -> Array:
    """N rows: topmost units, lower ones, columns."""
    upper_key, lower_key, column_key = jax.random.split(key, 3)
    z = module.family.sample(upper_key, module.prior, n)
    if module.upper is not None:
        z = module.family.sample(lower_key, module.lower_logits(z), 1)[0]
    return module.sample(column_key, z)


@eqx.filter_jit
def codes(module: DiscreteAutoencoder, x: Array, observed: Array | None) -> Array:
    """(n, n_components) means of q's lower units."""
    mean = module.family.mean(module.posterior(x, observed))
    return module._take(mean, 0, module.n_lower).reshape(len(x), -1)


@eqx.filter_jit
def decoded(module: DiscreteAutoencoder, code: Array) -> Array:
    """E[T(x)] at codes as `codes` gives them."""
    return module.mean(code.reshape(len(code), module.n_lower, *module.prior.shape[1:]))


def _latents(module: DiscreteAutoencoder, logits: Array, normal: Array) -> Array:
    noise = module.family.noise_from_normal(normal.reshape(-1, *module.shape))
    return module.family.harden(draws_of_noise(module.family, logits, noise))


def _flat(z: Array, n_axes: int) -> Array:
    """Units (..., k) or (..., k, c) as a network reads them: with mean 0 and variance 1 for fair ones, on one axis."""
    if n_axes == 1:
        return 2 * z - 1
    c = z.shape[-1]
    return ((z - 1 / c) * (c / math.sqrt(c - 1))).reshape(*z.shape[:-2], -1)
