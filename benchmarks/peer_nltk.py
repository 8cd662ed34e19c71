"""NLTK's interpolated Kneser-Ney n-grams: fitted, then asked for the log-probability of a few tokens.

Takes one argument, JSON: paths of a training and a test text, order, number of test tokens. Prints JSON: seconds of the
fit, which only counts, seconds of the scores, in which its smoothing is computed, their sum in nats, versions.
"""

import json
import math
import sys
import time
from importlib.metadata import version
from pathlib import Path

from nltk.lm import KneserNeyInterpolated
from nltk.lm.preprocessing import pad_both_ends, padded_everygram_pipeline


def main(train, test, order, n_tokens):
    lines = [line.split() for line in Path(train).read_text().split("\n")[:-1]]
    start = time.perf_counter()
    model = KneserNeyInterpolated(order)
    model.fit(*padded_everygram_pipeline(order, lines))
    fit_seconds = time.perf_counter() - start
    new = [line.split() for line in Path(test).read_text().split("\n")[:-1]]
    start, total, scored = time.perf_counter(), 0.0, 0
    for line in new:
        padded = list(pad_both_ends(line, order))
        for t in range(order - 1, len(padded) - order + 2):
            if scored == n_tokens:
                break
            p = model.score(padded[t], padded[t - order + 1 : t])
            total += math.log(p) if p > 0 else 0.0
            scored += 1
    score_seconds = time.perf_counter() - start
    answer = {"fit_seconds": fit_seconds, "score_seconds": score_seconds, "n_scored": scored, "log_p": total}
    print(json.dumps(answer | {"n_lines": len(lines), "versions": {"nltk": version("nltk")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
