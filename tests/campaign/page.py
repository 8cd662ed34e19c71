"""`docs/reliability.md`: what the campaign does to the library, and what its newest record says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "record.json"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


@dataclass(frozen=True)
class Part:
    """One part of the campaign: a function of (seed, small) in a module of this folder, and what the page says of it.

    counts : names of figures in the record and what they are called.
    """

    title: str
    module: str
    function: str
    text: str
    counts: tuple[tuple[str, str], ...]


PARTS: dict[str, Part] = {
    "saves": Part(
        "Killed while saving",
        "saving",
        "saves",
        "A process saves one version of a model's file after the other and is killed with SIGKILL after 0 to 20 ms, "
        "about three saves. The file must be the last version that was reported as finished, or the one after it, with "
        "every checksum right. The next save must remove what killed ones left beside it.",
        (
            ("kills", "kills"),
            ("new", "the newer file was there"),
            ("temporary files", "left behind until the next save"),
        ),
    ),
    "trainings": Part(
        "Killed while training",
        "kills",
        "trainings",
        "A training run with a checkpoint every 5,000 steps is killed 0 to 5 s after its process began, and goes on "
        "from its checkpoint, until it comes to its end; then the next begins. Every checkpoint must be whole, and "
        "every run that ends must have the bits of one that nobody killed: parameters, averages, optimiser, chains.",
        (
            ("kills", "kills"),
            ("new", "a checkpoint was there"),
            ("temporary files", "left behind until the next save"),
            ("runs finished", "runs that came to their end"),
        ),
    ),
    "comparisons": Part(
        "Killed while comparing",
        "kills",
        "comparisons",
        "`likely.compare` with a report and a folder for finished work, as `likely compare` runs it, is killed 0 to 9 "
        "seconds after its process began, and called again. The report must be the old one or a new one, whole; a "
        "model whose fit was kept must not be fitted again; the evidence of all models must have the bits of a "
        "comparison that nobody killed; and in the end the report alone may be left.",
        (
            ("kills", "kills"),
            ("fits kept", "fits that later runs found finished"),
            ("runs finished", "comparisons that came to their end"),
        ),
    ),
    "disks": Part(
        "Disks at fault",
        "disks",
        "all_faults",
        "Every writer (model, checkpoint, CSV, Parquet, NumPy, network, schema) under every fault: no room in the "
        "middle of a file, for a name, or when the disk is asked; a full file system; a quota; a disk that fails; a "
        "read-only file system or folder; no rights; a folder that vanishes. Then the same over training and "
        "comparing. Each must give an error that names the file and says what to do, leave the old file as it was, "
        "and nothing else; training then goes on with the same bits, and a comparison ends with all of its models.",
        (("tried", "writers and faults"), ("mounted", "of them on a file system that was full")),
    ),
    "replaced": Part(
        "Replaced while read",
        "disks",
        "replaced",
        "A file is read again and again while another thread replaces it by one of other "
        "numbers, thousands of times. What is read must be the one or the other, or be refused because it changed.",
        (("tried", "reads"), ("refused", "refused because the file changed")),
    ),
    "files": Part(
        "Hostile files",
        "fuzzing",
        "damaged",
        "Sound files of every format that is read (CSV, Parquet, NumPy, IDX, networks, ARPA, word2vec, schemas, "
        "models, checkpoints) are damaged: flipped bits, cut and repeated pieces, numbers and words in the place of "
        "others. Most of those that are packed or have a structure are taken apart, changed inside, and put together "
        "again with sound lengths and checksums: members of archives, heads of arrays, directories and pages of "
        "Parquet, headers and descriptions of models. Then come bombs: gigabytes in kilobytes, nests, shapes that "
        "overflow, names that come twice. Each must be read, or refused with an error of "
        "ours, within a second of the processor and half a gigabyte of memory. A reader that crashes its process, or "
        "keeps it in machine code, is found by the process that watches. Formats whose readers take long get fewer of "
        "the files than others. [Security](security.md) says what is trusted.",
        (
            ("inputs", "files"),
            ("formats", "formats"),
            ("bombs", "of them bombs"),
            ("refused", "refused"),
            ("read", "read all the same"),
        ),
    ),
    "tables": Part(
        "Extreme tables",
        "extremes",
        "extreme_tables",
        "Every model learns every extreme table: rows and columns of holes, one row, one column, constants, collinear "
        "columns, numbers from 1e-300 to 1e300, infinities, categories that occur once (and a million of them, for "
        "`Independent`, `BayesianNetwork` and `Mixture`). The evidence of what was learned must be finite, samples and "
        "imputed rows must have no holes, and cells that were there must stay; or the table must be refused with an "
        "error that says why. Every predictor learns two classes and a number from these tables, and extreme targets "
        "from a usual one: its evidence, probabilities, means and deviations must be finite. Never a silent NaN, and "
        "never more than 90 seconds of the processor.",
        (("tried", "models or predictors and tables"), ("answered", "answered"), ("refused", "refused")),
    ),
    "studio": Part(
        "Many at the studio",
        "load",
        "studio",
        "50 people watch a comparison of five models and 10 ask what if of an exact model, for a minute, on this "
        "machine. None may meet with an error; 95% of the answers must come within half a second, and of those to one "
        "person alone within a fifth; and the server's memory must not grow in the second half. Before that come "
        "requests that no page sends: wrong tokens, hosts, methods, sizes, forms, paths, files. Each must be refused, "
        "and none may leave anything on the disk.",
        (
            ("answers", "answers"),
            ("events", "changes of the table that were sent to those who watch"),
            ("alone", "milliseconds within which 95% of the answers to one person come"),
            ("beside others", "milliseconds within which 95% of the answers come, beside all others"),
            ("megabytes", "megabytes that the server holds in the end"),
            ("grown", "of them gained in the second half"),
            ("malformed", "malformed requests"),
            ("wanted", "processes that wanted the machine's cores at the end, those of others included"),
        ),
    ),
}

_HEAD = """# What happens when things go wrong

