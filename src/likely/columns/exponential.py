"""The four observation families: p(x | eta) = h(x) exp(eta · T(x) - A(eta)).

Each works on a block of m columns of its kind at once. Statistics and natural parameters have their statistics on the
last axes: (..., m, s) with s statistics a column: 1 for Bernoulli and Poisson, K for a categorical, 2 for a Gaussian.

| family      | T(x)    | eta                  | A(eta)                        | mean of T           |
|-------------|---------|----------------------|-------------------------------|---------------------|
| Bernoulli   | x       | logit p              | log(1 + e^eta)                | p                   |
| categorical | one-hot | logits               | log sum e^eta                 | softmax             |
| Poisson     | x       | log rate             | e^eta                         | rate                |
| Gaussian    | x, x²   | m/s², -1/(2s²)       | m²/(2s²) + log s + log(2π)/2  | m, m² + s²          |
"""

from __future__ import annotations

import abc
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

# A rate of e^20 is far above any count that a table holds, and its square still fits into float32. An untrained network
# may ask for more, and its gradient would be infinite.
_MAX_LOG_RATE = 20.0
_FEW = 128  # categories, up to which a product with a triangle of ones is the fastest way to add them up


class Family(abc.ABC):
    """An exponential family for a block of columns; stateless, abstract or final."""

    @staticmethod
    @abc.abstractmethod
    def n_statistics(n_categories: int) -> int:
        """Length s of T(x)."""

    @staticmethod
    @abc.abstractmethod
    def statistics(x: Float[Array, "*n m"], s: int) -> Float[Array, "*n m s"]:
        """T(x)."""

    @staticmethod
    @abc.abstractmethod
    def log_base(x: Float[Array, "*n m"]) -> Float[Array, "*n m"]:
        """Log h(x)."""

    @staticmethod
    @abc.abstractmethod
    def log_partition(eta: Float[Array, "*n m s"]) -> Float[Array, "*n m"]:
        """A(eta)."""

    @staticmethod
    @abc.abstractmethod
    def mean(eta: Float[Array, "*n m s"]) -> Float[Array, "*n m s"]:
        """E[T(x)], the gradient of A."""

    @staticmethod
    @abc.abstractmethod
    def natural(mean: Float[Array, "*n m s"], floor: float) -> Float[Array, "*n m s"]:
        """Eta with that mean: the inverse of `mean`, with probabilities, rates and variances kept above `floor`."""

    @staticmethod
    @abc.abstractmethod
    def sample(key: Key[Array, ""], eta: Float[Array, "*n m s"]) -> Float[Array, "*n m"]:
        """X ~ p(x | eta)."""


class Bernoulli(Family):
    """x in {0, 1}."""

    @staticmethod
    def n_statistics(n_categories):
        return 1

    @staticmethod
    def statistics(x, s):
        return x[..., None]

    @staticmethod
    def log_base(x):
        return jnp.zeros_like(x)

    @staticmethod
    def log_partition(eta):
        return jax.nn.softplus(eta[..., 0])

    @staticmethod
    def mean(eta):
        return jax.nn.sigmoid(eta)

    @staticmethod
    def natural(mean, floor):
        p = jnp.clip(mean, floor, 1 - floor)
        return jnp.log(p) - jnp.log1p(-p)

    @staticmethod
    def sample(key, eta):
        return jax.random.bernoulli(key, jax.nn.sigmoid(eta[..., 0])).astype(eta.dtype)


