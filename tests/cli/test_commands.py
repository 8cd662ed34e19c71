"""Every command and every way in which it can be used wrongly."""

from __future__ import annotations

import csv
import json
import runpy
import subprocess
import sys
import warnings
import weakref

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import likely
from likely.cli import fitting
from likely.cli.app import app
from likely.cli.options import parse_value

COMMANDS = ("compare", "fit", "score", "sample", "fidelity", "impute", "denoise", "models", "datasets")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments, words):
    """Exit code 2, nothing on stdout, one line on stderr with the words."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("likely: error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def table(folder):
    """A mixed table with holes."""
    rng = np.random.RandomState(0)
    n = 120
    kind = rng.randint(3, size=n)
    path = folder / "table.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["colour", "size", "number"])
        for i in range(n):
            size = "" if i % 9 == 0 else f"{kind[i] * 2 + rng.randn():.3f}"
            writer.writerow([("red", "green", "blue")[kind[i]] if i % 7 else "", size, rng.poisson(2 + kind[i])])
    return path


@pytest.fixture(scope="module")
def model(folder, table):
    path = folder / "mixture.likely"
    succeed("fit", "mixture", table, "--out", path, "--set", "n_components=3", "--set", "n_init=1")
    return path


@pytest.fixture(scope="module")
def picture_model(folder):
    path = folder / "pictures.likely"
    succeed("fit", "independent", "digits", "--out", path)
    return path


# ------------------------------------------------------------------------ help
@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command):
    text = succeed(command, "--help").stdout
    assert "Examples:" in text
    assert f"likely {command}" in text


def test_help_lists_every_command_and_version_is_told():
    text = succeed("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert succeed().stdout == text
    assert succeed("--version").stdout.strip() == f"likely {likely.__version__}"


def test_the_module_is_the_command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["likely", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("likely", run_name="__main__")
    assert capsys.readouterr().out.strip() == f"likely {likely.__version__}"


def test_the_command_line_loads_nothing_heavy():
    code = (
        "import sys; import likely.cli, likely.cli.app\n"
        "heavy = {'jax', 'numpy', 'sklearn', 'pandas', 'polars', 'scipy', 'matplotlib', 'equinox'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -------------------------------------------------------------------- listings
def test_models():
    text = succeed("models").stdout
    entries = json.loads(succeed("models", "--json").stdout)
    known = likely.storage.registry.ENTRIES
    assert [entry["class"] for entry in entries] == [entry.class_name for entry in known]
    assert sum(entry["command_line"] for entry in entries) == len(likely.storage.registry.listed())
    assert "denoise" not in entries[0]["offers"]
    assert all((entry["name"] if entry["command_line"] else entry["class"]) in text for entry in entries)


def test_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("LIKELY_DATA", str(tmp_path))
    text = succeed("datasets").stdout
    entries = {entry["name"]: entry for entry in json.loads(succeed("datasets", "--json").stdout)}
    assert entries["digits"]["available"]
    assert not entries["mnist"]["available"]
    assert "adult" in text


# --------------------------------------------------------------------- compare
def test_compare_prints_a_table_and_writes_a_report(table, tmp_path):
    out = tmp_path / "r.html"
    text = succeed("compare", table, "--models", "independent,mixture", "--report", out).stdout
    assert "Mixture" in text
    assert "= exact" in text
    assert str(out) in text.replace("\n", "")
    assert out.read_text().startswith("<!doctype html>")


def test_compare_default_report_is_in_the_current_folder(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    succeed("compare", table, "--models", "independent")
    first = (tmp_path / "report.html").read_text()
    succeed("compare", table, "--models", "independent")  # a second run renews it
    assert len((tmp_path / "report.html").read_text()) == pytest.approx(len(first), rel=0.01)


def test_compare_json(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = succeed("compare", table, "--models", "independent", "--no-report", "--json", "--rows", 5, "--seed", 1)
    board = json.loads(result.stdout)
    assert board["n_test_rows"] == 5
    assert board["random_state"] == 1
    assert board["report"] is None
    assert board["entries"][0]["rank"] == 1
    assert list(tmp_path.iterdir()) == []


def test_compare_with_nothing_to_rank_tells_by_its_exit_code(table):
    result = run("compare", table, "--models", "factoranalysis", "--no-report")
    assert result.exit_code == 1
    assert "is categorical" in result.stdout.replace("\n  ", " ")
    assert "no model could be ranked" in result.stderr


def test_compare_kinds(table):
    args = ("compare", table, "--models", "independent", "--no-report", "--json")
    assert json.loads(succeed(*args, "--kind", "number=real").stdout)["measure"] == "mixed"
    refused(*args, "--kind", "number", words="COLUMN=KIND")
    refused(*args, "--kind", "number=integer", words="binary, categorical, ordinal, count, grid, real")
    refused(*args, "--kind", "nmber=real", words="nmber")


def test_compare_refusals(table, tmp_path):
    refused("compare", words="DATA")
    refused("compare", table, "--models", "mixtur", words="Did you mean 'mixture'")
    refused("compare", table, "--models", ",", words="--models")
    refused("compare", "digit", words="digits")
    refused("compare", tmp_path / "no.csv", words="there is no file")
    refused("compare", table, "--report", tmp_path / "no" / "r.html", words="does not exist")
    refused("compare", table, "--report", tmp_path, words="is a folder")
    refused("compare", table, "--rows", 0, words="--rows")
    refused("compare", table, "--seed", -1, words="--seed")
    refused("compare", table, "--sed", 1, words="--sed")


# ------------------------------------------------------------------------- fit
def test_fit_saves_a_model_and_prints_evidence(table, tmp_path):
    out = tmp_path / "m.likely"
    text = succeed("fit", "independent", table, "--out", out, "--set", "pseudo_count=0.5", "--seed", 3).stdout
    assert "mean log p = " in text
    fitted = likely.load(out)
    assert fitted.pseudo_count == 0.5
    assert fitted.seed_ == 3


def test_fit_json(table, tmp_path):
    out = tmp_path / "m.likely"
    summary = json.loads(succeed("fit", "Independent", table, "--out", out, "--json").stdout)
    assert summary["model"] == "Independent"
    assert summary["test"]["kind"] == "exact"
    assert summary["test"]["n_rows"] == 12


def test_training_rows_are_given_up_before_the_model_learns(table, tmp_path, monkeypatch):
    # A table once more in memory, all the while that a model learns, was a third of what `likely fit` needed.
    load, learn, loaded, held = fitting.load_table, likely.Independent._fit, [], []

    def load_table(*given):
        dataset = load(*given)
        loaded.append(weakref.ref(dataset.train))
        return dataset

    def _fit(model, *given):
        held.append(loaded[0]() is not None)
        return learn(model, *given)

    monkeypatch.setattr(fitting, "load_table", load_table)
    monkeypatch.setattr(likely.Independent, "_fit", _fit)
    succeed("fit", "independent", table, "--out", tmp_path / "m.likely")
    assert held == [False]


def test_fit_refusals(table, tmp_path):
    out = tmp_path / "m.likely"
    fit = ("fit", "mixture", table, "--out", out)
    refused("fit", "mixtur", table, "--out", out, words="Did you mean 'mixture'")
    refused("fit", "mixture", tmp_path / "no.csv", "--out", out, words="there is no file")
    refused(*fit, "--set", "n_components", words="NAME=VALUE")
    refused(*fit, "--set", "n_component=3", words="Did you mean 'n_components'")
    refused(*fit, "--set", "n_components=0", words="n_components")
    refused(*fit, "--set", "n_components=many", words="n_components")
    refused(*fit, "--set", "n_components=1000", words="n_components")
    refused(*fit, "--set", "schema=None", words="schema")
    refused("fit", "mixture", table, "--out", tmp_path / "no" / "m", words="does not exist")
    refused("fit", "mixture", table, "--out", tmp_path, words="is a folder")
    refused("fit", "factoranalysis", table, "--out", out, words="is categorical")
    assert list(tmp_path.iterdir()) == []


def test_options_of_reading_and_what_is_said_of_it(tmp_path):
    rows = "".join(f"{i};{'ab'[i % 2]};{i % 7},5 €;{'refused' if i == 9 else i}\n" for i in range(30))
    (tmp_path / "table.csv").write_text("id;letter;price;n\n" + rows)
    (tmp_path / "new.csv").write_text("id;letter;price;n\n1;a;0,5 €;2\n2;b;cheap;3\n")
    out, data = tmp_path / "m.likely", tmp_path / "table.csv"
    done = run("fit", "independent", data, "--out", out, "--drop", "id", "--missing", "refused,-999")
    assert done.exit_code == 0
    assert done.stderr == "likely: column 'price': '0,5 €' is read as 0.5.\n"
    refused = run("score", out, tmp_path / "new.csv")
    assert refused.exit_code == 2
    assert "new.csv, line 3: column 'price' holds 'cheap', and needed is a number" in refused.stderr
    scored = run("score", out, tmp_path / "new.csv", "--missing", "cheap", "--json")
    assert scored.exit_code == 0
    assert "the model does not know id: left out" in scored.stderr  # as it does not know n, which numbers the rows
    wrong = run("fit", "independent", data, "--force", "--out", out, "--decimal", ";")
    assert wrong.exit_code == 2
    assert "decimal must be '.' or ','" in wrong.stderr
    named = run("fit", "independent", "digits", "--force", "--out", out, "--no-header")
    assert "--header is for tables in files, and digits is a data set" in named.stderr


def test_columns_of_a_file_are_found_by_their_names(table, model, tmp_path):
    import polars as pl

    rows, new = pl.read_csv(table).head(4), tmp_path / "new.csv"
    rows.select("number", "colour", pl.lit(1).alias("extra"), "size").write_csv(new)
    expected = tmp_path / "expected.csv"
    rows.write_csv(expected)
    assert succeed("score", model, new, "--json").stdout == succeed("score", model, expected, "--json").stdout
    rows.drop("size", "colour").write_csv(new)
    refused("score", model, new, words="has none of the columns colour, size, which the model was fitted to: add them")
    rows.rename({"size": "sizes"}).write_csv(new)
    refused("anomalies", model, new, words="has no column 'size', which the model was fitted to: add it, with empty")
    rows.with_columns(number=pl.Series([1, 2, -4, 3])).write_csv(new)
    refused("impute", model, new, words="line 4: column 'number' holds -4, and is")


def test_without_a_name_a_model_is_saved_under_its_own(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "saved as independent.likely" in succeed("fit", "independent", table).stdout
    refused("fit", "independent", table, words="independent.likely exists")


def test_checkpoints_are_neither_lost_nor_invented(table, tmp_path):
    out, checkpoint = tmp_path / "m.likely", tmp_path / "c"
    fit = ("fit", "vae", table, "--set", "n_components=2", "--out", out)
    refused(*fit, "--resume", words="--checkpoint")
    refused(*fit, "--checkpoint", checkpoint, "--resume", words="no checkpoint")
    refused("fit", "mixture", table, "--out", out, "--checkpoint", checkpoint, words="has no checkpoints")
    checkpoint.write_bytes(b"hours of work")
    refused(*fit, "--checkpoint", checkpoint, words="--resume to go on from it")
    refused(*fit, "--checkpoint", checkpoint, "--resume", words="")
    assert checkpoint.read_bytes() == b"hours of work"


def test_fit_with_checkpoint_and_resume(table, tmp_path):
    out, checkpoint = tmp_path / "m.likely", tmp_path / "c"
    settings = [f"--set={name}" for name in ("n_components=2", "hidden=[8]", "n_epochs=2", "n_importance=16")]
    settings += ["--checkpoint", checkpoint]
    fit = ("fit", "vae", table, "--out", out, *settings)
    first = json.loads(succeed(*fit, "--json").stdout)
    assert checkpoint.exists()
    second = json.loads(succeed(*fit, "--resume", "--force", "--json").stdout)
    assert second["test"] == first["test"]
    assert likely.load(out).hidden == (8,)


def test_existing_files_are_not_overwritten_unasked(table, model, tmp_path):
    out = tmp_path / "there.csv"
    out.write_text("precious")
    refused("fit", "mixture", table, "--out", out, words="--force")
    refused("score", model, table, "--out", out, words="--force")
    refused("sample", model, "--out", out, words="--force")
    refused("impute", model, table, "--out", out, words="--force")
    refused("denoise", model, table, "--out", out, words="--force")
    assert out.read_text() == "precious"
    succeed("sample", model, "--out", out, "--force")
    assert out.read_text() != "precious"


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("1e-3", 1e-3), ("true", True), ("True", True), ("null", None), ("None", None), ("[1,2]", (1, 2)),
     ("(1, 2)", (1, 2)), ("full", "full"), ('"full"', "full"), ("__import__('os')", "__import__('os')"), ("", "")],
)  # fmt: skip
def test_values_are_read_and_never_executed(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


# ----------------------------------------------------------------------- score
def test_score(model, table, tmp_path):
    assert "mean log p = " in succeed("score", model, table).stdout
    out = tmp_path / "s.csv"
    summary = json.loads(succeed("score", model, table, "--out", out, "--json").stdout)
    scores = pl.read_csv(out)
    assert scores.columns == ["log_p", "lower", "upper", "stderr"]
    assert len(scores) == 120  # the whole file, no split
    assert scores["log_p"].mean() == pytest.approx(summary["mean"])
    fitted = likely.load(model)
    assert scores["log_p"].to_numpy() == pytest.approx(fitted.score_samples(likely.datasets.read(table)))
    rows = json.loads(succeed("score", model, table, "--json").stdout)["rows"]
    assert rows["log_p"] == pytest.approx(scores["log_p"].to_list())


def test_score_parts_of_a_named_data_set(picture_model):
    test = json.loads(succeed("score", picture_model, "digits", "--json").stdout)
    train = json.loads(succeed("score", picture_model, "digits", "--part", "train", "--json").stdout)
    assert (test["n_rows"], train["n_rows"]) == (500, 1000)
    refused("score", picture_model, "digits", "--part", "all", words="train, valid, test")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_score_refusals(model, table, tmp_path):
    refused("score", tmp_path / "no.likely", table, words="no.likely")
    refused("score", table, table, words="table.csv")
    refused("score", model, tmp_path / "no.csv", words="there is no file")
    refused("score", model, "digits", words="64 features")
    refused("score", model, "digit", words="digits")
    refused("score", model, table, "--out", tmp_path / "s.txt", words=".csv, .parquet, .npy")
    other = tmp_path / "other.csv"
    other.write_text("colour,size,number\nred,1.5,2\nmauve,2.5,many\n")
    refused("score", model, other, words="'many'")
    other.write_text("colour,size,number\nred,1.5,2\nmauve,2.5,1\n")
    succeed("score", model, other)  # A colour that was never seen is improbable, and no error.


def test_warnings_are_one_line_each(model, table, monkeypatch):
    def careful(self, X):
        warnings.warn("mind\nthe gap", stacklevel=1)
        raise ValueError("no")

    monkeypatch.setattr(likely.Model, "evidence", careful)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("score", model, table)
    assert result.stderr == "likely: warning: mind the gap\nlikely: error: no\n"


def test_bug_and_debug(model, table, monkeypatch):
    def broken(self, X):
        raise RuntimeError("a bug")

    monkeypatch.setattr(likely.Model, "evidence", broken)
    result = run("score", model, table)
    assert result.exit_code == 1
    assert result.stderr == "likely: error: RuntimeError: a bug (LIKELY_DEBUG=1 shows where)\n"
    monkeypatch.setenv("LIKELY_DEBUG", "1")
    assert isinstance(run("score", model, table).exception, RuntimeError)


# ---------------------------------------------------------------------- sample
def test_sample_formats(model, tmp_path):
    text = succeed("sample", model, "-n", 3, "--seed", 1).stdout
    assert text.splitlines()[0] == "colour,size,number"
    assert len(text.splitlines()) == 4
    assert succeed("sample", model, "-n", 3, "--seed", 1).stdout == text
    assert succeed("sample", model, "-n", 3, "--seed", 2).stdout != text
    out = tmp_path / "s.parquet"
    succeed("sample", model, "-n", 20, "--out", out)
    assert pl.read_parquet(out)["number"].dtype == pl.Int64
    rows = json.loads(succeed("sample", model, "-n", 2, "--json").stdout)["rows"]
    assert set(rows[0]) == {"colour", "size", "number"}


def test_times_are_written_without_fractions_that_no_cell_has():
    from datetime import datetime

    from likely.cli.output import table_bytes

    noon = datetime(2022, 11, 4, 13, 1)
    table = pl.DataFrame({"a": [noon, None], "b": [noon.replace(microsecond=500), noon], "c": [noon.date(), None]})
    table = table.with_columns(d=pl.col("a").dt.replace_time_zone("UTC"))
    lines = table_bytes(table, ".csv").decode().splitlines()
    assert lines[1] == "2022-11-04T13:01:00,2022-11-04T13:01:00.000500,2022-11-04,2022-11-04T13:01:00+00:00"
    assert lines[2] == ",2022-11-04T13:01:00.000000,,"


def test_sample_pictures(picture_model, tmp_path):
    succeed("sample", picture_model, "-n", 9, "--out", tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    result = succeed("sample", picture_model, "-n", 9, "--out", tmp_path / "s.npy", "--json")
    assert json.loads(result.stdout) == {"n_rows": 9, "out": str(tmp_path / "s.npy"), "method": "exact", "exact": True}
    rows = np.load(tmp_path / "s.npy")
    assert rows.shape == (9, 64)
    assert set(np.unique(rows)) <= {0, 1}


def test_sample_refusals(model, tmp_path):
    refused("sample", model, "-n", 0, words="-n")
    refused("sample", model, "--out", tmp_path / "s.png", words="no pictures")
    refused("sample", model, "--out", tmp_path / "s.npy", words="'colour' holds categories")
    refused("sample", model, "--out", tmp_path / "s", words=".png")


# ----------------------------------------------------------- impute and denoise
def test_json_says_how_cells_were_filled_and_rows_drawn(model, table, tmp_path):
    found = json.loads(succeed("impute", model, table, "--json").stdout)
    assert (found["method"], found["exact"]) == ("exact", True)
    assert "stderr" not in found
    assert json.loads(succeed("sample", model, "-n", 2, "--json").stdout)["exact"] is True
    rows = (np.random.default_rng(0).random((60, 24)) < 0.5).astype(float)
    holes = rows[:3].copy()
    holes[:, 8:] = np.nan
    np.save(tmp_path / "holes.npy", holes)
    likely.RBM(24, n_epochs=1, random_state=0).fit(rows).save(tmp_path / "wide.likely")
    found = json.loads(succeed("impute", tmp_path / "wide.likely", tmp_path / "holes.npy", "--json").stdout)
    assert found["exact"] is False
    assert "16 clamped chains" in found["method"]
    errors = np.column_stack(list(found["stderr"].values()))
    assert errors.shape == (3, 24)
    assert (errors[:, :8] == 0).all()
    assert (errors[:, 8:] > 0).all()
    drawn = json.loads(succeed("sample", tmp_path / "wide.likely", "-n", 2, "--json").stdout)
    assert drawn["exact"] is False
    assert drawn["n_chains"] == 16
    assert drawn["r_hat"] >= 0.9


def test_impute_fills_holes_and_keeps_the_rest(model, table, tmp_path):
    out = tmp_path / "filled.csv"
    succeed("impute", model, table, "--out", out)
    before, after = pl.read_csv(table), pl.read_csv(out)
    assert after.null_count().sum_horizontal()[0] == 0
    for name in before.columns:
        known = before[name].is_not_null()
        same = after[name].filter(known).to_list()
        assert same == pytest.approx(before[name].filter(known).to_list()) if name == "size" else True
        assert name == "size" or same == before[name].filter(known).to_list()


def test_denoise(model, table, picture_model, tmp_path):
    rows = json.loads(succeed("denoise", model, table, "--json").stdout)
    assert rows["n_rows"] == 120
    refused("denoise", picture_model, "digits", "--out", tmp_path / "d.npy", words="Independent has no denoise")


def test_the_installed_entry_point(tmp_path):
    code = "from likely.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "fit", "x", "y"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("likely: error: ")
    assert done.stderr.count("\n") == 1


def test_a_fit_of_several_processes_joins_the_others_before_data_are_read(monkeypatch, folder):
    told = []
    monkeypatch.setattr("likely.distributed.start", lambda *where: told.append(where))
    fit = ("fit", "mixture", folder / "absent.csv", "--out", folder / "absent.likely", "--coordinator", "host0:7777")
    refused(*fit, "--processes", 2, words="belong together")
    assert told == []
    refused(*fit, "--processes", 2, "--process", 1, words="absent.csv")
    assert told == [("host0:7777", 2, 1)]
