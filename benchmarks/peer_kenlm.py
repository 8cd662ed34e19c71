"""KenLM's Python module: scores of lines under ARPA models; runs in the peers' environment.

Takes one argument, JSON: paths of ARPA files by name, of a text file, and how often to score it. Prints JSON: log10 p
of each line by model, seconds of each round, versions.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import kenlm


def main(models, text, n_rounds):
    lines = Path(text).read_text().split("\n")[:-1]
    scores, seconds, load_seconds = {}, {}, {}
    for name, path in models.items():
        start = time.perf_counter()
        model = kenlm.Model(path)
        load_seconds[name] = time.perf_counter() - start
        seconds[name] = []
        for _ in range(n_rounds):
            start = time.perf_counter()
            scores[name] = [model.score(line) for line in lines]
            seconds[name].append(time.perf_counter() - start)
    answer = {"scores": scores, "seconds": seconds, "load_seconds": load_seconds}
    print(json.dumps(answer | {"versions": {"kenlm": version("kenlm")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
