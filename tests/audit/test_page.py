"""The page of the audit shows the record that is kept, and a record of anything can be shown."""

import json

from tests.audit.known import KNOWN
from tests.audit.page import DOCUMENT, RECORD, page

KEPT = json.loads(RECORD.read_text())


def test_the_page_shows_the_record():
    assert DOCUMENT.read_text() == page(KEPT)


def test_nothing_in_the_record_fails_but_what_is_known():
    assert [f for f in KEPT["findings"] if not f["holds"] and not f["known"]] == []


def test_known_faults_are_marked_and_explained():
    finding = {"model": "RBM, binary", "check": "draws across rows", "figure": 300.0, "bound": 6.0, "unit": "surprise"}
    text = page(KEPT | {"findings": [finding | {"holds": False, "known": "shared noise"}]})
    assert "**s 300.0**†" in text
    assert "- † shared noise: RBM, binary." in text


def test_an_unknown_failure_is_shown_as_one():
    finding = {"model": "RBM, binary", "check": "samples", "figure": 9.0, "bound": 6.0, "unit": "surprise"}
    text = page(KEPT | {"findings": [finding | {"holds": False, "known": ""}]})
    assert "**s 9.0** |" in text


def test_false_alarms_of_the_suite_are_shown():
    text = page(KEPT | {"suite": {"seeds": [0, 1], "tests": 4000, "failed": ["seed 1: a::b"], "too_many": False}})
    assert "1 of 4000 failed" in text
    assert "- `seed 1: a::b`" in text


def test_reasons_are_written_for_people():
    assert all(len(why.split()) > 5 for why in KNOWN.values())
