"""Tasks on sequences, generated: strings to reverse, dates to normalise, bits to copy."""

from __future__ import annotations

import datetime
import string

import numpy as np

_FORMATS = ("{day} {name} {year}", "{name} {day}, {year}", "{weekday} {day} {short} {year}", "{day}.{month}.{year}")


def reversal_task(
    n: int, *, lengths: tuple[int, int] = (1, 12), letters: str = string.ascii_lowercase, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Random strings, and each from its end to its beginning.

    >>> reversal_task(2, lengths=(3, 5), seed=0)
    (['add', 'hjtv'], ['dda', 'vtjh'])
    """
    random = np.random.RandomState(seed)
    sizes = random.randint(lengths[0], lengths[1] + 1, n)
    texts = ["".join(letters[i] for i in random.randint(len(letters), size=size)) for size in sizes]
    return texts, [text[::-1] for text in texts]


def date_task(n: int, *, years: tuple[int, int] = (1900, 2099), seed: int = 0) -> tuple[list[str], list[str]]:
    """Random days, written as people do in four ways, and as ISO 8601 does.

    >>> date_task(2, seed=0)
    (['November 29, 2086', '14 April 2019'], ['2086-11-29', '2019-04-14'])
    """
    random = np.random.RandomState(seed)
    first, last = datetime.date(years[0], 1, 1).toordinal(), datetime.date(years[1], 12, 31).toordinal()
    days = [datetime.date.fromordinal(int(day)) for day in random.randint(first, last + 1, n)]
    return [_written(day, _FORMATS[way]) for day, way in zip(days, random.randint(4, size=n), strict=True)], [
        day.isoformat() for day in days
    ]


def copy_task(
    n: int, *, lengths: tuple[int, int] = (1, 20), n_bits: int = 8, seed: int = 0
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Random sequences (t, n_bits) of bit vectors, to be repeated.

    >>> X, y = copy_task(3, lengths=(2, 4), n_bits=5, seed=0)
    >>> [x.shape for x in X], all((a == b).all() for a, b in zip(X, y))
    ([(2, 5), (3, 5), (2, 5)], True)
    """
    random = np.random.RandomState(seed)
    sizes = random.randint(lengths[0], lengths[1] + 1, n)
    sequences = [random.randint(0, 2, (size, n_bits)).astype(np.int8) for size in sizes]
    return sequences, [sequence.copy() for sequence in sequences]


def _written(day: datetime.date, form: str) -> str:
    # This is done by hand rather than by strftime, whose names depend on the locale.
    name = _MONTHS[day.month - 1]
    return form.format(
        day=day.day,
        month=day.month,
        year=day.year,
        name=name,
        short=name[:3],
        weekday=("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[day.weekday()],
    )


_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
