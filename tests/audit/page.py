"""`docs/honesty.md`: what the audit looks at, and what its newest record says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "record.json"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "honesty.md"

_HEAD = """# Is it true?

Every figure that a model gives says what it is: exact, a bound, an estimate with its error. This page is about whether
that holds. An audit computes the same figures a second time, slowly and without the library, and compares. A small one
is part of `make test`; `make audit` is the whole, and writes this page from its record, `tests/audit/record.json`.

## What is looked at

- **An oracle for every model.** `tests/audit/oracles.py` writes each model's equation down anew in NumPy and float64,
  from the learned arrays alone: sums over all hidden states, quadrature over latents, densities by SciPy. Tables are so
  small (2 to 4 columns: binary, categorical, counts, real, mixed) that every row can be counted, or a grid stand for
  the integral. Weights are shaken after the fit, so that columns depend on each other strongly.
- **Evidence.** Of complete rows against the oracle; summed or integrated over all rows, which gives 1; of every pattern
  of holes against the marginal. A lower bound may lie below the truth, above it by chance alone.
- **Conditionals.** Means, probabilities and deviations of erased cells against the law. Draws: joint ones within a row
  by chi-square, and of two rows that were asked for together, which must be independent.
- **Samples** by chi-square against the law.
- **Intervals.** Machines that could be summed are answered as if they were too large, by annealing, and the intervals
  that hold the truth are counted.
- **Posteriors.** Simulation-based calibration (Talts et al., 2018): what is hidden and what is seen are drawn together,
  the hidden is drawn again given the seen, and the truth's rank among the draws is uniform. Erased cells of every
  model, clamped chains, codes of linear models, components of mixtures, classes.
