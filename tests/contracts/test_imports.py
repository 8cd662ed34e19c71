from pathlib import Path

from tests.contracts.imports import lint_imports


def test_imports_point_downwards():
    done = lint_imports(Path(__file__).resolve().parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
