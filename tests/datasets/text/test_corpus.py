"""Text as data: what is a sentence and a token, what perplexity counts, and what is refused."""

import gzip

import numpy as np
import pytest

import likely
from likely.datasets import CONVENTION, Corpus, DataError, DataNotFoundError, Vocabulary, as_corpus
from likely.datasets.text.encoded import Spill, room
from tests.datasets.text.corpus_checks import TEXT, check_encoding


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT) + "\n")
    return path


def test_the_same_sentences_from_lists_texts_functions_and_files(file):
    tokens = [line.split() for line in TEXT]
    packed = file.with_name("text.txt.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for corpus in (
        Corpus(TEXT),
        Corpus(tokens),
        Corpus(lambda: iter(TEXT)),
        Corpus.from_files(file),
        Corpus.from_files(packed),
        as_corpus(file),
    ):
        assert list(corpus) == list(corpus) == tokens
        check_encoding(corpus.encode(corpus.vocabulary()), TEXT)


def test_several_files_are_one_corpus(file):
    assert list(Corpus.from_files(file, file)) == 2 * list(Corpus.from_files(file))


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_bytes("a\u2028b c\r\nd\x0be\n\nlast".encode())
    assert list(Corpus.from_files(path)) == [["a", "b", "c"], ["d", "e"], [], ["last"]]


def test_blocks_of_a_file_join_where_they_were_cut(tmp_path, monkeypatch):
    lines = [f"é{i} wörld " * (i % 7) for i in range(200)]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(lines))
    for size in (1, 7, 64):
        monkeypatch.setattr("likely.datasets.text.corpus._BYTES_A_READ", size)
        assert list(Corpus.from_files(path)) == [line.split() for line in lines]


def test_tokenizers():
    assert list(Corpus(["ab c"], tokenizer="character")) == [["a", "b", " ", "c"]]
    assert list(Corpus(["a,b"], tokenizer=lambda text: text.split(","))) == [["a", "b"]]
    assert list(Corpus(["line\nbreak inside", "b"])) == [["line", "break", "inside"], ["b"]]
    with pytest.raises(ValueError, match="tokenizer must be 'whitespace', 'character' or a function, got 'words'"):
        Corpus(["a"], tokenizer="words")
    with pytest.raises(TypeError, match="must return a list of tokens, got 'ab'"):
        list(Corpus(["ab"], tokenizer=str))


def test_cut_off_and_size_of_the_vocabulary():
    corpus = Corpus(["b a a c", "c a <unk>"])
    assert corpus.vocabulary().tokens == ("<unk>", "<s>", "</s>", "a", "c", "b")
    assert corpus.vocabulary(min_count=2).tokens[3:] == ("a", "c")
    assert corpus.vocabulary(max_size=1).tokens[3:] == ("a",)
    assert corpus.vocabulary(min_count=2).counts.tolist() == [2, 0, 2, 3, 2]
    assert corpus.vocabulary().counts.sum() == len(corpus.encode(corpus.vocabulary()).tokens)


def test_gaps_are_minus_one_and_are_not_counted():
    vocabulary = Corpus([["a", "b"]]).vocabulary()
    encoded = Corpus([["a", None], [None, None], ["b"]]).encode(vocabulary)
    assert encoded.tokens.tolist() == [3, -1, 2, -1, -1, 2, 4, 2]
    assert encoded.n_counted.tolist() == [2, 1, 2]
    assert encoded.gaps.tolist() == [1, 3, 4]


def test_the_compiled_loop_finds_the_same_tokens(monkeypatch):
    lines = [
        "the dog\tran  away",
        "",
        "é 日本 new",
        "a\xa0b\u3000c d\x1ce",
        " the\x0bend ",
        "<unk> the",
        "line\nbreak",
    ] * 3
    vocabulary = Corpus(["the dog é 日本 a b c d e end break"]).vocabulary()
    for some in (lines, [line for line in lines if "\xa0" not in line]):
        expected = Corpus(some).encode(vocabulary)
        assert (vocabulary.fast("\n".join(some)) is None) == (some is lines)
        with monkeypatch.context() as patch:
            patch.setattr("likely.datasets.text.corpus._WORTH_COMPILING", 0)
            patch.setattr("likely.datasets.text.corpus._SENTENCES_A_READ", 4)
            found = Corpus(some).encode(vocabulary)
            with pytest.raises(DataError, match="holds the token '</s>'"):
                Corpus([*some, "a </s>"]).encode(vocabulary)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
        np.testing.assert_array_equal(found.offsets, expected.offsets)


def test_the_compiled_loop_knows_every_blank():
    """Every character that `str.split` cuts at is either cut at, or left to it."""
    vocabulary = Vocabulary(["a", "b"])
    for code in [*range(1, 0x3100), 0xFEFF, 0x1F600]:
        if code != 10:
            found = vocabulary.fast(f"a{chr(code)}b")
            n_tokens = len(f"a{chr(code)}b".split())
            assert found is None if code > 127 and n_tokens == 2 else len(found[0]) == n_tokens + 1, hex(code)


def test_large_text_lies_in_a_file_and_is_the_same():
    corpus = Corpus(TEXT * 2000)
    vocabulary = corpus.vocabulary()
    held, spilled = corpus.encode(vocabulary), corpus.encode(vocabulary, memory_budget=1000)
    assert isinstance(spilled.tokens.base, np.memmap)
    np.testing.assert_array_equal(held.tokens, spilled.tokens)
    np.testing.assert_array_equal(held.offsets, spilled.offsets)
    assert held.fingerprint() == spilled.fingerprint()
    assert held.share_unknown == spilled.share_unknown == 0


