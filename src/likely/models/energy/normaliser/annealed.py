"""Models whose log Z is enumerated or annealed: the settings of annealing, log Z, computed once, and what follows."""

from __future__ import annotations

import abc
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from likely.contract.drawing.mixing import DrawnRows
from likely.contract.model import Model
from likely.contract.settings import Count, Several
from likely.models.energy.normaliser.answers import Answers
from likely.models.energy.normaliser.log_sum import LogSum, evidence_of_sums
from likely.models.energy.normaliser.schedule import Settings


class Annealed(Model):
    """Settings of annealed importance sampling, where log Z cannot be enumerated."""

    _: KW_ONLY
    n_temperatures: Count = 1000
    n_ais_chains: Several = 128
    n_sweeps: Count = 200

    _effort: ClassVar[str] = "n_temperatures"
    _conditional_effort = _sampling_effort = "n_sweeps"
    _also_in_log_z: ClassVar[tuple[str, ...]] = ()  # further settings that log Z of a fitted model depends on

    @abc.abstractmethod
    def _answers(self) -> Answers:
        """The fitted machine, ready to be asked."""

    def log_partition(self) -> LogSum:
        """Log Z of the machine in standard units: exact, or an estimate with the reverse one beside it.

        A function of the fitted model and of how it is to be measured, so it is computed once for each.
        """
        about = (self._ais_settings(), *(getattr(self, name) for name in self._also_in_log_z))
        kept = self.__dict__.get("_log_partition")
        if kept is None or kept[0] is not self.params_ or kept[1] != about:
            found = self._answers().log_partition(self._key("evidence"))
            kept = self._log_partition = (self.params_, about, found)
        return kept[2]

    def _drawn(self, rows: Any) -> Any:
        """Rows that the machine sampled, with how, where that was not exactly.

        Whether its chains forget their starts is found once, as log Z is.
        """
        about = self._ais_settings()
        kept = self.__dict__.get("_watched")
        if kept is None or kept[0] is not self.params_ or kept[1] != about:
            kept = self._watched = (self.params_, about, self._answers().sampling(self._key("condition")))
        return rows if kept[2].is_exact else DrawnRows(rows, kept[2])

    def _ais_settings(self) -> Settings:
        return Settings(self.n_ais_chains, self.n_temperatures, self.n_sweeps)


def answers_of(model: Annealed) -> Answers:
    """The fitted machine of a model, ready to be asked by what is built on the model."""
    return model._answers()


class Answered(Annealed):
    """Models of which all that is asked is what their machine answers."""

    def _evidence(self, rows, key):
        answers = self._answers()
        return evidence_of_sums(answers.log_sum(key, rows), self.log_partition(), rows, answers.method)

    def _sample(self, key, n):
        return self._drawn(self._answers().sample(key, n))

    def _condition(self, rows, key):
        return self._answers().condition(key, rows)
