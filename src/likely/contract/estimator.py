"""The core of every estimator: declared settings, one seed with a stream for each use, and files.

Four contracts stand on it: `Model`, p(x) of rows; `Predictor`, p(y | x); `SequenceModel`, p of text; and
`SequencePredictor`, p(target | input) of sequences. Their public methods are final; an estimator writes hooks.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from types import MethodType
from typing import Any, ClassVar

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely import distributed
from likely.contract.notebook import show_estimator
from likely.contract.settings import Declared, RandomState, seed_of
from likely.runtime import use_compilation_cache
from likely.storage import registry
from likely.storage.files import FileError, read_arrays, write_arrays

use_compilation_cache()

# Each use of randomness has its own stream, so that asking for samples never changes an evidence. A stream's number is
# its place: new ones are added at the end, or every seed would give other results.
STREAMS = ("fit", "evidence", "sample", "condition", "transform", "denoise", "predict", "surprise")

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class FitRun:
    """What a fit is given besides rows and randomness."""

    valid: Any = None  # validation rows, as the hook gets its own
    checkpoint: Any = None
    resume: Any = None
    labels: Any = None  # `y` as it was given, of models of p(x) that learn from labels too
    table: Any = None  # X as it was given, of predictors that hand it on to a model,
    valid_table: Any = None  # and (X, y) of the validation rows
    weight: np.ndarray | None = None  # (n,) of the rows, all above 0; None where each counts once


class offered:
    """A method that an estimator has only with a hook; asking without says why, and which others have it."""

    def __init__(self, hook: str):
        self.hook = hook

    def __call__(self, function: Any) -> offered:
        self.function, self.verb, self.__doc__ = function, function.__name__, function.__doc__
        return self

    def __get__(self, model: Estimator | None, owner: type[Estimator]) -> Any:
        if model is None:
            return self.function
        if hasattr(owner, self.hook):
            return MethodType(self.function, model)
        default = "it means nothing for this model"
        why = owner._why_not.get(self.verb, (self.hook == "_evidence" and owner._no_evidence) or default).rstrip(".")
        others = ", ".join(registry.models_that_can(self.verb, owner.__name__))
        raise AttributeError(f"{owner.__name__} has no {self.verb}: {why}. Models that have it: {others}.")


class Learned:
    """What `fit` sets. Apart from `Estimator`, where an annotation declares a setting."""

    params_: Any
    seed_: int


class Estimator(Declared, Learned, metaclass=abc.ABCMeta):
    """Base of all estimators.

    Fitted attributes
    -----------------
    params_ : what was learned. history_ : learning curves, a dictionary of lists. seed_ : the seed of `random_state`.
    """

    _: KW_ONLY
    random_state: RandomState = None

    _resumable: ClassVar[bool] = False  # its fit honours checkpoint and resume
    _weighted: ClassVar[bool] = False  # its fit honours the weights of rows
    _no_evidence: ClassVar[str] = ""  # why there is no likelihood and what to ask instead, where there is none
    _why_not: ClassVar[dict[str, str]] = {}  # why a method is not offered, by its name

    @abc.abstractmethod
    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        """The fitted estimator as named arrays and a JSON description."""

    @classmethod
    @abc.abstractmethod
    def _from_file(cls, arrays: Arrays, meta: dict[str, Any]) -> Any:
        """The estimator that `_to_file` described."""

    @classmethod
    def _suited(cls, n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
        """Settings for a first look at such a table within a minute on two cores; the defaults where there is no rule.

        Parameters
        ----------
        n_rows, n_columns : of the training rows.
        kinds : of their columns.
        """
        return {}

    def _agree(self, data: Callable[[], dict[str, Any]]) -> None:
        """Refuse a fit for which the processes of a run were given different things, before its work begins."""
        if distributed.n_processes() == 1:
            return
        settings = {name: value for name, value in self.get_params(deep=False).items() if name != "random_state"}
        plain = {name: value for name, value in settings.items() if _is_plain(value)}
        distributed.check_agreed({**data(), "settings": [type(self).__name__, plain], "random_state": self.seed_})

    def save(self, path: Any) -> None:
        """Write what was fitted into one file, arrays and JSON, no code; `likely.load` reads it.

        Of several processes (`likely.distributed`) the first one writes.
        """
        check_is_fitted(self)
        if distributed.is_first():
            write_arrays(path, *self._to_file())

    def _html_repr(self) -> str:  # what scikit-learn shows in notebooks, where its `display` is "diagram"
        return show_estimator(self)

    def _key(self, stream: str, random_state: Any = None) -> jax.Array:
        seed = self.seed_ if random_state is None else seed_of(random_state)
        return jax.random.fold_in(jax.random.key(seed), STREAMS.index(stream))

    def _check_resumable(self, checkpoint: Any, resume: Any) -> None:
        if not self._resumable and (checkpoint is not None or resume is not None):
            raise ValueError(f"{type(self).__name__} is not trained step by step and has no checkpoints.")


# What comes of a description that fits together and is no model's: missing names, other types, sizes without end.
_FOREIGN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError, RecursionError)


def load(path: Any) -> Any:
    """The estimator that `save` wrote.

    Raises
    ------
    FileError : the file is absent, truncated, altered, not likely's, or names a model that this version lacks.
    """
    arrays, meta = read_arrays(path)
    try:
        return from_file(arrays, meta)
    except FileError:
        raise
    except _FOREIGN as error:
        raise FileError(f"{path} does not describe a model of this version of likely: {error}") from error


def suited(name: str, n_rows: int, n_columns: int, kinds: Collection[str]) -> Any:
    """A registered estimator with the settings that it takes for such a table."""
    cls = registry.model_class(name)
    return cls(**cls._suited(n_rows, n_columns, set(kinds)))


def check_settings(estimator: Estimator, checkpoint: Any = None) -> None:
    """Refuse wrong settings, and checkpoints of what has none, before data are read."""
    estimator._validate_params()
    estimator._check_resumable(checkpoint, None)


def to_file(estimator: Estimator) -> tuple[Arrays, dict[str, Any]]:
    """A fitted estimator as named arrays and a JSON description, to be written, or kept inside another's."""
    return estimator._to_file()


def from_file(arrays: Arrays, meta: dict[str, Any]) -> Any:
    """The estimator that `to_file` described, of a class of this library."""
    return registry.model_class(meta["class"])._from_file(arrays, meta)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def check_count(n: Any) -> None:
    """Refuse a number of rows to draw that is no positive whole number."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"the number of rows to draw must be a positive integer, got {n!r}.")


def _is_plain(value: Any) -> bool:
    """Whether a setting reads the same on every machine; of objects only what they hold does."""
    if isinstance(value, tuple | list):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)
