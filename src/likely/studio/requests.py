"""What requests may say: numbers within limits, words of a list, forms of a size; anything else is a 400."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

MAX_FIELDS = 2000
LARGEST = 1e15  # number that is taken from a form; up to there every whole number is exact


class BadRequest(HTTPException):
    """A request that says something it must not; the reason is shown to the person."""

    def __init__(self, reason: str, status: int = 400):
        super().__init__(status, reason)


def whole(values: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number within limits."""
    text = values.get(name)
    if text is None or text == "":
        return default
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII) or not low <= int(text) <= high:
        raise BadRequest(f"{name} must be a whole number from {low} to {high}.")
    return int(text)


def decimal(values: Mapping[str, str], name: str) -> float | None:
    """A number that is not too large; None where none is given."""
    text = values.get(name, "")
    if text == "":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise BadRequest(f"{name} must be a number.")
    return value


def one_of(values: Mapping[str, str], name: str, default: str, known: Iterable[str]) -> str:
    """One of a few words."""
    word = values.get(name, default)
    if word not in known:
        raise BadRequest(f"{name} must be one of {', '.join(known)}.")
    return word


def query(request: Request, known: Iterable[str] | re.Pattern[str]) -> dict[str, str]:
    """The fields of an address, each known and there once."""
    return _fields(request.query_params.multi_items(), known)


async def form(request: Request, known: Iterable[str] | re.Pattern[str]) -> dict[str, str]:
    """The fields of a form that was sent, each known and there once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadRequest("a change is sent as a form.", 415)
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise BadRequest("the form cannot be read.") from None
    return _fields(pairs, known)


def _fields(pairs: list[tuple[str, str]], known: Iterable[str] | re.Pattern[str]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for name, value in pairs[: MAX_FIELDS + 1]:
        is_known = bool(known.fullmatch(name)) if isinstance(known, re.Pattern) else name in known
        if not is_known:
            raise BadRequest("the request has a field that is not known here.")
        if name in found:
            raise BadRequest(f"{name} is given twice.")
        if "\0" in value:
            raise BadRequest(f"{name} has a character that no value has.")
        found[name] = value
    if len(found) > MAX_FIELDS:
        raise BadRequest("the request has too many fields.")
    return found
