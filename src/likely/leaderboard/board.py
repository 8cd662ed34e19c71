"""The leaderboard: what was measured of each model, ranked where it can be compared and set apart where it cannot.

Models are ranked by what each is sure of: the mean of the lower limit of its evidence, widened by Monte Carlo error.
That is the value itself where it is exact, a little less than the bound where it is a bound, and the pessimistic side
where it is an interval; so a model never gains a place by being measured badly.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.contract.evidence import Difference, Evidence
from likely.datasets import CONVENTION, Dataset, TextDataset
from likely.schema import Measure
from likely.tabulation import frame_of

if TYPE_CHECKING:
    from likely.calibration import Assessment

LEVEL = 0.95  # of every interval that is shown

_MEASURES = {
    "counting": "a probability of discrete values (counting measure)",
    "lebesgue": "a density of real values (Lebesgue measure)",
    "mixed": "a density of discrete and real values together (mixed measure)",
}


@dataclass(frozen=True, eq=False)
class Entry:
    """One model on the leaderboard.

    Parameters
    ----------
    name : what the table calls it.
    evidence : of the test rows; None if the model could not be fitted or scored.
    model : the fitted model.
    fit_seconds, score_seconds : wall time, compilation included; NaN where it did not come to that.
    n_parameters : number of learned numbers.
    score : of a predictor, the accuracy of classes or R² of a number on the test rows.
    calibration : of a predictor, a `likely.calibration.Assessment` on the test rows; None where there is none.
    failure : why there is no evidence, in one line.
    rank : 1 for the best; None for those that stand apart. This and the next three are set by the leaderboard.
    apart : why it is not ranked; empty if it is.
    difference : to the best, paired over the rows; None for those apart.
    standing : "best"; "behind" where the interval of the difference lies below 0; "tied" where it contains 0 by chance;
        "open" where it contains 0 only because a figure is a bound, so that the truth may lie elsewhere; "apart".
    """

    name: str
    evidence: Evidence | None = None
    model: Any = None
    fit_seconds: float = math.nan
    score_seconds: float = math.nan
    n_parameters: int | None = None
    score: float = math.nan
    calibration: Assessment | None = None
    failure: str = ""
    rank: int | None = None
    apart: str = ""
    difference: Difference | None = None
    standing: str = "apart"

    @property
    def kind(self) -> str:
        """Of the evidence: "exact", "lower", "upper", "estimate" or "unavailable"."""
        return "unavailable" if self.evidence is None else self.evidence.kind

    @property
    def mean(self) -> float:
        """Mean log p(x), nats per row."""
        return math.nan if self.evidence is None else self.evidence.mean

    @property
    def stderr(self) -> float:
        """Standard error of `mean`: rows and Monte Carlo together."""
        return self.evidence.mean_stderr if self.evidence is not None and math.isfinite(self.mean) else math.nan

    @property
    def lower(self) -> float:
        """What the model is sure of: the mean of the lower limit, widened by its Monte Carlo error at 95%."""
        return -math.inf if self.evidence is None else self.evidence.mean_limits(LEVEL)[0]

    @property
    def upper(self) -> float:
        """The mean of the upper limit, widened by its Monte Carlo error at 95%."""
        return math.inf if self.evidence is None else self.evidence.mean_limits(LEVEL)[1]

    @property
    def bits_per_dimension(self) -> float:
        """-log2 p(x) per observed cell."""
        return math.nan if self.evidence is None else self.evidence.bits_per_dimension

    @property
    def perplexity(self) -> float:
        """Exp of the negative log p(x) per observed cell, or per counted token of text."""
        return math.nan if self.evidence is None or self.kind == "unavailable" else self.evidence.perplexity

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the difference to the best; infinite ends where a bound leaves it open."""
        return (math.nan, math.nan) if self.difference is None else self.difference.interval(LEVEL)

    @property
    def calibration_figures(self) -> dict[str, float]:
        """Proper scores and calibration error by name, or CRPS and how often 90% intervals hold; empty without."""
        found = self.calibration
        if found is None:
            return {}
        figures = {name.lower().replace(" ", "_"): score.mean for name, score in found.scores.items()}
        if found.error is not None:
            ends = {"calibration_low": found.error.low, "calibration_high": found.error.high}
            figures |= {"calibration_error": found.error.value} | ends | {"calibration_chance": found.error.chance}
        if found.pit is not None:
            held = found.pit.coverage(0.9)
            figures |= {"coverage_90": held.share, "coverage_90_low": held.low, "coverage_90_high": held.high}
        return figures

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold of it; None for what is unknown or unlimited."""
        low, high = self.interval
        numbers = {
            "mean": self.mean,
            "stderr": self.stderr,
            "lower": self.lower,
            "upper": self.upper,
            "bits_per_dimension": self.bits_per_dimension,
            "difference": math.nan if self.difference is None else self.difference.mean,
            "difference_low": low,
            "difference_high": high,
            "fit_seconds": self.fit_seconds,
            "score_seconds": self.score_seconds,
        }
        return {
            "name": self.name,
            "model": None if self.model is None else type(self.model).__name__,
            "rank": self.rank,
            "standing": self.standing,
            "apart": self.apart or None,
            "kind": self.kind,
            "method": None if self.evidence is None else self.evidence.method,
            "measure": None if self.evidence is None else str(self.evidence.measure),
            "densities": None if self.evidence is None else _densities(self.evidence.measure),
            **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
            "n_parameters": self.n_parameters,
        }


class Leaderboard:
    """Models in the order of what they are sure of, then those that cannot be compared, with the reason.

    Parameters
    ----------
    entries : what was measured, in any order.
    dataset : the data, a table or text; with it `to_report` can draw.
    random_state : the seed of the comparison, which the report's draws use as well.
    target : the column that was predicted; empty where whole rows were scored.
    score_name : what the entries' `score` is, "accuracy" or "r2".
    unfinished : names of models that were to be measured when the comparison was broken off.

    Attributes
    ----------
    entries : all, ranked ones first. ranked, apart : the two parts. names : in the order given.
    measure : the base measure of what is ranked: the data's own if any model has it, else the most frequent.

    Examples
    --------
    >>> sure = Evidence.exact([-2.0, -2.1, -1.9], method="by hand")
    >>> bound = Evidence.lower_bound([-3.0, -3.2, -3.1], method="by hand")
    >>> board = Leaderboard([Entry("bounded", bound), Entry("exact", sure)])
    >>> [(entry.rank, entry.name, entry.standing) for entry in board]
    [(1, 'exact', 'best'), (2, 'bounded', 'open')]
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        dataset: Any = None,
        random_state: int = 0,
        *,
        target: str = "",
        score_name: str = "",
        unfinished: Iterable[str] = (),
    ):
        given = list(entries)
        self.names = [entry.name for entry in given]
        self.dataset = dataset
        self.random_state = random_state
        self.target, self.score_name = target, score_name
        self.unfinished = list(unfinished)
        self.measure = _common_measure(given, dataset)
        reasons = [_why_apart(entry, given, self.measure) for entry in given]
        fit = [entry for entry, reason in zip(given, reasons, strict=True) if not reason]
        self.ranked = _rank(fit)
        self.apart = [replace(e, apart=reason) for e, reason in zip(given, reasons, strict=True) if reason]
        self.entries = self.ranked + self.apart

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, key: int | str) -> Entry:
        """An entry by place or by name."""
        if isinstance(key, int):
            return self.entries[key]
        for entry in self.entries:
            if entry.name == key:
                return entry
        raise KeyError(f"no model {key!r} on this leaderboard: {', '.join(e.name for e in self.entries)}.")

    @property
    def best(self) -> Entry | None:
        """The first of the ranked ones."""
        return self.ranked[0] if self.ranked else None

    @property
    def name(self) -> str:
        """Of the data."""
        return "data" if self.dataset is None else self.dataset.name

    @property
    def is_text(self) -> bool:
        """Whether a row is a sentence, and perplexity what people ask for."""
        return isinstance(self.dataset, TextDataset)

    @property
    def n_rows(self) -> int:
        """Test rows that were scored."""
        return max((len(e.evidence) for e in self.entries if e.evidence is not None), default=0)

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        if self.is_text:
            figures = [
                entry.to_dict() | {"perplexity": None if math.isnan(entry.perplexity) else entry.perplexity}
                for entry in self.entries
            ]
        elif self.target:
            figures = [e.to_dict() | {self.score_name: _finite(e.score)} | self._calibration(e) for e in self.entries]
        else:
            figures = [entry.to_dict() for entry in self.entries]
        return {
            "dataset": self.name,
            "n_test_rows": self.n_rows,
            "measure": str(self.measure),
            "densities": _densities(self.measure),
            "random_state": self.random_state,
            "level": LEVEL,
            **({"convention": CONVENTION} if self.is_text else {}),
            **({"target": self.target} if self.target else {}),
            **({"unfinished": self.unfinished} if self.unfinished else {}),
            "entries": figures,
        }

    def _calibration(self, entry: Entry) -> dict[str, float | None]:
        """The figures of calibration that any entry has; None for those that this one lacks."""
        names = dict.fromkeys(name for each in self.entries for name in each.calibration_figures)
        return {name: _finite(entry.calibration_figures.get(name, math.nan)) for name in names}

    def to_frame(self, backend: str = "polars") -> Any:
        """A data frame with a line for each model, the columns of `to_dict`; null for what is unknown or unlimited.

        Parameters
        ----------
        backend : the library of the frame: "polars", "pandas" or "pyarrow".
        """
        entries = self.to_dict()["entries"]
        return frame_of({name: [entry[name] for entry in entries] for name in entries[0]} if entries else {}, backend)

    def to_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML file with tables and pictures."""
        from likely.leaderboard.report.report import write_report

        write_report(self, path)

    def __str__(self) -> str:
        from likely.leaderboard.rendering import as_text

        return as_text(self)

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best.name}"
        return f"Leaderboard({self.name!r}, {len(self.ranked)} ranked, {len(self.apart)} apart{best})"

    def _repr_html_(self) -> str:
        from likely.leaderboard.rendering import as_html

        return as_html(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _densities(measure: Any) -> list[str] | None:
    return None if measure.densities is None else list(measure.densities)


def _common_measure(entries: list[Entry], dataset: Any) -> Any:
    found = Counter(e.evidence.measure for e in entries if e.evidence is not None)
    if isinstance(dataset, Dataset) and (dataset.schema.measure in found or not found):
        return dataset.schema.measure
    return found.most_common(1)[0][0] if found else Measure("counting")


def _why_apart(entry: Entry, entries: list[Entry], measure: Any) -> str:
    """Why an entry cannot be ranked among the others; empty when it can."""
    evidence = entry.evidence
    if evidence is None:
        return entry.failure or "it has no evidence"
    if evidence.kind == "unavailable":
        return evidence.reason or "its evidence has no value for some rows"
    if evidence.measure != measure:
        return _other_measure(evidence.measure, measure)
    rows = Counter((e.evidence.fingerprint, len(e.evidence)) for e in entries if e.evidence is not None)
    if (evidence.fingerprint, len(evidence)) != rows.most_common(1)[0][0]:
        return "it was measured on other rows"
    if not math.isfinite(entry.lower):
        n_unlimited = int(np.sum(~np.isfinite(evidence.lower)))
        if evidence.kind == "exact":
            return f"it gives probability 0 to {n_unlimited} of {len(evidence)} rows"
        return f"its evidence is {_article(evidence.kind)} without a lower limit, so it is sure of nothing"
    return ""


def _other_measure(own: Any, ranked: Any) -> str:
    """Why an evidence on another measure stands apart: by the words, or by a column that is read differently."""
    if str(own) == str(ranked):
        return f"{own.unlike(ranked)}: its evidence and that of the ranked ones are in different units"
    mine, theirs = (_MEASURES.get(name, f"on the {name} measure") for name in (own, ranked))
    return f"its evidence is {mine}; the ranked ones are each {theirs}"


def _article(kind: str) -> str:
    return {"upper": "an upper bound", "estimate": "an estimate"}.get(kind, f"of kind {kind}")


def _rank(entries: list[Entry]) -> list[Entry]:
    # sorted is stable: of two equal ones the first given stays first.
    order = sorted(entries, key=lambda entry: -entry.lower)
    return [_placed(entry, place, order[0]) for place, entry in enumerate(order, start=1)]


def _placed(entry: Entry, rank: int, best: Entry) -> Entry:
    difference = entry.evidence - best.evidence  # type: ignore[operator]
    if entry is best:  # it is what it is: no error, and no limits to differ between
        difference = Difference(0.0, 0.0, 0.0, 0.0)
    placed = replace(entry, rank=rank, difference=difference)
    if rank == 1:
        return replace(placed, standing="best")
    if placed.interval[1] < 0:
        return replace(placed, standing="behind")
    margin = NormalDist().inv_cdf(0.5 + LEVEL / 2) * difference.stderr
    # The margin has the Monte Carlo errors in it, so the limits are taken without.
    gap = float(entry.evidence.lower.mean() - best.evidence.lower.mean())  # type: ignore[union-attr]
    return replace(placed, standing="tied" if gap + margin >= 0 else "open")
