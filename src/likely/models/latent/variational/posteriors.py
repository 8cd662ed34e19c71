"""Families of q(z | x) for autoencoders, made of a recognition network's answer: z as a function of noise, and log q.

An answer begins with a mean and a log standard deviation, k each; what follows moves q away from a diagonal Gaussian,
and zeros leave it there, or nearly. Cost of a sample: k operations for the diagonal, low-rank and planar families, k²
for the full one; the answer has 2k, 3k, 2k + F(2k + 1) and 2k + k(k-1)/2 numbers.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from likely.objectives.elbo import kl_to_standard_normal

# A q narrower or wider than this is an encoder's answer to a row unlike any it has seen.
LOG_STD_LIMITS = (-10.0, 5.0)
N_PLANAR = 4  # maps in a planar flow
FIRST_U_LENGTH = 0.1  # where the answer is zero: enough for a gradient, and a q that is still nearly diagonal
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Diagonal(eqx.Module):
    """N(mean, diag std²)."""

    mean: Float[Array, "n k"]
    log_std: Float[Array, "n k"]
    has_log_prob: ClassVar[bool] = True

    @staticmethod
    def n_answers(k: int) -> int:
        """Length of an answer."""
        return 2 * k

    @classmethod
    def of(cls, answer: Float[Array, "n a"], k: int) -> Diagonal:
        """The q that an answer stands for."""
        return cls(answer[:, :k], jnp.clip(answer[:, k : 2 * k], *LOG_STD_LIMITS))

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        return self.mean[:, None] + jnp.exp(self.log_std)[:, None] * noise, log_density(noise, self.log_std)

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log q(z), of each row's own latents."""
        return log_density((z - self.mean[:, None]) * jnp.exp(-self.log_std)[:, None], self.log_std)

    def log_prob_everywhere(self, z: Float[Array, "p k"]) -> Float[Array, "n p"]:
        """Log q(z) of every row at every point, by products of matrices.

        Several times faster than `log_prob`, and less exact: the squares of (z - mean) / std are multiplied out, which
        in single precision costs their size times 1e-7. For learning, not for evidence.
        """
        weight, centre = jnp.exp(-2 * self.log_std), lax.stop_gradient(self.mean.mean(axis=0, keepdims=True))
        mean, z = self.mean - centre, z - centre
        constant = -0.5 * (mean**2 * weight).sum(axis=1) - self.log_std.sum(axis=1) - z.shape[1] * HALF_LOG_TWO_PI
        return constant[:, None] + (mean * weight) @ z.T - 0.5 * weight @ (z**2).T

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> Float[Array, " n"]:
        """KL(q || N(0, I))."""
        return kl_to_standard_normal(self.mean, self.log_std)


class Full(eqx.Module):
    """N(mean, S Sᵀ), S = diag(std) (I + lower) with `lower` strictly below the diagonal."""

    mean: Float[Array, "n k"]
    log_std: Float[Array, "n k"]
    lower: Float[Array, "n k k"]
    has_log_prob: ClassVar[bool] = True

    @staticmethod
    def n_answers(k: int) -> int:
        """Length of an answer."""
        return 2 * k + k * (k - 1) // 2

    @classmethod
    def of(cls, answer: Float[Array, "n a"], k: int) -> Full:
        """The q that an answer stands for."""
        below = np.tril(np.ones((k, k), bool), -1)
        place = np.where(below, 2 * k - 1 + np.cumsum(below).reshape(k, k), 0)
        # `place` is where in the answer each entry below the diagonal stands, row by row. They are gathered from there,
        # since scattering into a matrix is slow on a processor.
        lower = jnp.where(below[None], answer[:, place], 0)
        return cls(answer[:, :k], jnp.clip(answer[:, k : 2 * k], *LOG_STD_LIMITS), lower)

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        mixed = noise + jnp.einsum("nij,nsj->nsi", self.lower, noise)
        return self.mean[:, None] + jnp.exp(self.log_std)[:, None] * mixed, log_density(noise, self.log_std)

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log q(z), of each row's own latents."""
        # The noise that would have made z: z is unscaled, then I + lower is undone by substitution.
        mixed = (z - self.mean[:, None]) * jnp.exp(-self.log_std)[:, None]
        unit = self.lower + jnp.eye(z.shape[-1], dtype=z.dtype)[None]
        noise = jax.scipy.linalg.solve_triangular(unit, jnp.swapaxes(mixed, 1, 2), lower=True, unit_diagonal=True)
        return log_density(jnp.swapaxes(noise, 1, 2), self.log_std)

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> Float[Array, " n"]:
        """KL(q || N(0, I))."""
        # ½ (tr S Sᵀ + |mean|² - k - log det S Sᵀ): I + lower has determinant 1, and adds to the trace alone.
        more = 0.5 * (jnp.exp(2 * self.log_std) * (self.lower**2).sum(axis=-1)).sum(axis=-1)
        return kl_to_standard_normal(self.mean, self.log_std) + more