class Categorical(Family):
    """x in {0, ..., K-1}."""

    @staticmethod
    def n_statistics(n_categories):
        return n_categories

    @staticmethod
    def statistics(x, s):
        # Codes are floats, as all cells are, and whole, so that comparing them is safe.
        codes = jnp.expand_dims(jnp.arange(s, dtype=x.dtype), tuple(range(x.ndim)))
        return (x[..., None] == codes).astype(x.dtype)

    @staticmethod
    def log_base(x):
        return jnp.zeros_like(x)

    @staticmethod
    def log_partition(eta):
        return jax.nn.logsumexp(eta, axis=-1)

    @staticmethod
    def mean(eta):
        return jax.nn.softmax(eta, axis=-1)

    @staticmethod
    def natural(mean, floor):
        return jnp.log(jnp.maximum(mean, floor))

    @staticmethod
    def sample(key, eta):
        # By the inverse distribution function, one uniform number a cell: a Gumbel variable for each category, as
        # `jax.random.categorical` has it, took seven times as long, which was most of a step of a chain.
        k = eta.shape[-1]
        weights = jnp.exp(eta - eta.max(axis=-1, keepdims=True))
        # A product with ones up to the diagonal is a sum of all so far, and faster than one while they are few.
        ladder = weights @ jnp.triu(jnp.ones((k, k), eta.dtype)) if k <= _FEW else jnp.cumsum(weights, axis=-1)
        level = ladder[..., -1:] * jax.random.uniform(key, (*eta.shape[:-1], 1), eta.dtype)
        return jnp.minimum(jnp.sum(ladder <= level, axis=-1), k - 1).astype(eta.dtype)


class Poisson(Family):
    """x in {0, 1, 2, ...}."""

    @staticmethod
    def n_statistics(n_categories):
        return 1

    @staticmethod
    def statistics(x, s):
        return x[..., None]

    @staticmethod
    def log_base(x):
        return -jax.scipy.special.gammaln(x + 1)

    @staticmethod
    def log_partition(eta):
        return jnp.exp(jnp.minimum(eta[..., 0], _MAX_LOG_RATE))

    @staticmethod
    def mean(eta):
        return jnp.exp(jnp.minimum(eta, _MAX_LOG_RATE))

    @staticmethod
    def natural(mean, floor):
        return jnp.log(jnp.maximum(mean, floor))

    @staticmethod
    def sample(key, eta):
        # JAX draws Poisson variates with threefry keys only: a key of another kind is turned into one.
        bits = jax.random.bits(key, (2,), jnp.uint32)
        threefry = jax.random.wrap_key_data(bits, impl="threefry2x32")
        rate = jnp.exp(jnp.minimum(eta[..., 0], _MAX_LOG_RATE))
        return jax.random.poisson(threefry, rate).astype(eta.dtype)


class Gaussian(Family):
    """x real, with mean and variance both free."""

    @staticmethod
    def n_statistics(n_categories):
        return 2

    @staticmethod
    def statistics(x, s):
        return jnp.stack([x, x * x], axis=-1)

    @staticmethod
    def log_base(x):
        return jnp.full_like(x, -0.5 * math.log(2 * math.pi))

    @staticmethod
    def log_partition(eta):
        # log(2π)/2 is in the base measure, so that A is a function of η alone as for the others.
        linear, quadratic = eta[..., 0], eta[..., 1]
        return -(linear**2) / (4 * quadratic) - 0.5 * jnp.log(-2 * quadratic)

    @staticmethod
    def mean(eta):
        variance = -0.5 / eta[..., 1]
        location = eta[..., 0] * variance
        return jnp.stack([location, location**2 + variance], axis=-1)

    @staticmethod
    def natural(mean, floor):
        location = mean[..., 0]
        variance = jnp.maximum(mean[..., 1] - location**2, floor)
        return jnp.stack([location / variance, -0.5 / variance], axis=-1)

    @staticmethod
    def sample(key, eta):
        variance = -0.5 / eta[..., 1]
        noise = jax.random.normal(key, eta.shape[:-1], eta.dtype)
        return eta[..., 0] * variance + jnp.sqrt(variance) * noise


FAMILIES: dict[str, type[Family]] = {
    "binary": Bernoulli,
    "categorical": Categorical,
    "count": Poisson,
    "real": Gaussian,
}
"""The exponential family of each kind of column."""
