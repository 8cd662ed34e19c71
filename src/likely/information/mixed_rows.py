"""Sets of rows with columns of any kind, read together: one matrix of numbers and codes, NaN where unobserved.

This is not a model's reading of its columns (`likely.schema`), which refuses what it has not seen. Here sets are
compared, so a value that only one of them has is a finding; codes are common to all sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from likely.schema import as_array, as_frame
from likely.schema.spelling import did_you_mean

CellKind = Literal["number", "date", "category"]
MOST_CATEGORIES = 254  # that are told apart by trees and distances, the most frequent ones; the others are as one
_N_LEVELS = 101  # quantiles between which numbers are levelled


@dataclass(frozen=True)
class MixedRows:
    """Rows of several sets below each other.

    names, kinds : of the d columns. Truth values are numbers, 0 and 1; dates are microseconds since 1970.
    cells : (n_rows, d) numbers, and codes of categories; NaN = unobserved.
    values : of each column, what its codes stand for; empty for numbers and dates.
    sizes : numbers of rows of the sets.
    """

    names: tuple[str, ...]
    kinds: tuple[CellKind, ...]
    cells: np.ndarray
    values: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]

    @property
    def is_category(self) -> np.ndarray:
        """(d,) whether each column holds codes."""
        return np.array([kind == "category" for kind in self.kinds])

    def part(self, number: int) -> np.ndarray:
        """(n, d) the cells of one set."""
        start = sum(self.sizes[:number])
        return self.cells[start : start + self.sizes[number]]

    def subsampled(self, most: Sequence[int], rng: np.random.Generator) -> MixedRows:
        """At most so many rows of each set, drawn without replacement, in their order."""
        parts = []
        for number, (size, limit) in enumerate(zip(self.sizes, most, strict=True)):
            rows = self.part(number)
            parts.append(rows if size <= limit else rows[np.sort(rng.choice(size, limit, replace=False))])
        return replace(self, cells=np.concatenate(parts), sizes=tuple(map(len, parts)))

    def for_trees(self) -> np.ndarray:
        """(n_rows, d) the cells with categories coded by falling frequency, the rarest of very many as one."""
        out = self.cells.copy()
        for place in np.flatnonzero(self.is_category):
            out[:, place] = _by_frequency(out[:, place])
        return out

    def embedded(self, *, ranks: bool = True) -> np.ndarray:
        """(n_rows, e) points whose squared distances add up over columns, each column giving 2 on average.

        Numbers and dates are ranks (or themselves) divided by their deviation. A category is a corner of a simplex: any
        two are equally far apart. An unobserved cell is a state of its own: next to none but others like it.
        """
        return self._points(lambda cells: _ranked(cells) if ranks else cells, len(self.cells))

    def embedded_by_first(self) -> np.ndarray:
        """The same with scales that the first set alone decides: numbers by its quantiles, straight lines between them.

        Other sets may then lie as they like without stretching the space where they crowd.
        """
        return self._points(lambda cells: _levelled(cells, cells[: self.sizes[0]]), self.sizes[0])

    def _points(self, levelled: Callable[[np.ndarray], np.ndarray], n_deciding: int) -> np.ndarray:
        parts = []
        for place, kind in enumerate(self.kinds):
            cells = self.cells[:, place]
            parts.append(_corners(cells, n_deciding) if kind == "category" else _line(levelled(cells), n_deciding))
        return np.concatenate(parts, axis=1)

    def shown(self, place: int, cell: float) -> str:
        """A cell as people write it."""
        if math.isnan(cell):
            return "unobserved"
        if self.kinds[place] == "category":
            return repr(self.values[place][int(cell)])
        if self.kinds[place] == "date":
            return str(np.datetime64(int(cell), "us")).removesuffix("T00:00:00.000000")
        return f"{cell:.10g}"


def read_together(sets: dict[str, Any]) -> MixedRows:
    """Read sets of rows: data frames (pandas, polars, Arrow) or arrays with the same columns.

    Parameters
    ----------
    sets : rows by what messages call them, "the real rows"; names and order of the columns are those of the first.

    Examples
    --------
    >>> rows = read_together({"X": [[1, "a"], [None, "b"]], "Y": [[2.5, "c"]]})
    >>> rows.kinds, rows.values[1]
    (('number', 'category'), ('a', 'b', 'c'))
    >>> rows.part(1)
    array([[2.5, 2. ]])
    """
    read = {name: _columns(rows) for name, rows in sets.items()}
    first, columns = next(iter(read.items()))
    names = tuple(columns)
    if not names:
        raise ValueError(f"{first} have no columns.")
    for other, found in read.items():
        read[other] = _matched(names, found, first, other)
    kinds, cells, values = [], [], []
    for name in names:
        parts = {which: found[name] for which, found in read.items()}
        kind = _common_kind(name, parts)
        numbers, meanings = _joined(name, kind, parts)
        kinds.append(kind)
        cells.append(numbers)
        values.append(meanings)
    sizes = tuple(len(next(iter(found.values()))) for found in read.values())
    return MixedRows(names, tuple(kinds), np.stack(cells, axis=1), tuple(values), sizes)


def _columns(rows: Any) -> dict[str, np.ndarray]:
    """Columns by name: floats, microseconds (datetime64) or objects."""
    frame = as_frame(rows)
    if frame is not None:
        return {name: _series(frame[name]) for name in frame.columns}
    if not isinstance(rows, np.ndarray):
        # Lists of lists with words and numbers would become words throughout.
        rows = np.array([list(row) for row in rows], dtype=object) if np.ndim(rows) != 1 else rows
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "mM":
        rows = rows.astype(object) if rows.dtype.kind == "m" else rows.astype("M8[us]").astype(object)
    array = as_array(rows)
    plain = array.dtype.kind in "fiub"
    return {
        f"x{place}": array[:, place].astype(np.float64) if plain else _objects(array[:, place].tolist())
        for place in range(array.shape[1])
    }


def _series(series: Any) -> np.ndarray:
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if series.dtype in (nw.Date, nw.Datetime):
        instants = series.cast(nw.Datetime("us")) if series.dtype == nw.Date else series
        numbers = np.asarray(instants.dt.timestamp("us").cast(nw.Float64).to_numpy(), dtype=np.float64)
        return _instants(numbers)
    if isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum):
        words = np.array([*series.cast(nw.String).to_list(), None], dtype=object)[:-1]
        words[np.asarray(series.is_null().to_numpy(), dtype=bool)] = None
        return words
    return _objects(series.to_list())


def _objects(cells: list) -> np.ndarray:
    """Python values as floats or instants where all of them are, else as text; None where unobserved."""
    present = [cell for cell in cells if not _is_missing(cell)]
    if all(isinstance(cell, bool | int | float | np.number | np.bool_) for cell in present):
        return np.array([math.nan if _is_missing(cell) else float(cell) for cell in cells])
    if all(hasattr(cell, "isoformat") and hasattr(cell, "year") for cell in present):
        return np.array([_instant(cell) for cell in cells], dtype="M8[us]")
    if all(hasattr(cell, "total_seconds") for cell in present):
        return np.array([math.nan if _is_missing(cell) else cell.total_seconds() for cell in cells])
    return np.array([None if _is_missing(cell) else str(cell) for cell in cells] + [None], dtype=object)[:-1]


def _instant(cell: Any) -> np.datetime64:
    if _is_missing(cell):
        return np.datetime64("NaT", "us")
    if getattr(cell, "tzinfo", None) is not None:
        from datetime import UTC

        cell = cell.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(cell.isoformat(), "us")


def _instants(numbers: np.ndarray) -> np.ndarray:
    unobserved = np.isnan(numbers)
    out = np.where(unobserved, 0, numbers).astype(np.int64).astype("M8[us]")
    out[unobserved] = np.datetime64("NaT")
    return out


def _is_missing(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return bool(isinstance(cell, float | np.floating) and math.isnan(cell))


def _matched(names: tuple[str, ...], found: dict[str, np.ndarray], first: str, other: str) -> dict[str, np.ndarray]:
    """The columns of one set by the names of the first; those of arrays by their place."""
    unnamed = all(name == f"x{place}" for place, name in enumerate(found)) or all(
        name == f"x{place}" for place, name in enumerate(names)
    )
    if len(found) == len(names) and unnamed:
        return dict(zip(names, found.values(), strict=True))
    if unnamed:
        raise ValueError(f"{first} have {len(names)} columns and {other} {len(found)}: give the same columns.")
    for name in names:
        if name not in found:
            raise ValueError(f"{other} have no column {name!r}, which {first} have.{did_you_mean(name, list(found))}")
    for name in found:
        if name not in names:
            raise ValueError(f"{other} have a column {name!r}, which {first} have not: drop it.")
    return {name: found[name] for name in names}


def _kind(cells: np.ndarray) -> CellKind | None:
    """The kind of one set's column; None where nothing is observed."""
    if cells.dtype.kind == "f":
        return None if np.isnan(cells).all() else "number"
    if cells.dtype.kind == "M":
        return None if np.isnat(cells).all() else "date"
    return "category" if any(cell is not None for cell in cells) else None


