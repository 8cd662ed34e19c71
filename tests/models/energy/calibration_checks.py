"""Coverage of the intervals of sampled log Z, against the machines' exact one: the experiment of the gallery."""

from __future__ import annotations

import importlib.util
from typing import Any

from scipy import stats

from tests.conftest import ROOT
from tests.models.energy.harmonium.learning_checks import ALPHA

LEVELS = (0.5, 0.8, 0.95)


def load_experiment() -> Any:
    path = ROOT / "docs" / "gallery" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_coverage(experiment: Any, trial: Any) -> None:
    """At every level the intervals hold the truth at the stated rate or above it, up to chance."""
    n = len(trial.low)
    for level in LEVELS:
        covered = round(n * experiment.coverage(trial, level))
        least = stats.binom.ppf(ALPHA, n, level)
        assert covered >= least, (
            f"{covered} of {n} intervals of level {level} hold the truth, {least:.0f} at least must"
        )
