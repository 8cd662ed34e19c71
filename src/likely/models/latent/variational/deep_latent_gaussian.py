"""Deep latent Gaussian model: h_L = z_L, h_l = F_l(h_{l+1}) + z_l, z_l ~ N(0, I); columns at F_0(h_1).

Rezende, Mohamed and Wierstra (2014), whose W_l before z_l is here the identity without loss: every F ends and begins
with a linear map, which take W_l in. (Learned beside them, fewer latents stayed in use.) The noise z of all layers
together is the latent, and the layers h are its decoder. The recognition model goes down the layers with the decoder,
as on a ladder, or gives each layer's noise a Gaussian of its own whose precision is diagonal plus u uᵀ, or all of them
one full Gaussian. Cost: that of a VAE with the same networks.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.contract.model import FitRun
from likely.contract.settings import Sizes
from likely.contract.trained import between, epochs_for, stopped
from likely.models.latent.variational.network import VAEParams, assemble
from likely.models.latent.variational.posteriors import LOG_STD_LIMITS, Full, LowRank, log_density
from likely.models.latent.variational.variational import Decoded
from likely.nets import MLP, n_locations
from likely.objectives.elbo import kl_to_standard_normal
from likely.runtime import float_dtype, has_holes

# `hold` of a ladder before training (see `Ladder`): a row says where its layers are, whatever comes from above.
FIRST_HOLD = 1.0


class LayeredDecoder(eqx.Module):
    """Noise of all layers, the one nearest to the data first, to locations.

    sizes : of the layers. between : F_l for l = 1, ..., L - 1. output : F_0.
    """

    between: tuple[MLP, ...]
    output: MLP
    sizes: tuple[int, ...] = eqx.field(static=True)

    @property
    def layers(self) -> tuple[Any, ...]:
        """Of the last network, whose bias is that of the locations."""
        return self.output.layers

    def __call__(self, z: Float[Array, "*n k"]) -> Float[Array, "*n L"]:
        """Locations, from the top layer down."""
        return self.output(self.hidden(z)[0])

    def hidden(self, z: Float[Array, "*n k"]) -> list[Array]:
        """The layers h_1, ..., h_L."""
        noise = _split(z, self.sizes)
        layers: list[Array] = []
        for number in reversed(range(len(noise))):
            layers.append(self.from_above(number, layers[-1] if layers else None) + noise[number])
        return layers[::-1]

    def from_above(self, number: int, above: Array | None) -> Array | float:
        """F_l(h_{l+1}); 0 for the top layer, which has none above."""
        return 0.0 if above is None else self.between[number](above)


class LayerGaussians(eqx.Module):
    """q(z | x) as a product over layers."""

    parts: tuple[LowRank, ...]
    has_log_prob: ClassVar[bool] = True

    @property
    def mean(self) -> Float[Array, "n k"]:
        """E[z | x]."""
        return jnp.concatenate([part.mean for part in self.parts], axis=-1)

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        drawn = [part.sample(own) for part, own in zip(self.parts, self._own(noise), strict=True)]
        return jnp.concatenate([z for z, _ in drawn], axis=-1), _total([log_q for _, log_q in drawn])

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log q(z), of each row's own latents."""
        return _total([part.log_prob(own) for part, own in zip(self.parts, self._own(z), strict=True)])

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> Float[Array, " n"]:
        """KL(q || N(0, I))."""
        return _total([part.kl_to_standard_normal(own) for part, own in zip(self.parts, self._own(z), strict=True)])

    def _own(self, z: Array) -> list[Array]:
        return _split(z, tuple(part.mean.shape[1] for part in self.parts))


@dataclass(frozen=True)
class LayerFamily:
    """The family of `LayerGaussians` for layers of given sizes."""

    sizes: tuple[int, ...]

    def n_answers(self, k: int) -> int:
        """Length of an answer."""
        return LowRank.n_answers(k)

    def of(self, answer: Float[Array, "n a"], k: int) -> LayerGaussians:
        """The q that an answer stands for."""
        answers = _split(answer, tuple(LowRank.n_answers(size) for size in self.sizes))
        return LayerGaussians(tuple(LowRank.of(own, size) for own, size in zip(answers, self.sizes, strict=True)))


class Ladder(eqx.Module):
    """q(z | x) = Π_l q(z_l | x, h_{l+1}), from the top down, each a Gaussian whose mean answers to the layer above.

    z_l ~ N(target - hold · F_l(h_{l+1}), std²). Where `hold` is 1, the row says where h_l is, whatever comes from
    above: latents of one layer, under a prior that the others make. Where it is 0, the row says where z_l is. In the
    ladder of Sønderby et al. (2016), a product of the row's word and that from above, hold is 1 - std².
    """

    target: Float[Array, "n k"]
    log_std: Float[Array, "n k"]
    hold: Float[Array, "n k"]
    decoder: LayeredDecoder
    has_log_prob: ClassVar[bool] = True

    @staticmethod
    def n_answers(k: int) -> int:
        """Length of an answer."""
        return 3 * k

    @property
    def mean(self) -> Float[Array, "n k"]:
        """Where noises of 0 lead."""
        return self.sample(jnp.zeros_like(self.target)[:, None])[0][:, 0]

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        said = self.target[:, None] + jnp.exp(self.log_std)[:, None] * noise
        by_row, hold = (_split(part, self.decoder.sizes) for part in (said, self.hold[:, None]))
        drawn: list[Array] = []
        above = None
        for number in reversed(range(len(by_row))):
            from_above = self.decoder.from_above(number, above)
            drawn.append(by_row[number] - hold[number] * from_above)
            above = from_above + drawn[-1]
        # The mean of each layer is a function of the layers above it alone, so that the way from noise to latents has a
        # triangular Jacobian with the deviations on its diagonal, and log q is that of independent Gaussians.
        return jnp.concatenate(drawn[::-1], axis=-1), log_density(noise, self.log_std)

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log q(z), of each row's own latents."""
        return log_density((z - self._means(z)) * jnp.exp(-self.log_std)[:, None], self.log_std)

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> Float[Array, " n"]:
        """KL(q || N(0, I)): of each layer in closed form given the layers above it, which are those of the samples."""
        return kl_to_standard_normal(self._means(z), self.log_std[:, None]).mean(axis=1)

    def _means(self, z: Float[Array, "n s k"]) -> Float[Array, "n s k"]:
        """Of all layers, each given the layers above it in z."""
        from_above = jnp.concatenate(self.decoder.hidden(z), axis=-1) - z
        return self.target[:, None] - self.hold[:, None] * from_above


