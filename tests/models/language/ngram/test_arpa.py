"""ARPA files: our own read again, KenLM's and ours alike, and errors that name the line."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import peers
from likely.datasets import Corpus, DataError
from likely.models.language.ngram.ngram import NGram
from tests.models.language.ngram.ngram_checks import some_text, table_of, unseen_contexts

GOOD = r"""a comment before the data
\data\
ngram 1=5
ngram 2=3

\1-grams:
-1.0	<unk>
-99	<s>	-0.3
-0.6	</s>
-0.5	a	-0.2
-0.9	b

\2-grams:
-0.2	<s> a
-0.4	a b
-0.7	a </s>

\end\
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "model.arpa"
        path.write_text(text)
        return path

    return write


def test_look_ups_in_a_file_by_hand(write):
    model = NGram.load_arpa(write(GOOD))
    (scores,) = model.token_scores(["a b c"])
    # <s> a; a b; b has no weight and <unk> no bigram; <unk> neither
    assert_allclose(scores / np.log(10), [-0.2, -0.4, -1.0, -0.6])
    (scores,) = model.token_scores(["b a a"])
    assert_allclose(scores / np.log(10), [-0.3 - 0.9, -0.5, -0.2 - 0.5, -0.7])
    assert model.order == 2
    assert model.evidence(["a"]).method.startswith("ARPA 2-gram")
    with pytest.raises(ValueError, match="name one to fit"):
        model.fit(["a b"])


@pytest.mark.parametrize("suffix", [".arpa", ".arpa.gz"])
def test_what_is_written_is_read_again(suffix, tmp_path, global_random_seed):
    text = some_text(global_random_seed)
    for model in (
        NGram(3).fit(text),
        NGram(3, "katz").fit(text),
        NGram(3, "add_k").fit(text),
        NGram(1, "witten_bell").fit(text),
        NGram(2, "maximum_likelihood").fit(text),
    ):
        path = tmp_path / f"model{suffix}"
        model.save_arpa(path)
        again = NGram.load_arpa(path)
        contexts = [("<s>",), *unseen_contexts(0, ["w0", "w1", "w5", "<unk>"], model.order - 1, n=40)]
        assert again.vocabulary_ == model.vocabulary_
        log_p = table_of(again, contexts)
        assert_allclose(log_p, table_of(model, contexts), atol=2e-8)
        if model.smoothing != "maximum_likelihood":
            assert_allclose(np.exp(log_p).sum(axis=1), 1, atol=1e-7)  # nine digits
    content = path.read_bytes()
    assert (gzip.decompress(content) if suffix == ".arpa.gz" else content).startswith(b"\\data\\")


@pytest.mark.skipif(not peers.is_ready(), reason="the peers are not installed: `make bench BENCH=ngram` installs them")
def test_kenlm_reads_ours_and_we_read_what_it_reads(tmp_path, global_random_seed):
    text, new = some_text(global_random_seed), [["w0", "w1", "never", "w2"], [], ["w5"] * 4]
    lines = [" ".join(s) for s in (*text, *new)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    models = {"own": NGram(4).fit(text), "backoff": NGram(3, "witten_bell", interpolated=False).fit(text)}
    for name, model in models.items():
        model.save_arpa(tmp_path / f"{name}.arpa")
    answer = peers.run("peer_kenlm", models={n: str(tmp_path / f"{n}.arpa") for n in models},
                       text=str(tmp_path / "text.txt"), n_rounds=1)  # fmt: skip
    for name, model in models.items():
        expected = [value * np.log(10) for value in answer["scores"][name]]
        assert_allclose(model.score_samples(lines), expected, atol=1e-4)
        assert_allclose(NGram.load_arpa(tmp_path / f"{name}.arpa").score_samples(lines), expected, atol=1e-4)


def test_kenlms_way_with_the_beginning_of_sentences_is_understood(write):
    model = NGram.load_arpa(write(GOOD.replace("-99\t<s>", "0\t<s>")))  # p = 1, so that it may be scored
    assert table_of(model, [("a",)])[0, 1] == -np.inf
    assert "<s>" not in " ".join(model.sample(20, random_state=0)).split()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("\\data\\", "\\date\\", 18, "no .data. section"),
        ("ngram 2=3", "ngram 3=3", 4, "`ngram 2=COUNT`"),
        ("ngram 1=5", "ngram 1=0", 6, "counts no words"),
        ("ngram 1=5", "ngram 1=6", 12, "has 5 1-grams, .data. says 6"),
        ("ngram 1=5", "ngram 1=4", 11, "grams: is needed after 1-grams"),
        ("ngram 2=3", "ngram 2=4", 17, "has 3 2-grams, .data. says 4"),
        ("ngram 2=3", "ngram 2=2", 16, "end. is needed"),
        ("-0.9\tb", "nan\tb", 11, "'nan' is no log-probability"),
        ("-0.9\tb", "inf\tb", 11, "'inf' is no log-probability"),
        ("-0.9\tb", "0.9\tb", 11, "at most 0, got '0.9'"),
        ("a\t-0.2", "a\tx", 10, "'x' is no back-off weight"),
        ("-0.9\tb", "-0.9\tb c d", 11, "log10 p and 1 words, perhaps log10 b, are needed"),
        ("-0.7\ta </s>", "-0.7\ta </s>\t-1", 16, "log10 p and 2 words are needed"),
        ("\\2-grams:", "\\3-grams:", 13, "2-grams: is needed"),
        ("-0.4\ta b", "-0.4\ta c", 15, "'c' is not among the words"),
        ("-0.7\ta </s>", "-0.7\ta b", 16, "the 2-gram 'a b' stands twice"),
        ("-0.9\tb", "-0.9\ta", 11, "word 'a' stands twice"),
        ("-0.6\t</s>", "-0.6\tend", 7, "the words lack </s>"),
        ("\\end\\\n", "", 17, "cut short"),
    ],
)  # fmt: skip
def test_malformed_files_name_the_line(old, new, line, words, write):
    assert old in GOOD
    with pytest.raises(DataError, match=rf"model\.arpa, line {line}: .*{words}"):
        NGram.load_arpa(write(GOOD.replace(old, new)))


def test_ngrams_without_their_shorter_ones_name_the_line(write):
    trigrams = GOOD.replace("ngram 2=3", "ngram 2=3\nngram 3=1")
    trigrams = trigrams.replace("\n\\end\\", "\n\\3-grams:\n-0.1\ta b a\n\n\\end\\")
    with pytest.raises(DataError, match="line 20: the 3-gram 'a b a' without its first word is not among the 2-grams"):
        NGram.load_arpa(write(trigrams))
    with pytest.raises(DataError, match="line 20: the 3-gram 'b a b' without its last word is not among the 2-grams"):
        NGram.load_arpa(write(trigrams.replace("a b a", "b a b")))


def test_what_an_arpa_file_cannot_hold_is_refused(tmp_path):
    letters = NGram(2).fit(Corpus(["a b"], tokenizer="character"))
    with pytest.raises(ValueError, match="cannot hold the token ' '"):
        letters.save_arpa(tmp_path / "x.arpa")
    with pytest.raises(ValueError, match="an ARPA file holds probabilities"):
        NGram(2, "stupid_backoff").fit(["a b"]).save_arpa(tmp_path / "x.arpa")
    assert not list(tmp_path.iterdir())
