"""What the studio works on: a table or text, how its columns are read, fitted models, and the folder of all this.

The folder is `.likely-studio` below the one that the user gave. Every file in it is written whole or not at all, so
whatever happens to a process, the next one finds its jobs and models.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likely.cli.text import is_text_model
from likely.datasets import TextDataset
from likely.schema import KINDS
from likely.storage.files import write_atomically, write_text
from likely.studio.requests import BadRequest
from likely.studio.source import Source, TextSource, open_data

FOLDER = ".likely-studio"
MOST_KEPT = 100  # files of models that were loaded from the page
_LOADED_MODELS = 3  # held in memory at a time
_KEPT = re.compile(r"\d{4}-[A-Za-z0-9-]+")
CHANGEABLE = tuple(kind for kind in KINDS if kind != "datetime")


@dataclass(frozen=True)
class Fitted:
    """A model that can be used, on the disk."""

    number: str
    name: str
    path: Path
    about: str


class Workspace:
    """The studio's memory.

    Parameters
    ----------
    folder : that the user gave; nothing outside of it is written, and no request can name a file outside of it.
    data : name or path of a data set; None where there are models only.
    models : files of models to begin with.
    """

    def __init__(self, folder: Path, data: str | None, models: list[Path] | None = None):
        self.folder, self.data = folder.resolve(), data
        self.home = self.folder / FOLDER
        self.given = models or []
        self.lock = threading.RLock()
        self._loaded: OrderedDict[Path, Any] = OrderedDict()
        self._source: Source | None = None
        self.text: TextSource | None = None
        saved = self._read_session()
        self.kinds: dict[str, Any] = saved.get("kinds", {})
        self.drop: list[str] = saved.get("drop", [])
        self.used: str = saved.get("used", "")
        if data is not None:
            found = open_data(data, self.kinds, self.drop)
            if isinstance(found, TextDataset):
                self.text = TextSource(found)
            else:
                self._source = Source(found)

    # ------------------------------------------------------------------ table
    @property
    def source(self) -> Source | None:
        """The table; None where there is none, or text instead."""
        return self._source

    @property
    def title(self) -> str:
        """What the pages call the data."""
        shown = self._source or self.text
        return shown.dataset.name if shown is not None else self.given[0].name if self.given else "studio"

    @property
    def is_file(self) -> bool:
        """Whether it is the user's own table, whose columns can be read otherwise."""
        return (
            self._source is not None
            and not isinstance(self._source.rows, np.ndarray)
            and Path(self.data or "").is_file()
        )

    def reading(self) -> dict[str, Any]:
        """What `likely.datasets.load` is told beyond the name."""
        return ({"kinds": self.kinds} if self.kinds else {}) | ({"drop": self.drop} if self.drop else {})

    def read_column_as(self, name: str, kind: str) -> None:
        """Read a column otherwise from now on: as a kind, or not at all ("identifier"); refused if it cannot be."""
        if not self.is_file:
            raise BadRequest("only the columns of a table in a file can be read otherwise.", 409)
        kinds = {key: value for key, value in self.kinds.items() if key != name}
        drop = [other for other in self.drop if other != name]
        if kind == "identifier":
            drop.append(name)
        elif kind != "as found":
            kinds[name] = kind
        with self.lock:
            try:
                self._source = Source(open_data(self.data or "", kinds, drop))  # type: ignore[arg-type]  # a table
            except (ValueError, TypeError) as error:
                raise BadRequest(str(error), 409) from None
            self.kinds, self.drop = kinds, drop
            self._write_session()

    # ----------------------------------------------------------------- models
    def models(self) -> list[Fitted]:
        """Models that can be used: of the command line, loaded from the page, and of jobs, the newest job first."""
        found = self.files()
        for job in sorted(self.jobs_folder.glob("*/board.json"), reverse=True):
            for entry in read_json(job).get("entries", []):
                path = job.parent / str(entry.get("file") or "")
                if entry.get("file") and path.is_file():
                    number = f"{job.parent.name}-{path.stem}"
                    found.append(Fitted(number, str(entry["name"]), path, f"comparison {job.parent.name}"))
        return found

    def files(self) -> list[Fitted]:
        """Models that no comparison made: those of the command line, then those loaded from the page."""
        given = [Fitted(f"file-{i}", path.name, path, "given at the start") for i, path in enumerate(self.given)]
        kept = sorted(path for path in self.models_folder.glob("*.likely") if _KEPT.fullmatch(path.stem))
        return given + [Fitted(f"loaded-{path.stem[:4]}", path.name[5:], path, "loaded") for path in kept]

    def keep(self, name: str, content: bytes) -> Fitted:
        """Keep a model's file that was loaded from the page, if it is one."""
        from likely.contract.estimator import load as load_model

        plain = re.sub(r"[^A-Za-z0-9]+", "-", name.removesuffix(".likely")).strip("-")[:40] or "model"
        with tempfile.NamedTemporaryFile(suffix=".likely") as trial:
            trial.write(content)
            trial.flush()
            try:
                load_model(trial.name)
            except (ValueError, TypeError) as error:
                raise BadRequest(str(error).replace(trial.name, f"{plain}.likely")) from None
        with self.lock:
            kept = [int(path.stem[:4]) for path in self.models_folder.glob("*.likely") if _KEPT.fullmatch(path.stem)]
            if len(kept) >= MOST_KEPT:
                raise BadRequest(f"{MOST_KEPT} models are kept already: remove some from {self.models_folder}.", 409)
            number = f"{max(kept, default=0) + 1:04d}"
            self.models_folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.models_folder / f"{number}-{plain}.likely", content)
        return self.find(f"loaded-{number}")

    def find(self, number: str) -> Fitted:
        """A model by its number."""
        for fitted in self.models():
            if fitted.number == number:
                return fitted
        raise BadRequest("there is no such model.", 404)

    def use(self, number: str) -> None:
        """Take a model for all views."""
        self.load(self.find(number))
        with self.lock:
            self.used = number
            self._write_session()

    def model(self) -> Any:
        """The model in use, ready; None where there is none, or its file is gone."""
        fitted = self.current()
        return None if fitted is None else self.load(fitted)

    def current(self) -> Fitted | None:
        """The model in use: the one that was taken, or the first of the command line."""
        found = self.models()
        chosen = [fitted for fitted in found if fitted.number == self.used]
        return (chosen or [fitted for fitted in found if fitted.number == "file-0"] or [None])[0]  # type: ignore[list-item]

    def mismatch(self) -> str:
        """Why the model in use cannot judge the table as it is read now; empty where it can."""
        model = self.model()
        if model is None or self.data is None:
            return ""
        if is_text_model(model) != (self.text is not None):
            return f"The data are {'text' if self.text else 'a table'}, and the model is of something else."
        if self._source is None:
            return ""
        if not hasattr(model, "schema_"):
            return f"{type(model).__name__} is no model of the columns of a table."
        theirs = [(column.name, column.kind) for column in model.schema_.columns]
        # Models of numbers alone read every column as one, whatever the table says.
        is_real = all(kind == "real" for _, kind in theirs)
        mine = [(column.name, "real" if is_real else column.kind) for column in self._source.schema.columns]
        if mine == theirs:
            return ""
        other = next((name for name, _ in {*mine} ^ {*theirs}), "a column")
        return f"It was fitted when {other!r} was read otherwise: compare again, or choose another model."

    def load(self, fitted: Fitted) -> Any:
        """The model itself; a few stay in memory."""
        from likely.contract.estimator import load as load_model

        with self.lock:
            if fitted.path not in self._loaded:
                self._loaded[fitted.path] = load_model(fitted.path)
                while len(self._loaded) > _LOADED_MODELS:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(fitted.path)
            return self._loaded[fitted.path]

    # ------------------------------------------------------------------- disk
    @property
    def jobs_folder(self) -> Path:
        return self.home / "jobs"

    @property
    def models_folder(self) -> Path:
        return self.home / "models"

    def _read_session(self) -> dict[str, Any]:
        """What an earlier studio of the same data remembered."""
        saved = read_json(self.home / "session.json")
        return saved if saved.get("data") == self.data else {}

    def _write_session(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        about = {"data": self.data, "kinds": self.kinds, "drop": self.drop, "used": self.used}
        write_text(self.home / "session.json", json.dumps(about))


def read_json(path: Path) -> dict[str, Any]:
    """A file of ours; what is not there, or not whole, says nothing."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
