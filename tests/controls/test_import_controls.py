"""Imports that point upwards, or make a light module heavy, must be caught."""

import shutil
from pathlib import Path

import pytest

from tests.contracts.imports import lint_imports

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("schema/schema.py", "import likely.columns", "Imports point downwards BROKEN"),
        (
            "datasets/formats/idx.py",
            "import likely.contract.evidence",
            "Data sets know the schema and nothing else BROKEN",
        ),
        ("contract/evidence.py", "import jax", "stays light BROKEN"),
    ],
)
def test_a_planted_import_is_caught(tmp_path, file, line, broken):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / "src" / "likely" / file
    assert planted.exists()  # a bug in a file that nobody imports would prove nothing
    with open(planted, "a") as module:
        module.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert broken in done.stdout
