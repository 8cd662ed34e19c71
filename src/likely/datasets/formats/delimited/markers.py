"""Words for a cell that is unobserved, and words for true and false."""

from __future__ import annotations

# Unobserved in any column: what programs write for nothing, and the errors of spreadsheets.
HOLES = (
    "", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "NaT", "null", "NULL", "Null",
    "#VALUE!", "#DIV/0!", "#REF!", "#NUM!", "#NAME?", "#NULL!",
)  # fmt: skip

# Unobserved in a column that otherwise holds numbers or dates. Beside words they may well be categories, as `unknown`
# is among the jobs of a census, and `none` on a scale of pain.
SIGNS = ("-", "--", "---", ".", "..", "...", "*", "**", "–", "—", "_", "/")
MARKERS = (
    *SIGNS, "na", "n.a.", "n. a.", "none", "missing", "unknown", "not available", "not applicable", "no data",
    "no answer", "nil", "nd", "n.d.", "tbd", "k.a.", "k. a.", "keine angabe",
)  # fmt: skip

# Words for yes and no, in small letters. A column is Boolean where all of its words are of one of these sets.
TRUTH = (
    {"true": True, "false": False, "yes": True, "no": False, "y": True, "n": False, "1": True, "0": False},
    {"true": True, "false": False, "yes": True, "no": False, "t": True, "f": False, "1": True, "0": False},
    {"on": True, "off": False},
)
