"""pyAgrum: loading, all marginals, and rows one after the other; runs in the peers' environment, one thread.

Takes one argument, JSON: paths of BIF files by name, findings by name (lists of dictionaries), a CSV of rows with holes
and how many rounds. Prints JSON: CPU seconds, marginals of the last round, versions.
"""

import csv
import json
import sys
import time
from importlib.metadata import version

import pyagrum as gum


def marginals(network, findings):
    engine = gum.LazyPropagation(network)
    engine.setNumberOfThreads(1)
    engine.setEvidence(findings)
    engine.makeInference()
    return {name: engine.posterior(name).tolist() for name in network.names()}


def timed(function, n_rounds):
    seconds = []
    for _ in range(n_rounds):
        start = time.process_time()
        found = function()
        seconds.append(time.process_time() - start)
    return seconds, found


def loop_over_rows(network, path):
    """The evidence and all conditionals of each row, as a user of pyAgrum would get them."""
    engine = gum.LazyPropagation(network)
    engine.setNumberOfThreads(1)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    start = time.process_time()
    logs = []
    for row in rows:
        engine.setEvidence({name: value for name, value in row.items() if value})
        engine.makeInference()
        logs.append(engine.evidenceProbability())
        for name, value in row.items():
            if not value:
                engine.posterior(name).tolist()
    return time.process_time() - start, logs


def main(networks, findings, rows, n_rounds):
    gum.setNumberOfThreads(1)
    answer = {"load": {}, "none": {}, "five": {}, "marginals": {}}
    for name, path in networks.items():
        answer["load"][name], network = timed(lambda path=path: gum.loadBN(path), n_rounds)
        answer["none"][name], _ = timed(lambda network=network: marginals(network, {}), n_rounds)
        answer["five"][name], found = [], []
        for given in findings[name]:
            seconds, own = timed(lambda network=network, given=given: marginals(network, given), n_rounds)
            answer["five"][name].append(min(seconds))
            found.append(own)
        answer["marginals"][name] = found
    answer["rows_seconds"], answer["rows_evidence"] = loop_over_rows(gum.loadBN(networks["alarm"]), rows)
    print(json.dumps(answer | {"versions": {"pyagrum": version("pyagrum")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
