"""Every benchmark runs at a small size and leaves a whole record; none of its figures is judged here."""

import json
import os
import time
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

import likely
from benchmarks import __main__ as runner
from benchmarks import first_look, larger_than_memory, mixture_mixed, peers, recipes, table_million
from benchmarks.commands import Ran, likely_command
from benchmarks.outcome import RESULTS
from benchmarks.results_page import DOCUMENT, page
from benchmarks.timing import in_turns


def said_here(arguments):
    """What a command says in this process. One of its own would load JAX anew, which takes longer than the command."""
    from likely.cli.app import app

    with mock.patch.dict(os.environ):
        found = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.fixture
def commands_here(monkeypatch):
    """The small commands of benchmarks in this process, where their time and memory mean nothing, nor are judged."""

    def answer(arguments, **environment):
        began = time.perf_counter()
        said = said_here(arguments)
        return Ran(time.perf_counter() - began, 1.0, 1, json.loads(said))

    def hold(arguments, group):
        said_here(arguments)
        return larger_than_memory.Held(1.0, 1.0, 1, killed=False)

    for module in (first_look, mixture_mixed, table_million):
        monkeypatch.setattr(module, "likely_command", answer)
    monkeypatch.setattr(larger_than_memory, "_held", hold)


@pytest.fixture
def few_models(monkeypatch):
    """Two models and their mixture, where a benchmark has eight: other benchmarks fit the rest at a small size."""
    monkeypatch.setenv("DEBD_MODELS", "Circuit,Mixture,Stack")


@pytest.mark.usefixtures("commands_here", "few_models")
@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # Answers from as little as this, which say so.
@pytest.mark.parametrize("name", runner.NAMES)
def test_benchmark_runs(name, data_folder, tmp_path, capsys):
    if _needs_peers(name) and not peers.is_ready():
        pytest.skip(f"the peers are not installed: `make bench BENCH={name}` makes their environment")
    assert runner.main([name, "--small", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["benchmark"] == name
    assert record["small"] is True
    assert {"seed", "date", "machine", "versions", "lines", "figures"} <= set(record)
    assert all(line["what"] and line["ours"] for line in record["lines"])
    assert "reached" in capsys.readouterr().out


def test_every_setting_of_a_grid_is_one_that_its_model_takes():
    for name in recipes.DEBD_SETS:
        for model in recipes.DEBD_GRIDS:
            for n_rows in (recipes.DEBD_FEW_ROWS - 1, recipes.DEBD_FEW_ROWS):
                for setting in recipes.debd_grid(model, name, n_rows):
                    getattr(likely, model)(**setting)._validate_params()


def test_commands_of_benchmarks_in_processes_of_their_own(tmp_path):
    ran = likely_command(["models", "--json"])
    assert ran.answer
    assert ran.wall > 0.05
    assert ran.cpu > 0.05
    assert 10_000_000 < ran.peak < 2_000_000_000
    held = larger_than_memory._held(["models"], None)
    assert held.cpu > 0.05
    assert held.peak > 10_000_000
    assert not held.killed
    for command in (likely_command, lambda arguments: larger_than_memory._held(arguments, None)):
        with pytest.raises(RuntimeError, match="ended with"):
            command(["score", str(tmp_path / "absent.likely"), "digits"])


def _needs_peers(name):
    source = (Path(runner.__file__).parent / f"{name}.py").read_text()
    return "peers.run(" in source or "peers.prepare(" in source


def test_the_page_of_results_shows_the_records_that_are_kept():
    assert DOCUMENT.read_text() == page(runner.NAMES), "run `python -m benchmarks --page`"


def test_every_benchmark_is_listed(capsys):
    assert runner.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(runner.NAMES)
    having_run = {
        path.stem for path in Path(runner.__file__).parent.glob("*.py") if "def run(*, small" in path.read_text()
    }
    assert having_run == set(runner.NAMES)


def test_beginning_of_a_name_stands_for_all_that_have_it():
    assert runner._chosen(["rbm"]) == [name for name in runner.NAMES if name.startswith("rbm")]
    assert runner._chosen(["mixture"]) == ["mixture"]
    assert runner._chosen([]) == list(runner.NAMES)


def test_unknown_name_is_refused(capsys):
    assert runner.main(["gan"]) == 2
    assert "factor_analysis" in capsys.readouterr().err


def test_small_figures_never_replace_real_ones(capsys):
    assert runner.main(["scaling", "--small"]) == 2
    assert "--out" in capsys.readouterr().err


def test_kept_results_are_of_full_size():
    for path in RESULTS.glob("*.json"):
        record = json.loads(path.read_text())
        assert record["benchmark"] == path.stem
        assert record["small"] is False


def test_turns_alternate_and_keep_the_compiling_call_apart():
    calls = []
    ours, peer = in_turns(lambda: calls.append("ours"), lambda: calls.append("peer"), n_rounds=2)
    assert calls == ["ours", "peer", "ours", "peer", "ours"]
    assert len(ours.seconds) == len(peer.seconds) == 2
