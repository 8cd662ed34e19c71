"""The page of dependencies, pyproject.toml and the imports of the code say the same."""

import ast
import re
import sys
import tomllib

import pytest

from tests.conftest import ROOT
from tests.docs.pages import PAGES, table_rows

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = {"run time": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
HEADINGS = {
    "run time": "## At run time",
    "test": "## For the tests",
    "studio": "## For the studio",
    "large": "## For tables larger than memory",
    "dask": "## For many machines",
    "bench": "## For the benchmarks",
    "docs": "## For the site",
}
LOCKS = {"docs": "requirements-docs.lock"}  # an environment of its own
IMPORT_NAMES = {"scikit-learn": "sklearn"}


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", requirement).group() for requirement in requirements}


def documented(heading: str) -> set[str]:
    part = PAGES["docs/dependencies.md"].read_text().split(heading, 1)[1].split("\n## ", 1)[0]
    return {name for row in table_rows(part) for name in re.findall(r"`([^`]+)`", row[0])}


@pytest.mark.parametrize("group", DECLARED)
def test_every_dependency_has_its_line(group):
    assert documented(HEADINGS[group]) == named(DECLARED[group])


def test_every_line_gives_a_purpose():
    for row in table_rows(PAGES["docs/dependencies.md"].read_text()):
        assert all(row[:2]), row


def test_whatever_is_imported_is_declared():
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.partition(".")[0])
    extras = PROJECT["optional-dependencies"]
    declared = {
        IMPORT_NAMES.get(name, name) for name in named([*PROJECT["dependencies"], *extras["studio"], *extras["large"]])
    }
    assert imported - set(sys.stdlib_module_names) - {"likely"} == declared


@pytest.mark.parametrize("group", DECLARED)
def test_the_lock_has_every_dependency(group):
    lock = ROOT / LOCKS.get(group, "requirements.lock")
    locked = {line.partition("==")[0].lower() for line in lock.read_text().splitlines()}
    assert named(DECLARED[group]) <= locked
