"""The whole audit: `python -m tests.audit`, or `make audit`; writes `tests/audit/record.json` and `docs/honesty.md`.

`--small` looks at what `make test` looks at, `--seeds 0-4` says with which seeds, `--suite 0-19` then runs all tests of
the project once with each of these seeds and counts those that fail; `--page` writes the page from the record alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, seeds_from  # first, since it configures JAX

from tests.audit.page import DOCUMENT, RECORD, page  # isort: skip


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if options.only:
        found = audited(seeds_from(options.seeds), options.small, options.only)["findings"]
        for finding in found:
            _say(described(finding))
        return 0 if all(finding["holds"] or finding["known"] for finding in found) else 1
    if not options.page:
        if not options.suite_only:
            record |= audited(seeds_from(options.seeds), options.small)
        if options.suite:
            record["suite"] = suite(seeds_from(options.suite))
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    DOCUMENT.write_text(page(record))
    broken = [f for f in record["findings"] if not f["holds"] and not f["known"]]
    for finding in broken:
        _say(
            f"{finding['model']}, {finding['check']}: {finding['figure']} {finding['unit']}, at most {finding['bound']}"
        )
    return 1 if broken or record.get("suite", {}).get("too_many") else 0


def described(finding: dict[str, Any]) -> str:
    """A finding in a line."""
    figure = f"{finding['figure']} {finding['unit']}, at most {finding['bound']}"
    return f"{finding['model']}, {finding['check']}: {figure}"


def audited(seeds: list[int], small: bool, only: str = "") -> dict[str, Any]:
    """All findings, the worst over the seeds of each."""
    import warnings

    from tests.audit.findings import SMALL, WHOLE

    start, worst = time.perf_counter(), {}
    for name, known, run in looks(small):
        if only not in name:
            continue
        for seed in seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = _attempt(name, run, seed, SMALL if small else WHOLE)
            for line in found:
                line = line | {"known": known or ""}
                key = line["model"], _without_counts(line["check"])
                if key not in worst or _excess(line) > _excess(worst[key]):
                    worst[key] = line
        _say(f"{name}: {time.perf_counter() - start:.0f} s")
    return {
        "date": datetime.date.today().isoformat(),
        "size": "small" if small else "whole",
        "seeds": seeds,
        "seconds": round(time.perf_counter() - start),
        "findings": list(worst.values()),
    }


def looks(small: bool) -> Iterator[tuple[str, str | None, Callable[..., Any]]]:
    """Everything that is looked at: its name, the fault that is known of it, and a function of seed and size."""
    import jax

    from tests.audit import (
        density_checks,
        kernel_checks,
        learning_checks,
        posterior_checks,
        refusal_checks,
        sampled_checks,
    )
    from tests.audit.cases import all_cases, few_cases
    from tests.audit.known import known

    for case in few_cases() if small else all_cases():
        for check, function in density_checks.CHECKS.items():
            run = lambda seed, size, f=function, c=case: f(c, seed, size)  # noqa: E731
            yield f"{case}: {check}", known(check, str(case)), run
        if case.kind != "mixed" or not small:
            run = lambda seed, size, c=case: [posterior_checks.cells(c, seed, size)]  # noqa: E731
            yield f"{case}: ranks", known("ranks", str(case)), run
        jax.clear_caches()  # Thousands of compiled programs take gigabytes.
    for name in sampled_checks.MACHINES:
        yield f"{name}: coverage", None, lambda seed, size, n=name: sampled_checks.coverage(n, seed, size)
        if name != "DBN":  # which answers by importance, not by chains
            run = lambda seed, size, n=name: [posterior_checks.clamped_chains(n, seed, size)]  # noqa: E731
            yield f"{name}: clamped chains", known("clamped chains", name), run
    for name in ("ProbabilisticPCA", "FactorAnalysis"):
        yield f"{name}: codes", None, lambda seed, size, n=name: [posterior_checks.codes(n, seed, size)]
    yield "Mixture: components", None, lambda seed, size: [posterior_checks.responsibilities(seed, size)]
    yield "JointPredictor: classes", None, lambda seed, size: [posterior_checks.classes(seed, size)]
    for name, make in kernel_checks.KERNELS.items():
        run = lambda seed, size, n=name, m=make: [kernel_checks.check_kernel(n, m(seed), seed, size)]  # noqa: E731
        yield f"kernel: {name}", None, run
    for name, line in kernel_checks.LINES.items():
        run = lambda seed, size, n=name, m=line: [kernel_checks.check_line(n, m(seed), seed, size)]  # noqa: E731
        yield f"kernel: {name}", None, run
    for name in refusal_checks.REFUSED | refusal_checks.ALLOWED:
        run = lambda seed, size, n=name: [refusal_checks.refusal(n, seed)]  # noqa: E731
        yield f"refusal: {name}", known("refusal", name), run
    for name, table in () if small else learning_checks.CASES:  # each fits a model twice, at its full length
        run = lambda seed, size, n=name, t=table: [learning_checks.learning(n, t, seed)]  # noqa: E731
        yield f"learning: {name}, {table}", None, run


def suite(seeds: list[int]) -> dict[str, Any]:
    """All tests of the project, once with each seed: how many ran, and which failed."""
    n_tests, failed = 0, []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-q"]
            environment = os.environ | {"LIKELY_TESTS_GLOBAL_RANDOM_SEED": str(seed)}
            subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, env=environment, check=False)
            ran, wrong = _counted(report)
        n_tests, failed = n_tests + ran, failed + [f"seed {seed}: {name}" for name in wrong]
        _say(f"seed {seed}: {len(wrong)} of {ran} tests failed")
    return {"seeds": seeds, "tests": n_tests, "failed": failed, "too_many": len(failed) > n_tests / 1000}


def _counted(report: Path) -> tuple[int, list[str]]:
    """Tests that ran, and the names of those that failed, from pytest's report."""
    cases = [c for c in ElementTree.parse(report).iter("testcase") if c.find("skipped") is None]
    wrong = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    return len(cases), [f"{c.get('classname')}::{c.get('name')}" for c in wrong]


def _attempt(name: str, run: Callable[..., Any], seed: int, size: Any) -> list[dict[str, Any]]:
    """The findings of a look; one that holds nothing where it raised."""
    from tests.audit.findings import Finding

    try:
        found = run(seed, size)
    except Exception as error:
        found = [Finding(name, f"raised {type(error).__name__}: {error}"[:120], math.inf, 0.0, "errors")]
    return [f.to_json() | {"holds": f.holds, "figure": _short(f.figure), "bound": _short(f.bound)} for f in found]


def _short(number: float) -> float | str:
    return float(f"{number:.3g}") if math.isfinite(number) else "inf"


def _excess(line: dict[str, Any]) -> float:
    """How far a finding is beyond its bound; the more, the worse."""
    return float(line["figure"]) - float(line["bound"])


def _without_counts(check: str) -> str:
    """A check without what one seed found: "95% intervals, complete rows (19 of 20)"."""
    return check.partition(" (")[0]


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--small", action="store_true", help="what `make test` looks at")
    parser.add_argument("--seeds", default="0-2", help='of the audit: "7" or "0-2"')
    parser.add_argument("--suite", default="", help='run all tests with these seeds as well, "0-19"')
    parser.add_argument("--suite-only", action="store_true", help="leave the audit's record as it is")
    parser.add_argument("--only", default="", help="show only what has this in its name, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the record alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
