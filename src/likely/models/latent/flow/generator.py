"""Invertible generator: x = g(z), z ~ N(0, I), so log p(x) = log N(g⁻¹(x); 0, I) + log |det ∂g⁻¹/∂x|, exactly.

The change of variables. g is affine, g(z) = μ + L z with L the Cholesky factor of a covariance, so p(x) = N(μ, L Lᵀ);
or that followed by a monotone function of each column, x_j = S_j⁻¹(u_j), with S(x) = sinh(tail asinh(x) - skew) (Jones
and Pewsey, 2009), a Gaussian copula with margins of any skewness and tails; or layers of splines between the two, as
`layers` has them (Durkan et al., 2019). Cost: one pass over the rows and O(d³) for the affine one, EM with O(d³) a row
and step where there are holes; the bent one by L-BFGS, O(d²) a row and step; layers by gradient, a network each.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, Positive, Several
from likely.contract.trained import N_VISITS, GradientTrained, HeldOut, between, epochs_for
from likely.models.latent.flow.answers import draw_filled, flow_evidence, weigh_rows
from likely.models.latent.flow.bijection import (
    MIN_VARIANCE,
    GeneratorParams,
    SplineFlow,
    bound_loss,
    generate,
    latents,
    log_prob,
    negative_bound,
    negative_log_likelihood,
    with_positive_diagonal,
)
from likely.models.latent.flow.layers import first_layers
from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.gaussian_block import GaussianBlock
from likely.models.latent.variational.variational import importance_conditional, new_rows
from likely.nets.mlp import Activation
from likely.objectives.em import run_em
from likely.runtime import BLOCK_ROWS, by_blocks, draws_by_blocks, float_dtype, has_holes, in_blocks, sum_blocks
from likely.schema import Schema, SchemaError
from likely.training import TrainingConfig, train
from likely.training.optimisers import Schedule

_EM_TOLERANCE = 1e-6  # nats a row, below which a step of EM counts as no progress
_N_NODES = 32  # of the quadrature that takes the mean of a bent cell
_WITHOUT_DENSITY = {"binary", "categorical", "ordinal"}
_ROWS_OF_LAYERS = 1000  # below which a map without layers is learned
# Places within the intervals of a rounded row that splines learn from, so that they do not learn one by heart; fewer
# of so many rows that each epoch has places enough.
_MOST_PLACES, _ROWS_AND_PLACES = 8, 40_000


def _em_step(block: GaussianBlock, rows: tuple[Array, Array, Array]) -> tuple[GaussianBlock, Array]:
    """One step of EM over blocks of rows (x, observed, weight), and the mean log p before it."""

    def of_block(part: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        x, observed, weight = part
        log_density = gaussian_block.log_density_table(block, x, observed)[:, 0]
        # One call of LAPACK after the other, see `likely.runtime.after`.
        return gaussian_block.moments(block.after(log_density), x, observed, weight[:, None]), weight @ log_density

    sums, total = jax.tree.map(lambda a: a.sum(axis=0), lax.map(of_block, rows))
    n = rows[2].sum()
    return gaussian_block.update(block, sums, n[None], MIN_VARIANCE * n), total / n


@eqx.filter_jit
def _totals(x, observed, weight, block):
    return gaussian_block.moments(block, x, observed, weight[:, None]), weight.sum()[None]


@eqx.filter_jit
def _cell_moments(params: GeneratorParams, x: Array, observed: Array) -> tuple[Array, Array]:
    """Mean and variance of every cell given the observed ones, by Gauss-Hermite quadrature of S⁻¹."""
    cells, spread = gaussian_block.expected_cells(params.block, params.straighten(x), observed)
    nodes, weights = (jnp.asarray(a, x.dtype) for a in np.polynomial.hermite_e.hermegauss(_N_NODES))
    deviation = jnp.sqrt(jnp.maximum(jnp.diagonal(spread[:, 0], axis1=1, axis2=2), 0))
    values = params.bend(cells + nodes[None, :, None] * deviation[:, None, :])
    share = weights / weights.sum()
    mean = jnp.einsum("q,nqd->nd", share, values)
    variance = jnp.einsum("q,nqd->nd", share, (values - mean[:, None, :]) ** 2)
    return jnp.where(observed, x, mean), jnp.where(observed, 0, variance)


@eqx.filter_jit
def _draw_given(key: Array, params: GeneratorParams, x: Array, observed: Array, n: int) -> Float[Array, "m n d"]:
    """n draws of each row's cells given the observed ones."""
    mean, tril, u = params.block.means[0], params.block.scale_tril[0], params.straighten(x)
    rows = jax.vmap(gaussian_block.sample_given, (0, None, None, 0, 0))
    draws = jax.vmap(rows, (0, None, None, None, None))(jax.random.split(key, (n, len(x))), mean, tril, u, observed)
    return jnp.swapaxes(params.bend(draws), 0, 1)


