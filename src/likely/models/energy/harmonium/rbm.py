"""Restricted Boltzmann machine: p(x, h) ∝ exp(b·T(x) + T(x)ᵀW h + c·h), h binary, x of any columns.

Smolensky (1986), Hinton (2002); learned by persistent contrastive divergence (Tieleman, 2008) with centring (Montavon
and Müller, 2012). Cost of an epoch: five matrix products rows × statistics × hidden units. log Z, and with it the
evidence, is exact up to 20 units on the smaller side; beyond, an interval from annealed importance sampling both ways.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial
from numbers import Integral
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns, natural_of
from likely.contract.model import FitRun
from likely.contract.settings import Count, NonNegative, Share, are_sizes
from likely.contract.trained import NARROW, EarlyStopped, GradientTrained, between, epochs_for
from likely.models.energy.harmonium.answers import Exact, Sampled, answers
from likely.models.energy.harmonium.chains import start_chains
from likely.models.energy.harmonium.enumeration import cheap_side
from likely.models.energy.harmonium.learning import contrast, keep_scales, negative_log_prob, to_learning, to_natural
from likely.models.energy.harmonium.machine import RBMParams, small_weights, visible_natural
from likely.models.energy.normaliser.annealed import Answered
from likely.objectives.contrastive_bipartite import ChainState, Sparsity
from likely.runtime import float_dtype, has_holes, on_device, sum_blocks
from likely.training import train
from likely.training.optimisers import Schedule, SteppedOptimizer

# Validation rows, at most, that learning looks at where it cannot validate by them. They are kept with the compiled
# program, and a look takes a few of them at random.
_MOST_HELD_OUT = 1000
_FEW_ROWS = 20  # below which a statistic learns no faster


class RBM(EarlyStopped, GradientTrained, Answered):
    """Restricted Boltzmann machine with binary hidden units and visible units of any columns.

    Parameters
    ----------
    n_components : hidden units.
    objective : "pcd", persistent contrastive divergence, or "cd", chains that start at the data in every update.
    n_gibbs_steps : Gibbs steps an update; a pair (first, last) grows evenly over the updates.
    n_chains : persistent chains. They are kept with the model: samples start from them.
    n_tempered : replicas of each chain, from independent columns to the machine, that swap their states (parallel
        tempering): chains that would stay in one mode find the others, at so many times the cost. 1 is plain.
    sparsity_target, sparsity_strength : mean activation that hidden units are drawn to, and how strongly; None for
        none. Units that are seldom on stand for something narrower, and are easier to read.
    centring : measure units from their means in the gradient; the machine is the same, it learns faster.
    learning_rate : None takes 0.2 for binary and categorical columns, 0.05 where a column's statistics are unbounded;
        with another optimizer than "sgd", that one's own default.
    n_epochs, batch_size, optimizer, schedule, warmup_steps, weight_decay, gradient_clip, averaging, memory_budget : see
        `likely.training.TrainingConfig`.
    patience, validate_every : early stopping, in epochs, when `fit` is given `valid` rows and the machine is small
        enough for their exact evidence (units of the smaller side: 2^units × statistics up to a million); the best
        epoch is kept. In larger machines `history_["valid_gap"]` says how much higher the free energy of valid rows is
        than that of training rows: it grows as rows are learned by heart, but is no evidence, and nothing stops by it.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z cannot be enumerated.
    n_sweeps : Gibbs sweeps before a sample or a conditional is taken, where they cannot be drawn exactly.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    Rows with unobserved cells learn from cells drawn by a short clamped chain. Their evidence is log Σ exp(-E) with the
    observed cells clamped, minus log Z. Where log Z is estimated, `Evidence.values` and `upper` come from annealed
    importance sampling, which is optimistic on average, and `lower` from the reverse, which is pessimistic; the reverse
    starts from long chains rather than exact samples, so that side holds approximately. Rows with holes add their own
    sandwich: their `upper` is from the reverse.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = RBM(n_components=16, n_epochs=5, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'exact'
    """

    n_components: Count = 64
    _: KW_ONLY
    objective: Literal["pcd", "cd"] = "pcd"
    n_gibbs_steps: Count | tuple | list = 1
    n_chains: Count = 100
    n_tempered: Count = 1
    sparsity_target: Share | None = None
    sparsity_strength: NonNegative = 1.0
    centring: bool = True
    batch_size: Count = 20
    optimizer: SteppedOptimizer = "sgd"
    schedule: Schedule = "linear"

    _resumable = True

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # In four thousand steps 0.3 learns most on digits. On wine, which is real, 0.2 diverges: well below that.
        rate = 0.3 if kinds <= {"binary", "categorical"} else 0.05
        narrow = n_columns <= NARROW
        sizes = {"n_components": between(16, n_columns, 256)}
        sizes |= {"n_epochs": epochs_for(100_000 if narrow else 200_000, n_rows)}
        return sizes | {"batch_size": 50, "learning_rate": rate} | ({"n_temperatures": 300} if narrow else {})

    def _init(self, key, columns):
        dtype, k = float_dtype(), self.n_components
        weights = small_weights(key, columns.n_statistics, k)
        if columns.is_quadratic.any():
            weights = jnp.where(columns.is_quadratic[:, None], 0, weights)
        visible, hidden, chains = np.zeros(columns.n_statistics, dtype), np.zeros(k, dtype), (self.n_chains, k)
        return RBMParams(weights, on_device(visible), on_device(hidden), on_device(np.zeros(chains, bool)))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> RBMParams:
        columns = self.columns_
        validate, held_out = self._validation(rows, run.valid)
        objective = self._objective(columns, len(rows), held_out)
        init_key, chain_key, train_key, end_key = jax.random.split(key, 4)
        mean, variance = moments(rows, columns)
        params = self._init(init_key, columns)
        params = eqx.tree_at(lambda p: p.visible_bias, params, natural_of(mean, columns, 1e-4))
        rate = self.learning_rate
        if rate is None and self.optimizer == "sgd":
            rate = 0.2 if set(columns.kinds) <= {"binary", "categorical"} else 0.05
        config = self._training(learning_rate=rate, patience=None if validate is None else self.patience)
        result = train(
            to_learning(params, columns),
            objective,
            rows,
            config=config,
            key=train_key,
            state=self._first_state(chain_key, mean, variance),
            validate=validate,
            valid_rows=None if validate is None else run.valid,
            checkpoint=run.checkpoint,
            resume=run.resume,
            project=partial(keep_scales, columns=columns) if columns.is_quadratic.any() else None,
            label="RBM",
        )
        self.history_ = result.history
        chains = result.state.chains if self.n_tempered == 1 else result.state.chains[:, -1]
        return self._with_chains(to_natural(result.module, columns), chains, rows, end_key)

    def _objective(self, columns: Columns, n_rows: int, held_out: jax.Array | None) -> Any:
        first, last = _steps(self.n_gibbs_steps)
        if self.n_tempered > 1 and self.objective == "cd":
            raise ValueError(
                "`n_tempered` above 1 needs chains that go on, and those of objective='cd' start at the data in every "
                "update: choose objective='pcd', or n_tempered=1."
            )
        target = self.sparsity_target
        return partial(
            contrast,
            columns=columns,
            persistent=self.objective == "pcd",
            centring=self.centring,
            n_first=first,
            n_last=last,
            n_updates=self.n_epochs * math.ceil(n_rows / self.batch_size),
            sparsity=None if target is None else Sparsity(float(target), float(self.sparsity_strength)),
            held_out=held_out,
        )

    def _validation(self, rows: np.ndarray, valid: np.ndarray | None) -> tuple[Any, jax.Array | None]:
        """A loss of validation rows where it is exact and cheap; else some of the rows, to look at while learning."""
        if valid is None:
            return None, None
        side = cheap_side(self.columns_, self.n_components)
        if side is not None:
            return partial(negative_log_prob, columns=self.columns_, side=side), None
        if self.patience is not None:
            raise ValueError(
                "`patience` needs an exact evidence of the `valid` rows to wait for, and a machine of "
                f"{self.n_components} hidden units is too large to enumerate after every epoch: set patience=None, or "
                "lower `n_components`."
            )
        whole = valid[~np.isnan(valid).any(axis=1)][:_MOST_HELD_OUT]
        return None, on_device(whole) if len(whole) and not has_holes(rows) else None

    def _first_state(self, key: jax.Array, mean: jax.Array, variance: jax.Array) -> ChainState:
        shape = (self.n_chains, self.n_components)
        chains = jax.random.bernoulli(key, 0.5, shape).astype(mean.dtype)
        half = jnp.full(self.n_components, 0.5, mean.dtype)
        offsets = (mean, half) if self.centring else (jnp.zeros_like(mean), jnp.zeros_like(half))
        step = jnp.zeros((), jnp.int32)
        if self.n_tempered == 1:
            return ChainState(chains, *offsets, variance, step)
        replicas = jnp.broadcast_to(chains[:, None], (shape[0], self.n_tempered, shape[1]))
        return ChainState(replicas, *offsets, variance, step, natural_of(mean, self.columns_, 1e-4))

    def _with_chains(self, params: RBMParams, chains: jax.Array, rows: np.ndarray, key: jax.Array) -> RBMParams:
        """The machine with its chains; those of "cd" were never moved, and start at rows of the data instead."""
        if self.objective == "cd":
            pick, up = jax.random.split(key)
            chosen = rows[np.asarray(jax.random.randint(pick, (self.n_chains,), 0, len(rows)))]
            x, observed = on_device(np.nan_to_num(chosen)), on_device(~np.isnan(chosen))
            chains = start_chains(up, params, x, observed, self.columns_)
        return eqx.tree_at(lambda p: p.chains, params, chains.astype(bool))

    # --------------------------------------------------------------------- evidence
    def _answers(self) -> Exact | Sampled:
        return answers(self.params_, self.columns_, self._ais_settings())

    # ------------------------------------------------------------------------- codes
    def _encode(self, rows, key):
        return self._answers().hidden(rows)

    def _decode(self, codes):
        return self.columns_.mean(visible_natural(self.params_, on_device(codes)))

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


def moments(rows: np.ndarray, columns: Columns) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of T(x) over the observed cells; the mean with one row of ignorance added to it.

    Variances are the units of learning, and small ones make it fast: a statistic that few rows have counts as if 20
    had it, up to a fair bit, since what those few say is learned by heart otherwise.
    """
    total, squares, weight = sum_blocks(partial(_totals, columns=columns), rows)
    mean, count = total / np.maximum(weight, 1), weight + 1
    variance = np.maximum(squares / np.maximum(weight, 1) - mean**2, np.minimum(0.25, _FEW_ROWS / count))
    return on_device((total + columns.ignorance) / count, float_dtype()), on_device(variance, float_dtype())


@eqx.filter_jit
def _totals(x, observed, weight, columns):
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    statistics = columns.statistics(x, observed)
    return weight @ statistics, weight @ statistics**2, columns.spread(weight @ seen)


def _steps(n_gibbs_steps: Any) -> tuple[int, int]:
    """First and last number of Gibbs steps."""
    pair = (n_gibbs_steps, n_gibbs_steps) if isinstance(n_gibbs_steps, Integral) else tuple(n_gibbs_steps)
    if len(pair) != 2 or not are_sizes(pair):
        raise ValueError(f"`n_gibbs_steps` must be a positive number or a pair (first, last), got {n_gibbs_steps!r}.")
    return int(pair[0]), int(pair[1])
