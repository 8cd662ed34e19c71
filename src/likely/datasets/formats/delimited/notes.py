"""Remarks on how a file was read, a line each: nothing that could be read otherwise is read in silence."""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_NAMED = 4  # columns that a line names beside its first


@dataclass
class Notes:
    """Remarks in the order in which they were made; those of one sort on several columns become one line."""

    remarks: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """A remark on the file."""
        self.remarks.setdefault(("", text), []).append(("", text))

    def on(self, column: str, sort: str, text: str) -> None:
        """A remark on a column. Remarks of one `sort` differ in their examples only."""
        self.remarks.setdefault(("column", sort), []).append((column, text))

    def lines(self) -> tuple[str, ...]:
        """A line for each sort of remark: the first column's in full, the others by their names."""
        return tuple(self._line(of, given) for (of, _), given in self.remarks.items())

    def _line(self, of: str, given: list[tuple[str, str]]) -> str:
        column, text = given[0]
        if not of:
            return text
        others = [repr(name) for name, _ in given[1:]]
        if not others:
            return f"column {column!r}: {text}."
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        return f"column {column!r}: {text}; likewise {', '.join(others[:_MOST_NAMED])}{more}."
