"""Planted bugs in encoded text, caught by the checks that the library passes."""

from dataclasses import replace

import numpy as np
import pytest

from likely.datasets import Corpus
from tests.datasets.text.corpus_checks import TEXT, check_encoding


@pytest.fixture
def encoded():
    corpus = Corpus(TEXT)
    return corpus.encode(corpus.vocabulary())


def test_blank_lines_that_are_skipped_are_caught(encoded):
    offsets = np.delete(encoded.offsets, 2)
    with pytest.raises(AssertionError, match="a sentence is missing"):
        check_encoding(replace(encoded, offsets=offsets), TEXT)


def test_offsets_that_are_off_by_one_are_caught(encoded):
    offsets = np.append(encoded.offsets[:-1] + 1, len(encoded.tokens))
    with pytest.raises(AssertionError, match="do not spell"):
        check_encoding(replace(encoded, offsets=offsets), TEXT)


def test_ends_that_are_not_counted_are_caught(encoded):
    class Forgetful(type(encoded)):
        @property
        def n_counted(self):
            return super().n_counted - 1

    with pytest.raises(AssertionError, match="other tokens are counted"):
        check_encoding(Forgetful(encoded.tokens, encoded.offsets, encoded.vocabulary), TEXT)
