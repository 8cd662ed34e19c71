"""What a column is: how a user's values become one float matrix, and how they are written back."""

from likely.schema.arrays import as_array, blocks, rows_of_a_block
from likely.schema.column import KINDS, Column, Kind, LeftOut, SchemaError
from likely.schema.frames import as_frame
from likely.schema.measure import Measure
from likely.schema.schema import Reading, Schema

__all__ = [
    "KINDS", "Column", "Kind", "LeftOut", "Measure", "Reading", "Schema", "SchemaError", "as_array", "as_frame",
    "blocks", "rows_of_a_block",
]  # fmt: skip
