"""A model that only takes time, by a clock of its own, and the check that seconds are kept."""

from __future__ import annotations

import numpy as np

from likely.contract.evidence import Evidence


class FakeModel:
    """Its evidence turns the clock on: `compiling` at the first run of an effort, then `fixed + slope × effort`."""

    _effort = "n_temperatures"

    def __init__(self, *, compiling: float, fixed: float, slope: float, exact: bool = False):
        self.n_temperatures = 1000
        self.cost, self.exact = (compiling, fixed, slope), exact
        self.time, self.efforts = [0.0], []  # lists, which copies of the model share

    def clock(self) -> float:
        return self.time[0]

    def _evidence(self, rows, key):
        compiling, fixed, slope = self.cost
        new = self.n_temperatures not in self.efforts
        self.efforts.append(self.n_temperatures)
        self.time[0] += compiling * new + fixed + slope * self.n_temperatures
        values = np.zeros(len(rows))
        if self.exact:
            return Evidence.exact(values, method="sum")
        return Evidence.estimate(
            values, values, values, np.zeros((len(rows), 2)), method=f"{self.n_temperatures} temperatures"
        )


def check_seconds_are_kept(evidence_of, seconds: float, **cost: float) -> None:
    """No more than the seconds, and half of them at least, less what the short runs take whatever the effort."""
    model = FakeModel(**cost)
    evidence, effort = evidence_of(model, seconds)
    assert evidence.method == f"{effort} temperatures, in {seconds:g} s"
    assert model.efforts[-1] == effort
    assert model.time[0] <= seconds, f"took {model.time[0]:.1f} of {seconds} s"
    used = model.time[0] + 3 * cost["compiling"] + 5 * cost["fixed"]
    assert used >= 0.5 * seconds, f"used {model.time[0]:.1f} of {seconds} s"
