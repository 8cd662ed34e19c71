"""What `likely.fidelity` found, and how it shows itself: a line, a table, a data frame, a dictionary."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from likely.information.fidelity.copying import Copying
from likely.information.fidelity.dependencies import BrokenDependency
from likely.information.fidelity.impossible import Impossible
from likely.information.fidelity.marginals import Marginal
from likely.information.fidelity.pairs import Pair
from likely.information.fidelity.telling_apart import TellingApart
from likely.information.fidelity.usefulness import Usefulness
from likely.tabulation import frame_of, table

_MOST_SHOWN = 8  # columns, pairs and ways to be impossible in a table; `to_frame` has all


class Finding(NamedTuple):
    """One line of the table: a part of the answer, what it is about, the figure, what chance gives, its error."""

    part: str
    what: str
    measure: str
    value: float
    expected: float | None = None
    error: float | None = None
    stands_out: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Fidelity:
    """How true drawn rows are to real ones.

    n_real, n_drawn, n_holdout : rows given. `n_compared` of each set at most were compared; impossible values,
        dependencies and exact copies were looked for in all.
    classifier : how well boosted trees tell drawn from real rows, and by which columns.
    marginals : the distance of each column, beside what chance gives.
    pairs : of columns, how far their dependences are apart, the furthest first.
    impossible : values that no real row could have, by column and way; the most frequent first.
    impossible_rows, impossible_expected : share of drawn rows with any of them, and of new real rows.
    dependencies : columns that determine each other in real rows, the most often broken first.
    broken_rows : share of drawn rows that break any dependency.
    copying : how near drawn rows are to the real ones, beside new rows.
    usefulness : scores on real rows of predictors that learn from drawn and from real rows; None without a target.
    """

    n_real: int
    n_drawn: int
    n_holdout: int
    n_compared: int
    classifier: TellingApart
    marginals: tuple[Marginal, ...]
    pairs: tuple[Pair, ...]
    impossible: tuple[Impossible, ...]
    impossible_rows: float
    impossible_expected: float
    dependencies: tuple[BrokenDependency, ...]
    broken_rows: float
    copying: Copying
    usefulness: Usefulness | None = None
    not_compared: tuple[str, ...] = ()

    def __str__(self) -> str:
        judge, named = self.classifier, [name for name, _ in self.classifier.columns[:3]]
        by = f", by {', '.join(named)}" if judge.tells and named else ""
        parts = [
            f"AUC {judge.auc:.3f} ± {judge.stderr:.3f} between drawn and real rows (0.5 = cannot tell{by})",
            f"{_count(self.marginals)} columns and {_count(self.pairs)} pairs differ by more than chance",
            f"impossible values in {self.impossible_rows:.2%} of rows ({self.impossible_expected:.2%} of new ones)",
        ]
        if self.dependencies:
            parts.append(f"{self.broken_rows:.2%} break a dependency")
        parts.append(self._copying_in_words())
        if self.usefulness is not None:
            use = self.usefulness
            parts.append(
                f"{use.measure} of {use.target} {use.drawn:.3f} ± {use.drawn_stderr:.3f} learned from drawn rows, "
                f"{use.real:.3f} ± {use.real_stderr:.3f} from real ones"
            )
        if self.not_compared:
            parts.append(f"not compared, since models leave them out: {', '.join(self.not_compared)}")
        return "; ".join(parts)

    def _copying_in_words(self) -> str:
        found = self.copying
        if found.is_copying:
            near = f", {found.to_training:.0%} nearer to them than to held-out ones" if found.to_training else ""
            return f"training rows are copied: {found.copies:.2%} exactly (expected {found.copies_expected:.2%}){near}"
        if found.is_nearer and found.to_training is None:
            return "rows lie nearer to real ones than new rows do: copied, or too much alike (a holdout tells which)"
        return "no copying seen"

    def findings(self) -> list[Finding]:
        """Every figure, part by part."""
        judge = self.classifier
        told = Finding(
            "classifier", "all columns", "AUC", judge.auc, 0.5, judge.stderr, judge.tells, "0.5 = cannot tell"
        )
        lost = [Finding("classifier", name, "AUC lost by shuffling it", drop) for name, drop in judge.columns]
        columns = [
            Finding("column", m.column, m.measure, m.distance, m.expected, m.expected_std, m.differs)
            for m in sorted(self.marginals, key=lambda m: m.expected - m.distance)
        ]
        return [told, *lost, *columns, *self._of_pairs(), *self._of_values(), *self._of_copies(), *self._of_use()]

    def _of_pairs(self) -> list[Finding]:
        measure = "difference of dependence"
        return [
            Finding("pair", " and ".join(p.columns), measure, p.difference, p.expected, p.expected_std, p.differs,
                    f"{p.drawn:.3f} drawn, {p.real:.3f} real")
            for p in self.pairs
        ]  # fmt: skip

    def _of_values(self) -> list[Finding]:
        return [
            _share("impossible", "any column", self.impossible_rows, self.impossible_expected, None, ""),
            *(
                _share("impossible", f"{i.column}: {i.what}", i.share, i.expected, i.stderr,
                       f"{i.example}; real rows: {i.admitted}")
                for i in self.impossible
            ),
            *(_share("dependency", str(d), d.share, d.expected, d.stderr, d.example) for d in self.dependencies),
        ]  # fmt: skip

    def _of_copies(self) -> list[Finding]:
        near, what = self.copying, "nearer to real rows"
        out = [Finding("copying", what, "than new rows are", near.nearer, 0.5, near.nearer_stderr, near.is_nearer)]
        if near.to_training is not None and near.to_training_stderr is not None:
            clear = near.to_training > 0.5 + 3 * near.to_training_stderr
            measure = "than to held-out rows"
            out.append(Finding("copying", what, measure, near.to_training, 0.5, near.to_training_stderr, clear))
        return [
            *out,
            _share("copying", "equal to a real row", near.copies, near.copies_expected, near.copies_stderr, ""),
        ]

    def _of_use(self) -> list[Finding]:
        use = self.usefulness
        if use is None:
            return []
        worse = use.difference > 3 * use.difference_stderr
        where = "held-out rows" if use.on_holdout else "real rows that the model may have seen"
        remark = f"from {use.n_train:,} rows, judged on {use.n_test:,} {where}"
        return [
            Finding(
                "prediction", f"{use.target}, learned from drawn rows", use.measure, use.drawn, use.real,
                use.drawn_stderr, worse, remark,
            ),
            Finding(
                "prediction", f"{use.target}, learned from real rows", use.measure, use.real, None, use.real_stderr,
                False, remark,
            ),
        ]  # fmt: skip

    def shown(self) -> list[Finding]:
        """The findings that a person reads: of long parts the first few."""
        counts: dict[str, int] = {}
        out = []
        for finding in self.findings():
            counts[finding.part] = counts.get(finding.part, 0) + 1
            if counts[finding.part] <= (4 if finding.part == "classifier" else _MOST_SHOWN):
                out.append(finding)
        return out

    def to_frame(self, backend: str = "polars") -> Any:
        """A data frame with a line for each figure: part, what, measure, value, expected, error, stands_out, remark.

        Parameters
        ----------
        backend : the library of the frame: "polars", "pandas" or "pyarrow".
        """
        lines = self.findings()
        return frame_of({name: [getattr(line, name) for line in lines] for name in Finding._fields}, backend)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON knows it."""
        marks = {
            "marginals": [one.differs for one in self.marginals],
            "pairs": [one.differs for one in self.pairs],
        }
        out = asdict(self)
        for name, differs in marks.items():
            out[name] = [one | {"differs": mark} for one, mark in zip(out[name], differs, strict=True)]
        out["classifier"]["tells"] = self.classifier.tells
        out["copying"] |= {"is_nearer": self.copying.is_nearer, "is_copying": self.copying.is_copying}
        return out

    def _repr_html_(self) -> str:
        headings = ("", "", "measure", "value", "expected", "error", "")
        return f"<p><b>Fidelity</b>: {table([], [[str(self)]])}</p>{table(headings, map(in_words, self.shown()))}"


def in_words(line: Finding) -> tuple[str, ...]:
    """A finding as texts; a mark where it stands out."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.4f}"

    what = f"{line.what} ◂" if line.stands_out else line.what
    return (line.part, what, line.measure, number(line.value), number(line.expected), number(line.error), line.remark)


def _count(items: tuple[Marginal, ...] | tuple[Pair, ...]) -> str:
    return f"{sum(item.differs for item in items)} of {len(items)}"


def _share(part: str, what: str, share: float, expected: float, error: float | None, remark: str) -> Finding:
    clear = error is not None and share > expected + 3 * error
    return Finding(part, what, "share of rows", share, expected, error, clear, remark)
