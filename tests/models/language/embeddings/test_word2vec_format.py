"""word2vec's files against bytes written by hand, against gensim, and damaged ones."""

import struct

import numpy as np
import pytest

import likely
from benchmarks import peers
from likely.models.language.embeddings.word2vec_format import read_vectors, write_vectors

WORDS, VECTORS = ["the", "Köln"], np.array([[1.5, -0.25], [1e-7, 3.0]], np.float32)
TEXT = "2 2\nthe 1.5 -0.25\nKöln 1e-07 3.0\n".encode()
ROWS = [b"the " + struct.pack("<2f", 1.5, -0.25), "Köln ".encode() + struct.pack("<2f", 1e-7, 3.0)]
BINARY = b"2 2\n" + b"".join(ROWS)


@pytest.mark.parametrize(("binary", "data"), [(False, TEXT), (True, BINARY)])
def test_bytes_are_as_the_format_says(binary, data, tmp_path):
    path = tmp_path / "vectors"
    write_vectors(path, WORDS, VECTORS, binary=binary)
    assert path.read_bytes() == data
    words, vectors = read_vectors(path, binary=binary)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)


def test_other_programs_habits_are_read(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(b"2 2\n" + ROWS[0] + b"\n" + ROWS[1] + b"\n")  # word2vec.c ends each word with a line feed
    assert read_vectors(path, binary=True)[0] == WORDS
    path.write_bytes(TEXT.replace(b"-0.25\n", b"-0.250000 \n"))  # and leaves a blank at the end
    np.testing.assert_array_equal(read_vectors(path, binary=False)[1], VECTORS)


@pytest.mark.parametrize(
    ("data", "binary", "message"),
    [
        (b"", False, "line 1: the numbers of words and of components are needed, got ''"),
        (b"the 1.5 -0.25\n", False, "line 1"),
        (b"0 2\n", False, "line 1"),
        (b"99999999999 300\nthe 1.0", False, "cut short"),
        (b"3 1\na 1\nb 2\na 3\n", False, "word 3, 'a', stands there before"),
        (b"2 1\na abcda abcd", True, "word 2, 'a', stands there before"),
        (b"99999999999 300\nthe 1.0", True, "cut short"),
        (TEXT + b"a 1 2\n", False, "2 words are announced, 3 lines follow"),
        (TEXT.replace(b"-0.25", b"-0.25 7"), False, "line 2: a word and 2 numbers"),
        (TEXT.replace(b"-0.25", b"seven"), False, "line 2: a word and 2 numbers"),
        (TEXT.replace(b"-0.25", b"nan  "), False, "'the' has numbers that are not finite"),
        (BINARY[:-1], True, "cut short in word 2 of 2"),
        (BINARY.replace("ö".encode(), b"\xff\xff"), True, "word 2, .* is not UTF-8"),
    ],
)
def test_damage_is_named(data, binary, message, tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(data)
    with pytest.raises(likely.DataError, match=message):
        read_vectors(path, binary=binary)


def test_absent_files_and_words_with_blanks(tmp_path):
    with pytest.raises(likely.DataError, match="there is no file"):
        read_vectors(tmp_path / "none", binary=False)
    with pytest.raises(ValueError, match="cannot hold the word 'New York'"):
        write_vectors(tmp_path / "vectors", ["New York"], VECTORS[:1], binary=False)


def test_models_from_files_of_vectors(tmp_path):
    path = tmp_path / "vectors"
    path.write_bytes(b"4 2\n</s> 1 1\ncat 1 0\ndog 0.9 0.1\nsea 0 -1\n")
    model = likely.SkipGram.load_word2vec(path)
    assert model.words_ == ("cat", "dog", "sea")
    assert [word for word, _ in model.most_similar("cat")] == ["dog", "sea"]
    with pytest.raises(ValueError, match="vectors alone"):
        model.log_normalizers(["cat"])
    for binary in (False, True):
        model.save_word2vec(tmp_path / "again", binary=binary)
        again = likely.SkipGram.load_word2vec(tmp_path / "again", binary=binary)
        np.testing.assert_array_equal(again.params_.vectors, model.params_.vectors)
    model.save(tmp_path / "model.likely")
    assert likely.load(tmp_path / "model.likely").most_similar("cat") == model.most_similar("cat")


def test_gensim_reads_ours_and_we_read_its(tmp_path):
    if not peers.is_ready():
        pytest.skip("the peers are not installed: `make bench BENCH=skipgram` makes their environment, gensim in it")
    for name, binary in (("text", False), ("binary", True)):
        write_vectors(tmp_path / name, WORDS, VECTORS, binary=binary)
    found = peers.run("peer_gensim", copy_names={"text": False, "binary": True}, folder=str(tmp_path))["vectors"]
    for name, binary in (("text", False), ("binary", True)):
        assert found[name] == dict(zip(WORDS, VECTORS.tolist(), strict=True))
        words, vectors = read_vectors(tmp_path / f"{name}.gensim", binary=binary)
        assert words == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)