class LadderParams(VAEParams):
    """A module whose recognition model needs its decoder."""

    def posterior(self, answer: Float[Array, "n a"]) -> Ladder:
        """q(z | x)."""
        target, log_std, hold = jnp.split(answer, 3, axis=1)
        return Ladder(target, jnp.clip(log_std, *LOG_STD_LIMITS), hold, self.decoder)


def first_module(
    key: Key[Array, ""],
    columns: Columns,
    sizes: tuple[int, ...],
    hidden: tuple[int, ...],
    activation: str,
    posterior: str,
    reads_holes: bool,
) -> VAEParams:
    """Networks before training; q starts near N(0, I), and layers have little influence on one another."""
    encoder_key, output_key, *keys = jax.random.split(key, len(sizes) + 1)
    options: dict[str, Any] = {"activation": activation, "output_gain": 0.1}
    pairs = zip(keys, pairwise(sizes), strict=True)
    between = tuple(MLP(own, above, below, hidden=hidden, **options) for own, (below, above) in pairs)
    n_cells, n_latent = n_locations(columns), sum(sizes)
    output = MLP(output_key, sizes[0], n_cells, hidden=hidden[::-1], activation=activation)
    family: Any = {"low_rank": LayerFamily(sizes), "full": Full, "ladder": Ladder}[posterior]
    encoder = MLP(encoder_key, n_cells, family.n_answers(n_latent), hidden=hidden, **options)
    kind = VAEParams
    if posterior == "ladder":
        kind = LadderParams
        bias = jnp.repeat(jnp.array([0, 0, FIRST_HOLD], float_dtype()), n_latent)
        encoder = eqx.tree_at(lambda net: net.layers[-1].bias, encoder, bias)
    return assemble(encoder, LayeredDecoder(between, output, sizes), columns, n_latent, family, reads_holes, kind)


class DeepLatentGaussian(Decoded):
    """Several layers of latents, each Gaussian given the one above.

    Parameters
    ----------
    layers : sizes of the stochastic layers, the one nearest to the data first.
    hidden : sizes of the hidden layers of the networks between them; those of the recognition network as well.
        () makes all of them linear.
    posterior : "ladder", for each layer a Gaussian that depends on the layers drawn above it, through the decoder's own
        networks; "low_rank", for each layer a Gaussian of its own, whose precision is diagonal plus u uᵀ; or "full",
        one Gaussian over all layers.
    activation, n_epochs, batch_size, learning_rate, schedule, warmup_steps, weight_decay, averaging, gradient_clip,
        memory_budget, n_samples, n_importance_train, n_importance_drawn, beta, beta_warmup, patience, validate_every,
        held_out, n_importance, n_refine, warm_start, schema, random_state : as in `likely.VAE`.

    Examples
    --------
    >>> model = DeepLatentGaussian((16, 8))
    >>> model.n_components  # a code is the noise of all layers, the one nearest to the data first
    24
    """

    layers: Sizes = (16, 8)
    _: KW_ONLY
    hidden: Sizes = (200,)
    posterior: Literal["low_rank", "full", "ladder"] = "ladder"

    @property
    def n_components(self) -> int:
        """Number of latents, over all layers; setting it leaves one layer of that size."""
        return sum(self.layers)

    @n_components.setter
    def n_components(self, size: int) -> None:
        self.layers = (size,)

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        width = between(2, round(n_columns**0.5), 32)
        return {"layers": (width, max(1, width // 2)), **stopped(epochs_for(100_000, n_rows))}

    def _build(self):
        return Partial(
            first_module,
            sizes=self._sizes("layers"),
            hidden=self._sizes("hidden"),
            activation=self.activation,
            posterior=self.posterior,
            reads_holes=getattr(self, "reads_holes_", False),
        )

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> VAEParams:
        self._sizes("hidden")
        sizes = self._sizes("layers")
        if not sizes:
            raise ValueError("`layers` must hold the size of at least one layer, got none.")
        self._warn_of_many(sizes[0], "layers")
        self.reads_holes_ = has_holes(rows)
        init_key, train_key = jax.random.split(key)
        return self._learn(self._start(self._build(), rows, init_key), rows, train_key, run)


def _split(array: Array, sizes: tuple[int, ...]) -> list[Array]:
    return jnp.split(array, np.cumsum(sizes)[:-1], axis=-1)


def _total(parts: list[Array]) -> Array:
    return sum(parts[1:], start=parts[0])
