"""Faults that are known and not yet mended: an entry goes when its fault does, and the tests see to it that it goes.

Each is an expected failure, strictly: a check that is listed here and holds is a failure of the tests.
"""

from __future__ import annotations

from typing import Any

import pytest

KNOWN: dict[tuple[str, str], str] = {}  # (check, case or its model) -> the fault


def known(check: str, name: str) -> str | None:
    """Why a check fails today; None if it must hold. The name is a case's, or its model's alone."""
    return KNOWN.get((check, name)) or KNOWN.get((check, name.rpartition(", ")[0]))


def param(check: str, name: str, *values: Any) -> Any:
    """A parameter of a test, an expected failure where it is known."""
    why = known(check, name)
    marks = [] if why is None else [pytest.mark.xfail(reason=why, strict=True, raises=AssertionError)]
    return pytest.param(*values, id=f"{check}, {name}", marks=marks)
