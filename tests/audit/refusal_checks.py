"""Comparisons that must be refused, since the two evidences speak of different things; and some that must not be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import likely
from likely.contract.evidence import Evidence, IncomparableError
from likely.schema import Schema
from likely.schema.column import Column
from tests.audit import tables
from tests.audit.findings import Finding

Pair = tuple[Evidence, Evidence]


def _rows(seed: int, kind: str = "binary") -> np.ndarray:
    return tables.table(kind, seed, 40)


def _independent(rows, **settings) -> likely.Independent:
    return likely.Independent(random_state=0, **settings).fit(rows)


def other_rows(seed: int) -> Pair:
    rows, others = _rows(seed), _rows(seed + 1)
    model = _independent(rows)
    return model.evidence(rows), model.evidence(others)


def other_number_of_rows(seed: int) -> Pair:
    rows = _rows(seed)
    model = _independent(rows)
    return model.evidence(rows), model.evidence(rows[:-1])


def other_order(seed: int) -> Pair:
    rows = _rows(seed)
    model = _independent(rows)
    return model.evidence(rows), model.evidence(np.roll(rows, 1, axis=0))


def other_measure(seed: int) -> Pair:
    """Bits as probabilities, and the same bits as densities."""
    rows = _rows(seed)
    return _independent(rows).evidence(rows), _independent(rows, schema=Schema.real(4)).evidence(rows)


def unlike_mixed_measures(seed: int) -> Pair:
    """Both mixed: one reads the first column as a density, the other as a probability."""
    rows = np.column_stack([_rows(seed)[:, 0], _rows(seed, "real")[:, 0], _rows(seed)[:, 1]])
    kinds = (("binary", "real", "binary"), ("real", "real", "binary"))
    schemas = (Schema(tuple(Column(f"x{i}", kind) for i, kind in enumerate(own))) for own in kinds)
    one, other = (_independent(rows, schema=schema).evidence(rows) for schema in schemas)
    return one, other


def other_values_of_equal_codes(seed: int) -> Pair:
    """Rows of a and b, and rows of b and c: the same codes, and other rows."""
    first = _rows(seed)[:, 0].astype(int)
    frames = [pl.DataFrame({"letter": [letters[i] for i in first]}) for letters in ("ab", "bc")]
    one, other = (_independent(frame).evidence(frame) for frame in frames)
    return one, other


def other_target(seed: int) -> Pair:
    rows = _rows(seed)
    predictor = likely.JointPredictor(likely.Mixture(2, random_state=0)).fit(rows[:, 1:], rows[:, 0].astype(int))
    return predictor.evidence(rows[:, 1:], rows[:, 0].astype(int)), predictor.evidence(
        rows[:, 1:], 1 - rows[:, 0].astype(int)
    )


def other_classes(seed: int) -> Pair:
    rows = _rows(seed)
    pairs = [np.array(list(letters))[rows[:, 0].astype(int)] for letters in ("ab", "bc")]
    model = likely.Mixture(2, random_state=0)
    one, other = (likely.JointPredictor(model).fit(rows[:, 1:], y).evidence(rows[:, 1:], y) for y in pairs)
    return one, other


def target_and_rows(seed: int) -> Pair:
    """log p(y | x) and log p(x)."""
    rows = _rows(seed)
    y = rows[:, 0].astype(int)
    return likely.JointPredictor(likely.Mixture(2, random_state=0)).fit(rows, y).evidence(rows, y), _independent(
        rows
    ).evidence(rows)


def same_rows(seed: int) -> Pair:
    rows = _rows(seed)
    return _independent(rows).evidence(rows), likely.Mixture(2, random_state=0).fit(rows).evidence(rows)


def slice_and_its_own_evidence(seed: int) -> Pair:
    """Some rows of an evidence, and the evidence of those rows."""
    rows = _rows(seed)
    model = _independent(rows)
    return model.evidence(rows)[5:20], model.evidence(rows[5:20])


REFUSED: dict[str, Callable[[int], Pair]] = {
    "other rows": other_rows,
    "another number of rows": other_number_of_rows,
    "another order of rows": other_order,
    "another measure": other_measure,
    "unlike mixed measures": unlike_mixed_measures,
    "other values of equal codes": other_values_of_equal_codes,
    "another target": other_target,
    "other classes": other_classes,
    "p(y | x) and p(x)": target_and_rows,
}
ALLOWED: dict[str, Callable[[int], Pair]] = {
    "two models of the same rows": same_rows,
    "a slice and its own evidence": slice_and_its_own_evidence,
}


def refusal(name: str, seed: int) -> Finding:
    """1 where a comparison is made that should be refused, or refused that should be made."""
    make = (REFUSED | ALLOWED)[name]
    one, other = make(seed)
    try:
        one - other
        refused = False
    except IncomparableError:
        refused = True
    wrong = refused if name in ALLOWED else not refused
    word = "compared" if name in ALLOWED else "refused"
    return Finding("Evidence", f"{name}: {word}", float(wrong), 0.0, "wrong answers")
