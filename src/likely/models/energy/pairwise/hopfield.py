"""Hopfield network: patterns of ±1 stored as minima of an energy, recalled by descent; p(x) ∝ exp(-β E(x)).

Hopfield (1982); storing and recall are in `associative_memory`, the distribution in `machine`. Cost: storing p patterns
in N units takes p N², recalling n probes about n N². The evidence is exact up to 21 units and for the dense memory,
else an interval from annealed importance sampling.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.model import FitRun
from likely.contract.settings import Count, Positive, seed_of
from likely.models.energy.pairwise import associative_memory
from likely.models.energy.pairwise.answers import Exact, Sampled, answers
from likely.models.energy.pairwise.associative_memory import DenseAnswers, DenseParams, check_signs
from likely.models.energy.pairwise.machine import PairwiseParams, check_weights, make_layout, to_binary
from likely.models.energy.pairwise.pairwise_model import PairwiseModel
from likely.runtime import float_dtype, on_device
from likely.schema import Column, Schema

# Patterns, at most, that chains start from, each with its mirror image, which is as probable: together 128 chains, as
# many as annealing runs by default.
_MOST_CHAINS = 64


class Hopfield(PairwiseModel):
    """Associative memory: stores patterns, recalls them from corrupted or incomplete ones.

    Parameters
    ----------
    rule : "hebb", or "pseudo_inverse", which holds correlated patterns as well.
    memory : "pairwise", the classical network, or "dense", the modern one, which keeps the patterns themselves.
    beta : inverse temperature of the distribution; of the dense memory also how much the nearest pattern counts.
    max_iter : sweeps of recall at most, in `denoise`.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z is not known exactly.
    n_sweeps : Gibbs sweeps before a sample or a conditional is taken, where they cannot be drawn exactly.
    schema : what the columns are; None reads it off the data. All must be binary.
    random_state : seed.

    Notes
    -----
    `store`, `recall` and `energy` speak of ±1. `fit` takes rows of 0 and 1 like every model, and so do `evidence`,
    `sample`, `condition` and `denoise` after it; after `store` they take and give ±1. The dense memory keeps unknown
    cells of a stored pattern unknown, and fills those of rows that it is fitted to by draws from the other rows.

    Examples
    --------
    >>> patterns = np.sign(np.random.default_rng(0).normal(size=(5, 100)))
    >>> memory = Hopfield().store(patterns)
    >>> probes = patterns.copy()
    >>> probes[:, :20] *= -1  # a fifth of the units turned round
    >>> bool((memory.recall(probes) == patterns).all())
    True
    """

    rule: Literal["hebb", "pseudo_inverse"] = "hebb"
    _: KW_ONLY
    memory: Literal["pairwise", "dense"] = "pairwise"
    beta: Positive = 2.0
    max_iter: Count = 100

    _holds_rows = True
    _also_in_log_z: ClassVar[tuple[str, ...]] = ("memory", "beta")
    _why_not: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transform", "fit_transform", "inverse_transform"), "it has states and no code"
    )

    # ------------------------------------------------------------------ storing
    def store(self, patterns: Any) -> Hopfield:
        """Store patterns (n_patterns, n_units) of +1 and -1, NaN where unknown, in place of all stored before."""
        rows = check_signs(patterns, "patterns", holes=True)
        given = self.schema
        schema = Schema.binary(rows.shape[1]) if given is None else given
        try:
            self.schema = replace(schema, columns=tuple(Column(c.name, "binary") for c in schema.columns))
            self.fit((rows + 1) / 2)
        finally:
            self.schema = given
        if self.memory == "dense":
            # What is stored is kept as it was given; it is `fit` that learns a distribution, and completes rows.
            self.params_ = DenseParams(on_device(np.nan_to_num(rows), float_dtype()))
        # To the rest of the contract these are binary columns whose two values are -1 and 1.
        self.schema_ = replace(schema, columns=tuple(Column(c.name, "binary", (-1, 1)) for c in schema.columns))
        return self

    @classmethod
    def from_weights(cls, weights: Any, bias: Any = None, **parameters: Any) -> Hopfield:
        """A network with given weights (n_units, n_units) between ±1 units, symmetric and zero on the diagonal."""
        weights, bias = check_weights(weights, bias)
        model = cls(**parameters)
        if model.memory != "pairwise":
            raise ValueError("`memory`='dense' keeps patterns and has no weights: use store(patterns).")
        model._adopt(len(weights))
        model.n_patterns_ = _MOST_CHAINS
        chains = jax.random.bernoulli(model._key("fit"), 0.5, (2 * _MOST_CHAINS, len(weights)))
        model.params_ = _params(weights, bias, chains)
        return model

    def lesion(self, share: float, random_state: int | None = None) -> Hopfield:
        """A copy of which that share of the connections, drawn at random, is cut."""
        weights = np.array(self._pairwise("lesion").weights, np.float64)
        _check_share(share)
        first, second = np.triu_indices(len(weights), 1)
        rng = np.random.default_rng(self.seed_ if random_state is None else seed_of(random_state))
        cut = rng.permutation(len(first))[: round(share * len(first))]
        weights[first[cut], second[cut]] = weights[second[cut], first[cut]] = 0
        other = copy.copy(self)
        other.params_ = _params(weights, self.params_.bias, self.params_.chains)
        return other

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # Of the memories only the dense one is a fair density of many rows. On digits 1.5 beats 1 by more than a nat.
        return {"memory": "dense", "beta": 1.5}

    def _init(self, key, columns):
        n, dtype = columns.n_columns, float_dtype()
        if self.memory == "dense":
            return DenseParams(jnp.zeros((self.n_patterns_, n), dtype))
        chains = jnp.zeros((2 * min(self.n_patterns_, _MOST_CHAINS), n), bool)
        return PairwiseParams(jnp.zeros((n, n), dtype), jnp.zeros(n, dtype), chains)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> PairwiseParams | DenseParams:
        patterns = 2.0 * np.asarray(rows, np.float64) - 1
        self.n_patterns_ = len(patterns)
        if self.memory == "dense":
            if np.isnan(patterns).any():
                rng = np.random.default_rng(self.seed_)
                patterns = associative_memory.completed(rng, patterns, float(self.beta))
            return DenseParams(on_device(patterns, float_dtype()))
        rule = associative_memory.hebb if self.rule == "hebb" else associative_memory.pseudo_inverse
        some = rows[:_MOST_CHAINS]
        # NumPy's generator is used, since JAX's would compile for every number of patterns.
        some = np.where(np.isnan(some), np.random.default_rng(self.seed_).integers(0, 2, some.shape), some)
        return _params(rule(patterns), np.zeros(rows.shape[1]), np.vstack([some, 1 - some]) > 0)

    # ------------------------------------------------------------------ recall
    def recall(
        self,
        x: Any,
        updates: str = "asynchronous",
        *,
        max_iter: int = 100,
        return_trajectory: bool = False,
        random_state: int | None = None,
    ) -> np.ndarray:
        """The states that probes run into.

        Parameters
        ----------
        x : (n, n_units) or (n_units,) probes of +1 and -1, NaN where unknown.
        updates : "asynchronous", one unit after the other in an order drawn anew for each sweep: the energy never
            rises, and it ends in a state that is stable; or "synchronous", all at once, which may end in two states in
            turns.
        max_iter : sweeps at most.
        return_trajectory : the states after each sweep, (n_sweeps + 1, n, n_units), the probes first with 0 where
            unknown; in place of the last ones alone.
        random_state : of the orders; None takes the model's own.
        """
        check_is_fitted(self)
        if updates not in ("asynchronous", "synchronous"):
            raise ValueError(f"`updates` must be 'asynchronous' or 'synchronous', got {updates!r}.")
        _check_sweeps(max_iter)
        single = np.ndim(x) == 1
        probes = np.nan_to_num(check_signs([x] if single else x, "x", holes=True, n_units=self.columns_.n_columns))
        seed = self.seed_ if random_state is None else seed_of(random_state)
        trail = self._descend(probes, updates, int(max_iter), seed, return_trajectory)
        states = np.stack(trail) if return_trajectory else trail[-1]
        return states[..., 0, :] if single else states

    def energy(self, x: Any) -> np.ndarray:
        """(n,) energy of states (n, n_units) of +1 and -1; a number for a single state."""
        check_is_fitted(self)
        single = np.ndim(x) == 1
        states = check_signs([x] if single else x, "x", holes=False, n_units=self.columns_.n_columns)
        if self.memory == "dense":
            found = associative_memory.dense_energy(np.asarray(self.params_.patterns, np.float64), self.beta, states)
        else:
            found = associative_memory.energy(*_arrays(self.params_), states)
        return found[0] if single else found

    def _descend(
        self, probes: np.ndarray, updates: str, max_iter: int, seed: int, keep: bool = False
    ) -> list[np.ndarray]:
        orders = None
        if updates == "asynchronous":
            rng = np.random.default_rng(seed)
            orders = np.stack([rng.permutation(probes.shape[1]) for _ in range(max_iter)])
        if self.memory == "dense":
            patterns = np.asarray(self.params_.patterns, np.float64)
            return associative_memory.recall_dense(patterns, float(self.beta), probes, orders, max_iter, keep)
        return associative_memory.recall_pairwise(*_arrays(self.params_), probes, orders, max_iter, keep)

    def _pairwise(self, verb: str) -> PairwiseParams:
        check_is_fitted(self)
        if self.memory == "dense":
            raise ValueError(f"`{verb}` needs weights between units, and memory='dense' keeps patterns instead.")
        return self.params_

    # ------------------------------------------------------------------ the contract
    def _answers(self) -> Exact | Sampled | DenseAnswers:
        if self.memory == "dense":
            return DenseAnswers(self.params_, float(self.beta), self.columns_)
        machine = to_binary(self.params_, "pm1", self.beta)[0]
        n = self.columns_.n_columns
        return answers(machine, make_layout(~np.eye(n, dtype=bool), n), self._ais_settings())

    def _reconstruct(self, rows, key):
        probes = np.nan_to_num(2.0 * np.asarray(rows, np.float64) - 1)
        settled = self._descend(probes, "asynchronous", self.max_iter, self.seed_)[-1]
        return on_device((settled + 1) / 2, float_dtype())


def _check_share(share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise ValueError(f"`share` must be a number from 0 to 1, got {share!r}.")


def _check_sweeps(max_iter: Any) -> None:
    if isinstance(max_iter, bool) or not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"`max_iter` must be a positive whole number, got {max_iter!r}.")


def _params(weights: Any, bias: Any, chains: Any) -> PairwiseParams:
    dtype = float_dtype()
    return PairwiseParams(on_device(weights, dtype), on_device(bias, dtype), on_device(chains, bool))


def _arrays(params: PairwiseParams) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases in double precision: recall adds to its fields again and again."""
    return np.asarray(params.weights, np.float64), np.asarray(params.bias, np.float64)
