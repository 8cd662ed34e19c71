"""The commands on text: fit, score, sample, compare; and text is never taken for a table."""

import json

import pytest

import likely
from likely.datasets import CONVENTION
from tests.cli.test_commands import refused, succeed

LINES = ["the dog ran away", "the cat, a dog", "the dog sleeps", "a cat saw the dog", ""] * 12


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture(scope="module")
def model(text):
    path = text.parent / "model.likely"
    succeed("fit", "ngram", text, "--order", 2, "--out", path)
    return path


@pytest.fixture(scope="module")
def table(text):
    path = text.parent / "table.csv"
    path.write_text("a,b\n" + "1,2\n2,1\n" * 20)
    return path


def test_fit_saves_and_says_what_it_counts(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = succeed("fit", "ngram", text, "--order", 2).stdout
    assert "modified Kneser-Ney 2-gram" in out
    assert CONVENTION in out
    assert likely.load(tmp_path / "ngram.likely").order == 2
    summary = json.loads(succeed("fit", "ngram", text, "--set", "smoothing=katz", "--force", "--json").stdout)
    assert summary["test"]["convention"] == CONVENTION
    assert summary["test"]["perplexity"] > 1


def test_score_is_the_models_evidence(text, model, tmp_path):
    expected = likely.load(model).perplexity(likely.Corpus.from_files(text))
    assert f"perplexity {expected.value:,.2f}, {CONVENTION} (" in succeed("score", model, text).stdout
    summary = json.loads(succeed("score", model, text, "--out", tmp_path / "s.csv", "--json").stdout)
    assert summary["n_tokens"] == expected.n_tokens
    assert len((tmp_path / "s.csv").read_text().splitlines()) == len(LINES) + 1


def test_vectors_of_words_and_what_they_are_like(text, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = succeed("fit", "skipgram", text, "--set", "min_count=1", "--set", "n_components=4").stdout
    assert "skip_gram by negative sampling" in out
    assert "no probability of a sentence" in out
    path = tmp_path / "skipgram.likely"
    fitted = likely.load(path)
    lines = succeed("similar", path, "dog", "-n", 2).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [word for word, _ in fitted.most_similar("dog", 2)]
    (answer,) = json.loads(succeed("similar", path, "the", "dog", "a", "-n", 1, "--json").stdout)
    assert answer["word"] == fitted.analogy("the", "dog", "a")[0][0]
    refused("similar", path, "horse", words="there is no vector of 'horse'")
    refused("similar", path, "a", "dog", words="one word, or three")
    refused("similar", model, "dog", words="NGram has no vectors of words")
    refused("sample", path, words="SkipGram has no sample")
    refused("compare", text, "--models", "skipgram", words="nothing to compare")


def test_sample_begins_with_the_prompt(model, tmp_path):
    lines = succeed("sample", model, "--prompt", "the dog", "-n", 3, "--seed", 1).stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("the dog") for line in lines)
    assert json.loads(succeed("sample", model, "-n", 2, "--seed", 1, "--json").stdout)["n_rows"] == 2
    succeed("sample", model, "-n", 2, "--out", tmp_path / "s.txt")
    assert len((tmp_path / "s.txt").read_text().splitlines()) == 2
    refused("sample", model, "--out", tmp_path / "s.csv", words="must end in .txt")


def test_compare_ranks_by_evidence_and_shows_perplexity(text, tmp_path):
    report = tmp_path / "report.html"
    board = json.loads(succeed("compare", text, "--json", "--report", report).stdout)
    assert board["convention"] == CONVENTION
    ranked = [entry["perplexity"] for entry in board["entries"] if entry["rank"]]
    assert len(ranked) == 10
    assert any(entry["name"].startswith("LSTM") for entry in board["entries"])
    assert ranked == sorted(ranked)
    apart = [entry for entry in board["entries"] if entry["rank"] is None]
    assert "do not sum to one" in apart[0]["apart"]
    page = report.read_text()
    assert CONVENTION.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "What they write" in page
    out = succeed("compare", text, "--models", "ngram", "--no-report", "--rows", 3).stdout
    assert "3 test sentences, perplexity counting every token" in out


def test_text_is_no_table_and_a_table_no_text(text, table, model, tmp_path):
    out = tmp_path / "m.likely"
    refused("fit", "mixture", text, "--out", out, words="is text, and Mixture is a model of tables")
    refused("fit", "ngram", table, "--out", out, words="is a table, and NGram is a model of text")
    refused("score", model, table, words="is a table, and NGram is a model of text")
    refused("compare", text, "--models", "mixture", "--no-report", words="Mixture is no model of text")
    refused("impute", model, text, words="model.impute")
    refused("fit", "ngram", text, "--checkpoint", tmp_path / "c", words="no checkpoints")
    refused("fit", "ngram", text, "--order", 0, "--out", out, words="order")
    assert not out.exists()
