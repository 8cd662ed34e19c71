"""Numbers that stand for something else: -999 for a cell that is unobserved, infinity for one that overflowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from likely.datasets.errors import DataError
from likely.datasets.formats.delimited.notes import Notes
from likely.datasets.formats.delimited.table import Table

if TYPE_CHECKING:
    import polars as pl

_MOST_SENTINELS = 4  # of one column, such as -99, -999 and -9999; or -1, -7, -8 and -9
_BESIDE_9 = {-8, -7, -1}  # codes of surveys that come with -9: refused, not known, does not apply
_LARGEST = float(np.finfo(np.float32).max)


def without_sentinels(
    frame: pl.DataFrame, keep: bool, put: Callable[[pl.Series], pl.Series] | None = None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The table with null for numbers that are surely codes for unobserved cells, and remarks on those that may be.

    A number of nines (99, 999, 99.99, ..., of two digits at least; -9 too, and -7 and -8 beside it) is one

    - surely, if it is negative, all other numbers of the column are 0 or more, and it occurs twice or more, in columns
      of which that is so;
    - perhaps, if it occurs only once so; if it is another of -1 to -8, the only one, and all other numbers are 0 or
      more and some beyond 9; or if it is the least or the greatest number of its column, occurs twice or more, and is
      farther from the others than these are from each other.

    With `keep` all stay numbers, and are mentioned only. Columns that change are `put` where the others are.
    """
    notes, columns = Notes(), []
    numbers = [cells for cells in frame.iter_columns() if cells.dtype.is_numeric()]
    negative = [_negative_codes(cells) for cells in numbers]
    total: Counter[float] = Counter()
    for cells, (codes, stand_out) in zip(numbers, negative, strict=True):
        total.update({code: int((cells == code).sum()) for code in codes if stand_out})
    for cells, (codes, stand_out) in zip(numbers, negative, strict=True):
        likely = {code for code in codes if code <= -9 or (code <= -7 and -9 in codes and total[-9] > 1)}
        sure = {code for code in likely if stand_out and total[code] > 1 and not keep}
        found = _without(cells, notes, codes, sure, stand_out)
        if found is not cells:
            columns.append(found if put is None else put(found))
    return (frame.with_columns(columns) if columns else frame), notes.lines()


def _negative_codes(cells: pl.Series) -> tuple[list[float], bool]:
    """Negative numbers that may be codes, below all others of a column, and whether these are 0 or more."""
    rest = cells.fill_nan(None) if cells.dtype.is_float() else cells
    codes: list[float] = []
    while len(codes) < _MOST_SENTINELS and _may_be_code(low := rest.min()) and low < 0:
        codes.append(low)
        rest = rest.filter(rest != low)
    least, greatest = rest.min(), rest.max()
    stand_out = isinstance(least, int | float) and least >= 0
    digits = [code for code in codes if code > -9]
    if -9 in codes:
        are_codes = set(digits) <= _BESIDE_9
    else:  # -1, 0 and 1 are a scale, and -5 beside -9999 is a number.
        are_codes = not digits or (codes == digits[:1] and stand_out and bool(greatest > 9))  # type: ignore[operator]
    if not are_codes:
        return [code for code in codes if code <= -9], False
    return codes, stand_out


def _without(cells: pl.Series, notes: Notes, codes: list[float], sure: set[float], stand_out: bool) -> pl.Series:
    """The column without codes that are sure, and a remark on each code."""
    greatest = (cells.fill_nan(None) if cells.dtype.is_float() else cells).max()
    found = cells
    for code in codes if stand_out else ():
        n = int((cells == code).sum())
        if code in sure:
            found = found.set((found == code).fill_null(False), None)
            why = "is read as unobserved, since all other numbers are 0 or more; --missing NA keeps it"
            notes.on(cells.name, f"sentinel {code:g}", f"{code:g} ({_times(n)}) {why}")
        elif code <= -9 or greatest > 9:  # type: ignore[operator]
            _mention(notes, cells.name, code, n)
    if not stand_out:
        _mention_if_far(notes, cells, codes[:1])
    _mention_if_far(notes, found, [greatest] if _is_nines(greatest) and greatest > 0 else [])
    return found


def _mention_if_far(notes: Notes, cells: pl.Series, codes: list[float]) -> None:
    """Mention a number that recurs, and is farther from the others than these are from each other."""
    for code in codes:
        others = cells.filter(cells != code)
        least, greatest, n = others.min(), others.max(), int((cells == code).sum())
        if n > 1 and isinstance(least, int | float) and isinstance(greatest, int | float):
            gap = least - code if code < least else code - greatest
            if gap > greatest - least:
                _mention(notes, cells.name, code, n)


def _mention(notes: Notes, name: str, code: float, n: int) -> None:
    text = f"{code:g} ({_times(n)}) may stand for unobserved cells; --missing={code:g} reads it so"
    notes.on(name, f"sentinel? {code:g}", text)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _may_be_code(number: Any) -> TypeGuard[float]:
    """Whether a number is written with nines alone, or is one of -1 to -9."""
    return _is_nines(number) or (isinstance(number, int | float) and number in range(-9, 0))


def _is_nines(number: Any) -> TypeGuard[float]:
    """Whether a number is written with nines alone, two or more of them."""
    if not isinstance(number, int | float):
        return False
    digits = f"{abs(number):.10g}".replace(".", "")
    return len(digits) >= 2 and set(digits) == {"9"}


def check_finite(table: Table, path: Path) -> None:
    """Refuse numbers that are infinite, or larger than the models' arithmetic holds, with their places."""
    for cells in table.frame.iter_columns():
        if not cells.dtype.is_float():
            continue
        cells = cells.fill_nan(None)
        largest = cells.abs().max()
        if not isinstance(largest, float) or largest <= _LARGEST:
            continue
        row = int((cells.abs() > _LARGEST).fill_null(False).arg_max() or 0)
        value = cells[row]
        why = "is not finite" if np.isinf(value) else f"is beyond {_LARGEST:.2g}, where the models' arithmetic ends"
        remedies = ["correct it", f"read it as unobserved with --missing={value:g}"]
        remedies += [] if np.isinf(value) else ["divide the column by a power of ten"]
        raise DataError(
            f"{path}, {table.place(row)}: column {cells.name!r} holds {value:g}, which {why}: "
            f"{', '.join(remedies[:-1])}, or {remedies[-1]}."
        )
