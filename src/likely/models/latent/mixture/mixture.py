"""Mixture: p(x) = Σ_k w_k p(x | k), each component a product over columns, or a joint Gaussian over the numbers.

Fitted by expectation-maximisation (Dempster, Laird and Rubin, 1977), from the best of several short runs. Cost of an
iteration: two matrix products, rows × statistics × components; with full covariances O(n K r²) more, O(n K r³) for rows
with holes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.columns.cells import Cells, Numbers
from likely.columns.counts import Counts
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, NonNegative, Positive, seed_of
from likely.contract.trained import between
from likely.memory import taken
from likely.models.latent.mixture import components
from likely.models.latent.mixture.by_value import check_values, started
from likely.models.latent.mixture.choosing import held_out, is_open
from likely.models.latent.mixture.chunks import Chunks
from likely.models.latent.mixture.coded import coded, coded_prior, run_coded, suits, with_learned_strengths
from likely.models.latent.mixture.components import Layout, MixtureParams
from likely.models.latent.mixture.em import em_step, groups_of, prior_of, seeded
from likely.models.latent.mixture.gaussian_block import GaussianBlock
from likely.models.latent.mixture.joint import patterns_of, run_joint
from likely.objectives.em import EMResult, run_em
from likely.placement import device_mesh, local, place
from likely.runtime import by_blocks, float_dtype, on_device
from likely.schema import Schema

_TRIAL_ITERATIONS = 15  # of each start, by which the best is chosen
# Fewer rows leave a component's categories to chance. From 100 to 200 components validation rows of adult neither gain
# nor lose, and drawn rows are harder to tell from real ones; 200 was fixed with what trees learn of test rows in sight.
_ROWS_A_COMPONENT, _MOST_COMPONENTS = 50, 200
# Beyond so many rows EM starts on a part of them, and goes on with parts that grow, each from what the last one ended
# with: most iterations are then cheap, and few of them see all rows.
_MOST_ROWS_AT_ONCE, _GROWTH = 100_000, 8
_FIRST_ROWS, _FIRST_ROWS_A_COMPONENT = 20_000, 200


class Mixture(Model):
    """Mixture of products over columns, or of joint Gaussians over the real columns.

    Parameters
    ----------
    n_components : number of components; None takes one for every 50 rows, or for as many as make two a number of a
        joint Gaussian, from 2 to 200, and 100 of more than 100,000 rows, for the sake of time (`n_components_` after a
        fit).
    covariance : of real columns given the component: "full", "tied" (full, one for all components), "diagonal", or
        "spherical". "scores" is full too, and reads rounded numbers as normal scores, so that caps and favourite
        numbers are as frequent as they were. None is "diagonal"; but if `n_components` is None too, and there are 2,000
        to 50,000 rows with 2 to 30 columns of numbers, whose holes have at most 64 patterns, that one of "diagonal" and
        "scores" under which a held-out tenth of the rows, of at most 10,000, is likelier (`covariance_` after a fit,
        and `held_out_`).
    n_init : number of seeds; after a short run of each, the best goes on.
    max_iter, tol : EM stops when the mean log-likelihood rises by less than `tol` nats a row. Of more than 100,000 rows
        it sees a part first, then larger ones, and all of them last; both are of each part.
    pseudo_count : rows holding the overall column mean that each component adds to its discrete columns, so that
        nothing unseen is impossible. None: 1, or where columns have four values and more on average, as many for each
        column as make the components' counts likeliest: few where components differ, many where they are alike.
    min_variance : by how much the prior raises the variance of a real column in a component of average size, in units
        of the column's own variance.
    start_by : name of a binary or categorical column. EM starts from mixtures of the rows of each of its values, with
        as many of the components as the value has of the rows; `likely.JointPredictor` classifies better by components
        that have a class each, and calls the column of an unnamed y "y".
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    n_iter_, converged_ : iterations of the last run, and whether it met `tol`.
    covariance_, held_out_ : which covariance it is; mean log p of the held-out rows by which it was chosen, None where
        there was no choice.
    history_ : "objective", the mean log-likelihood with the prior's part, before each iteration; it never falls. Where
        `pseudo_count` was learned, it begins after that. Where EM saw parts of the rows first, it is of all rows, and
        "n_rows" has the sizes of the parts.

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

    n_components: Count | None = None
    _: KW_ONLY
    covariance: Literal["full", "tied", "diagonal", "spherical", "scores"] | None = None
    n_init: Count = 4
    max_iter: Count = 200
    tol: NonNegative = 1e-3
    pseudo_count: NonNegative | None = None
    min_variance: Positive = 1e-4
    start_by: str | None = None

    _weighted = True

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # About twenty rows a component: on digits and wine fewer lose, and up to there more gain.
        return {"n_components": between(2, n_rows // 20, 50)}

    @property
    def _numbers(self) -> Numbers:  # type: ignore[override]
        return {"diagonal": "bins", "scores": "scores"}.get(self._shape, "real")  # type: ignore[return-value]

    @property
    def _shape(self) -> str:
        """The covariance that the fit chose, or is to have."""
        return getattr(self, "covariance_", None) or self.covariance or "diagonal"

    @property
    def _scaling(self) -> str:  # type: ignore[override]
        return "common" if self._shape == "spherical" else "column"

    @property
    def _layout(self) -> Layout:
        return Layout.of(self.columns_, self._shape)

    def _check_kinds(self, schema: Schema) -> None:
        super()._check_kinds(schema)
        if self.start_by is not None:
            check_values(schema, self.start_by, self.n_components)

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        self.covariance_: str = self.covariance or "diagonal"
        self.held_out_: dict[str, float] | None = None
        asked = self.covariance is not None or self.n_components is not None or self.start_by is not None
        if not asked and is_open(self.schema_, encoded):
            self.held_out_ = held_out(self, encoded, weight, seed_of(self.random_state))
            self.covariance_ = max(self.held_out_, key=self.held_out_.__getitem__)
        return super()._fit_cells(encoded, weight)

    def _init(self, key, columns):
        layout, k, dtype = Layout.of(columns, self._shape), self._n_codes, float_dtype()
        eta = None if layout.factored is None else jnp.zeros((k, layout.factored.n_statistics), dtype)
        r = len(layout.joint_places)
        gaussian = (
            GaussianBlock(jnp.zeros((k, r), dtype), jnp.zeros((1 if layout.tied else k, r, r), dtype)) if r else None
        )
        return MixtureParams(jnp.zeros(k, dtype), eta, gaussian)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> MixtureParams:
        given = self.n_components
        n = len(rows) if run.weight is None else float(run.weight.sum())
        most = _MOST_COMPONENTS if len(rows) <= _MOST_ROWS_AT_ONCE else _MOST_COMPONENTS // 2
        r = len(self._layout.joint_places)
        a_component = max(_ROWS_A_COMPONENT, r * (r + 3))  # r (r + 3) / 2 numbers
        n_components = min(len(rows), between(2, int(n) // a_component, most)) if given is None else given
        self.n_components_ = n_components
        if len(rows) < n_components:
            raise ValueError(
                f"`n_components` must be at most n_samples ({len(rows)}), got {n_components}: "
                "lower it or give more rows."
            )
        params: MixtureParams | None = None
        sizes = _stages(len(rows), n_components)
        for number, size in enumerate(sizes):
            some, weight = rows, run.weight
            if size < len(rows):
                part = _part_of(len(rows), size, jax.random.fold_in(key, number))
                some, weight = taken(rows, part), None if weight is None else weight[part]
            if params is None and self.start_by is not None:
                params = self._by_value(some, weight, key)
                n_components = self.n_components_ = len(params.log_weights)
            params = self._em(some, weight, key, n_components, params)
        if len(sizes) > 1:
            self.history_["n_rows"] = [float(size) for size in sizes]
        return cast(MixtureParams, params)

    def _by_value(self, rows: np.ndarray, weight: np.ndarray | None, key: jax.Array) -> MixtureParams:
        """Components that have learned the rows of one value each, to go on from."""
        place = int(self.cells_.starts[self.schema_.names.index(cast(str, self.start_by))])
        fit = partial(self._em, params=None)
        return started(fit, rows, weight, rows[:, place], key, self.n_components_, self._layout)

    def _em(
        self, rows: np.ndarray, weight: np.ndarray | None, key: jax.Array, k: int, params: MixtureParams | None
    ) -> MixtureParams:
        """EM from the parameters given, or from the best of several starts."""
        layout = self._layout
        settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        n = len(rows) if weight is None else float(weight.sum())
        strengths = 1.0 if self.pseudo_count is None else self.pseudo_count, self.min_variance * n / k
        joint = self._shape == "scores" and layout.joint_places and len(rows) <= _MOST_ROWS_AT_ONCE
        patterns = patterns_of(rows, layout, weight) if joint else None
        if suits(layout):
            cells = coded(rows, layout, weight)
            prior = coded_prior(cells, layout, *strengths)
            go = lambda start, limit: run_coded(start, cells, prior, layout, **settings | {"max_iter": limit})  # noqa: E731
        elif patterns is not None:
            prior = prior_of(groups_of(rows, layout, k, weight), layout, *strengths)
            go = lambda start, limit: run_joint(start, patterns, prior, layout, **settings | {"max_iter": limit})  # noqa: E731
        elif len(rows) > _MOST_ROWS_AT_ONCE and device_mesh() is None:
            chunks = Chunks(rows, weight, layout, k)
            prior = chunks.prior(*strengths)
            go = lambda start, limit: chunks.run(start, prior, self.tol, limit)  # noqa: E731
        else:
            mesh = device_mesh()
            groups = groups_of(rows, layout, k, weight, mesh)
            prior = prior_of(groups, layout, *strengths, mesh)
            step = partial(em_step, layout=layout, mesh=mesh)
            data = groups, place(prior, mesh)
            go = lambda start, limit: local(  # noqa: E731
                run_em(step, place(start, mesh), data, limit=place(np.asarray(limit), mesh), **settings)
            )
        trace: list[float] = []
        if params is None:
            starts = [seeded(one, rows, prior, layout, k, weight) for one in jax.random.split(key, self.n_init)]
            runs = [go(start, min(_TRIAL_ITERATIONS, self.max_iter)) for start in starts]
            best = max(runs, key=lambda run: _trace(run)[-1])
            params, trace = best.params, _trace(best)
        n_before, least = len(trace), 0
        if suits(layout) and self.pseudo_count is None:
            # The objective with another prior is another one: what is kept is of the last, whose M-step is done once
            # at least.
            prior, trace, least = with_learned_strengths(params, cells, prior, layout), [], 1
        result = go(params, max(least, self.max_iter - n_before))
        self.history_ = {"objective": [*trace, *_trace(result)]}
        self.n_iter_, self.converged_ = n_before + int(result.n_iter), bool(result.converged)
        return result.params

    def _evidence(self, rows, key):
        values = by_blocks(lambda x, observed: _log_prob(self.params_, x, observed, self._layout), rows)
        return Evidence.exact(values, method="sum over components")

    def _sample(self, key, n):
        return _sample(key, self.params_, n, self._layout)

    def _condition(self, rows, key):
        layout, x = self._layout, on_device(np.nan_to_num(rows))
        mean = by_blocks(lambda x, observed: _expected_statistics(self.params_, x, observed, layout), rows)
        draw = partial(_sample_given, params=self.params_, x=x, observed=on_device(~np.isnan(rows)), layout=layout)
        draws = lambda k, n: np.stack([draw(key) for key in jax.random.split(k, n)])  # noqa: E731
        return ConditionalParts(mean, draws, counts=self._counts(rows, key))

    def _counts(self, rows: np.ndarray, key: jax.Array) -> Counts | None:
        """Unobserved counts: mixtures of the components' Poissons, by their responsibilities."""
        places = [place for place, kind in enumerate(self.columns_.kinds) if kind == "count"]
        if not np.isnan(rows[:, places]).any():
            return None
        own = np.concatenate([np.flatnonzero(self.columns_.column_of == place) for place in places])
        rates = np.asarray(components.component_means(self.params_, self._layout))[:, own]
        return Counts.of_mixture(places, self._encode(rows, key), rates)

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: _responsibilities(self.params_, x, observed, self._layout), rows)

    def _decode(self, codes):
        return on_device(codes) @ components.component_means(self.params_, self._layout)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


_log_prob = eqx.filter_jit(components.log_prob)
_responsibilities = eqx.filter_jit(components.responsibilities)
_expected_statistics = eqx.filter_jit(components.expected_statistics)
_sample = eqx.filter_jit(components.sample)
_sample_given = eqx.filter_jit(components.sample_given)


def _stages(n_rows: int, n_components: int) -> list[int]:
    """Numbers of rows that EM sees, one after the other; the last one is all of them.

    >>> _stages(50_000, 100), _stages(1_000_000, 100)
    ([50000], [20000, 160000, 1000000])
    """
    sizes, first = [n_rows], max(_FIRST_ROWS, _FIRST_ROWS_A_COMPONENT * n_components)
    if n_rows > _MOST_ROWS_AT_ONCE:
        sizes = [first * _GROWTH**i for i in range(20) if 2 * first * _GROWTH**i < n_rows] + sizes
    return sizes


def _part_of(n_rows: int, size: int, key: jax.Array) -> np.ndarray:
    """Numbers of some rows, drawn at random, in order."""
    seed = np.asarray(jax.random.key_data(key)).tolist()
    return np.sort(np.random.default_rng(seed).choice(n_rows, size, replace=False))


def _trace(run: EMResult) -> list[float]:
    return np.asarray(run.objective, np.float64)[: int(run.n_iter)].tolist()