@eqx.filter_jit
def _draw_new(key: Array, params: GeneratorParams, n: int) -> Float[Array, "n d"]:
    return generate(params, jax.random.normal(key, (n, len(params.skew)), params.skew.dtype))


_log_prob, _latents = eqx.filter_jit(log_prob), eqx.filter_jit(lambda params, x, _: latents(params, x))


class Generator(HeldOut, GradientTrained, Model):
    """An invertible map of noise, with its exact density; for columns of numbers.

    Parameters
    ----------
    shape : "affine" for μ + L z, a Gaussian, by maximum likelihood in closed form (EM with holes); "bent" for the same
        followed by a monotone function of each column, by L-BFGS; "spline" for layers of splines between the two, by
        gradient.
    max_iter : steps of EM or L-BFGS, at most.
    flow : of splines: "masked", each column's given all before it in an order; or "coupling", those of one half of the
        columns given the other half, which draws rows in fewer passes.
    n_layers, n_bins, n_hidden, activation : layers, bins of a spline, and units of the network that makes the splines.
    n_epochs : passes over the rows, at most; None takes about a million rows in all.
    batch_size, learning_rate, schedule, warmup_steps, weight_decay, gradient_clip, averaging, patience, validate_every,
        held_out, memory_budget : of splines, see `likely.training.TrainingConfig`. `held_out` is the share of the rows
        that stops the training where no `valid` rows are given.
    n_importance : of splines, draws of unobserved cells behind evidence and conditionals of rows with holes.
    schema : what the columns are; None reads it off the data.
    random_state : seed of draws, and of the training of splines.

    Notes
    -----
    Rounded numbers are intervals, whose mass is the evidence; "affine" and "bent" read binary columns and categories
    that are numbers as real ones, of which a spline would have no density. `latents(X)` is g⁻¹ of complete rows.
    Conditionals are exact in u, and means of bent cells are by quadrature; those of splines are by weighed draws.

    Examples
    --------
    Skewed and correlated columns, of which a Gaussian is a poor description:

    >>> import likely
    >>> rng = np.random.default_rng(0)
    >>> rows = np.exp(rng.normal(size=(300, 2)) @ np.array([[1.0, 0.5], [0.0, 0.5]]))
    >>> reals = likely.Schema.real(2)  # else skewed columns are bent before the model sees them
    >>> affine, bent = (likely.Generator(shape, max_iter=40, schema=reals).fit(rows) for shape in ("affine", "bent"))
    >>> bent.score(rows) - affine.score(rows) > 0.5
    True
    """

    shape: Literal["affine", "bent", "spline"] = "affine"
    _: KW_ONLY
    max_iter: Count = 200
    flow: Literal["masked", "coupling"] = "masked"
    n_layers: Count = 4
    n_bins: Several = 8
    n_hidden: Count = 64
    activation: Activation = "gelu"
    batch_size: Count = 128
    learning_rate: Positive = 2e-3
    schedule: Schedule = "cosine"
    gradient_clip: Positive | None = 5.0
    n_importance: Several = 256

    _real_only = True
    _effort = _conditional_effort = "n_importance"
    _why_not: ClassVar[dict] = {
        "transform": "its code has as many numbers as a row, and none for a row with holes; latents(X) gives it",
        "fit_transform": "its code has as many numbers as a row, and none for a row with holes; latents(X) gives it",
        "inverse_transform": "its code has as many numbers as a row; sample draws rows",
        "denoise": "it is invertible, so a row comes back through its code as it went in",
    }

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # Of fewer rows layers learn little more than the Gaussian; a hundred columns take seconds for every 1,000 rows.
        if n_rows < _ROWS_OF_LAYERS or n_columns > 100 or kinds & _WITHOUT_DENSITY:
            return {}
        return {"shape": "spline", "n_epochs": epochs_for(min(N_VISITS, 10 * N_VISITS // n_columns), n_rows)}

    def _check_kinds(self, schema: Schema) -> None:
        odd = [column for column in schema.columns if column.kind in _WITHOUT_DENSITY]
        if self.shape == "spline" and odd:
            raise SchemaError(
                f"column {odd[0].name!r} is {odd[0].kind}, and splines have a density of numbers alone, which would "
                "close in on its values without end: drop it, say in a schema that it is a grid or real, or use a "
                "model for mixed columns (Autoregressive, Mixture, VAE)."
            )

    def _check_resumable(self, checkpoint, resume):
        if self.shape != "spline":  # Of the shapes, only layers are trained step by step.
            super()._check_resumable(checkpoint, resume)

    def _init(self, key: jax.Array, columns: Columns) -> GeneratorParams:
        d, dtype = columns.n_columns, float_dtype()
        zeros = jnp.zeros(d, dtype)
        block = GaussianBlock(zeros[None], jnp.eye(d, dtype=dtype)[None])
        if self.shape != "spline":
            return GeneratorParams(block, zeros, zeros)
        layers = first_layers(key, d, self.flow, self.n_layers, self.n_hidden, self.n_bins, self.activation)
        return GeneratorParams(block, zeros, zeros, SplineFlow(layers, block))

    def _to_learn(self, encoded: np.ndarray, part: int) -> np.ndarray:
        """Of splines and rounded rows, several places side by side (n, places d): one is held out with all of its."""
        first = super()._to_learn(encoded, part)
        if self.shape != "spline" or not self.cells_.is_rounded:
            return first
        n_places = between(1, _ROWS_AND_PLACES // len(encoded), _MOST_PLACES)
        others = [super(Generator, self)._to_learn(encoded, part + 2 * place) for place in range(1, n_places)]
        return np.hstack([first, *others])

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> GeneratorParams:
        init_key, train_key = jax.random.split(key)
        params = self._init(init_key, self.columns_)
        block = self._fit_block(params.block, self._one_below_the_other(rows))
        params = eqx.tree_at(lambda p: p.block, params, block)
        if self.shape == "affine":
            return params
        if self.shape == "spline":
            return self._fit_layers(params, block, rows, train_key, run)
        config = TrainingConfig(n_epochs=self.max_iter, batch_size=None, optimizer="lbfgs")
        result = train(params, negative_log_likelihood, rows, config=config, key=key, label="Generator")
        self.history_ = result.history
        return with_positive_diagonal(result.module)

    def _fit_layers(
        self, params: GeneratorParams, block: GaussianBlock, rows: np.ndarray, key: jax.Array, given: FitRun
    ) -> GeneratorParams:
        """Layers by gradient, from the Gaussian of greatest likelihood on."""
        params = eqx.tree_at(lambda p: p.flow.guess, params, block)
        rows, run = self._divided(rows, key, given)
        rows, valid = self._one_below_the_other(rows), self._one_below_the_other(run.valid)
        result = train(
            params,
            negative_bound,
            rows,
            config=self._training(**self._stopping(given, run, len(rows))),
            key=key,
            validate=None if valid is None else bound_loss,
            valid_rows=valid,
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="Generator",
        )
        self.history_ = self._with_held_out(result.history, given, run)
        return with_positive_diagonal(result.module)

    def _one_below_the_other(self, rows: Any) -> Any:
        """Rows of `_to_learn` as rows of cells."""
        return None if rows is None else rows.reshape(-1, self.columns_.n_columns)

    def _fit_block(self, block: GaussianBlock, rows: np.ndarray) -> GaussianBlock:
        """Mean and covariance of greatest likelihood: in closed form, or by EM where cells are unobserved."""
        if not has_holes(rows):
            sums, n = sum_blocks(partial(_totals, block=block), rows)
            sums, n = jax.tree.map(lambda a: jnp.asarray(a, float_dtype()), (sums, n))
            return gaussian_block.update(block, sums, n, MIN_VARIANCE * len(rows))
        blocks = tuple(jnp.asarray(part) for part in in_blocks(rows, BLOCK_ROWS, float_dtype()))
        result = run_em(_em_step, block, blocks, max_iter=self.max_iter, tol=_EM_TOLERANCE)
        self.history_ = {"objective": np.asarray(result.objective)[: int(result.n_iter)].tolist()}
        return result.params

    def latents(self, X: Any) -> np.ndarray:
        """(n_rows, n_columns) z = g⁻¹(x) of complete rows: standard normal where the model is right."""
        _, rows = self._rows(X)
        if has_holes(rows):
            raise ValueError("g⁻¹ is a function of all cells: impute the NaN cells first.")
        return by_blocks(partial(_latents, self.params_), rows)

    def _evidence(self, rows, key):
        if self.params_.flow is not None:
            return flow_evidence(self.params_, rows, key, self.n_importance)
        return Evidence.exact(by_blocks(partial(_log_prob, self.params_), rows), method="change of variables")

    def _sample(self, key, n):
        if self.params_.flow is not None:
            return new_rows(_draw_new, self.params_, key, n)
        return generate(self.params_, jax.random.normal(key, (n, self.columns_.n_columns), float_dtype()))

    def _condition(self, rows, key):
        if self.params_.flow is not None:
            weigh = partial(weigh_rows, key, self.params_, n_importance=self.n_importance)
            return importance_conditional(weigh, draw_filled, self.params_, key, rows, self.n_importance)
        mean, variance = by_blocks(lambda x, seen: _cell_moments(self.params_, x, _mask(x, seen)), rows)

        def draw(key: jax.Array, x: Array, observed: Array | None, n: int) -> Array:
            return _draw_given(key, self.params_, x, _mask(x, observed), n)

        statistics = np.concatenate([mean, mean**2 + variance], axis=1)
        return ConditionalParts(statistics, partial(draws_by_blocks, draw, rows))


def _mask(x: Array, observed: Array | None) -> Array:
    return jnp.ones(x.shape, bool) if observed is None else observed
