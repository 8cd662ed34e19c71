"""How estimators, evidences and conditionals show themselves in a notebook: small tables, and a picture of the values.

Whatever comes from the user, names of columns and cells above all, is escaped. Nothing is fitted, scored or drawn here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from likely.contract.evidence import SIGNS, Evidence
from likely.tabulation import table

_KINDS = {
    "exact": "exact",
    "lower": "a lower bound",
    "upper": "an upper bound",
    "estimate": "an estimate between limits",
}
_MOST_ROWS, _MOST_COLUMNS = 8, 12  # of a table of cells
_CLOCKS = ("epoch", "seconds")  # of learning curves: when, not what
_LONGEST = 60  # characters of a value
_N_BARS, _WIDTH, _HEIGHT = 30, 240, 48  # of the picture, in pixels
_FILLED = "background: #f6c48a; color: #16202c"  # a cell that was not observed


def show_estimator(estimator: Any) -> str:
    """An estimator: which settings differ from their defaults and, once it is fitted, what it learned."""
    fitted = _learned(estimator) if hasattr(estimator, "params_") else []
    state = "fitted" if fitted else "not fitted"
    changed = [(name, _short(value)) for name, value in _changed(estimator).items()]
    parts = [f"<p><b>{escape(type(estimator).__name__)}</b>, {state}</p>"]
    if changed:
        parts.append(table(["setting", "value"], changed))
    else:
        parts.append("<p>all settings at their defaults</p>")
    if fitted:
        parts.append(table(["learned", ""], fitted))
    return "".join(parts)


def show_evidence(evidence: Evidence) -> str:
    """An evidence: its mean with kind and error, and how the rows' values spread."""
    if evidence.kind == "unavailable":
        reason = evidence.reason or "some rows have no value"
        return f"<p><b>Evidence</b> of {len(evidence):,} rows: unavailable. {escape(reason)}</p>"
    figures = [
        ("mean log p, nats", f"{SIGNS[evidence.kind]} {evidence.mean:.3f} ± {evidence.mean_stderr:.3f}"),
        ("kind", _KINDS[evidence.kind]),
        ("bits per dimension", f"{evidence.bits_per_dimension:.4f}"),
        ("rows", f"{len(evidence):,}"),
        ("method", evidence.method),
        ("measure", evidence.measure),
    ]
    if evidence.kind == "estimate":
        low, high = evidence.mean_limits()
        figures.insert(1, ("mean limits", f"{low:.3f} to {high:.3f}"))
    if evidence.replicates is not None:
        figures.insert(1, ("of which Monte Carlo", f"± {evidence.monte_carlo_stderr:.3f}"))
    return f"<p><b>Evidence</b></p>{table([], figures)}{histogram(evidence.values)}"


def show_conditional(rows: np.ndarray, mean: Any, std: np.ndarray, names: Sequence[str]) -> str:
    """A conditional: the first rows that have unobserved cells, those filled by their expected value ± deviation.

    Parameters
    ----------
    rows : (n_rows, d) encoded, NaN = unobserved.
    mean : the completed rows, an array or a data frame.
    std : (n_rows, d) deviations; NaN where there is none.
    names : of the columns.
    """
    cells = columns_of(mean, names)
    unobserved = np.isnan(rows)
    places = np.flatnonzero(unobserved.any(axis=0))
    numbers = np.flatnonzero(unobserved.any(axis=1))
    about = (
        f"<p><b>Conditional</b>: {int(unobserved.sum()):,} unobserved cells in {len(numbers):,} of {len(rows):,} rows "
        f"and {len(places):,} of {rows.shape[1]:,} columns</p>"
    )
    if not len(numbers):
        return about
    shown = places[:_MOST_COLUMNS]
    head = "".join(f"<th>{escape(_short(names[place]))}</th>" for place in shown)
    body = ""
    for row in numbers[:_MOST_ROWS]:
        filled = "".join(_cell(cells[place][row], std[row, place], unobserved[row, place]) for place in shown)
        body += f"<tr><th>{row}</th>{filled}</tr>"
    more = [
        f"{count - limit:,} more {what}"
        for count, limit, what in ((len(numbers), _MOST_ROWS, "rows"), (len(places), _MOST_COLUMNS, "columns"))
        if count > limit
    ]
    rest = f"<p><small>and {' and '.join(more)} with unobserved cells</small></p>" if more else ""
    return f"{about}<table><thead><tr><th>row</th>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def show_surprise(surprise: Any) -> str:
    """A surprise: how many rows, the oddest of them, and how the rows' values spread."""
    lines = [
        (
            str(row),
            f"{surprise.values[row]:.1f}",
            f"{surprise.tail[row]:.2g} ± {surprise.stderr[row]:.1g}",
            f"{surprise.evidence.values[row]:.2f}",
        )
        for row in surprise.top(_MOST_ROWS)
    ]
    about = f"<p><b>Surprise</b> of {len(surprise):,} rows; the oddest, of which <code>why(row)</code> names the cells"
    shown = table(["row", "surprise, nats", "tail probability", "log p"], lines)
    return f"{about}:</p>{shown}{histogram(surprise.values, 'surprise of the rows')}"


