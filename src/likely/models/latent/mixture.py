"""Mixture: p(x) = Σ_k w_k p(x | k), each component a product over columns, or a joint Gaussian over the real ones.

Fitted by expectation-maximisation (Dempster, Laird and Rubin, 1977) from the best of several short runs, each seeded by
k-means++ (Arthur and Vassilvitskii, 2007). With variances going to zero it becomes K-means. Cost of an iteration: two
matrix products, rows × statistics × components; with full covariances O(n K r²) more, O(n K r³) for rows with holes.
"""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key
from sklearn.utils._param_validation import Interval, StrOptions

from likely.columns import Columns
from likely.conditional import ConditionalParts
from likely.evidence import Evidence
from likely.model import FitRun, Model
from likely.models.latent import gaussian_block
from likely.models.latent.gaussian_block import GaussianBlock, Moments
from likely.objectives.em import run_em
from likely.runtime import by_blocks, float_dtype

_SHORT_RUN = 15  # iterations by which restarts are told apart
_SEEDING_ROWS = 20  # rows looked at for each seed of k-means++


class Layout(NamedTuple):
    """Which columns are independent given the component, and which are jointly Gaussian. Static."""

    columns: Columns  # all
    factored: Columns | None
    factored_places: tuple[int, ...]
    joint_places: tuple[int, ...]
    tied: bool
    spherical: bool

    @classmethod
    def of(cls, columns: Columns, covariance: str) -> Layout:
        joint = tuple(int(p) for p in columns.real_places) if covariance in ("full", "tied") else ()
        places = tuple(p for p in range(columns.n_columns) if p not in joint)
        kinds, sizes = tuple(columns.kinds[p] for p in places), tuple(columns.n_categories[p] for p in places)
        return cls(
            columns, Columns(kinds, sizes) if places else None, places, joint, covariance == "tied", covariance == "spherical"
        )


class MixtureParams(eqx.Module):
    """Component weights, natural parameters of the factored columns, joint Gaussians of the others."""

    log_weights: Float[Array, " k"]
    eta: Float[Array, "k F"] | None
    gaussian: GaussianBlock | None


class Prior(eqx.Module):
    """A conjugate prior that keeps components from closing in on single rows.

    Discrete columns: `strength` rows that hold the column's overall mean. Real columns: a `ridge` that raises every
    sum of squares.
    """

    mean: Float[Array, " F"] | None
    strength: float | Array
    ridge: float | Array


class Sums(NamedTuple):
    """What the M-step needs, summed over rows."""

    counts: Float[Array, " k"]
    statistics: Float[Array, "k F"] | None
    seen: Float[Array, "k f"] | None  # responsibility of the rows that have each column
    moments: Moments | None
    log_likelihood: Array


def log_joint(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, "n k"]:
    """log w_k p(x | k) of the observed cells."""
    table = params.log_weights[None, :]
    if params.eta is not None and layout.factored is not None:
        table = table + layout.factored.log_density_table(*_part(x, observed, layout.factored_places), params.eta)
    if params.gaussian is not None:
        table = table + gaussian_block.log_density_table(params.gaussian, *_part(x, observed, layout.joint_places))
    return table


def log_prob(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, " n"]:
    """log p(x) of the observed cells."""
    return jax.nn.logsumexp(log_joint(params, x, observed, layout), axis=-1)


def responsibilities(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, "n k"]:
    """P(k | observed cells)."""
    return jax.nn.softmax(log_joint(params, x, observed, layout), axis=-1)


def component_means(params: MixtureParams, layout: Layout) -> Float[Array, "k D"]:
    """E[T(x) | k] over all columns."""
    gaussian = params.gaussian
    factored = None if params.eta is None else layout.factored.mean(params.eta)
    if gaussian is None:
        return factored
    variances = jnp.sum(gaussian.factors() ** 2, axis=-1)
    joint = jnp.stack([gaussian.means, gaussian.means**2 + variances], axis=-1)
    return _join(factored, joint, layout)


