"""Every example of the documentation runs, every link leads somewhere, every table of models is the registry's."""

import doctest

import pytest

from likely.storage import registry
from tests.conftest import ROOT
from tests.contracts.test_scikit_learn import EXPECTED_FAILURES
from tests.docs.pages import PAGES, anchors, links, section, table_rows

WITH_EXAMPLES = [name for name, path in PAGES.items() if ">>>" in path.read_text()]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_run(page):
    test = doctest.DocTestParser().get_doctest(PAGES[page].read_text(), {}, page, str(PAGES[page]), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    output: list[str] = []
    runner.run(test, out=output.append)
    assert not runner.failures, "".join(output)


def test_pages_with_examples_are_found():
    assert {"README.md", "docs/evidence.md", "docs/file-format.md", "docs/training.md"} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page):
    for target in links(PAGES[page]):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        place = (PAGES[page].parent / file).resolve() if file else PAGES[page]
        assert place.exists(), f"{page} links to {target}, which does not exist"
        assert place.is_relative_to(ROOT)
        assert not anchor or anchor in anchors(place), f"{page} links to {target}; {file} has no such heading"


def test_every_page_is_reached_from_the_readme():
    reached, new = set(), {PAGES["README.md"]}
    while new:
        reached |= new
        found = {(page.parent / target.partition("#")[0]).resolve() for page in new for target in links(page)}
        new = {page for page in found if page in PAGES.values()} - reached
    assert reached == set(PAGES.values())


def test_five_lines_of_python():
    lines = [line for line in PAGES["README.md"].read_text().splitlines() if line.startswith(">>>")]
    assert len(lines) == 5


def test_the_table_of_models_is_the_registry():
    rows = table_rows(section("README.md", "models"))
    assert [row[:2] for row in rows] == [[f"`{e.class_name}`", e.summary] for e in registry.learning_from("rows")]
    for row, entry in zip(rows, registry.learning_from("rows"), strict=True):
        cls = registry.model_class(entry.class_name)
        assert row[2] == ("real" if cls._real_only else "binary" if cls._binary_only else "any")
        marks = ["✓" if verb in entry.offers else "–" for verb in ("impute", "denoise", "transform")]
        assert row[4:] == marks


def test_expected_failures_are_those_of_the_contract():
    text = section("docs/scikit-learn.md", "expected failures").strip()
    if not EXPECTED_FAILURES:
        assert text == "None: every check passes for every model."
        return
    assert table_rows(text) == [[f"`{check}`", reason] for check, reason in EXPECTED_FAILURES.items()]
