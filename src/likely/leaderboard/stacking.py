"""The last line of a comparison that asks for it: a mixture of all models that can be compared."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from likely.leaderboard.board import Entry
from likely.leaderboard.measuring import one_line

NAME = "Stack"


def check_stacked(models: dict[str, Any], is_table: bool, target: str | None) -> None:
    """Refuse what cannot be stacked, before any work."""
    if not is_table or target is not None:
        what = "text" if not is_table else "predictors of a column"
        raise ValueError(f"stack=True mixes models of the rows of a table, and this is a comparison of {what}.")
    if NAME in models:
        raise ValueError(f"a model is named {NAME!r}, as the mixture of all is: leave one of the two out.")


def stacked(entries: list[Entry], data: Any, seed: int) -> Entry:
    """The mixture of the models whose evidence is exact or holds from below, with weights by the validation rows.

    Its evidence of the test rows is mixed from theirs, so that nothing is scored twice.
    """
    from likely.models.latent.mixture.stack import Stack, mixed_evidence

    usable = [e for e in entries if _is_usable(e, data.schema.measure)]
    if len(usable) < 2:
        return Entry(NAME, failure=f"there are {len(usable)} models of these columns to mix, which takes two.")
    begun = time.perf_counter()
    try:
        model = Stack([entry.model for entry in usable], random_state=seed).fit(data.valid)
        middle = time.perf_counter()
        found: list[Any] = [entry.evidence for entry in usable]
        about = {name: getattr(found[0], name) for name in ("measure", "dimensions", "fingerprint")}
        evidence = replace(mixed_evidence(found, np.array(model.weights_)), **about)
    except Exception as error:  # as of any model: the others' hours are not to be lost
        return Entry(NAME, failure=f"it could not be fitted: {one_line(error)}")
    return Entry(NAME, evidence, model, middle - begun, time.perf_counter() - middle, model.n_parameters_)


def _is_usable(entry: Entry, measure: Any) -> bool:
    """Whether what a model says of rows is sure to be no more than their probability, on the data's own measure."""
    evidence = entry.evidence
    if evidence is None or entry.kind == "unavailable" or evidence.measure != measure:
        return False
    return bool(np.isfinite(evidence.values).all() and np.array_equal(evidence.lower, evidence.values))