def expected_statistics(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, "n D"]:
    """E[T(x) | observed cells] of all columns; unobserved joint cells follow the observed ones."""
    weights = responsibilities(params, x, observed, layout)
    if params.gaussian is None or observed is None:
        return weights @ component_means(params, layout)
    cells, spread = gaussian_block.expected_cells(params.gaussian, *_part(x, observed, layout.joint_places))
    second = cells**2 + jnp.diagonal(spread, axis1=-2, axis2=-1)
    joint = jnp.einsum("nk,nkrs->nrs", weights, jnp.stack([cells, second], axis=-1))
    factored = None if params.eta is None else weights @ layout.factored.mean(params.eta)
    return _join(factored, joint, layout)


def sample(key: Key[Array, ""], params: MixtureParams, n: int, layout: Layout) -> Float[Array, "n d"]:
    """n rows."""
    nothing = jnp.zeros((n, layout.columns.n_columns), params.log_weights.dtype)
    return sample_given(key, params, nothing, jnp.zeros_like(nothing, dtype=bool), layout)


def sample_given(
    key: Key[Array, ""],
    params: MixtureParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    layout: Layout,
) -> Float[Array, "n d"]:
    """A draw of the unobserved cells of each row given the observed ones."""
    component_key, column_key, joint_key = jax.random.split(key, 3)
    component = jax.random.categorical(component_key, log_joint(params, x, observed, layout), axis=-1)
    out = x
    if params.eta is not None:
        cells = layout.factored.sample(column_key, params.eta[component])
        out = out.at[:, np.array(layout.factored_places)].set(cells)
    if params.gaussian is not None:
        keys, gaussian = jax.random.split(joint_key, len(x)), params.gaussian
        seen = jnp.ones_like(x, dtype=bool) if observed is None else observed
        cells = jax.vmap(gaussian_block.sample_given)(
            keys, gaussian.means[component], gaussian.factors()[component], *_part(x, seen, layout.joint_places)
        )
        out = out.at[:, np.array(layout.joint_places)].set(cells)
    return out if observed is None else jnp.where(observed, x, out)


def em_step(params: MixtureParams, data: tuple, *, layout: Layout) -> tuple[MixtureParams, Array]:
    """One EM iteration over blocks of rows; also the mean penalised log-likelihood of the params given.

    data : (x (b, m, d), observed (b, m, d) or None, weight (b, m), prior)
    """
    x, observed, weight, prior = data

    def add(total, block):
        return jax.tree.map(jnp.add, total, _sums(params, *block, layout)), None

    first = jax.tree.map(lambda a: a[0], (x, observed, weight))
    zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(partial(_sums, layout=layout), params, *first))
    sums, _ = lax.scan(add, zeros, (x, observed, weight))
    objective = (sums.log_likelihood + log_prior(params, prior, layout)) / weight.sum()
    return _maximise(params, sums, prior, layout), objective


def log_prior(params: MixtureParams, prior: Prior, layout: Layout) -> Array:
    """log of the conjugate prior at the parameters, up to a constant."""
    total = jnp.zeros((), params.log_weights.dtype)
    if params.eta is not None:
        factored = layout.factored
        real = factored.spread(_is_real(factored))
        linear = jnp.where(real, 0, params.eta * prior.mean).sum()
        normaliser = jnp.where(_is_real(factored), 0, factored.log_partition(params.eta)).sum()
        precisions = jnp.where(factored.is_quadratic, -2 * params.eta, 0).sum()
        total = total + prior.strength * (linear - normaliser) - 0.5 * prior.ridge * precisions
    if params.gaussian is not None:
        total = total + gaussian_block.log_prior(params.gaussian, prior.ridge)
    return total


