"""Variational autoencoder: z ~ N(0, I), x | z ~ columns at decoder(z); learned with q(z | x) = N(mean(x), std²(x)).

Kingma and Welling (2014). Trained by the evidence lower bound; evidence by importance sampling from q (Burda, Grosse
and Salakhutdinov, 2016). Cost: an epoch takes about 6 x rows x weights floating-point operations, an evidence
2 x rows x `n_importance` x weights of the decoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from sklearn.utils._param_validation import Interval, StrOptions

from likely.columns import Columns
from likely.conditional import ConditionalParts
from likely.evidence import Evidence
from likely.model import FitRun, Model
from likely.montecarlo.importance import Weighted, resample, weigh
from likely.nets import ACTIVATIONS, MLP, encoder_features, location_mean, location_natural, log_density_at, n_locations
from likely.nets.heads import spread_locations
from likely.objectives.elbo import antithetic_noise, elbo_loss, log_importance_weights, negative_elbo, refine_posterior
from likely.runtime import BLOCK_ROWS, by_blocks, float_dtype, sum_blocks
from likely.training import TrainingConfig, train
from likely.training.optimisers import SCHEDULES

# A q narrower or wider than this is an encoder's answer to a row unlike any it has seen.
_LOG_STD_LIMITS = (-10.0, 5.0)
_REFINING_SAMPLES = 8


class Autoencoder(eqx.Module):
    """Both networks, and what stands between them and the columns.

    encoder : features (L,) -> mean and log std (2k,).
    decoder : latents (k,) -> locations (L,).
    holes : (n_first, d) what an unobserved cell adds to the encoder's first layer; None if training rows were complete.
    log_scale : (r,) of the real columns.
    offset : (L,) mean features, subtracted from what the encoder reads; not trained.
    """

    encoder: MLP
    decoder: MLP
    holes: Float[Array, "h d"] | None
    log_scale: Float[Array, " r"]
    offset: Float[Array, " L"]
    columns: Columns = eqx.field(static=True)

    @property
    def n_latent(self) -> int:
        """Number k of latents."""
        return self.decoder.layers[0].weight.shape[1]

    def posterior(
        self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
        """Mean and log standard deviation of q(z | x)."""
        # centred, so that the 0 of an unobserved cell says "as usual"
        features = encoder_features(self.columns, x, observed, jax.lax.stop_gradient(self.offset))
        shift = None
        if observed is not None and self.holes is not None:
            shift = (~observed).astype(x.dtype) @ self.holes.T
        mean, log_std = jnp.split(self.encoder(features, shift), 2, axis=-1)
        return mean, jnp.clip(log_std, *_LOG_STD_LIMITS)

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


def posterior(
    key: Key[Array, ""], module: Autoencoder, x: Array, observed: Array | None, *, n_refine: int
) -> tuple[Array, Array]:
    """q(z | x); of rows with unobserved cells refined by `n_refine` steps on their own bound."""
    if observed is None or n_refine == 0:
        return module.posterior(x, observed)
    noise = antithetic_noise(key, _REFINING_SAMPLES, module.n_latent, x.dtype)
    return refine_posterior(noise, module, x, observed, n_steps=n_refine)


@eqx.filter_jit
def weigh_rows(
    key: Key[Array, ""],
    module: Autoencoder,
    x: Array,
    observed: Array | None,
    *,
    n_importance: int,
    n_refine: int,
    conditional: bool = False,
) -> tuple[Weighted, tuple[Array, Array]]:
    """Importance samples of each row's latents, weighed, and the q they came from.

    `conditional` also averages the columns' mean statistics and keeps the weights.
    """
    noise_key, refine_key = jax.random.split(key)
    mean, log_std = posterior(refine_key, module, x, observed, n_refine=n_refine)

    def sampler(noise):
        log_weights, z = log_importance_weights(module, x, observed, mean, log_std, noise)
        return log_weights, module.mean(z) if conditional else None

    weighted = weigh(
        noise_key, sampler, n_samples=n_importance, n_latent=module.n_latent, dtype=x.dtype, keep_weights=conditional
    )
    return weighted, (mean, log_std)


@eqx.filter_jit
def _draw(key: Array, noise_key: Array, module: Autoencoder, log_weights: Array, mean: Array, log_std: Array) -> Array:
    """A row for each q and its weights: a latent resampled by weight, then the columns."""
    latent_key, column_key = jax.random.split(key)
    noise = resample(latent_key, noise_key, log_weights, mean.shape[1])
    return module.sample(column_key, mean + jnp.exp(log_std) * noise)


@eqx.filter_jit
def _draw_new(key: Array, module: Autoencoder, n: int) -> Array:
    latent_key, column_key = jax.random.split(key)
    return module.sample(column_key, jax.random.normal(latent_key, (n, module.n_latent), module.offset.dtype))


@eqx.filter_jit
def _codes(key, module, x, observed, n_refine):
    return posterior(key, module, x, observed, n_refine=n_refine)[0]


@eqx.filter_jit
def _decode(module, z):
    return module.mean(z)


@eqx.filter_jit
def _totals(x, observed, weight, columns):
    """Sums of statistics and features over rows, and the weight behind each column."""
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    features = encoder_features(columns, x, observed)
    return weight @ columns.statistics(x, observed), weight @ features, weight @ seen


def first_module(
    key: Key[Array, ""], columns: Columns, n_latent: int, hidden: tuple[int, ...], activation: str, reads_holes: bool
) -> Autoencoder:
    """Networks before training; the encoder starts near the prior."""
    encoder_key, decoder_key = jax.random.split(key)
    n_cells, dtype = n_locations(columns), float_dtype()
    encoder = MLP(encoder_key, n_cells, 2 * n_latent, hidden=hidden, activation=activation, output_gain=0.1)
    decoder = MLP(decoder_key, n_latent, n_cells, hidden=hidden[::-1], activation=activation)
    return Autoencoder(
        encoder=encoder,
        decoder=decoder,
        holes=jnp.zeros((encoder.n_first, columns.n_columns), dtype) if reads_holes else None,
        log_scale=jnp.zeros(len(columns.real_places), dtype),
        offset=jnp.zeros(n_cells, dtype),
        columns=columns,
    )


@eqx.filter_jit
def _centred_module(statistics: Array, features: Array, seen: Array, *args: Any) -> Autoencoder:
    """The first module, its decoder starting at the columns' own means: training starts from `Independent`.

    The sums are those of `_totals`.
    """
    module = first_module(*args)
    columns = module.columns
    # half a row of each outcome keeps what was never seen possible
    natural = columns.natural((statistics + 0.5) / (columns.spread(seen) + 1.0))
    is_real = np.isin(columns.column_of, columns.real_places)
    location = jnp.where(is_real, 0, natural)[~columns.is_quadratic]  # in standard units real means are 0
    offset = features / jnp.maximum(spread_locations(columns, seen), 1)
    return eqx.tree_at(lambda m: (m.decoder.layers[-1].bias, m.offset), module, (location, offset))


class VAE(Model):
    """Variational autoencoder with multilayer perceptrons both ways.

    Parameters
    ----------
    n_components : number of latents.
    hidden : sizes of the encoder's hidden layers; the decoder has them in reverse. () makes both linear.
    activation : "gelu", "tanh", "relu", "softplus", "sigmoid", "elu", "swish" ...
    n_epochs, batch_size, learning_rate, schedule, weight_decay, averaging, gradient_clip, memory_budget : see
        `TrainingConfig`; the optimiser is Adam.
    warmup_steps : steps in which the learning rate rises to its value.
    n_samples : latents a row and step in the training bound.
    beta : weight of the KL divergence in the training bound; 1 is the evidence lower bound.
    beta_warmup : epochs in which that weight rises from 0.
    patience, validate_every : early stopping, in epochs, when `fit` is given `valid` rows; the best epoch is kept.
    n_importance : samples a row behind an evidence (which rises with it towards the exact one) and a `condition`.
    n_refine : gradient steps that fit q(z | x) of each row that has unobserved cells, from the encoder's answer on.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    The encoder reads x, one-hot categories and log(1 + count), less their mean over the training rows, and 0 for an
    unobserved cell. If training rows had unobserved cells, it is also told which.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.VAE(n_components=4, hidden=(32,), n_epochs=5, n_importance=16, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'lower'
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden": [tuple, list],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "warmup_steps": [Interval(Integral, 0, None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "averaging": [Interval(Real, 0, 1, closed="right"), None],
        "gradient_clip": [Interval(Real, 0, None, closed="neither"), None],
        "memory_budget": [Interval(Integral, 1, None, closed="left")],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "beta_warmup": [Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "validate_every": [Interval(Integral, 1, None, closed="left")],
        "n_importance": [Interval(Integral, 1, None, closed="left")],
        "n_refine": [Interval(Integral, 0, None, closed="left")],
        "schema": "no_validation",
        "random_state": ["random_state"],
    }
    _resumable = True
    _effort = "n_importance"

    def __init__(
        self,
        n_components: int = 16,
        *,
        hidden: Any = (200, 200),
        activation: str = "gelu",
        n_epochs: int = 200,
        batch_size: int = 100,
        learning_rate: float = 3e-3,
        schedule: str = "cosine",
        warmup_steps: int = 0,
        weight_decay: float = 0.1,
        averaging: float | None = None,
        gradient_clip: float | None = None,
        memory_budget: int = 2 << 30,
        n_samples: int = 1,
        beta: float = 1.0,
        beta_warmup: float = 10.0,
        patience: int | None = None,
        validate_every: int = 1,
        n_importance: int = 256,
        n_refine: int = 30,
        schema: Any = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.hidden = hidden
        self.activation = activation
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warmup_steps = warmup_steps
        self.weight_decay = weight_decay
        self.averaging = averaging
        self.gradient_clip = gradient_clip
        self.memory_budget = memory_budget
        self.n_samples = n_samples
        self.beta = beta
        self.beta_warmup = beta_warmup
        self.patience = patience
        self.validate_every = validate_every
        self.n_importance = n_importance
        self.n_refine = n_refine
        self.schema = schema
        self.random_state = random_state

    def _init(self, key, columns):
        reads_holes = getattr(self, "reads_holes_", False)
        return first_module(key, columns, self.n_components, tuple(self.hidden), self.activation, reads_holes)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> Autoencoder:
        self._check_hidden()
        self.reads_holes_ = bool(np.isnan(rows).any())
        init_key, train_key = jax.random.split(key)
        n_latent, hidden = self.n_components, tuple(int(size) for size in self.hidden)
        totals = sum_blocks(partial(_totals, columns=self.columns_), rows)
        totals = [jnp.asarray(total, float_dtype()) for total in totals]
        module = _centred_module(*totals, init_key, self.columns_, n_latent, hidden, self.activation, self.reads_holes_)
        n_warmup = math.ceil(self.beta_warmup * math.ceil(len(rows) / self.batch_size))
        result = train(
            module,
            partial(negative_elbo, n_latent=n_latent, n_samples=self.n_samples, beta=self.beta, warmup_steps=n_warmup),
            rows,
            config=self._config(patience=None if run.valid is None else self.patience),
            key=train_key,
            state=jnp.array(0, jnp.int32) if n_warmup else None,
            validate=None if run.valid is None else partial(elbo_loss, n_latent=n_latent, n_samples=4),
            valid_rows=run.valid,
            checkpoint=run.checkpoint,
            resume=run.resume,
        )
        self.history_ = result.history
        return result.module

    def _config(self, patience: int | None) -> TrainingConfig:
        names = ("n_epochs", "batch_size", "learning_rate", "schedule", "warmup_steps", "weight_decay", "averaging")
        more = ("gradient_clip", "validate_every", "memory_budget")
        settings = {name: getattr(self, name) for name in names + more}
        return TrainingConfig(optimizer="adam", patience=patience, **settings)

    def _check_hidden(self) -> None:
        if not all(isinstance(size, int | np.integer) and size >= 1 for size in self.hidden):
            raise ValueError(f"`hidden` must hold sizes of layers, whole numbers of at least 1, got {self.hidden!r}.")

    def _evidence(self, rows, key):
        weighted = self._apart(lambda x, observed: self._weigh(key, x, observed)[0][:2], rows)
        method = f"importance sampling from q(z | x), {self.n_importance} samples"
        replicates = weighted[1] if self.n_importance > 1 else None
        return Evidence.lower_bound(weighted[0], replicates, method=method)

    def _sample(self, key, n):
        blocks = range(math.ceil(n / BLOCK_ROWS))
        rows = [np.asarray(_draw_new(jax.random.fold_in(key, b), self.params_, BLOCK_ROWS)) for b in blocks]
        return np.concatenate(rows)[:n]

    def _condition(self, rows, key):
        noise_key, _ = jax.random.split(key)
        weighted, q = self._apart(lambda x, observed: self._weigh(key, x, observed, conditional=True), rows)

        def sample(draw_key: Any, n: int) -> np.ndarray:
            # rows and draws in one list, in blocks of one shape: one program, whatever their numbers
            whose = np.arange(math.ceil(n * len(rows) / BLOCK_ROWS) * BLOCK_ROWS) % len(rows)
            draws = []
            for number, part in enumerate(whose.reshape(-1, BLOCK_ROWS)):
                own = [jnp.asarray(a[part]) for a in (weighted.log_weights, *q)]
                draws.append(np.asarray(_draw(jax.random.fold_in(draw_key, number), noise_key, self.params_, *own)))
            return np.concatenate(draws)[: n * len(rows)].reshape(n, len(rows), -1)

        method = f"importance resampling of {self.n_importance} latents"
        return ConditionalParts(weighted.average, sample, method)

    def _encode(self, rows, key):
        return self._apart(lambda x, observed: _codes(key, self.params_, x, observed, self.n_refine), rows)

    def _decode(self, codes):
        return by_blocks(lambda z, _: _decode(self.params_, z), codes)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))

    def _weigh(self, key: jax.Array, x: Array, observed: Array | None, conditional: bool = False) -> Any:
        return weigh_rows(
            key,
            self.params_,
            x,
            observed,
            n_importance=self.n_importance,
            n_refine=self.n_refine,
            conditional=conditional,
        )

    def _apart(self, function: Callable, rows: np.ndarray) -> Any:
        """By blocks, complete rows apart from the others: each is treated as it would be if it came alone."""
        incomplete = np.isnan(rows).any(axis=1)
        if not incomplete.any() or incomplete.all():
            return by_blocks(function, rows)
        parts = by_blocks(function, rows[~incomplete]), by_blocks(function, rows[incomplete])
        place = np.argsort(np.concatenate([np.flatnonzero(~incomplete), np.flatnonzero(incomplete)]))
        return jax.tree.map(lambda *pieces: np.concatenate(pieces)[place], *parts)
