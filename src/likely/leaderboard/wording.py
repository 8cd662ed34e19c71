"""Numbers and signs as the terminal and the report write them."""

from __future__ import annotations

import math

from likely.contract.evidence import SIGNS
from likely.leaderboard.board import LEVEL, Entry, Leaderboard

SCORES = {"accuracy": "accuracy", "r2": "R²"}
STANDINGS = {"best": "", "behind": "", "tied": "~", "open": "?", "apart": ""}

LEGEND = (
    "= exact   ≥ lower bound   ≈ estimate between two limits   ± standard error (rows, Monte Carlo)",
    f"Ranked by what each is sure of (at least, Monte Carlo at {LEVEL:.0%}). "
    f"[ ] {LEVEL:.0%} interval of the paired difference.",
    "~ not separated from the best   ? a bound leaves open which is better",
)

CALIBRATED = "calibration: root mean square of probability − share, less what chance gives, [ ] 95% interval"
HELD = "calibration: share of test rows whose number lay in its 90% interval"


def number(value: float, digits: int = 2) -> str:
    """A number with a real minus sign and thousands apart; a dash for none, ∞ for no limit.

    Examples
    --------
    >>> number(-1234.5), number(float("inf")), number(float("nan"))
    ('−1,234.50', '∞', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def digits_for(board: Leaderboard) -> int:
    """Decimals that the errors deserve: two figures of the smallest standard error, between 1 and 4."""
    errors = [e.stderr for e in board.entries if math.isfinite(e.stderr) and e.stderr > 0]
    return min(4, max(1, 1 - math.floor(math.log10(min(errors))))) if errors else 2


def evidence(entry: Entry, digits: int = 2) -> str:
    """The mean with its sign and error: "≥ −15.21 ± 0.12"."""
    if entry.kind == "unavailable":
        return "–"
    return f"{SIGNS[entry.kind]} {number(entry.mean, digits)} ± {number(entry.stderr, digits)}"


def interval(entry: Entry, digits: int = 2) -> str:
    """The interval of the difference: "[−1.2, −0.4]"; round brackets where it is open."""
    low, high = entry.interval
    left, right = "(" if math.isinf(low) else "[", ")" if math.isinf(high) else "]"
    return f"{left}{number(low, digits)}, {number(high, digits)}{right}"


def figure(entry: Entry, board: Leaderboard) -> str:
    """What stands beside the evidence: bits per dimension, perplexity of text, or how a prediction scores."""
    if board.is_text:
        return number(entry.perplexity)
    if not board.target:
        return number(entry.bits_per_dimension, 3)
    if math.isnan(entry.score):
        return "–"
    return f"{entry.score:.1%}" if board.score_name == "accuracy" else number(entry.score, 3)


def calibration(entry: Entry) -> str:
    """The calibration error with its interval, or how often 90% intervals hold the number."""
    found = entry.calibration
    if found is None:
        return "–"
    if found.error is not None:
        return f"{found.error.value:.3f} [{found.error.low:.3f}, {found.error.high:.3f}]"
    return "–" if found.pit is None else f"{found.pit.coverage(0.9).share:.1%} in 90%"


def seconds(value: float) -> str:
    """Seconds with two figures below ten; minutes from 600 on.

    Examples
    --------
    >>> seconds(0.04), seconds(7.25), seconds(75), seconds(1200)
    ('0.04 s', '7.2 s', '75 s', '20 min')
    """
    if math.isnan(value):
        return "–"
    if value >= 600:
        return f"{value / 60:.0f} min"
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def count(value: int | None) -> str:
    """A whole number with thousands apart."""
    return "–" if value is None else f"{value:,}"


def verdict(board: Leaderboard) -> str:
    """The result in a sentence or two."""
    return _result(board) + broken_off(board)


def broken_off(board: Leaderboard) -> str:
    """What is missing of a comparison that was interrupted; empty where nothing is."""
    if not board.unfinished:
        return ""
    n = len(board) + len(board.unfinished)
    names = listed(board.unfinished if len(board.unfinished) <= 4 else [*board.unfinished[:3], "others"])
    return f" Interrupted: {len(board)} of {n} models were finished; {names} {_are(board.unfinished)} missing."


def _result(board: Leaderboard) -> str:
    best = board.best
    if best is None:
        return "No model could be ranked; the reasons are below."
    if len(board.ranked) == 1:
        return f"{best.name} is the only model that can be ranked: at least {number(best.lower)} nats per row."
    text = f"{best.name} leads {len(board.ranked)} comparable models with at least {number(best.lower)} nats per row."
    tied = [entry.name for entry in board.ranked if entry.standing == "tied"]
    unknown = [entry.name for entry in board.ranked if entry.standing == "open"]
    if tied:
        text += f" {listed(tied)} {_are(tied)} not separated from it by these rows."
    if unknown:
        text += f" Bounds leave open whether {listed(unknown, 'or')} may in truth be better."
    return text


def listed(names: list[str], word: str = "and") -> str:
    """Names with commas and a word between: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def apart_by_reason(board: Leaderboard) -> list[tuple[str, list[Entry]]]:
    """The entries that stand apart, those with one reason together, in the order of the first of each."""
    groups: dict[str, list[Entry]] = {}
    for entry in board.apart:
        groups.setdefault(entry.apart, []).append(entry)
    return list(groups.items())


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
