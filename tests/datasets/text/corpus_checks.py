"""Checks of encoded text that planted bugs must fail."""

TEXT = ["the dog ran away", "", "the dog sleeps", "a cat saw the dog"]


def check_encoding(encoded, sentences):
    """Ids spell the sentences, each closed by one </s>, and nothing else is counted."""
    words = [line.split() for line in sentences]
    assert len(encoded) == len(words), "a sentence is missing"
    spelled = [encoded.vocabulary.words(ids) for ids in encoded]
    assert spelled == [[*line, "</s>"] for line in words], "the ids do not spell the sentences"
    assert encoded.n_counted.tolist() == [len(line) + 1 for line in words], "other tokens are counted than stated"
