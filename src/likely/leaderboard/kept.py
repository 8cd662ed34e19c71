"""What a comparison has finished, in a folder: one that is broken off goes on from there.

A folder holds one place for each comparison, named after the data, the seed and the version; so other data or settings
start anew, beside it. Of a model there are up to three files, each whole or not there: its checkpoint while it learns,
the fitted model, and what was measured of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from likely.contract.estimator import load
from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint
from likely.datasets import TextDataset
from likely.leaderboard.board import Entry
from likely.schema import Measure
from likely.storage import registry
from likely.storage.files import FileError, read_arrays, remove_remains, write_arrays
from likely.storage.modules import save_value
from likely.training import Checkpoint

_ARRAYS = ("values", "lower", "upper", "replicates", "dimensions")  # of an evidence
_SECONDS_BETWEEN_CHECKPOINTS = 20.0  # so much of a fit is lost at most
_PARTS = ("train", "valid", "test")


class Kept:
    """The finished work of one comparison.

    Parameters
    ----------
    folder : where it is; made when there is something to keep. None keeps nothing.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.used: list[Path] = []

    def fitted(self, name: str, model: Any) -> Entry | None:
        """The entry of a model that was fitted, with its evidence if it was measured as well; None if it was not."""
        if not self._can_keep(model):
            return None
        path = self._path(name, model)
        try:
            arrays, about = read_arrays(path.with_suffix(".entry"))
            fitted = load(path.with_suffix(".likely"))
        except FileError:  # It is not there, or of no use.
            return None
        numbers = {key: about[key] for key in ("fit_seconds", "score_seconds", "score")}
        return Entry(name, _evidence(arrays, about), fitted, n_parameters=fitted.n_parameters_, **numbers)

    def keep(self, entry: Entry, model: Any) -> None:
        """Keep a fitted model and what is known of it so far; `model` is the one that was to be fitted."""
        if not self._can_keep(model):
            return
        path = self._path(entry.name, model)
        try:
            self._write(path, entry)
        except (FileError, OSError) as error:
            # The model is fitted all the same, and a comparison that goes on loses less than one that ends.
            said = f"{entry.name} is finished, but cannot be kept for a later run: {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)

    def _write(self, path: Path, entry: Entry) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.with_suffix(".likely").exists() or entry.evidence is None:
            entry.model.save(path.with_suffix(".likely"))
        numbers = {key: getattr(entry, key) for key in ("fit_seconds", "score_seconds", "score")}
        arrays, about = ({}, {}) if entry.evidence is None else _described(entry.evidence)
        write_arrays(path.with_suffix(".entry"), arrays, numbers | about)
        _remove_checkpoints(path)

    def resumption(self, name: str, model: Any) -> dict[str, Any]:
        """What `fit` takes so that it saves its state, and goes on from one that was saved."""
        # A predictor around a model is trained step by step where the model is.
        inner = getattr(model, "model", model) or getattr(model, "_unfitted", lambda: model)()
        if not self._can_keep(model) or not all(getattr(one, "_resumable", False) for one in (model, inner)):
            return {}
        path = self._path(name, model).with_suffix(".checkpoint")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:  # `keep` says so, once there is something to keep
            return {}
        saved = Checkpoint(path, every_seconds=_SECONDS_BETWEEN_CHECKPOINTS)
        return {"checkpoint": saved} | ({"resume": path} if path.is_file() else {})

    def expect(self, models: dict[str, Any]) -> None:
        """That copies of this in other processes will keep work of these models, which `discard` is to remove."""
        for name, model in models.items():
            if self._can_keep(model):
                self._path(name, model)

    def discard(self) -> None:
        """Remove what this comparison kept, and folders that are then empty."""
        for path in self.used:
            _remove_checkpoints(path)
            for suffix in (".likely", ".entry", ".checkpoint"):
                path.with_suffix(suffix).unlink(missing_ok=True)
                remove_remains(path.with_suffix(suffix))  # of a run that was killed while it wrote
        if self.folder is not None:
            _remove_if_empty(self.folder)
            _remove_if_empty(self.folder.parent)

    def forget(self) -> None:
        """Remove all that earlier comparisons like this one kept."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _can_keep(self, model: Any) -> bool:
        # A file names a class of this library, and those inside another are checked when it is read.
        return self.folder is not None and registry.is_ours(model)

    def _path(self, name: str, model: Any) -> Path:
        assert self.folder is not None
        settings = {key: save_value(key, value) for key, value in model.get_params(deep=False).items()}
        digest = _digest([name, type(model).__name__, json.dumps(settings, sort_keys=True)])
        # A dot in it would be taken for the start of a suffix.
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)[:40]}-{digest}.entry"
        if path not in self.used:
            self.used.append(path)
        return path


def place_for(folder: str | os.PathLike[str] | None, data: Any, test: Any, about: dict[str, Any]) -> Kept:
    """Where the work of a comparison of these data goes; `about` is all else that its results depend on."""
    if folder is None:
        return Kept(None)
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise FileError(f"cannot keep work in {path}: it is a file. Remove it, or choose another folder.")
    from likely import __version__

    texts = [__version__, json.dumps(about, sort_keys=True, default=str), *_contents(data, test, about)]
    return Kept(path / _digest(texts))


def _contents(data: Any, test: Any, about: dict[str, Any]) -> Iterator[str]:
    """Texts that are equal for equal data."""
    if isinstance(data, TextDataset):
        vocabulary = data.train.vocabulary()
        yield _digest(vocabulary.tokens)
        for corpus in (data.train, data.valid, test):
            yield corpus.encode(vocabulary).fingerprint()
        return
    yield json.dumps(data.schema.to_json(), sort_keys=True)
    for part in _PARTS:
        rows = np.ascontiguousarray(data.schema.encode(getattr(data, part)))
        yield blake2b(rows.tobytes(), digest_size=16).hexdigest()
        labels = (data.labels or {}).get(part) if about["target"] is not None else None
        yield _digest([repr(label) for label in np.asarray(labels).tolist()] if labels is not None else [])


def _described(evidence: Evidence) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """An evidence as arrays and a description."""
    arrays = {name: np.asarray(getattr(evidence, name)) for name in _ARRAYS if getattr(evidence, name) is not None}
    about: dict[str, Any] = {"method": evidence.method, "reason": evidence.reason}
    measure: Any = evidence.measure
    about["measure"] = [str(measure), list(measure.names), list(measure.is_density)]
    if isinstance(evidence.fingerprint, Fingerprint):
        arrays["fingerprint"] = evidence.fingerprint.rows
        about["fingerprint"] = evidence.fingerprint.about
    else:
        about["fingerprint"] = evidence.fingerprint
    return arrays, {"evidence": about}


def _evidence(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Evidence | None:
    """The evidence that `_described` described; None where there was none yet."""
    if "evidence" not in about:
        return None
    words = about["evidence"]
    mark = Fingerprint(arrays["fingerprint"], words["fingerprint"]) if "fingerprint" in arrays else words["fingerprint"]
    known = {field.name: arrays.get(field.name) for field in fields(Evidence) if field.name in _ARRAYS}
    measure = Measure(*words["measure"])
    return Evidence(**known, method=words["method"], reason=words["reason"], measure=measure, fingerprint=mark)  # type: ignore[arg-type]


def _remove_checkpoints(path: Path) -> None:
    """A model's own, and the numbered ones beside it of a model that is learned in stages."""
    for checkpoint in path.parent.glob(f"{path.stem}.checkpoint*"):
        checkpoint.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _digest(texts: Any) -> str:
    digest = blake2b(digest_size=8)
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()
