"""The evidence lower bound: log p(x) >= E_q[log p(x | z)] - KL(q(z | x) || p(z)).

Kingma and Welling (2014); Rezende, Mohamed and Wierstra (2014). A sample of q is a function of standard normal noise,
which makes the bound differentiable in q's parameters. The KL divergence has a closed form where q and the prior allow
it; otherwise it is averaged over the same samples. Only observed cells are counted: the bound is then one on the
evidence of the observed part.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Key


class Posterior(Protocol):
    """q(z | x) of n rows; those with `has_log_prob` also have log_prob(z), log q of any latents (n, s, k)."""

    has_log_prob: ClassVar[bool]

    def sample(self, noise: Array) -> tuple[Array, Array]:
        """Latents (n, s, k) from noise (n, s, k), and log q of them (n, s)."""

    def kl_to_standard_normal(self, z: Array) -> Array | None:
        """KL(q || N(0, I)) (n,), in closed form as far as there is one, the rest by q's samples z; None if nowhere."""


class Prior(Protocol):
    """p(z)."""

    def log_prob(self, z: Array) -> Array:
        """log p(z) (n, s) of latents (n, s, k)."""

    def divergence(self, q: Any, z: Array, log_q: Array) -> Array:
        """KL(q || p) (n,): in closed form, or from q's samples z and their log q."""


class LatentModel(Protocol):
    """What the bound needs of a module.

    Between x and q stands the *answer* of the recognition network, one vector a row: it is what is kept of a q, and
    what is refined.
    """

    @property
    def n_latent(self) -> int:
        """Number k of latents, and of the noise behind them."""

    def recognise(self, x: Array, observed: Array | None) -> Array:
        """The answer (n, a) of the recognition network; zeros would mean a q near the prior."""

    def posterior(self, answer: Array) -> Posterior:
        """The q that an answer stands for."""

    def prior(self) -> Prior:
        """p(z)."""

    def log_likelihood(self, x: Array, observed: Array | None, z: Array) -> Array:
        """log p(x | z) (n, s) of rows (n, d) for latents (n, s, k)."""


def kl_to_standard_normal(mean: Float[Array, "*#n k"], log_std: Float[Array, "*#n k"]) -> Float[Array, "*n"]:
    """KL(N(mean, std²) || N(0, I)) = ½ sum (std² + mean² - 1 - log std²).

    >>> float(kl_to_standard_normal(jnp.array([1.0]), jnp.array([0.0])))
    0.5
    """
    return 0.5 * (jnp.exp(2 * log_std) + mean**2 - 1 - 2 * log_std).sum(axis=-1)


