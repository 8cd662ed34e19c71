"""The table of `make coverage`: packages are told apart, and too few lines fail."""

import json

import pytest

from tests import coverage_table


def report(tmp_path, **covered):
    summary = {"num_statements": 100, "covered_branches": 1, "num_branches": 4}
    files = {
        "src/likely/__init__.py": covered["top"],
        "src/likely/columns/columns.py": covered["columns"],
        "src/likely/models/latent/linear/em.py": covered["latent"],
        "src/likely/models/latent/mixture/mixture.py": covered["latent"],
    }
    path = tmp_path / "report.json"
    path.write_text(
        json.dumps({"files": {name: {"summary": summary | {"covered_lines": n}} for name, n in files.items()}})
    )
    return path


def test_files_are_added_up_by_package(tmp_path):
    packages = coverage_table.by_package(json.loads(report(tmp_path, top=100, columns=90, latent=95).read_text()))
    assert list(packages) == ["columns", "likely", "models.latent", "in all"]
    assert packages["models.latent"]["covered_lines"] == 190
    assert packages["in all"]["num_branches"] == 16


@pytest.mark.parametrize(("columns", "code"), [(88, 0), (87, 1)])
def test_less_than_the_floor_fails(tmp_path, capsys, columns, code):
    """92% of 400 lines are 368."""
    assert coverage_table.main(str(report(tmp_path, top=100, columns=columns, latent=90))) == code
    printed = capsys.readouterr().out
    assert "models.latent" in printed
    assert ("must" in printed) == bool(code)
