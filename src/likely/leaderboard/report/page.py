"""The page that the report is written on: its style, its colours, and the few pieces of HTML it is made of."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

# After Okabe and Ito, whose colours people with any colour vision can tell apart: as dark, or at night as bright, as
# drawings must be (3 to 1 against the paper), without yellow, which is too pale on white. Then others, each chosen far
# from all before it in OKLab. What colours do not tell apart, lines and marks do, which change every seven.
COLOURS = (
    *("#0072b2", "#cf5200", "#009e73", "#c46a9c", "#b38400", "#3393cf", "#7d5f2c"),
    *("#7b61c4", "#6b013f", "#014722", "#2207a3", "#e000f0", "#2f9a12", "#c00366"),
    *("#3036fc", "#7200a2", "#187200", "#962a00", "#9600fc", "#30426c"),
)
AT_NIGHT = (
    *("#4aa3df", "#ff7f3f", "#2cc79c", "#e29bc4", "#f0b53a", "#7cc8f2", "#c4a35a"),
    *("#a893ea", "#db0080", "#83ff09", "#ab19f8", "#4c8e01", "#ff4ef7", "#fbe0dc"),
    *("#005afc", "#b85c06", "#786096", "#fcfc72", "#42fcde", "#007f78"),
)
_ROUNDS = 3  # times that the colours are gone through before a colour comes again with the same line and mark
_LINES = ("-", (0, (3.5, 1.2)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
_MARKS = ("s", "o", "D", "^")
_SHAPES = ("", " round", " turned", " pointed")  # the same in the style sheet


def colour(place: int) -> str:
    """The colour of a model, by its place in the line-up; where colours come again, one that differs by a shade."""
    # A shade that nobody sees, but by which lines and marks are known.
    place %= _ROUNDS * len(COLOURS)
    red, green, blue = bytes.fromhex(COLOURS[place % len(COLOURS)][1:])
    shade = place // len(COLOURS)
    return f"#{red:02x}{green:02x}{blue + shade if blue < 128 else blue - shade:02x}"


# What charts are drawn with, and the style sheet's names that take their place: so one drawing serves light and dark.
INK, MUTED, GRID = "#010203", "#040506", "#070809"
_PLACES = {colour(place): place for place in range(_ROUNDS * len(COLOURS))}
NAMES = {INK: "--ink", MUTED: "--muted", GRID: "--line"}
NAMES |= {own: f"--c{place % len(COLOURS)}" for own, place in _PLACES.items()}


def _look(colour: str) -> int:
    """Which of the lines and marks goes with a model's colour."""
    return _PLACES.get(colour, 0) // 7 % len(_LINES)


def dashes(colour: str) -> Any:
    """The line style, as matplotlib knows it, that goes with a model's colour."""
    return _LINES[_look(colour)]


def mark(colour: str) -> str:
    """The mark, as matplotlib knows it, that goes with a model's colour."""
    return _MARKS[_look(colour)]


def name_for_css(colour: str) -> str:
    """A chart's colour as the style sheet knows it."""
    return f"var({NAMES[colour]})"


_LIGHT = "--paper:#ffffff;--card:#f7f8fa;--ink:#16202c;--muted:#5d6b7a;--line:#dfe4ea;--good:#0b6b4f;--tile:#ffffff;"
_NIGHT = "--paper:#12161b;--card:#1a2028;--ink:#e8edf2;--muted:#9aa7b4;--line:#303a45;--good:#57d3a6;--tile:#f4f1ea;"

STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}{"".join(f"--c{i}:{c};" for i, c in enumerate(COLOURS))}
--font:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}}
@media (prefers-color-scheme:dark){{:root{{{_NIGHT}{"".join(f"--c{i}:{c};" for i, c in enumerate(AT_NIGHT))}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 var(--font)}}
main{{max-width:1160px;margin:0 auto;padding:48px 28px 80px}}
h1{{font-size:34px;line-height:1.15;letter-spacing:-.02em;margin:0 0 6px}}
h2{{font-size:21px;letter-spacing:-.01em;margin:56px 0 4px}}
p{{margin:6px 0 14px;max-width:108ch}}
.sub,.note,figcaption small{{color:var(--muted)}}
.note{{font-size:14px}}
.verdict{{font-size:19px;line-height:1.45;margin:22px 0 6px;padding-left:16px;border-left:4px solid var(--c0)}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px;margin:14px 0}}
th{{text-align:left;font-weight:600;color:var(--muted);font-size:12.5px;padding:6px 8px;vertical-align:bottom;
border-bottom:1px solid var(--line)}}
td{{padding:9px 8px;border-bottom:1px solid var(--line);vertical-align:middle}}
th.n,td.n{{text-align:right;white-space:nowrap}}
.w{{white-space:nowrap}}
tr.best td{{font-weight:600}}
tr.apart td{{color:var(--muted)}}
.dot{{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:8px;vertical-align:-1px}}
.dot.round{{border-radius:50%}}
.dot.turned{{border-radius:1px;transform:rotate(45deg) scale(.85)}}
.dot.pointed{{border-radius:0;clip-path:polygon(50% 0,100% 100%,0 100%)}}
.bar{{height:10px;border-radius:3px;min-width:2px}}
.gap small{{color:var(--muted)}}
.badge{{font-size:12px;font-weight:500;color:var(--muted);border:1px solid var(--line);border-radius:99px;
padding:1px 8px;margin-left:6px;white-space:nowrap}}
.badge.good{{color:var(--good);border-color:var(--good)}}
figure{{margin:0}}
figcaption{{font-size:14px;font-weight:600;margin-bottom:6px}}
figcaption small{{font-weight:400;font-size:13px}}
.chart{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px;margin:12px 0;
overflow-x:auto}}
.chart svg{{width:100%;height:auto;display:block}}
.grids{{display:grid;grid-template-columns:repeat(auto-fill,minmax(225px,1fr));gap:22px 20px;margin:14px 0}}
img.pixels{{image-rendering:pixelated;width:100%;display:block;background:var(--line);border:1px solid var(--line);
border-radius:4px}}
.strips{{display:grid;grid-template-columns:170px 1fr;gap:8px 16px;align-items:center;margin:14px 0}}
.strips .label{{font-size:14px;font-weight:600;line-height:1.3}}
.strips .label small{{display:block;font-weight:400;color:var(--muted)}}
.dash{{color:var(--muted);cursor:help;border-bottom:1px dotted var(--muted)}}
.scroll{{overflow-x:auto}}
table.narrow{{width:auto;min-width:50%}}
table.narrow td{{padding:5px 14px 5px 8px;vertical-align:top}}
td.why{{border-left:3px solid var(--line);padding-left:14px}}
ul.facts{{margin:8px 0 14px;padding-left:22px}}
summary{{cursor:pointer;color:var(--muted)}}
.key>span{{display:inline-block;margin-right:18px}}
footer{{margin-top:64px;padding-top:16px;border-top:1px solid var(--line);font-size:13px;color:var(--muted)}}
@media print{{main{{max-width:none}}.chart,figure,tr{{break-inside:avoid}}}}
@media (max-width:640px){{.strips{{grid-template-columns:1fr}}main{{padding:28px 16px}}
td.sub{{min-width:140px}}h1{{font-size:27px}}.chart svg{{min-width:640px}}}}
"""


class Material(NamedTuple):
    """What a report shows besides figures: sections before the evidence and after it, and remarks for the headline."""

    before: str = ""
    after: str = ""
    remarks: tuple[str, ...] = ()


def page(title: str, body: str) -> str:
    """A whole document."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def section(title: str, text: str, content: str) -> str:
    """A heading, a sentence on what is to be seen, and that; nothing where there is nothing to see."""
    return f"<section><h2>{escape(title)}</h2><p class='note'>{escape(text)}</p>{content}</section>" if content else ""


def small_table(head: str, rows: str) -> str:
    """A table as wide as what is in it, from HTML of its headings and of its rows; nothing where there are no rows."""
    table = f"<table class='narrow'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<div class='scroll'>{table}</div>" if rows else ""


def short(text: str, length: int) -> str:
    """A text, cut to so many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def chart(svg: str) -> str:
    """A drawing in its frame."""
    return f'<div class="chart">{svg}</div>'


def dot(colour: str) -> str:
    """A small mark in a model's colour, of the shape that it has in charts."""
    return f'<span class="dot{_SHAPES[_look(colour)]}" style="background:{name_for_css(colour)}"></span>'


def dash(reason: str) -> str:
    """What stands for something that a model does not offer; the reason appears under the pointer."""
    return f'<span class="dash" title="{escape(reason, quote=True)}">– not offered</span>'


def badge(text: str, kind: str = "") -> str:
    """A short remark in a frame."""
    return f'<span class="badge {kind}">{escape(text)}</span>'