def elbo(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    noise: Float[Array, "n s k"],
    beta: Any = 1.0,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """The bound of each row from s samples, and its parts: expected log-likelihood, and KL.

    `beta` weighs the KL; it is a bound on log p(x) for beta >= 1.
    """
    return elbo_of(module, x, observed, module.recognise(x, observed), noise, beta)


def elbo_of(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "n s k"],
    beta: Any = 1.0,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """As `elbo`, for the q of a given answer."""
    q = module.posterior(answer)
    z, log_q = q.sample(noise)
    fit = module.log_likelihood(x, observed, z).mean(axis=1)
    divergence = module.prior().divergence(q, z, log_q)
    return fit - beta * divergence, fit, divergence


def negative_elbo(
    module: LatentModel,
    batch: Any,
    key: Key[Array, ""],
    state: Any,
    *,
    n_samples: int = 1,
    beta: float = 1.0,
    warmup_steps: int = 0,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean bound of the batch's rows.

    Parameters
    ----------
    state : number of steps done, an integer array, when there is a warm-up; else None.
    n_samples : latents a row.
    warmup_steps : steps in which the weight of the KL rises linearly from 0 to `beta`, so that the decoder learns to
        use the latents before q is drawn to the prior.
    """
    weight_of_kl, state = warmed_up(beta, state, warmup_steps, batch.x.dtype)
    noise = noise_of_rows(key, module, batch.x, n_samples)
    value, fit, divergence = elbo(module, batch.x, batch.observed, noise, weight_of_kl)
    share = batch.weight / batch.weight.sum()
    metrics = {"elbo": share @ (fit - divergence), "kl": share @ divergence}
    return -(share @ value), (state, metrics)


def warmed_up(beta: float, state: Any, warmup_steps: int, dtype: Any) -> tuple[Any, Any]:
    """The weight of the KL at this step, and the state of the next one."""
    if not warmup_steps:
        return beta, state
    return beta * jnp.minimum(1.0, (state + 1) / warmup_steps).astype(dtype), state + 1


def elbo_loss(module: LatentModel, batch: Any, key: Key[Array, ""], *, n_samples: int = 1) -> Float[Array, " n"]:
    """Minus the bound of each row, for validation."""
    noise = noise_of_rows(key, module, batch.x, n_samples)
    return -elbo(module, batch.x, batch.observed, noise)[0]


def log_importance_weights(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "c k"],
) -> tuple[Float[Array, "n c"], Float[Array, "n c k"]]:
    """log p(x, z) - log q(z | x) of the latents z that every row makes of the same noise, and these latents."""
    z, log_q = module.posterior(answer).sample(jnp.broadcast_to(noise[None], (len(answer), *noise.shape)))
    return module.log_likelihood(x, observed, z) + module.prior().log_prob(z) - log_q, z


def refine_answer(
    noise: Float[Array, "s k"],
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    *,
    n_steps: int,
    learning_rate: float = 0.1,
) -> Float[Array, "n a"]:
    """The answer for each row, improved by ascending the row's own bound from the network's on.

    Kim et al. (2018). An encoder has seen few patterns of unobserved cells, if any; this repairs its answer. It starts
    from zeros, a q near the prior, where that is the better of the two, and returns the best of `n_steps` that it
    meets. The bound is that of the given noise, the same for all rows; rows do not influence each other.
    """
    encoded = module.recognise(x, observed)
    spread = jnp.broadcast_to(noise[None], (len(x), *noise.shape))
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, n_steps, 0.1))

    def loss(answer):
        value = elbo_of(module, x, observed, answer, spread)[0]
        return -value.sum(), value

    def body(carry, _):
        answer, moments, best, highest = carry
        (_, value), slope = jax.value_and_grad(loss, has_aux=True)(answer)
        best, highest = jnp.where((value > highest)[:, None], answer, best), jnp.maximum(value, highest)
        # Adam works entry by entry, so that one sum over all rows gives every row the steps that it would take alone.
        change, moments = optimiser.update(slope, moments)
        return (optax.apply_updates(answer, change), moments, best, highest), None

    candidates = jnp.stack([encoded, jnp.zeros_like(encoded)])
    values = lax.map(lambda answer: loss(answer)[1], candidates)  # By `map`, so that the network is compiled once.
    first = jnp.where((values[0] > values[1])[:, None], candidates[0], candidates[1])
    start = (first, optimiser.init(first), first, jnp.full(len(x), -jnp.inf, x.dtype))
    (_, _, best, _), _ = lax.scan(body, start, None, length=n_steps)
    return best


def noise_of_rows(key: Key[Array, ""], module: Any, x: Float[Array, "n d"], n_samples: int) -> Float[Array, "n s k"]:
    """Noise for the latents of each row, independent of all others'."""
    return jax.random.normal(key, (len(x), n_samples, module.n_latent), x.dtype)


def antithetic_noise(key: Key[Array, ""], n: int, n_latent: int, dtype: Any) -> Float[Array, "n k"]:
    """Standard normal noise in pairs of opposite sign: what is odd in it averages to exactly 0."""
    half = jax.random.normal(key, (n // 2, n_latent), dtype)
    return jnp.concatenate([half, -half])