class Mixture(Model):
    """Mixture of products over columns, or of joint Gaussians over the real columns.

    Parameters
    ----------
    n_components : number of components.
    covariance : of real columns given the component: "full", "tied" (full, one for all components), "diagonal", or
        "spherical".
    n_init : number of seeds; after a short run of each, the best goes on.
    max_iter, tol : EM stops when the mean log-likelihood rises by less than `tol` nats a row.
    pseudo_count : rows holding the overall column mean that each component adds to its discrete columns, so that
        nothing unseen is impossible.
    min_variance : by how much the prior raises the variance of a real column in a component of average size, in units
        of the column's own variance.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    n_iter_, converged_ : iterations of the last run, and whether it met `tol`.
    history_ : "objective", the mean log-likelihood with the prior's part, before each iteration; it never falls.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    >>> model = Mixture(2, pseudo_count=0, random_state=0).fit(rows)
    >>> round(model.score(rows), 3)          # two equally likely rows: log 1/2
    -0.693
    >>> model.impute(np.array([[1.0, np.nan]]))
    array([[1., 1.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"full", "tied", "diagonal", "spherical"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
        "min_variance": [Interval(Real, 0, None, closed="neither")],
        "schema": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        covariance: str = "diagonal",
        n_init: int = 4,
        max_iter: int = 200,
        tol: float = 1e-3,
        pseudo_count: float = 1.0,
        min_variance: float = 1e-4,
        schema: Any = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.covariance = covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.pseudo_count = pseudo_count
        self.min_variance = min_variance
        self.schema = schema
        self.random_state = random_state

    @property
    def _scaling(self) -> str:  # type: ignore[override]
        return "common" if self.covariance == "spherical" else "column"

    @property
    def _layout(self) -> Layout:
        return Layout.of(self.columns_, self.covariance)

    def _init(self, key, columns):
        layout, k, dtype = Layout.of(columns, self.covariance), self.n_components, float_dtype()
        eta = None if layout.factored is None else jnp.zeros((k, layout.factored.n_statistics), dtype)
        r = len(layout.joint_places)
        gaussian = GaussianBlock(jnp.zeros((k, r), dtype), jnp.zeros((1 if layout.tied else k, r, r), dtype)) if r else None
        return MixtureParams(jnp.zeros(k, dtype), eta, gaussian)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> MixtureParams:
        if len(rows) < self.n_components:
            raise ValueError(
                f"`n_components` must be at most n_samples ({len(rows)}), got {self.n_components}: "
                "lower it or give more rows."
            )
        layout = self._layout
        data = _blocks_of(rows, layout, self.n_components)
        prior = _prior_of(data, layout, self.pseudo_count, self.min_variance * len(rows) / self.n_components)
        step = partial(em_step, layout=layout)
        go = partial(run_em, step, data=(*data, prior), max_iter=self.max_iter, tol=self.tol)
        starts = [_seeded(k, rows, prior, layout, self.n_components) for k in jax.random.split(key, self.n_init)]
        if self.n_init > 1:
            short = [go(params, limit=jnp.asarray(_SHORT_RUN)) for params in starts]
            starts = [max(short, key=lambda result: float(result.objective[result.n_iter - 1])).params]
        result = go(starts[0], limit=jnp.asarray(self.max_iter))
        self.n_iter_, self.converged_ = int(result.n_iter), bool(result.converged)
        self.history_ = {"objective": np.asarray(result.objective[: self.n_iter_], np.float64).tolist()}
        return result.params

    def _evidence(self, rows, key):
        values = by_blocks(lambda x, observed: _log_prob(self.params_, x, observed, self._layout), rows)
        return Evidence.exact(values, method="sum over components")

    def _sample(self, key, n):
        return eqx.filter_jit(sample)(key, self.params_, n, self._layout)

    def _condition(self, rows, key):
        layout, x = self._layout, jnp.asarray(np.nan_to_num(rows))
        mean = by_blocks(lambda x, observed: _expected_statistics(self.params_, x, observed, layout), rows)
        draw = partial(_sample_given, params=self.params_, x=x, observed=jnp.asarray(~np.isnan(rows)), layout=layout)
        return ConditionalParts(mean, lambda k, n: np.stack([draw(key) for key in jax.random.split(k, n)]))

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: _responsibilities(self.params_, x, observed, self._layout), rows)

    def _decode(self, codes):
        return jnp.asarray(codes) @ component_means(self.params_, self._layout)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


_log_prob = eqx.filter_jit(log_prob)
_responsibilities = eqx.filter_jit(responsibilities)
_expected_statistics = eqx.filter_jit(expected_statistics)
_sample_given = eqx.filter_jit(sample_given)


def _part(x: Array, observed: Array | None, places: tuple[int, ...]) -> tuple[Array, Array | None]:
    if places == tuple(range(x.shape[-1])):
        return x, observed
    index = np.array(places)
    return x[..., index], None if observed is None else observed[..., index]


def _join(factored: Array | None, joint: Array, layout: Layout) -> Array:
    """Statistics of the factored columns (..., F) and of the joint ones (..., r, 2) in the order of all columns.

    The real columns, here all joint, are the last block of the statistics.
    """
    flat = joint.reshape(*joint.shape[:-2], -1)
    return flat if factored is None else jnp.concatenate([factored, flat], axis=-1)


def _is_real(columns: Columns) -> np.ndarray:
    return np.array([kind == "real" for kind in columns.kinds])


def _sums(params: MixtureParams, x: Array, observed: Array | None, weight: Array, layout: Layout) -> Sums:
    table = log_joint(params, x, observed, layout)
    log_rows = jax.nn.logsumexp(table, axis=-1, keepdims=True)
    shares = jnp.exp(table - log_rows) * weight[:, None]
    statistics = seen = moments = None
    if layout.factored is not None:
        cells, present = _part(x, observed, layout.factored_places)
        statistics = shares.T @ layout.factored.statistics(cells, present)
        seen = None if present is None else shares.T @ present.astype(x.dtype)
    if params.gaussian is not None:
        moments = gaussian_block.moments(params.gaussian, *_part(x, observed, layout.joint_places), shares)
    return Sums(shares.sum(0), statistics, seen, moments, weight @ log_rows[:, 0])


def _maximise(params: MixtureParams, sums: Sums, prior: Prior, layout: Layout) -> MixtureParams:
    counts = jnp.maximum(sums.counts, jnp.finfo(sums.counts.dtype).tiny ** 0.5)
    log_weights = jnp.log(counts / counts.sum())
    eta = gaussian = None
    if sums.statistics is not None:
        eta = _natural(sums, counts, prior, layout)
    if params.gaussian is not None and sums.moments is not None:
        gaussian = gaussian_block.update(params.gaussian, sums.moments, counts, prior.ridge)
    return MixtureParams(log_weights, eta, gaussian)


def _natural(sums: Sums, counts: Array, prior: Prior, layout: Layout) -> Array:
    """Natural parameters of the factored columns at the posterior mode."""
    columns = layout.factored
    seen = counts[:, None] if sums.seen is None else columns.spread(sums.seen)
    seen = jnp.maximum(seen, jnp.finfo(counts.dtype).tiny ** 0.5)
    real = columns.spread(_is_real(columns))
    smooth = (sums.statistics + prior.strength * prior.mean) / (seen + prior.strength)
    raised = (sums.statistics + jnp.where(columns.is_quadratic, prior.ridge, 0)) / seen
    mean = jnp.where(real, raised, smooth)
    if layout.spherical and real.any():
        mean = _pool_variances(mean, seen, columns)
    return columns.natural(mean, floor=1e-7)


def _pool_variances(mean: Array, seen: Array, columns: Columns) -> Array:
    """One variance for all real columns of a component."""
    quadratic = np.flatnonzero(columns.is_quadratic)
    location = mean[:, quadratic - 1]
    weights = jnp.broadcast_to(seen, mean.shape)[:, quadratic]
    variances = mean[:, quadratic] - location**2
    pooled = (weights * variances).sum(-1, keepdims=True) / weights.sum(-1, keepdims=True)
    return mean.at[:, quadratic].set(location**2 + pooled)


def _blocks_of(rows: np.ndarray, layout: Layout, k: int) -> tuple[Array, Array | None, Array]:
    """Rows as equal blocks, the last one padded with weight 0; small blocks where a row costs K r² numbers."""
    missing = np.isnan(rows).any()
    cost = max(rows.shape[1], k * max(1, len(layout.joint_places)) ** (2 if missing else 1))
    size = min(len(rows), max(16, min(2048, (1 << 23) // cost)))
    n_blocks = math.ceil(len(rows) / size)
    padded = np.zeros((n_blocks * size, rows.shape[1]), rows.dtype)
    padded[: len(rows)] = rows
    weight = (np.arange(n_blocks * size) < len(rows)).astype(rows.dtype)
    shape = (n_blocks, size, rows.shape[1])
    observed = jnp.asarray(~np.isnan(padded).reshape(shape)) if missing else None
    return jnp.asarray(np.nan_to_num(padded).reshape(shape)), observed, jnp.asarray(weight.reshape(n_blocks, size))


def _prior_of(data: tuple, layout: Layout, strength: float, ridge: float) -> Prior:
    """The prior centred on the overall column means."""
    dtype = data[0].dtype
    mean = None if layout.factored is None else _overall_mean(*data, layout)
    return Prior(mean, jnp.asarray(strength, dtype), jnp.asarray(ridge, dtype))


@eqx.filter_jit
def _overall_mean(x: Array, observed: Array | None, weight: Array, layout: Layout) -> Array:
    """Mean statistics of the factored columns, moved off the edges by a tenth of a row of ignorance."""

    def add(total, block):
        cells, present = _part(block[0], block[1], layout.factored_places)
        seen = jnp.ones_like(cells) if present is None else present.astype(cells.dtype)
        part = block[2] @ layout.factored.statistics(cells, present), block[2] @ seen
        return jax.tree.map(jnp.add, total, part), None

    columns = layout.factored
    zeros = jnp.zeros(columns.n_statistics, x.dtype), jnp.zeros(columns.n_columns, x.dtype)
    (total, seen), _ = lax.scan(add, zeros, (x, observed, weight))
    return (total + 0.1 * columns.ignorance.astype(x.dtype)) / (columns.spread(seen) + 0.1)


def _seeded(key: Array, rows: np.ndarray, prior: Prior, layout: Layout, k: int) -> MixtureParams:
    """Components around k rows that k-means++ picks, each half-way between its row and the overall mean."""
    pick_key, seed_key = jax.random.split(key)
    n_looked_at = min(len(rows), max(_SEEDING_ROWS * k, 1000))
    pool = rows[np.asarray(jax.random.permutation(pick_key, len(rows))[:n_looked_at])]
    x, observed = jnp.asarray(np.nan_to_num(pool)), jnp.asarray(~np.isnan(pool))
    return _seeded_params(seed_key, x, observed, prior, layout, k)


@eqx.filter_jit
def _seeded_params(key: Array, x: Array, observed: Array, prior: Prior, layout: Layout, k: int) -> MixtureParams:
    centres = _spread_out(key, layout.columns.statistics(x, observed), k, jnp.asarray(~layout.columns.is_quadratic))
    eta = gaussian = None
    if layout.factored is not None:
        cells, present = _part(x[centres], observed[centres], layout.factored_places)
        own = jnp.where(layout.factored.spread(present), layout.factored.statistics(cells, present), prior.mean)
        eta = _seeded_eta(own, prior.mean, layout.factored)
    if layout.joint_places:
        cells, present = _part(x[centres], observed[centres], layout.joint_places)
        r = len(layout.joint_places)
        shapes = jnp.broadcast_to(jnp.eye(r, dtype=x.dtype), (1 if layout.tied else k, r, r))
        gaussian = GaussianBlock(jnp.where(present, cells, 0), shapes)
    return MixtureParams(jnp.full(k, -math.log(k), x.dtype), eta, gaussian)


def _seeded_eta(own: Array, overall: Array, columns: Columns) -> Array:
    mean = 0.5 * own + 0.5 * overall
    quadratic = np.flatnonzero(columns.is_quadratic)
    if len(quadratic):  # real columns: at the row, with the overall variance (1 in standard units)
        mean = mean.at[:, quadratic - 1].set(own[:, quadratic - 1])
        mean = mean.at[:, quadratic].set(own[:, quadratic - 1] ** 2 + 1)
    return columns.natural(mean)


def _spread_out(key: Array, features: Array, k: int, use: Array) -> Array:
    """k-means++: k row numbers, each drawn with probability proportional to its squared distance from those before."""
    features = features * use
    first_key, *keys = jax.random.split(key, k) if k > 1 else [key]
    squares = jnp.sum(features**2, axis=-1)

    def distances(row):
        return jnp.maximum(squares - 2 * features @ features[row] + squares[row], 0)

    def pick(nearest, key):
        row = jax.random.categorical(key, jnp.log(nearest + 1e-12))
        return jnp.minimum(nearest, distances(row)), row

    first = jax.random.randint(first_key, (), 0, len(features))
    if k == 1:
        return first[None]
    _, others = lax.scan(pick, distances(first), jnp.stack(keys))
    return jnp.concatenate([first[None], others])
