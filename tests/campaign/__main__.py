"""The campaign of faults: `python -m tests.campaign [NAME ...]`, or `make campaign`; writes `docs/reliability.md`.

Each part runs in a process of its own and goes into `tests/campaign/record.json`. `--small` is the size of the tests
and records nothing; `--page` writes the page from the record alone; `--list` names the parts.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import subprocess
import sys
import time
from typing import Any

from tests.conftest import ROOT  # first, since it configures JAX

from tests.campaign.page import DOCUMENT, PARTS, RECORD, page  # isort: skip


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        sys.stdout.write("".join(f"{name:14} {part.title}\n" for name, part in PARTS.items()))
        return 0
    if unknown := [name for name in options.names if name not in PARTS]:
        sys.stderr.write(f"campaign: there is no part {unknown[0]!r}: there are {', '.join(PARTS)}.\n")
        return 2
    if options.page:
        DOCUMENT.write_text(page(_recorded()))
        return 0
    names = options.names or list(PARTS)
    if len(names) == 1:
        return _run(names[0], options)
    flags = ["--seed", str(options.seed)] + ["--small"] * options.small
    return max(_alone(name, flags) for name in names)


def _alone(name: str, flags: list[str]) -> int:
    """One part in a process of its own: what it does to memory, threads and signals, it does to no other."""
    return abs(subprocess.run([sys.executable, "-m", "tests.campaign", name, *flags], cwd=ROOT, check=False).returncode)


def _run(name: str, options: argparse.Namespace) -> int:
    """One part, in this process; 1 if it found a fault."""
    part = PARTS[name]
    start, module = time.perf_counter(), importlib.import_module(f"tests.campaign.{part.module}")
    more = {"n_inputs": options.inputs, "minutes": options.minutes}
    more = {what: value for what, value in more.items() if value is not None}
    found = getattr(module, part.function)(options.seed, options.small, **more)
    record = _recorded() | {name: found | _about(options, time.perf_counter() - start)}
    if not options.small:
        record = {known: record[known] for known in PARTS if known in record}
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        DOCUMENT.write_text(page(record))
    json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
    return 1 if found["faults"] else 0


def _about(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """When and how a part was run."""
    return {
        "date": datetime.date.today().isoformat(),
        "seed": options.seed,
        "cores": os.cpu_count(),
        "seconds": round(seconds, 1),
    }


def _recorded() -> dict[str, Any]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts to run; all of them if none is named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="the size of the tests; records nothing")
    parser.add_argument(
        "--inputs", type=int, help="how many hostile files, of the part `files`; a million if not given"
    )
    parser.add_argument("--minutes", type=float, help="as many of them as fit into so many minutes")
    parser.add_argument("--page", action="store_true", help="write the page from the record alone")
    parser.add_argument("--list", action="store_true", help="name the parts and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
