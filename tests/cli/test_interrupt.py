"""Ctrl-C on the command line: the table and the report of what is finished, exit code 130; the same command goes on."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from likely.cli.app import app
from tests.contracts.table import binary_rows

COMMAND = "import sys; from likely.cli import main; sys.argv[0] = 'likely'; main()"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, binary_rows(0), fmt="%d", delimiter=",", header="a,b,c,d,e,f", comments="")
    return path


def test_interrupted_compare(table, tmp_path):
    page = tmp_path / "r.html"
    words = ["compare", str(table), "--models", "independent,deeplatentgaussian,vae", "--report", str(page)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", COMMAND, *words], **options) as command:
        first = command.stderr.readline()
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=300)
    assert first.startswith("1/3 Independent: fitted in "), err
    assert command.returncode == 130, err
    assert "Interrupted: 1 of 3 models were finished" in " ".join(out.split())
    assert "interrupted; 1 of 3 models are finished. The same command goes on" in err
    assert "Traceback" not in err
    assert "Interrupted: 1 of 3" in page.read_text()
    assert (tmp_path / "r.html.part").is_dir()
    # The same for a model fewer, as the others take a while: what is finished is not done again.
    again = CliRunner().invoke(app, ["compare", str(table), "--models", "independent", "--report", str(page)])
    assert again.exit_code == 0
    assert "1/1 Independent: kept from before" in again.stderr
    assert "Interrupted" not in page.read_text()
    fresh = ["compare", str(table), "--models", "independent", "--report", str(page), "--fresh"]
    assert "1/1 Independent: fitted in" in CliRunner().invoke(app, fresh).stderr
    assert not (tmp_path / "r.html.part").exists()


def test_any_other_command(monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("likely.datasets.load", interrupt)
    result = CliRunner().invoke(app, ["fit", "independent", "digits"])
    assert result.exit_code == 130
    assert result.stderr.strip() == "likely: interrupted."
