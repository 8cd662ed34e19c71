"""The page of the audit shows the record that is kept, a record of anything can be shown, and `make audit` runs."""

import json

from tests.audit.__main__ import _attempt, _counted, looks, main
from tests.audit.known import KNOWN
from tests.audit.page import DOCUMENT, LEARNING, RECORD, page
from tests.models.holes_checks import BARS

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


def test_an_audit_of_one_thing_says_what_it_found(capsys):
    before = RECORD.read_text()
    assert main(["--small", "--seeds", "0-1", "--only", "Independent, binary: samples"]) == 0
    assert "Independent, binary, samples: " in capsys.readouterr().err
    assert RECORD.read_text() == before


def test_a_look_that_raises_has_found_something():
    def broken(seed, size):
        raise ValueError("no such thing")

    (found,) = _attempt("a model: a check", broken, 0, None)
    assert not found["holds"]
    assert "no such thing" in found["check"]
    assert "| **inf** | 0 |" in page(KEPT | {"findings": [found | {"known": ""}]})


def test_what_holes_cost_has_a_table_with_every_bar():
    looked = {name.removeprefix("learning: ") for name, _, _ in looks(small=False) if name.startswith("learning: ")}
    assert looked == {f"{name}, {table}" for table, bars in BARS.items() for name in bars}
    finding = {"model": "RBM, bits", "check": LEARNING, "figure": 0.31, "bound": 0.15, "unit": "nats"}
    assert "| RBM, bits | **0.31** | 0.15 |" in page(KEPT | {"findings": [finding | {"holds": False, "known": ""}]})
    assert "Not part of this record: the whole audit looks at it." in page(KEPT | {"findings": []})


def test_everything_that_make_test_looks_at_is_in_the_record():
    """A look has one finding or more, each under the name of its model or kernel."""
    models = {finding["model"] for finding in KEPT["findings"]} | {"Evidence"}
    for name, _, _ in looks(small=True):
        first, _, second = name.partition(": ")
        assert first in models or second in models or first == "refusal", name


def test_failures_and_errors_of_a_report_are_counted(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a" name="right"/><testcase classname="a" name="left"><failure/></testcase>'
        '<testcase classname="b" name="up"><error/></testcase><testcase classname="b" name="out"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert _counted(report) == (3, ["a::left", "b::up"])
