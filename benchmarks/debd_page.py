"""`docs/debd.md`: the table of test evidence on debd's sets and silhouettes, ours beside the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "debd.md"

# Mean test log-likelihood, nats. Computed with a plain program, found in public logs, or (the last four) as papers are
# remembered to report them.
PUBLISHED: dict[str, dict[str, float]] = {
    "mixture of Bernoullis": {
        "nltcs": -6.00,
        "plants": -13.01,
        "jester": -53.02,
        "accidents": -35.68,
        "dna": -97.96,
        "mushrooms": -13.97,
    },
    "Chow-Liu tree": {
        "nltcs": -6.76,
        "plants": -16.52,
        "jester": -58.23,
        "accidents": -33.19,
        "dna": -87.66,
        "mushrooms": -20.96,
    },
    "hidden Chow-Liu circuit": {"nltcs": -6.00, "plants": -14.26, "jester": -52.38, "accidents": -26.74, "dna": -79.05},
    "mixture of trees*": {"nltcs": -6.01, "plants": -12.95, "jester": -53.08, "accidents": -29.63, "dna": -85.14},
    "sigmoid belief network": {"silhouettes": -161.24},
    "RBM*": {"dna": -96.74, "mushrooms": -15.15},
    "NADE or best autoregressive*": {"dna": -79.66, "mushrooms": -9.55},
    "best known*": {
        "nltcs": -5.99,
        "plants": -11.84,
        "jester": -51.29,
        "accidents": -26.32,
        "dna": -79.05,
        "mushrooms": -9.40,
    },
}
_STACKS = """
`Stack` mixes the models within three nats of the best, each with its best setting, by weights that the validation rows
taught it, so that its own figure on those rows is a little too good."""
_MARKS = {"exact": "", "lower": "≥ ", "estimate": "≥ "}

_HEAD = """# Seven binary data sets

Mean test log-likelihood in nats, higher is better. For each model a small grid of settings was fitted on training
rows and the setting with the best validation evidence was taken; the test rows chose nothing. The VAE's settings for
sets of few rows were arrived at on the validation rows of mushrooms, over some thirty trials with one seed, of which
the grid keeps two. `Autoregressive` has its default settings. {circuits}{stacks}
A figure with ≥ is a lower limit: the importance-weighted bound of a model with latents, or reverse AIS of an RBM whose
partition function is too large to enumerate (AIS itself in brackets). **Bold**: the best of ours by validation.
ProbabilisticPCA and FactorAnalysis read binary columns as real numbers; their densities are not comparable with
probabilities and stand apart.

Written by `make bench BENCH=debd`; the grids are in `benchmarks/recipes.py`, all figures in
`benchmarks/results/debd.json`.
"""


def page(sets: dict[str, dict[str, dict[str, Any]]], bars: dict[str, float]) -> str:
    """The whole page, from the figures of the benchmark."""
    names = list(sets)
    models = list(dict.fromkeys(model for found in sets.values() for model in found))
    best = {name: max(sets[name], key=lambda model: sets[name][model]["valid"]) for name in names}
    ours = [
        [f"`{model}`", *(_cell(sets[name].get(model), bold=best[name] == model) for name in names)] for model in models
    ]
    published = [
        [who, *(f"{figures[name]:.2f}".replace("-", "−") if name in figures else "" for name in names)]
        for who, figures in PUBLISHED.items()
    ]
    wanted = ["bar", *(f"{bars[name]:g}".replace("-", "−") if name in bars else "" for name in names)]
    chosen = [[name, f"`{best[name]}`", _said(sets[name][best[name]])] for name in names]
    return "\n".join(
        [
            _HEAD.format(
                circuits=_circuits(sets), stacks=_STACKS if any("Stack" in found for found in sets.values()) else ""
            ),
            _table(["", *names], [*ours, wanted]),
            "\nPublished figures on the same rows; * marks those quoted from memory of their papers.\n",
            _table(["", *names], published),
            "\nWhat was chosen by validation.\n",
            _table(["set", "model", "setting"], chosen),
            "",
        ]
    )


def _circuits(sets: dict[str, dict[str, dict[str, Any]]]) -> str:
    """How the settings of circuits came about, which is not the same for all records."""
    by_hand = [name for name, models in sets.items() if models.get("Circuit", {}).get("setting")]
    fitted = "`Circuit` chooses states and pseudo-counts by the validation rows within its fit."
    if not by_hand:
        return fitted
    about = "" if len(by_hand) == sum("Circuit" in models for models in sets.values()) else f" on {', '.join(by_hand)}"
    told = (
        f"`Circuit` has{about} one setting a set, after\nsome thirty trials, read by validation rows but with test "
        "figures in sight: these are a little too good for that."
    )
    return told if not about else f"{told} Elsewhere {fitted}"


def _said(found: dict[str, Any]) -> str:
    """Settings, those that a fit chose included; the weights of a stack."""
    return ", ".join(f"{k}={v}" for k, v in (found["setting"] | found.get("chosen", {})).items()) or "defaults"


def _cell(found: dict[str, Any] | None, *, bold: bool) -> str:
    if found is None:
        return ""
    text = f"{_MARKS[found['kind']]}{found['test_lower']:.2f}"
    if found["kind"] == "estimate":
        text += f" ({found['test']:.2f})"
    text = text.replace("-", "−")
    return f"**{text}**" if bold else text


def _table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] + ["---:"] * (len(heading) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
