"""Adversarial training: a critic learns to tell rows from the generator's, and the generator to deceive it.

Goodfellow et al. (2014): min over G, max over D of E[log D(x)] + E[log(1 - D(G(z)))]. For a given generator of density
g the best critic is D* = p / (p + g), and the value there is 2 JS(p, g) - log 4. With scores f = log D/(1 - D):

| loss | critic minimises | generator minimises |
|---|---|---|
| "saturating" | E softplus(-f(x)) + E softplus(f(G)) | -E softplus(f(G)), the same value |
| "non_saturating" | the same | E softplus(-f(G)), whose slope does not vanish when the critic wins |
| "wasserstein" | E f(G) - E f(x) | -E f(G) (Arjovsky et al., 2017) |

The critic's slopes are penalised: E½‖∇f(x)‖² at rows for the first two (R1; Mescheder et al., 2018), E(‖∇f‖ - 1)²
between rows and samples for the third (WGAN-GP; Gulrajani et al., 2017). Cost of a step: `n_critic` updates of the
critic, with a second derivative where slopes are penalised, and one of the generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Key

LOSSES = ("non_saturating", "saturating", "wasserstein")
Critic = Callable[[Array], Array]  # (n, L) -> (n, 1)


class Player(Protocol):
    """What the objective needs of the generator's module."""

    n_latent: int

    def features(self, x: Array, observed: Array | None) -> Array:
        """What the critic reads of rows."""

    def fake_features(self, key: Array, z: Array, observed: Array | None) -> Array:
        """What it reads of generated rows, differentiable."""


class Opponent(eqx.Module):
    """The critic and its optimiser: the state that the generator's training carries along."""

    critic: Any
    moments: Any

    @classmethod
    def first(cls, critic: Any, learning_rate: float) -> Opponent:
        """Before the first step."""
        return cls(critic, _optimiser(learning_rate).init(critic))


def adversarial(
    module: Player,
    batch: Any,
    key: Key[Array, ""],
    state: Opponent,
    *,
    loss: str,
    penalty: float,
    n_critic: int,
    learning_rate: float,
) -> tuple[Array, tuple[Opponent, dict[str, Array]]]:
    """Objective of the generator, for `likely.training.train`; the critic in `state` moves first.

    Unobserved cells are hidden from the critic, and so are, in the row generated beside it, the same cells.

    Parameters
    ----------
    loss : one of `LOSSES`. penalty : weight of the penalty on slopes. n_critic : updates of the critic.
    learning_rate : the critic's.
    """
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    share = jnp.asarray(batch.weight) / jnp.maximum(jnp.sum(batch.weight), 1)
    real, fixed = module.features(x, observed), lax.stop_gradient(module)

    def improve(opponent: Opponent, step_key: Array) -> tuple[Opponent, Array]:
        draw_key, between_key = jax.random.split(step_key)
        fake = _generate(draw_key, fixed, len(x), x.dtype, observed)
        value, slope = jax.value_and_grad(critic_loss)(
            opponent.critic, between_key, real, fake, share, loss=loss, penalty=penalty
        )
        change, moments = _optimiser(learning_rate).update(slope, opponent.moments, opponent.critic)
        return Opponent(optax.apply_updates(opponent.critic, change), moments), value

    critic_key, own_key = jax.random.split(key)
    state, values = lax.scan(improve, state, jax.random.split(critic_key, n_critic))
    scores = state.critic(_generate(own_key, module, len(x), x.dtype, observed))[:, 0]
    return generator_loss(scores, share, loss), (state, {"critic": values[-1]})


def critic_loss(
    critic: Critic,
    key: Key[Array, ""],
    real: Float[Array, "n L"],
    fake: Float[Array, "n L"],
    share: Float[Array, " n"],
    *,
    loss: str,
    penalty: float,
) -> Array:
    """What the critic minimises: how badly it tells the two apart, plus the penalty on its slopes."""
    total = score_loss(critic(real)[:, 0], critic(fake)[:, 0], share, share, loss)
    if not penalty:
        return total
    if loss == "wasserstein":
        place = jax.random.uniform(key, (len(real), 1), real.dtype)
        between = place * real + (1 - place) * fake
        # A root at 0 has no slope; the small number gives it one.
        norm = jnp.sqrt(squared_slopes(critic, between) + 1e-12)
        return total + penalty * (share @ (norm - 1) ** 2)
    return total + 0.5 * penalty * (share @ squared_slopes(critic, real))


def score_loss(
    real: Float[Array, " n"], fake: Float[Array, " m"], real_share: Array, fake_share: Array, loss: str
) -> Array:
    """The critic's loss from its scores; shares are weights that sum to 1.

    >>> undecided = jnp.zeros(2)
    >>> half = jnp.full(2, 0.5)
    >>> round(float(score_loss(undecided, undecided, half, half, "saturating")), 4)      # log 4
    1.3863
    """
    if loss == "wasserstein":
        return fake_share @ fake - real_share @ real
    return real_share @ jax.nn.softplus(-real) + fake_share @ jax.nn.softplus(fake)


def generator_loss(scores: Float[Array, " n"], share: Float[Array, " n"], loss: str) -> Array:
    """The generator's loss from the critic's scores of its rows."""
    if loss == "wasserstein":
        return -share @ scores
    return share @ jax.nn.softplus(-scores) if loss == "non_saturating" else -share @ jax.nn.softplus(scores)


def squared_slopes(critic: Critic, features: Float[Array, "n L"]) -> Float[Array, " n"]:
    """‖∇f‖² at each row."""
    # Rows do not meet in a critic, so the gradient of their sum is that of each.
    slopes = jax.grad(lambda rows: critic(rows).sum())(features)
    return (slopes**2).sum(axis=1)


def _generate(key: Array, module: Player, n: int, dtype: Any, observed: Bool[Array, "n d"] | None) -> Array:
    latent_key, row_key = jax.random.split(key)
    z = jax.random.normal(latent_key, (n, module.n_latent), dtype)
    return module.fake_features(row_key, z, observed)


def _optimiser(learning_rate: float) -> optax.GradientTransformation:
    # It remembers past slopes for less long than usual, since the other player moves on (Radford et al., 2016).
    return optax.adam(learning_rate, b1=0.5)
