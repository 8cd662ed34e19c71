"""The report's colours, lines and marks: every model of a comparison has its own, which stands out from the paper."""

from __future__ import annotations

import numpy as np
import pytest

from likely.leaderboard.report.page import AT_NIGHT, COLOURS, NAMES, colour, dashes, dot, mark, name_for_css
from tests.studio.test_contrast import PARTS, contrast

APART = 0.09  # in OKLab, where two hundredths are a difference that is just seen side by side
PAPERS = {"light": (COLOURS, ("#ffffff", "#f7f8fa")), "night": (AT_NIGHT, ("#12161b", "#1a2028"))}


def oklab(hexadecimal: str) -> np.ndarray:
    """Ottosson (2020)."""
    parts = np.array([int(hexadecimal[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    opponents = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(opponents) @ np.cbrt(np.array(cones) @ linear)


def test_white_is_bright_and_without_colour():
    np.testing.assert_allclose(oklab("#ffffff"), [1, 0, 0], atol=1e-6)


@pytest.mark.parametrize("scheme", PAPERS)
def test_colours_stand_out_from_the_paper_and_from_each_other(scheme):
    colours, papers = PAPERS[scheme]
    assert len(colours) == len(COLOURS)
    assert not [(one, paper) for one in colours for paper in papers if contrast(one, paper) < PARTS]
    places = np.array([oklab(one) for one in colours])
    distances = np.linalg.norm(places[:, None] - places, axis=-1) + np.eye(len(places))
    assert distances.min() >= APART


def test_sixty_models_look_different():
    looks = [(name_for_css(own), str(dashes(own)), mark(own)) for own in map(colour, range(60))]
    assert len(set(looks)) == 60
    assert len({name for name, _, _ in looks[: len(COLOURS)]}) == len(COLOURS) == 20


def test_a_colour_that_comes_again_is_drawn_as_it_was():
    for place in range(60):
        again, first = colour(place), colour(place % len(COLOURS))
        assert NAMES[again] == NAMES[first]
        assert np.linalg.norm(oklab(again) - oklab(first)) < 0.005


def test_marks_in_the_key_are_those_of_the_charts():
    shapes = {mark(colour(place)): dot(colour(place)).split('"')[1] for place in range(60)}
    assert shapes == {"s": "dot", "o": "dot round", "D": "dot turned", "^": "dot pointed"}