def _common_kind(name: str, parts: dict[str, np.ndarray]) -> CellKind:
    """The kind that a column has in all sets; words that are numbers or dates are read so where others hold these."""
    kinds = {which: kind for which, cells in parts.items() if (kind := _kind(cells)) is not None}
    distinct = set(kinds.values())
    if len(distinct) <= 1:
        return next(iter(distinct), "number")
    wanted: CellKind = next((kind for kind in kinds.values() if kind != "category"), "category")
    for which, kind in kinds.items():
        if kind != wanted and not (kind == "category" and _as_kind(parts[which], wanted) is not None):
            words = {"number": "numbers", "date": "dates", "category": "words"}
            other = next(w for w, k in kinds.items() if k == wanted)
            raise ValueError(
                f"column {name!r} holds {words[wanted]} in {other} and {words[kind]} in {which}, such as "
                f"{next(cell for cell in parts[which].tolist() if not _is_missing(cell))!r}: give both the same type."
            )
    return wanted


def _as_kind(cells: np.ndarray, kind: CellKind) -> np.ndarray | None:
    """One set's column as floats, of numbers or dates; None where it holds other things."""
    if kind == "date" and cells.dtype.kind == "M":
        return np.where(np.isnat(cells), math.nan, cells.astype(np.int64))
    if cells.dtype.kind == "f":
        return cells if kind == "number" or np.isnan(cells).all() else None
    if cells.dtype.kind == "M":
        return np.full(len(cells), math.nan) if np.isnat(cells).all() else None
    try:
        if kind == "number":
            return np.array([math.nan if cell is None else float(cell) for cell in cells])
        days = np.array(["NaT" if cell is None else cell for cell in cells], dtype="M8[us]")
    except ValueError:
        return None
    return np.where(np.isnat(days), math.nan, days.astype(np.int64))