def test_room_is_zeros_in_memory_or_in_a_file():
    for budget in (0, 1 << 20):
        array = room(1000, np.float64, budget)
        array[3] = 1
        assert array.sum() == 1
    assert Spill(np.int32, 0).array().shape == (0,)


def test_fingerprints_tell_sentences_and_vocabularies_apart():
    vocabulary = Corpus(TEXT).vocabulary()
    one = Corpus(["the dog"]).encode(vocabulary).fingerprint()
    assert one != Corpus(["the", "dog"]).encode(vocabulary).fingerprint()
    assert one != Corpus(["the dog"]).encode(Vocabulary(["the", "dog"])).fingerprint()


def test_a_vocabulary_survives_a_file():
    vocabulary = Corpus(["é 日本 a a"]).vocabulary()
    again = Vocabulary.from_arrays(vocabulary.to_arrays())
    assert again == vocabulary
    assert again.counts.tolist() == vocabulary.counts.tolist()
    assert again.words(again.ids(["日本", "?"])) == ["日本", "<unk>"]


def test_the_convention_is_stated():
    corpus = Corpus(TEXT)
    assert corpus.convention == CONVENTION == "counting every token and </s>, not <s>"
    assert CONVENTION in repr(corpus)


def test_what_can_be_read_only_once_is_refused():
    with pytest.raises(DataError, match=r"\(generator\) can be read only once.*Corpus\(lambda: read\(path\)\)"):
        Corpus(line for line in TEXT)


def test_undecodable_bytes_name_file_line_and_byte(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\nGr\xfc\xdfe\n")
    with pytest.raises(DataError, match=r"latin\.txt, line 2, byte 3: 0xfc is not UTF-8.*iconv"):
        Corpus.from_files(path).vocabulary()


def test_a_damaged_gz_file_says_so(tmp_path):
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(gzip.compress(b"a b c\n" * 1000)[:-20])
    with pytest.raises(DataError, match="is damaged after line"):
        Corpus.from_files(path).vocabulary()


def test_missing_empty_and_hopeless_text_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="there is no file"):
        Corpus.from_files(tmp_path / "nowhere.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    for corpus in (Corpus([]), Corpus.from_files(tmp_path / "empty.txt")):
        with pytest.raises(DataError, match="is empty: it has no sentences"):
            corpus.vocabulary()
        with pytest.raises(DataError, match="is empty: it has no sentences"):
            corpus.encode(Vocabulary(["a"]))
    with pytest.raises(DataError, match="the corpus is empty: it has no tokens"):
        Corpus(["", ""]).vocabulary()
    with pytest.raises(DataError, match="it has only gaps"):
        Corpus([[None]]).vocabulary()
    with pytest.raises(DataError, match=r"min_count=9 leaves only <unk>: .* 'the', occurs 3 times"):
        Corpus(TEXT).vocabulary(min_count=9)
    with pytest.raises(DataError, match="every token of the corpus is <unk>"):
        Corpus(["<unk> <unk>"]).vocabulary()
    with pytest.raises(ValueError, match="min_count must be a positive integer, got 0"):
        Corpus(TEXT).vocabulary(min_count=0)


@pytest.mark.parametrize("mark", ["<s>", "</s>"])
def test_marks_inside_a_sentence_are_refused(mark):
    for corpus in (Corpus([f"a {mark} b"]), Corpus([["a", mark]])):
        for use in (corpus.vocabulary, lambda c=corpus: c.encode(Vocabulary(["a"]))):
            with pytest.raises(DataError, match=f"holds the token '{mark}', which marks the edge"):
                use()


def test_what_is_no_corpus_is_refused():
    for text in ("a b", b"a b"):
        with pytest.raises(TypeError, match=r"Corpus\.from_files\(path\)"):
            Corpus(text)
    with pytest.raises(TypeError, match="can be iterated over, got int"):
        Corpus(3)
    with pytest.raises(TypeError, match="a sentence must be a text or a list of tokens, got 3"):
        list(Corpus([3]))
    with pytest.raises(TypeError, match="a token must be a string, or None where it is not observed, got 3"):
        list(Corpus([[3]]))
    with pytest.raises(DataError, match="'a' stands twice"):
        Vocabulary(["a", "a"])


def test_a_text_file_is_loaded_as_text_in_three_parts(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(f"word{i}, with a comma" for i in range(25)))
    data = likely.datasets.load(path)
    parts = [[sentence[0] for sentence in part] for part in (data.train, data.valid, data.test)]
    assert parts[1] == ["word8,", "word18,"]
    assert parts[2] == ["word9,", "word19,"]
    assert len(parts[0]) == 21
    assert "not <s>" in repr(data)
    assert next(iter(likely.datasets.load(path, tokenizer="character").test))[:2] == ["w", "o"]
    with pytest.raises(TypeError, match="has no option 'kinds'"):
        likely.datasets.load(path, kinds={})
    path.write_text("one line")
    with pytest.raises(DataError, match="fewer than 10 lines"):
        likely.datasets.load(path)


def test_wikitext2_has_its_official_sizes(data_folder):
    data = likely.datasets.load("wikitext2")
    vocabulary = data.valid.vocabulary()
    assert len(data.valid.encode(vocabulary).tokens) == 217_646
    assert len(data.test.encode(vocabulary).tokens) == 245_569