- **Kernels.** Every Markov kernel starts at exact draws of its distribution, and must leave it as it is (Geweke, 2004).
- **Refusals.** Comparisons of unlike things must be refused.
- **Learning from holes.** Every model learns from complete rows, and from the same rows with half of the cells erased;
  what that costs on complete rows has a bar for each model ([a table](latent-uses.md#learning-from-rows-with-holes)).

Planted bugs show that the checks can fail: a wrong temperature, a step that is always accepted, a conditional that is
one cell off, a posterior that is too narrow, shared noise (`tests/controls/test_audit_controls.py`).

## How to read the figures

A *surprise* of s means that a right model is so far off with probability 10⁻ˢ. The bound is 6 for each, so that a
false alarm of one check is one in a million, and of a whole run below one in a thousand. Other figures are distances
that rounding alone may make: nats, shares of probability, or standard deviations of the cell. Bounds on the truth have
two figures: the surprise of lying above it, and the nats below it. **Bold** is beyond the bound. † is a fault that is
known and not yet mended: the tests expect that check to fail, and fail themselves once it holds.
"""

_RUN = """## Run it yourself

```console
make audit                     # everything, three seeds; then all tests of the project with seeds 0 to 19: hours
make audit SEEDS=0-1           # with these seeds only in the last part
.venv/bin/python -m tests.audit --small --seeds 0-1      # what this page shows at the size of `make test`: minutes
.venv/bin/python -m tests.audit --page                   # the page alone, from the record
```

A new model starts here: `tests/audit` fails until its equation is in `oracles.py`.
"""

# Columns of the table of models: heading, and the checks that begin so.
_COLUMNS: tuple[tuple[str, str], ...] = (
    ("complete rows", "complete rows"),
    ("sum", "sum over all rows"),
    ("holes", "every pattern of holes"),
    ("means", "conditional means"),
    ("shares", "conditional probabilities"),
    ("deviations", "conditional deviations"),
    ("samples", "samples"),
    ("draws within", "draws within a row"),
    ("draws across", "draws across rows"),
    ("ranks", "erased cells"),
)
LEARNING = "half of the cells erased"  # the check of `learning_checks`, which has a table of its own
_UNITS = {"surprise": "s", "nats": "nats", "share": "", "deviations": "σ", "errors": "errors"}


def page(record: dict[str, Any]) -> str:
    """The whole page, from a record."""
    lines = record["findings"]
    kernels = [f for f in lines if f["check"] == "leaves its law unchanged"]
    refusals = [f for f in lines if f["model"] == "Evidence"]
    learning = [f for f in lines if f["check"] == LEARNING]
    models = [f for f in lines if f not in kernels and f not in refusals and _column(f["check"])]
    rest = [f for f in lines if f not in kernels and f not in refusals and f not in models and f not in learning]
    rest = [f for f in rest if f["check"] != "the oracle's own sum"]
    parts = [_HEAD, "## What it found", "", _made(record), "", *_matrix(models)]
    parts += ["", "### Posteriors and intervals", "", *_list(rest), "", "### Kernels", "", *_list(kernels)]
    parts += [
        "",
        "### Comparisons",
        "",
        *_refusals(refusals),
        "",
        *_learning(learning),
        *_known(lines),
        *_suite(record),
        _RUN,
    ]
    return "\n".join(parts)


def _made(record: dict[str, Any]) -> str:
    size = {
        "small": "the small size, that of `make test` (800 draws a chi-square, 400 ranks, 20 machines, 20,000 chains)",
        "whole": "the whole size (4,000 draws a chi-square, 2,000 ranks, 60 machines, 100,000 chains)",
    }[record["size"]]
    seeds = ", ".join(map(str, record["seeds"]))
    held = sum(f["holds"] for f in record["findings"])
    return (
        f"Recorded on {record['date']} at {size}, seeds {seeds}; each figure is the worst over the seeds. "
        f"{held} of {len(record['findings'])} checks hold."
    )


def _column(check: str) -> str | None:
    return next((heading for heading, start in _COLUMNS if check.startswith(start)), None)


def _matrix(findings: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(f["model"] for f in findings))
    lines = [f"| model, table | {' | '.join(h for h, _ in _COLUMNS)} |", "|---|" + "---|" * len(_COLUMNS)]
    for name in names:
        cells = []
        for heading, _ in _COLUMNS:
            own = [f for f in findings if f["model"] == name and _column(f["check"]) == heading]
            cells.append("; ".join(_figure(f) for f in own) or "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _figure(finding: dict[str, Any]) -> str:
    value, unit = float(finding["figure"]), _UNITS.get(finding["unit"], finding["unit"])
    text = f"{unit} {value:.1f}" if unit == "s" else f"{value:.0e} {unit}".strip()
    if finding["check"].endswith("below the truth"):
        text = f"{max(value, 0):.2f} nats below"
    return _marked(text.replace("-", "−"), finding)


def _marked(text: str, finding: dict[str, Any]) -> str:
    if finding["holds"]:
        return text
    return f"**{text}**†" if finding["known"] else f"**{text}**"


def _list(findings: list[dict[str, Any]]) -> list[str]:
    lines = ["| what | check | surprise | bound |", "|---|---|---:|---:|"]
    for f in findings:
        shown = _marked(f"{float(f['figure']):.1f}", f)  # JSON has no infinity: it is a word there
        lines.append(f"| {f['model']} | {f['check']} | {shown} | {f['bound']:g} |")
    return lines


def _refusals(findings: list[dict[str, Any]]) -> list[str]:
    lines = ["| two evidences | must be | is so |", "|---|---|---|"]
    for f in findings:
        what, _, word = f["check"].rpartition(": ")
        what = what.replace("|", "\\|")
        lines.append(f"| {what} | {word} | {_marked('yes' if f['holds'] else 'no', f)} |")
    return lines


def _learning(findings: list[dict[str, Any]]) -> list[str]:
    heading = ["### Learning from half of the cells", ""]
    if not findings:
        return [*heading, "Not part of this record: the whole audit looks at it.", ""]
    lines = ["| model, table | nats lost | at most |", "|---|---:|---:|"]
    for f in findings:
        shown = _marked(f"{float(f['figure']):.2f}".replace("-", "−"), f)
        lines.append(f"| {f['model']} | {shown} | {f['bound']:g} |")
    return [*heading, *lines, ""]


def _known(findings: list[dict[str, Any]]) -> list[str]:
    """The faults that are known, each with what it spoils."""
    faults: dict[str, list[str]] = {}
    for f in findings:
        if f["known"] and not f["holds"]:
            faults.setdefault(f["known"], []).append(f["model"] if f["model"] != "Evidence" else f["check"])
    if not faults:
        return []
    listed = [f"- † {why}: {'; '.join(dict.fromkeys(names))}." for why, names in faults.items()]
    return ["### Faults that are known", "", *listed, ""]


def _suite(record: dict[str, Any]) -> list[str]:
    ran = record.get("suite")
    if ran is None:
        return ["### The suite with other seeds", "", "Not part of this record: `make audit` runs it.", ""]
    seeds = ", ".join(map(str, ran["seeds"]))
    text = f"All tests of the project with seeds {seeds}: {len(ran['failed'])} of {ran['tests']} failed."
    return ["### The suite with other seeds", "", text, *[f"- `{name}`" for name in ran["failed"]], ""]