def histogram(values: np.ndarray, of: str = "log p of the rows") -> str:
    """How values spread, as an SVG; empty where there is no spread to show."""
    finite = values[np.isfinite(values)]
    if len(finite) < 2 or finite.min() == finite.max():
        return ""
    counts, edges = np.histogram(finite, _N_BARS)
    step = _WIDTH / _N_BARS
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT - height:.1f}" width="{step - 1:.1f}" height="{height:.1f}"/>'
        for i, height in enumerate(_HEIGHT * counts / counts.max())
        if height > 0
    )
    label = 'font-size="10" fill="currentColor"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT + 14}" role="img" '
        f'aria-label="{of}"><g fill="#0072b2">{bars}</g>'
        f'<text x="0" y="{_HEIGHT + 12}" {label}>{edges[0]:.4g}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 12}" text-anchor="end" {label}>{edges[-1]:.4g}</text></svg>'
    )


def _changed(estimator: Any) -> dict[str, Any]:
    """Settings whose value is not the default's, in the order of the signature."""
    import inspect

    defaults = inspect.signature(type(estimator)).parameters
    given = {name: getattr(estimator, name) for name in defaults}
    return {name: value for name, value in given.items() if not _is_same(value, defaults[name].default)}


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default):
        return isinstance(value, int | float) and isinstance(default, int | float) and value == default
    return bool(np.all(value == default)) if not isinstance(value, np.ndarray) else np.array_equal(value, default)


def _learned(estimator: Any) -> list[tuple[str, str]]:
    """What is known of a fit without computing anything of the rows."""
    facts = []
    schema = getattr(estimator, "schema_", None)
    if schema is not None:
        kinds = Counter(schema.kinds)
        facts.append(("columns", ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())))
    target = getattr(estimator, "target_", None)
    if target is not None:
        what = f"{len(target.classes):,} classes" if target.classes is not None else ", ".join(target.schema.kinds)
        facts.append(("target", f"{target.name}: {what}"))
    vocabulary = getattr(estimator, "vocabulary_", None)
    if vocabulary is not None:
        facts.append(("vocabulary", f"{len(vocabulary):,} tokens"))
    n_parameters = getattr(estimator, "n_parameters_", None)
    if n_parameters is not None:
        facts.append(("parameters", f"{n_parameters:,}"))
    curves = getattr(estimator, "history_", {})
    facts += [(name, _last(curve)) for name, curve in curves.items() if len(curve) and name not in _CLOCKS]
    facts.append(("evidence", _evidence_of(estimator)))
    if hasattr(estimator, "seed_"):
        facts.append(("seed", str(estimator.seed_)))
    return facts


def _last(curve: Sequence[float]) -> str:
    value = curve[-1]
    last = f"{value:.5g}" if isinstance(value, int | float | np.number) else _short(value)
    return f"{last}, the last of {len(curve):,}"


def _evidence_of(estimator: Any) -> str:
    """Whether there is a likelihood; its kind is the evidence's own to say, since it depends on sizes and on rows."""
    reason = estimator._no_evidence  # a property of some: it may depend on settings
    if reason:
        return f"unavailable: {reason}"
    if not hasattr(estimator, "evidence"):
        return "of targets given inputs, by `log_prob`" if hasattr(estimator, "log_prob") else "none"
    return "of y given each row" if hasattr(estimator, "target_") else "of each row"


def columns_of(completed: Any, names: Sequence[Any]) -> list[Any]:
    """The cells of each column of an array, or of those that are named of a data frame, which may have others."""
    if isinstance(completed, np.ndarray):
        return list(completed.T)
    import narwhals as nw

    frame = nw.from_native(completed, eager_only=True)
    place_of = {str(name): place for place, name in enumerate(frame.columns)}
    return [frame[:, place_of[str(name)]].to_list() for name in names]


def _cell(value: Any, deviation: float, is_filled: bool) -> str:
    text = f"{value:.4g}" if isinstance(value, int | float | np.number) else _short(value)
    if is_filled and math.isfinite(deviation):
        text += f" ± {deviation:.2g}"
    return f'<td style="{_FILLED}">{escape(text)}</td>' if is_filled else f"<td>{escape(text)}</td>"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
