"""debd, the binary density estimation benchmark: text files of comma-separated zeros and ones in three parts.

Lowd and Davis (2010), Van Haaren and Davis (2012).
"""

from __future__ import annotations

import difflib

from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError
from likely.datasets.folder import data_folder, find
from likely.datasets.formats.amat import read_binary_amat
from likely.schema import Schema

USUAL = ("accidents", "dna", "jester", "mushrooms", "nltcs", "plants")


def debd_files(name: str) -> tuple[str, ...]:
    """The files of one of the data sets, relative to LIKELY_DATA."""
    return tuple(f"debd/{name}.{part}.data" for part in ("train", "valid", "test"))


def debd_names() -> tuple[str, ...]:
    """Those in the folder; the usual ones when there are none."""
    return _found() or USUAL


def load_debd(name: str) -> Dataset:
    """One of the data sets, such as "nltcs": binary columns, no labels."""
    found = _found()
    if found and name not in found:
        close = difflib.get_close_matches(name, found, n=1)
        hint = f" Did you mean 'debd/{close[0]}'?" if close else ""
        raise DataError(f"unknown data set 'debd/{name}'.{hint} Here are: {', '.join(f'debd/{n}' for n in found)}.")
    paths = [find(file, f"debd/{name}") for file in debd_files(name)]
    train = read_binary_amat(paths[0], ",")
    valid, test = (read_binary_amat(path, ",", n_columns=train.shape[1]) for path in paths[1:])
    return Dataset(train, valid, test, Schema.binary(train.shape[1]), f"debd/{name}")


def _found() -> tuple[str, ...]:
    folder = data_folder()
    if folder is None:
        return ()
    return tuple(sorted({path.name.partition(".")[0] for path in folder.glob("debd/*.train.data*")}))