class LowRank(eqx.Module):
    """N(mean, C), C⁻¹ = diag(std⁻²) + u uᵀ: a precision of rank one beside its diagonal.

    Rezende, Mohamed and Wierstra (2014). With v = std · u and e = 1 / (1 + |v|²), C = S Sᵀ for
    S = diag(std) (I - e / (1 + √e) v vᵀ), and log det C = Σ log std² + log e.
    """

    mean: Float[Array, "n k"]
    log_std: Float[Array, "n k"]
    u: Float[Array, "n k"]
    has_log_prob: ClassVar[bool] = True

    @staticmethod
    def n_answers(k: int) -> int:
        """Length of an answer."""
        return 3 * k

    @classmethod
    def of(cls, answer: Float[Array, "n a"], k: int) -> LowRank:
        """The q that an answer stands for."""
        # q depends on u by u uᵀ alone, so at u = 0 it would have no gradient, and u would stay there.
        u = answer[:, 2 * k :] + FIRST_U_LENGTH / math.sqrt(k)
        return cls(answer[:, :k], jnp.clip(answer[:, k : 2 * k], *LOG_STD_LIMITS), u)

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        v, e = self._scaled()
        along = jnp.einsum("nk,nsk->ns", v, noise) * (e / (1 + jnp.sqrt(e)))[:, None]
        mixed = noise - along[..., None] * v[:, None]
        z = self.mean[:, None] + jnp.exp(self.log_std)[:, None] * mixed
        return z, log_density(noise, self.log_std) - 0.5 * jnp.log(e)[:, None]

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log q(z), of each row's own latents."""
        # (z - mean)ᵀ C⁻¹ (z - mean) = |mixed|² + (vᵀ mixed)², without C or its root.
        v, e = self._scaled()
        mixed = (z - self.mean[:, None]) * jnp.exp(-self.log_std)[:, None]
        along = jnp.einsum("nk,nsk->ns", v, mixed)
        return log_density(mixed, self.log_std) - 0.5 * along**2 - 0.5 * jnp.log(e)[:, None]

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> Float[Array, " n"]:
        """KL(q || N(0, I))."""
        # By Sherman and Morrison C = diag(std²) - e (std · v)(std · v)ᵀ: its trace is less by that of the last term,
        # and log e is added to its log determinant.
        v, e = self._scaled()
        less = e * ((jnp.exp(self.log_std) * v) ** 2).sum(axis=-1) + jnp.log(e)
        return kl_to_standard_normal(self.mean, self.log_std) - 0.5 * less

    def _scaled(self) -> tuple[Array, Array]:
        v = jnp.exp(self.log_std) * self.u
        return v, 1 / (1 + (v**2).sum(axis=-1))


class Planar(eqx.Module):
    """A diagonal Gaussian sent through F maps z -> z + u tanh(wᵀz + b), whose u, w, b depend on the row.

    Rezende and Mohamed (2015). A map can be undone if wᵀu > -1, which `planar_step` sees to. Only samples know their
    log q: that of a given z would take the maps' inverses, which have no closed form.
    """

    base: Diagonal
    u: Float[Array, "n F k"]
    w: Float[Array, "n F k"]
    b: Float[Array, "n F"]
    has_log_prob: ClassVar[bool] = False

    @staticmethod
    def n_answers(k: int) -> int:
        """Length of an answer."""
        return 2 * k + N_PLANAR * (2 * k + 1)

    @classmethod
    def of(cls, answer: Float[Array, "n a"], k: int) -> Planar:
        """The q that an answer stands for; u = 0 makes a map the identity."""
        n, size = len(answer), N_PLANAR * k
        u, w, b = jnp.split(answer[:, 2 * k :], [size, 2 * size], axis=1)
        # Each map begins with a direction of its own: at w = 0 and u = 0 neither would have a gradient.
        first = np.eye(k)[np.arange(N_PLANAR) % k][None]
        w = w.reshape(n, N_PLANAR, k) + jnp.asarray(first, answer.dtype)
        return cls(Diagonal.of(answer, k), u.reshape(n, N_PLANAR, k), w, b)

    @property
    def mean(self) -> Float[Array, "n k"]:
        """Where the flow sends the mean of its base, which is near q's own mean."""
        return self.sample(jnp.zeros_like(self.base.mean)[:, None])[0][:, 0]

    def sample(self, noise: Float[Array, "n s k"]) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
        """Latents, and log q of them."""
        z, log_q = self.base.sample(noise)
        for step in range(N_PLANAR):
            z, log_det = planar_step(z, self.u[:, step], self.w[:, step], self.b[:, step])
            log_q = log_q - log_det
        return z, log_q

    def kl_to_standard_normal(self, z: Float[Array, "n s k"]) -> None:
        """None: there is no closed form."""


FAMILIES: dict[str, Any] = {"diagonal": Diagonal, "full": Full, "low_rank": LowRank, "planar": Planar}


def planar_step(
    z: Float[Array, "n s k"], u: Float[Array, "n k"], w: Float[Array, "n k"], b: Float[Array, " n"]
) -> tuple[Float[Array, "n s k"], Float[Array, "n s"]]:
    """z + u tanh(wᵀz + b), and the log of its Jacobian's determinant, 1 + (1 - tanh²) wᵀu.

    u is moved along w first where wᵀu < 0, to the value elu(wᵀu) > -1.
    """
    # After the move wᵀu is elu(along) exactly, which is `along` itself where that is positive; the small number is for
    # w = 0, where there is no direction to move in, and no need to.
    along = (w * u).sum(axis=-1)
    u = u + ((jax.nn.elu(along) - along) / ((w**2).sum(axis=-1) + 1e-12))[:, None] * w
    bend = jnp.tanh(jnp.einsum("nk,nsk->ns", w, z) + b[:, None])
    slope = (1 - bend**2) * jax.nn.elu(along)[:, None]
    return z + bend[..., None] * u[:, None], jnp.log1p(slope)


def log_density(noise: Float[Array, "n s k"], log_std: Float[Array, "n k"]) -> Float[Array, "n s"]:
    """Log density of mean + std · noise."""
    constant = log_std.sum(axis=-1) + noise.shape[-1] * HALF_LOG_TWO_PI
    return -0.5 * (noise**2).sum(axis=-1) - constant[:, None]
