"""What a column is: how a user's values become one float matrix, and how they are written back."""

from likely.schema.column import KINDS, Column, Kind, SchemaError
from likely.schema.measure import Measure
from likely.schema.schema import Schema, as_array, as_frame, blocks

__all__ = ["KINDS", "Column", "Kind", "Measure", "Schema", "SchemaError", "as_array", "as_frame", "blocks"]
