"""New rows of a model: given some of their values, and with holes if they are asked for."""

from likely.contract.drawing.event import Event
from likely.contract.drawing.given import draw_given
from likely.contract.drawing.holes import check_holes, with_holes

__all__ = ["Event", "check_holes", "draw_given", "with_holes"]
