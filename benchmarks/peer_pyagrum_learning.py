"""pyAgrum: greedy hill climbing over BDeu; runs in the peers' environment, one thread.

Takes one argument, JSON: the path of the network whose states the columns have, paths of CSV tables, and how many rounds.
Prints JSON: CPU seconds of each table's fastest round, the arcs, versions.
"""  # noqa: E501

import json
import sys
import time
from importlib.metadata import version

import pyagrum as gum


def learned(network, path):
    learner = gum.BNLearner(path, network)
    learner.setNumberOfThreads(1)
    learner.useNoPrior()
    learner.useScoreBDeu()
    learner.useGreedyHillClimbing()
    start = time.process_time()
    graph = learner.learnDAG()
    seconds = time.process_time() - start
    return seconds, [[learner.nameFromId(a), learner.nameFromId(b)] for a, b in graph.arcs()]


def main(network, tables, n_rounds):
    gum.setNumberOfThreads(1)
    truth, answer = gum.loadBN(network), []
    for path in tables:
        rounds = [learned(truth, path) for _ in range(n_rounds)]
        answer.append({"seconds": min(seconds for seconds, _ in rounds), "arcs": rounds[0][1]})
    print(json.dumps({"tables": answer, "versions": {"pyagrum": version("pyagrum")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