Processes are killed, disks fill up, files are replaced by others while they are read. The campaign does all of it on
purpose, and counts what was lost. A small sample is part of `make test`; `make campaign` is the whole, takes an hour,
and writes this page from its record, `tests/campaign/record.json`.

What is promised:

- **A file is the old one or the new one.** Everything is written beside its target, brought to the disk, and renamed.
- **A run that was killed goes on** from its last checkpoint, with the bits of one that was not.
- **What is finished is not done again** by a comparison with a report.
- **Nothing is left lying about**: what a killed writer left beside a file, the next one removes.
- **Errors say what was given, what is needed and what to do.**
- **What goes on around a fit does not change it**: other threads, processes that are spawned, a closed terminal, a
  clock that jumps. Processes are to be spawned or come from a fork server: JAX has threads, and a fork copies one.
"""

_RUN = """## Run it yourself

```console
make campaign                                       # everything: about an hour
.venv/bin/python -m tests.campaign saves            # one part; --list names them
.venv/bin/python -m tests.campaign saves --small    # at the size of the tests; records nothing
.venv/bin/python -m tests.campaign --page           # the page alone, from the record
```

A kill shows what a process leaves behind, not what a power cut does to a disk's own memory: for that there are the
calls of `fsync`, on the file before it is renamed and on its folder afterwards.
"""


def page(record: dict[str, Any]) -> str:
    """The whole page, from a record."""
    parts = [_HEAD, "## Summary", "", "| part | figures | faults found | run |", "|---|---|---|---|"]
    parts += [_summary(PARTS[name], found) for name, found in record.items()]
    for name, found in record.items():
        parts += ["", f"## {PARTS[name].title}", "", PARTS[name].text, "", *_figures(PARTS[name], found)]
    return "\n".join([*parts, "", _RUN])


def _summary(part: Part, found: dict[str, Any]) -> str:
    count, said = part.counts[0]
    anchor = part.title.lower().replace(" ", "-").replace(",", "")
    return f"| [{part.title}](#{anchor}) | {found[count]:,} {said} | {len(found['faults'])} | {_run(found)} |"


def _figures(part: Part, found: dict[str, Any]) -> list[str]:
    lines = [f"- {said}: {found[count]:,}" for count, said in part.counts if found.get(count) is not None]
    faults = [f"    - {fault}" for fault in found["faults"][:20]]
    return [*lines, f"- faults: {len(found['faults'])}", *faults]


def _run(found: dict[str, Any]) -> str:
    return f"{found['date']}, seed {found['seed']}, {found['cores']} cores, {found['seconds']:,.0f} s"
