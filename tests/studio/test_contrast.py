"""Colours of the style sheet can be told apart, in light and dark: WCAG 2.1, AA."""

from __future__ import annotations

import re

import numpy as np
import pytest

from likely.studio.app import STATIC

TEXT, PARTS = 4.5, 3.0  # the least ratios: of text, and of borders and drawings
SHADES = [f"odd{level}" for level in range(1, 5)]
READ = [
    *[(ink, ground) for ink in ("ink", "soft", "accent") for ground in ("paper", "ground")],
    *[("ink", ground) for ground in (*SHADES, "good", "bad", "rule")],
    ("accent-ink", "accent"),
]
SEEN = [(mark, ground) for mark in ("fill", "line", "accent", "soft") for ground in ("paper", "ground")]


def colours(scheme: str) -> dict[str, str]:
    """The named colours of a scheme; dark takes from light what it does not name."""
    text = (STATIC / "studio.css").read_text()
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    named = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", light))
    return named if scheme == "light" else named | dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", dark))


def luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_ratio_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the known pair that just fails


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_drawings_stand_out(scheme):
    named = colours(scheme)
    pale = {
        pair: round(ratio, 2)
        for pairs, least in ((READ, TEXT), (SEEN, PARTS))
        for pair in pairs
        if (ratio := contrast(named[pair[0]], named[pair[1]])) < least
    }
    assert not pale
