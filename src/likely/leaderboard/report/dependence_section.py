"""The report's section on what depends on what: mutual information between columns under the best model."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likely.information.dependence import entropy
from likely.information.shared_information import SharedInformation
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.page import GRID, INK, chart, section, short
from likely.leaderboard.wording import listed, number
from likely.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_COLUMNS = 40  # in the picture: more names would not be legible
MOST_COMPARED = 80  # with each other
_WITH_FIGURES = 22  # columns up to which the figures fit into the cells
N_PAIRS = 10  # in the table


def dependence_section(drawn: np.ndarray, data: np.ndarray, schema: Schema, model: str) -> str:
    """What two columns tell of each other in rows drawn from a model, beside the same in the data's rows."""
    if schema.n_columns < 2:
        return ""
    # Of wider tables those columns that vary most in the data: all their pairs are looked at.
    varied = [entropy(np.unique(data[:, place], return_counts=True)[1]) for place in range(schema.n_columns)]
    places = np.sort(np.argsort(-np.array(varied), kind="stable")[:MOST_COMPARED])
    about = [schema.names[place] for place in places], [schema.kinds[place] for place in places]
    under, seen = (SharedInformation.of(rows[:, places], *about) for rows in (drawn, data))
    text = (
        f"Mutual information between columns in {len(drawn):,} rows drawn from {model}: how much knowing one tells of "
        f"the other. Numbers are sorted into bins. {_in_words(under)}"
    )
    return section("What depends on what", text, chart(_heat_map(under)) + _table(under, seen, model))


def _in_words(shared: SharedInformation) -> str:
    """The strongest pairs and the columns that stand alone, in a sentence or two."""
    pairs = shared.pairs()
    if not pairs:
        return "No two columns share more than chance would make them seem to."
    name = lambda place: short(shared.names[place], 30)  # noqa: E731
    first = [
        f"{name(i)} and {name(j)} ({number(shared.values[i, j])} ± {number(shared.stderr[i, j])} nats, "
        f"{shared.share(i, j):.0%} of what there is to know of one)"
        for i, j in pairs[:3]
    ]
    alone = [name(place) for place in range(len(shared.names)) if not any(place in pair for pair in pairs)]
    said = f"The strongest: {listed(first)}."
    if alone:
        some = listed(alone) if len(alone) <= 5 else f"{listed(alone[:4])} and {len(alone) - 4} others"
        said += f" {some} depend{'s' if len(alone) == 1 else ''} on no other column that these rows show."
    return said


def _table(under: SharedInformation, seen: SharedInformation, model: str) -> str:
    rows, pairs = "", under.pairs()[:N_PAIRS]
    if not pairs:
        return ""
    for i, j in pairs:
        rows += (
            f"<tr><td>{escape(under.names[i])}</td><td>{escape(under.names[j])}</td>"
            f"<td class='n'>{number(under.values[i, j], 3)} ± {number(under.stderr[i, j], 3)}</td>"
            f"<td class='n'>{number(seen.values[i, j], 3)} ± {number(seen.stderr[i, j], 3)}</td>"
            f"<td class='n'>{under.share(i, j):.0%}</td></tr>"
        )
    head = (
        f"<th>column</th><th>and column</th><th class='n'>nats under<br>{escape(model)}</th>"
        "<th class='n'>nats in the<br>training rows</th><th class='n'>of what there<br>is to know</th>"
    )
    return (
        f"<div class='scroll'><table class='narrow'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _heat_map(shared: SharedInformation) -> str:
    shown = _order(shared)
    strength = shared.strength[np.ix_(shown, shown)]
    size = len(shown)
    height = 1.0 + max(2.2, size * (0.29 if size <= _WITH_FIGURES else 0.21))
    with drawing(height, "what depends on what") as picture:
        axes = picture.figure.subplots()
        _cells(axes, strength)
        names = [short(shared.names[place], 26) for place in shown]
        letters = 8.5 if size <= _WITH_FIGURES else 7.0
        axes.set_xticks(range(size - 1), names[:-1], rotation=55, ha="right", rotation_mode="anchor", fontsize=letters)
        axes.set_yticks(range(1, size), names[1:], fontsize=letters)
        axes.tick_params(length=0, labelcolor=INK)
        axes.set_xlim(-0.5, size - 1.5)
        axes.set_ylim(size - 0.5, 0.5)
        axes.set_aspect("auto")
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_title(_caption(shared, size), fontsize=8.5, fontweight="normal")
    return picture.svg


def _caption(shared: SharedInformation, size: int) -> str:
    more = "" if size == len(shared.names) else f"; the {size} of {len(shared.names)} columns that depend most"
    return f"strength √(1 − e^(−2I)) between 0, independent, and 1, one follows from the other{more}"


def _cells(axes: Axes, strength: np.ndarray) -> None:
    """A square for each pair below the diagonal, the darker the stronger, with its figure where there is room."""
    from matplotlib.patches import Rectangle

    size = len(strength)
    for down in range(1, size):
        for across in range(down):
            value = float(strength[down, across])
            place = (across - 0.47, down - 0.47)
            axes.add_patch(Rectangle(place, 0.94, 0.94, facecolor=GRID, alpha=0.35, lw=0))
            # The colour of the first model, as the style sheet has it, so that one drawing serves light and dark.
            axes.add_patch(Rectangle(place, 0.94, 0.94, facecolor="#0072b2", alpha=min(1.0, value), lw=0))
            if size <= _WITH_FIGURES and value >= 0.1:
                axes.text(across, down, f"{value:.1f}".lstrip("0"), ha="center", va="center", fontsize=7.5, color=INK)


def _order(shared: SharedInformation) -> list[int]:
    """The columns that depend most, those that depend on each other side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    strength = shared.strength - np.eye(len(shared.names))
    kept = np.sort(np.argsort(-strength.max(axis=1), kind="stable")[:MAX_COLUMNS])
    if len(kept) < 3:
        return kept.tolist()
    distance = 1 - strength[np.ix_(kept, kept)]
    np.fill_diagonal(distance, 0.0)
    return kept[leaves_list(linkage(squareform(distance, checks=False), "average"))].tolist()
