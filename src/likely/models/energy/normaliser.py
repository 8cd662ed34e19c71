"""log Z of energy models: annealed or enumerated, remembered, and turned with the rows' sums into evidence."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from likely.contract.model import Model
from likely.contract.settings import Count, Several


class Annealed(Model):
    """Settings of annealed importance sampling, where log Z cannot be enumerated."""

    _: KW_ONLY
    n_temperatures: Count = 1000
    n_ais_chains: Several = 128
    n_sweeps: Count = 200

    _effort: ClassVar[str] = "n_temperatures"
