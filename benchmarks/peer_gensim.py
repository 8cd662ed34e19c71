"""gensim's skip-gram from a file of text, and its reading and writing of vectors; runs in the peers' environment.

Takes one argument, JSON. With `text`: a path, hyper-parameters, seed and where to write the vectors; prints JSON:
seconds of counting words and of training, how many words were read, versions. With `copy_names`: names of files of
vectors in a folder, and whether they are binary; reads each, writes it anew beside, and prints the vectors.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from gensim.models import KeyedVectors, Word2Vec


def train(text, out, n_components, window, n_negatives, subsample, n_epochs, learning_rate, min_count, n_threads, seed):
    start = time.perf_counter()
    model = Word2Vec(
        vector_size=n_components, window=window, negative=n_negatives, sample=subsample, alpha=learning_rate,
        min_alpha=1e-4, min_count=min_count, sg=1, hs=0, workers=n_threads, seed=seed,
    )  # fmt: skip
    model.build_vocab(corpus_file=text)
    counted = time.perf_counter()
    totals = {"total_words": model.corpus_total_words, "total_examples": model.corpus_count}
    model.train(corpus_file=text, epochs=n_epochs, **totals)
    done = time.perf_counter()
    model.wv.save_word2vec_format(out, binary=True)
    return {
        "seconds": {"counting": counted - start, "training": done - counted},
        "n_words": model.corpus_total_words,
        "n_vocabulary": len(model.wv),
    }


def copy(folder, names):
    found = {}
    for name, binary in names.items():
        vectors = KeyedVectors.load_word2vec_format(Path(folder) / name, binary=binary)
        vectors.save_word2vec_format(Path(folder) / f"{name}.gensim", binary=binary)
        found[name] = {word: vectors[word].tolist() for word in vectors.index_to_key}
    return {"vectors": found}


def main(copy_names=None, **options):
    answer = train(**options) if copy_names is None else copy(options["folder"], copy_names)
    print(json.dumps(answer | {"versions": {"gensim": version("gensim")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
