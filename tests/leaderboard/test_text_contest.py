"""Models of text on a leaderboard: the same tokens for all, and what cannot be compared is refused."""

import pytest

import likely
from likely.datasets import Corpus, TextDataset

LINES = ["the dog ran away", "the cat saw a dog", "the dog sleeps", "a cat saw the dog"] * 5


@pytest.fixture
def data():
    return TextDataset(Corpus(LINES), Corpus(LINES[:4]), Corpus(["the dog saw a cat", "new words"]), "little")


def test_models_by_name_in_lists_and_in_dictionaries(data):
    board = likely.compare({"two": likely.NGram(2), "one": likely.NGram(1)}, data)
    assert [entry.name for entry in board.ranked] == ["two", "one"]
    assert board.is_text
    assert board["two"].perplexity == pytest.approx(board["two"].model.perplexity(data.test).value)
    assert "perplexity counting every token and </s>, not <s>" in str(board)
    assert "<th>perplexity</th>" in board._repr_html_()
    twice = likely.compare([likely.NGram(2), likely.NGram(2, k=2.0)], data)
    assert {entry.name for entry in twice} == {"modified Kneser-Ney 2-gram", "modified Kneser-Ney 2-gram #2"}


def test_zero_probability_stands_apart(data):
    board = likely.compare([likely.NGram(2), likely.NGram(2, "maximum_likelihood")], data)
    assert board.apart[0].apart == "it gives probability 0 to 2 of 2 rows"


def test_unlike_vocabularies_and_models_are_refused(data):
    with pytest.raises(ValueError, match="the same min_count and max_vocabulary"):
        likely.compare([likely.NGram(2), likely.NGram(2, min_count=2)], data)
    with pytest.raises(ValueError, match="the data are text, and Mixture is no model of text"):
        likely.compare("mixture", data)
    with pytest.raises(ValueError, match="digits is a table, and NGram is a model of text"):
        likely.compare("ngram", "digits")
    with pytest.raises(ValueError, match="n_score_rows must be"):
        likely.compare("ngram", data, n_score_rows=0)
