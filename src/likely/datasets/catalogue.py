"""The data sets by name, and `load`, which knows them and the user's own files."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError
from likely.datasets.folder import is_available
from likely.datasets.formats.user_files import SUFFIXES, format_of, load_path
from likely.datasets.named.adult_and_wine import ADULT_FILES, WINE_FILES, load_adult, load_wine
from likely.datasets.named.debd import debd_files, debd_names, load_debd
from likely.datasets.named.digits import load_digits, load_digits_gray
from likely.datasets.named.mnist import BINARIZED_FILES, MNIST_FILES, load_binarized_mnist, load_mnist
from likely.datasets.named.shapes import load_shapes
from likely.datasets.named.silhouettes import SILHOUETTES_FILES, load_silhouettes
from likely.datasets.named.wikitext import WIKITEXT2_FILES, load_wikitext2
from likely.datasets.text.text_dataset import TextDataset, is_text, load_text


@dataclass(frozen=True)
class DatasetInfo:
    """A data set that `load` knows: its name, one line on it, and whether its files are there now."""

    name: str
    description: str
    available: bool


@dataclass(frozen=True)
class _Entry:
    description: str
    load: Callable[..., Dataset | TextDataset]
    files: tuple[str, ...] = ()


_ENTRIES = {
    "digits": _Entry("scikit-learn's handwritten digits, 8×8 binary pixels, built in", load_digits),
    "digits-gray": _Entry("the same digits with real grey values in [0, 1], built in", load_digits_gray),
    "shapes": _Entry(
        "squares, ellipses and triangles of known size, angle and place, 16×16 binary, built in", load_shapes
    ),
    "mnist": _Entry("MNIST digits, 28×28 pixels, binarised at random, at a threshold or real", load_mnist, MNIST_FILES),
    "binarized-mnist": _Entry(
        "MNIST digits, 28×28 pixels, the fixed binarisation", load_binarized_mnist, BINARIZED_FILES
    ),
    "silhouettes": _Entry("Caltech-101 silhouettes, 28×28 binary pixels", load_silhouettes, SILHOUETTES_FILES),
    "adult": _Entry("census records, 6 real and 9 categorical columns with holes", load_adult, ADULT_FILES),
    "wine": _Entry("red wine, 12 columns of rounded numbers", load_wine, WINE_FILES),
    "wikitext2": _Entry("WikiText-2, 2.1 million words of articles, rare ones <unk>", load_wikitext2, WIKITEXT2_FILES),
}


def names() -> tuple[DatasetInfo, ...]:
    """The data sets that `load` knows by name, built-in ones first.

    Examples
    --------
    >>> [info.name for info in names() if info.available][:2]
    ['digits', 'digits-gray']
    """
    return tuple(DatasetInfo(name, entry.description, is_available(entry.files)) for name, entry in _entries().items())


def load(name: str | os.PathLike[str], **options: Any) -> Any:
    """Load a data set by its name, or a file or folder by its path.

    Parameters
    ----------
    name : one of `names()`, such as "digits" or "debd/nltcs"; or a path to a table (.csv, .tsv, .data, .dat), .parquet,
        .npy, .npz, IDX or .amat file (CSV, IDX and .amat also as .gz), or to a folder with files for train, test and
        perhaps valid; or a .txt or .tokens file of text (also as .gz), a sentence a line. Names come first: write
        "./digits" for a folder of that name.
    **options : for `mnist`: `binarize` ("stochastic", a threshold such as 0.5, or None for real pixels), `dequantize`,
        `seed`; for `digits-gray`: `dequantize`, `seed`; for `adult` and `wine`: `seed` of the split. For a path:

        - `kinds`: kinds of columns that you know better, {name or position: kind};
        - `image_shape`: (height, width) if a row is a picture;
        - of a CSV file, where looking at it is not enough: `header` (whether line 1 holds names), `separator`,
          `decimal` ("." or ","), `encoding` (such as "cp1252"), `dates` ("day" or "month", whichever comes first);
        - `missing`: further cells that are unobserved, words or numbers, such as ["refused", -999]; `drop`: names of
          columns to leave out;
        - `binarize`: as for `mnist`, for pictures of bytes 0..255, which otherwise become real pixels in [0, 1];
        - `seed` of the shuffle; `shuffle=False` takes the parts in order, and leaves a .npy file on the disk;
        - `tokenizer` of text: "whitespace", "character" or a function.

    Returns
    -------
    Dataset, or for text TextDataset, which has three corpora
        A single file is split 80 / 10 / 10 %; parts that are there are used.

    Raises
    ------
    DataError
        For data that are not there (then also a `FileNotFoundError`) or damaged: where, and what to do.

    Examples
    --------
    >>> data = load("digits")
    >>> data
    Dataset('digits': 1,000 / 297 / 500 rows, 64 binary columns, pictures 8×8)
    >>> f"{data.train.mean():.3f} of the pixels are on"
    '0.323 of the pixels are on'
    """
    if isinstance(name, str):
        entry = _entries().get(name)
        if entry is None and name.startswith("debd/"):
            entry = _Entry("", partial(load_debd, name.removeprefix("debd/")))
        if entry is not None:
            _check_options(name, entry.load, options)
            return entry.load(**options)
        if format_of(Path(name)) is None and not is_text(Path(name)) and not Path(name).expanduser().exists():
            raise _unknown(name)
    read = load_text if is_text(Path(name)) else load_path
    _check_options(str(name), read, options)
    return read(Path(name).expanduser(), **options)


def _entries() -> dict[str, _Entry]:
    debd = {
        f"debd/{name}": _Entry("binary density estimation benchmark", partial(load_debd, name), debd_files(name))
        for name in debd_names()
    }
    return _ENTRIES | debd


def _check_options(name: str, loader: Callable[..., Any], options: dict[str, Any]) -> None:
    known = [p.name for p in inspect.signature(loader).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise TypeError(f"data set {name!r} has no option {option!r}: {has}.")


def _unknown(name: str) -> DataError:
    known = list(_entries())
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return DataError(
        f"unknown data set {name!r}, and no such file.{hint} Known are {', '.join(known)}; "
        f"and files that end in {SUFFIXES}; text in .txt, .tokens (also .gz)."
    )
