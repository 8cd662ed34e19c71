"""What models over a pairwise machine have in common: evidence, samples and conditionals from one set of answers."""

from __future__ import annotations

import abc
from typing import Any, Protocol

import jax
import numpy as np

from likely.columns import Columns, Scaling
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence, fingerprint
from likely.contract.settings import seed_of
from likely.models.energy.harmonium.answers import LogSum
from likely.models.energy.normaliser import Annealed
from likely.schema import Schema


class Answers(Protocol):
    """What can be asked of a machine, however it is answered."""

    @property
    def method(self) -> str: ...

    def log_partition(self, key: jax.Array) -> LogSum: ...

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum: ...

    def sample(self, key: jax.Array, n: int) -> Any: ...

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts: ...


class PairwiseModel(Annealed):
    """Base of models over binary units whose distribution is one machine's."""

    _binary_only = True

    @abc.abstractmethod
    def _answers(self) -> Answers:
        """The fitted machine, ready to be asked."""

    @abc.abstractmethod
    def _measured_by(self) -> tuple:
        """Hyper-parameters that log Z depends on."""

    def log_partition(self) -> LogSum:
        """Log Z over 0/1 units at inverse temperature 1: exact, or an estimate with the reverse one beside it.

        A function of the fitted model and of how it is to be measured, so it is computed once for each.
        """
        kept, about = self.__dict__.get("_log_partition"), self._measured_by()
        if kept is None or kept[0] is not self.params_ or kept[1] != about:
            found = self._answers().log_partition(self._key("evidence"))
            kept = self._log_partition = (self.params_, about, found)
        return kept[2]

    def _evidence(self, rows, key):
        answers, log_z = self._answers(), self.log_partition()
        sums = answers.log_sum(key, rows)
        if log_z.replicates is None:
            return Evidence.exact(_or_nothing(sums.low - log_z.low, rows), method=answers.method)
        replicates = sums.replicates - log_z.replicates
        limits = sums.low - log_z.low, sums.low - log_z.high, sums.high - log_z.low
        values, lower, upper, replicates = (_or_nothing(array, rows) for array in (*limits, replicates))
        return Evidence.estimate(values, lower, upper, replicates, method=answers.method)

    def _sample(self, key, n):
        return self._answers().sample(key, n)

    def _condition(self, rows, key):
        return self._answers().condition(key, rows)

    def _adopt(self, n_visible: int) -> None:
        """What `fit` learns about columns, for a machine that was given and not learned: so many binary ones."""
        self._validate_params()
        self.schema_ = self.schema if self.schema is not None else Schema.binary(n_visible)
        if self.schema_.n_columns != n_visible:
            raise ValueError(f"the schema has {self.schema_.n_columns} columns, the machine {n_visible} visible units.")
        self._check_kinds(self.schema_)
        self.columns_, self.n_features_in_ = Columns.of(self.schema_), n_visible
        nothing = np.zeros((1, n_visible))
        self.scaling_ = Scaling.fit(nothing, self.columns_, self._scaling)
        self.seed_, self.fingerprint_ = seed_of(self.random_state), fingerprint(nothing)
        self.history_ = {}


def _or_nothing(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of no cells at all the probability is 1."""
    nothing = np.isnan(rows).all(axis=1)
    return np.where(nothing if values.ndim == 1 else nothing[:, None], 0.0, values)
