"""What a model loses when half of the cells that it learns from are erased, held to the bar of each model."""

from __future__ import annotations

from tests.audit.findings import Finding
from tests.audit.page import LEARNING
from tests.models.holes_checks import BARS, nats_lost

CASES = [(name, table) for table, bars in BARS.items() for name in bars]


def learning(name: str, table: str, seed: int) -> Finding:
    """Nats a row of complete test rows that are lost, against learning from complete rows with the same settings."""
    return Finding(f"{name}, {table}", LEARNING, nats_lost(name, seed, table).nats, BARS[table][name], "nats")
