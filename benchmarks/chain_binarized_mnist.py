"""A masked network along one order of the pixels of binarized-mnist, within 20 minutes of two cores.

It reads the pixels near each by weights that all pixels share. Seconds are of processor time, of all cores together, so
that 20 minutes are 40. The validation rows stop the training; the test rows choose nothing.
"""

from __future__ import annotations

from typing import Any

from benchmarks.chain_network import TINY, line_of, measured
from benchmarks.outcome import Outcome

BAR, MINUTES = -87.0, 2 * 20  # of processor time
SETTING: dict[str, Any] = {
    "n_chains": 1,
    "order": "given",
    "n_hidden": 500,
    "n_blocks": 1,
    "window": 5,
    "activation": "relu",
    "dropout": 0.2,
    "n_epochs": 50,
    "averaging": 0.999,
    "learning_rate": 1e-3,
}


def run(*, small: bool, seed: int) -> Outcome:
    found = measured("binarized-mnist", SETTING | (TINY if small else {}), small, seed)
    return Outcome([line_of("binarized-mnist", found, BAR, 60 * MINUTES)], {"binarized-mnist": found})
