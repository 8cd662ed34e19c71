"""The data of the benchmarks, whole or a small part of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

import likely

# where the data lie if LIKELY_DATA does not say: beside the repository
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def load(name: str, *, small: bool = False, n_small: int = 500, **options) -> likely.datasets.Dataset:
    """A data set by its name; of a small one the first `n_small` rows of each part."""
    if _BESIDE.is_dir():
        os.environ.setdefault("LIKELY_DATA", str(_BESIDE))
    dataset = likely.datasets.load(name, **options)
    if not small:
        return dataset
    parts = {part: getattr(dataset, part)[:n_small] for part in ("train", "valid", "test")}
    return replace(dataset, **parts)


def folder() -> Path:
    """The folder of data files: that of LIKELY_DATA, or the one beside the repository."""
    return Path(os.environ.get("LIKELY_DATA") or _BESIDE)


def gray_mnist(*, small: bool) -> tuple[np.ndarray, np.ndarray]:
    """20,000 training rows and the 10,000 test rows of MNIST in [0, 1], without the pixels that never change."""
    dataset = load("mnist", small=small, binarize=None)
    train = np.asarray(dataset.train[:20_000])
    varies = train.std(axis=0) > 0
    return np.ascontiguousarray(train[:, varies]), np.ascontiguousarray(dataset.test[:, varies])


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in units of the training rows' mean and standard deviation, column by column."""
    mean, deviation = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    return tuple(((rows - mean) / deviation).astype(np.float32) for rows in (train, test))


def housing(*, small: bool) -> likely.datasets.Dataset:
    """California districts: nine numbers with holes and a cap, and a category; split 80 / 10 / 10 %."""
    if _BESIDE.is_dir():
        os.environ.setdefault("LIKELY_DATA", str(_BESIDE))
    folder = os.environ.get("LIKELY_DATA")
    if folder is None:
        raise ValueError("housing is read from the folder that LIKELY_DATA names, which is not set.")
    return load(str(Path(folder) / "tabular" / "housing.csv.gz"), small=small, n_small=150)


def wikitext(small: bool) -> tuple[likely.Corpus, likely.Corpus, likely.Corpus]:
    """Training, validation and test text of WikiText-2; a small one is made up."""
    if small:
        lines = [f"the {a} {b} the {c}" for a in "abc" for b in "de" for c in "fgh"]
        return likely.Corpus(lines[::2]), likely.Corpus(lines[1:4]), likely.Corpus(lines[4:9])
    dataset = load("wikitext2")
    return dataset.train, dataset.valid, dataset.test


def anomaly_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows, and which of them are odd, of the sets of ADBench that are at hand."""
    folder = Path(os.environ.get("LIKELY_DATA", _BESIDE)) / "anomaly"
    paths = sorted(folder.glob("*.npz"), key=lambda path: path.stem.lower())
    if not paths:
        raise FileNotFoundError(f"there are no anomaly sets, .npz with X and y, in {folder}: set LIKELY_DATA.")
    out = {}
    for path in paths:
        with np.load(path) as arrays:
            out[path.stem] = np.asarray(arrays["X"], np.float64), np.asarray(arrays["y"])
    return out
