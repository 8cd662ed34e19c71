"""The documentation's pages, and what tests read off them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

_AT_ROOT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = {str(path.relative_to(ROOT)): path for path in [*_AT_ROOT, *sorted((ROOT / "docs").glob("*.md"))]}


def section(page: str, name: str) -> str:
    """The text between <!-- name --> and <!-- /name -->."""
    text = PAGES[page].read_text()
    return text.split(f"<!-- {name} -->\n", 1)[1].split(f"<!-- /{name} -->", 1)[0]


def table_rows(text: str) -> list[list[str]]:
    """Cells of the Markdown tables in a text, headings and rules left out."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    rules = {i for i, line in enumerate(rows) if re.fullmatch(r"[|\-: ]+", line)}
    return [_cells(line) for i, line in enumerate(rows) if i not in rules and i + 1 not in rules]


def links(path: Path) -> list[str]:
    """Targets of the links and pictures of a page, code blocks left out."""
    prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(path: Path) -> set[str]:
    """Headings as GitHub writes them in addresses."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
