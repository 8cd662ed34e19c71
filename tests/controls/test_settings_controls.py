"""Settings that are declared wrongly must be caught by the checks of all estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

import pytest

from likely.contract.settings import Count, Declared, Positive, Unchecked
from tests.contracts.declared import (
    check_docstring,
    check_is_declared,
    check_refused,
    check_signature,
    open_settings,
)


class Right(Declared):
    """Small.

    Parameters
    ----------
    size : of it. rate : how
        fast.
    rule, limit : others.

    Notes
    -----
    other : no setting.
    """

    size: Count = 3
    _: KW_ONLY
    rate: Positive = 0.1
    rule: Literal["hebb", "storkey"] = "hebb"
    limit: Count | None = None

    def fit(self, X):
        self._validate_params()
        return self


RECORDED = ["size=3", "*", "limit=None", "rate=0.1", "rule='hebb'"]


def changed(name: str, hint: object, **default: object) -> type:
    """The same with one field declared otherwise; without a default if none is given."""
    annotations = {key: Right.__annotations__[key] for key in Right.__annotations__} | {name: hint}
    values = {key: getattr(Right, key) for key in annotations if key not in ("_", name)} | default
    body = {"__annotations__": annotations, "__doc__": Right.__doc__, "__module__": __name__, "fit": Right.fit}
    return type("Wrong", (Declared,), body | values)


def test_what_is_right_passes():
    check_signature(Right, RECORDED)
    check_docstring(Right)
    check_is_declared(Right)
    check_refused(Right, None)
    assert not open_settings(Right)


@pytest.mark.parametrize(
    "wrong",
    [
        changed("rate", Positive),  # the default is dropped
        changed("rate", Positive, rate=0.2),
        changed("extra", Count, extra=1),
        changed("limit", Literal["none"] | None, limit="none"),
    ],
    ids=["dropped default", "other default", "one more", "other type of default"],
)
def test_a_changed_signature_is_caught(wrong):
    with pytest.raises(AssertionError):
        check_signature(wrong, RECORDED)


def test_a_setting_that_lost_its_place_is_caught():
    class Wrong(Declared):
        _: KW_ONLY
        size: Count = 3
        rate: Positive = 0.1
        rule: Literal["hebb", "storkey"] = "hebb"
        limit: Count | None = None

    with pytest.raises(AssertionError):
        check_signature(Wrong, RECORDED)


def test_settings_without_names_are_caught():
    class Wrong(Right):
        def __init__(self, *sizes, **others):
            super().__init__(*sizes, **others)

    with pytest.raises(AssertionError):
        check_is_declared(Wrong)
    del Wrong.__init__.__signature__  # the one that is made would hide it
    with pytest.raises(AssertionError, match="every setting must have a name"):
        check_signature(Wrong, RECORDED)


def test_constraints_of_ones_own_are_caught():
    class Wrong(Right):
        _parameter_constraints = {"size": [int]}  # noqa: RUF012

    with pytest.raises(AssertionError):
        check_is_declared(Wrong)


def test_a_setting_that_lost_its_type_is_caught():
    assert open_settings(changed("size", Unchecked, size=3)) == {"size"}


def test_values_that_are_not_checked_are_caught():
    class Careless(Right):
        def fit(self, X):
            return self

    class Late(Right):
        def fit(self, X):
            len(X)
            return super().fit(X)

    class Vague(Right):
        def fit(self, X):
            try:
                return super().fit(X)
            except ValueError as error:
                raise type(error)("a setting is wrong") from error

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_refused(Careless, None)
    with pytest.raises(TypeError):
        check_refused(Late, None)
    with pytest.raises(AssertionError):
        check_refused(Vague, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [("rule, limit", "rule"), ("rule, limit", "rule, limits"), ("rule, limit", "rule, limit, rate"), (" rate :", " :")],
    ids=["missing", "misspelt", "twice", "missing in a line"],
)
def test_a_docstring_that_names_others_is_caught(old, new):
    class Wrong(Right):
        pass

    Wrong.__doc__ = str(Right.__doc__).replace(old, new)
    assert Wrong.__doc__ != Right.__doc__
    with pytest.raises(AssertionError):
        check_docstring(Wrong)
