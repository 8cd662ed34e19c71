"""What the pictures of the gallery share: colours, type, and axes without ornament."""

from __future__ import annotations

from matplotlib.axes import Axes

INK, MUTED, GRID = "#16202c", "#5d6b7a", "#dfe4ea"
TYPE = {"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK, "axes.titlesize": 11}


def dress(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and labels on a plain grid."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(x, color=MUTED)
    axes.set_ylabel(y, color=MUTED)
    strip(axes)


def strip(axes: Axes) -> None:
    """A grid behind the data, and neither frame nor ticks."""
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, length=0, which="both")
    for side in axes.spines.values():
        side.set_visible(False)


def signed(value: float, _: int) -> str:
    """A tick's number with a true minus, for a formatter of Matplotlib."""
    return f"{value:g}".replace("-", "−")


def square(axes: Axes, limit: float) -> None:
    """A plane from -limit to limit both ways, framed, without numbers."""
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_color(GRID)
