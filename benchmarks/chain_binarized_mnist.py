"""A masked network along one order of the pixels of binarized-mnist, within 20 minutes.

The validation rows stop the training; the test rows choose nothing.
"""

from __future__ import annotations

from typing import Any

from benchmarks.chain_network import TINY, line_of, measured
from benchmarks.outcome import Outcome

BAR, MINUTES = -87.0, 20
SETTING: dict[str, Any] = {
    "n_chains": 1,
    "order": "given",
    "n_hidden": 500,
    "n_blocks": 1,
    "dropout": 0.2,
    "n_epochs": 60,
    "averaging": 0.999,
    "learning_rate": 1e-3,
}


def run(*, small: bool, seed: int) -> Outcome:
    found = measured("binarized-mnist", SETTING | (TINY if small else {}), small, seed)
    return Outcome([line_of("binarized-mnist", found, BAR, 60 * MINUTES)], {"binarized-mnist": found})