def _joined(name: str, kind: CellKind, parts: dict[str, np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
    """All sets' cells of a column as floats, and what they stand for if they are codes."""
    if kind == "category":
        texts = [cells if cells.dtype == object else np.full(len(cells), None) for cells in parts.values()]
        return _coded(np.concatenate(texts))
    found = [_as_kind(cells, kind) for cells in parts.values()]
    for which, cells in zip(parts, found, strict=True):
        if cells is not None and np.isinf(cells).any():
            raise ValueError(
                f"column {name!r} of {which} holds an infinite number in row {int(np.argmax(np.isinf(cells)))}: "
                "all must be finite numbers, or NaN where unobserved."
            )
    return np.concatenate([cells for cells in found if cells is not None]), ()


def _coded(cells: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    observed = np.array([cell is not None for cell in cells], dtype=bool)
    meanings, codes = np.unique(cells[observed].astype(str), return_inverse=True)
    out = np.full(len(cells), math.nan)
    out[observed] = codes
    return out, tuple(meanings.tolist())


def _by_frequency(codes: np.ndarray) -> np.ndarray:
    """Codes from the most frequent one, 0, down; `MOST_CATEGORIES` stands for all the rest."""
    observed = ~np.isnan(codes)
    if not observed.any():
        return codes
    counts = np.bincount(codes[observed].astype(int))
    places = np.empty(len(counts))
    places[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    out = codes.copy()
    out[observed] = np.minimum(places[codes[observed].astype(int)], MOST_CATEGORIES)
    return out


def _corners(codes: np.ndarray, n_deciding: int) -> np.ndarray:
    """(n, k) corners of a simplex, one for unobserved cells too."""
    states, places = np.unique(np.nan_to_num(_by_frequency(codes), nan=-1.0), return_inverse=True)
    shares = np.bincount(places[:n_deciding]) / max(1, n_deciding)
    # Two rows differ with probability 1 - Σ p², and are then 2 / (1 - Σ p²) apart in squared distance.
    differing = 1 - (shares**2).sum()
    out = np.zeros((len(codes), len(states)), dtype=np.float32)
    out[np.arange(len(codes)), places] = math.sqrt(1 / differing) if differing > 1e-12 else 1.0
    return out


def _line(cells: np.ndarray, n_deciding: int) -> np.ndarray:
    """(n, 1) standardised numbers, or (n, 2) with a mark of unobserved cells where there are any."""
    observed = ~np.isnan(cells)
    out, deciding = np.zeros(len(cells)), cells[:n_deciding][observed[:n_deciding]]
    if len(deciding):
        deviation = deciding.std()
        out[observed] = (cells[observed] - deciding.mean()) / (deviation if deviation > 0 else 1)
    return out[:, None] if observed.all() else np.stack([out, 1.0 - observed], axis=1)


def _ranked(cells: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    out, observed = np.full(len(cells), math.nan), ~np.isnan(cells)
    out[observed] = rankdata(cells[observed])
    return out


def _levelled(cells: np.ndarray, deciding: np.ndarray) -> np.ndarray:
    """Numbers as shares of the deciding ones that are below them, by straight lines, which go on beyond the ends."""
    deciding = deciding[~np.isnan(deciding)]
    if len(np.unique(deciding)) < 2:
        return cells
    levels = np.linspace(0, 1, _N_LEVELS)
    knots, group = np.unique(np.quantile(deciding, levels), return_inverse=True)
    heights = np.bincount(group, weights=levels) / np.bincount(group)
    out = np.interp(cells, knots, heights)
    slopes = np.diff(heights) / np.diff(knots)
    below, above = np.fmin(cells - knots[0], 0), np.fmax(cells - knots[-1], 0)
    return np.where(np.isnan(cells), math.nan, out + slopes[0] * below + slopes[-1] * above)
