"""SDV's synthesizers at their defaults; runs in the peers' environment.

Takes one argument, JSON: paths of training rows and of where drawn ones go (.csv), the synthesizer's name and
seed. Prints JSON: seconds of processor time of the fit, and versions.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch
from sdv.metadata import Metadata
from sdv.single_table import CTGANSynthesizer, GaussianCopulaSynthesizer, TVAESynthesizer

SYNTHESIZERS = {"GaussianCopula": GaussianCopulaSynthesizer, "CTGAN": CTGANSynthesizer, "TVAE": TVAESynthesizer}


def main(train: str, drawn: str, peer: str, seed: int) -> dict:
    """Fit, draw as many rows, and write them."""
    np.random.seed(seed)
    torch.manual_seed(seed)
    rows = pd.read_csv(train)
    options = {} if peer == "GaussianCopula" else {"enable_gpu": False}
    tables = {"rows": rows}  # SDV 2 takes single tables by a name, too.
    synthesizer = SYNTHESIZERS[peer](Metadata.detect_from_dataframes(tables), **options)
    start = time.process_time()
    synthesizer.fit(tables)
    seconds = time.process_time() - start
    synthesizer.sample(len(rows))["rows"].to_csv(drawn, index=False)
    return {"seconds": seconds, "versions": {name: version(name) for name in ("sdv", "torch")}}


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
