"""Run import-linter on a tree, with the contracts of pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in root/src against root/pyproject.toml."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
