"""The reference has every public name, at its home and with a docstring; the site has every page."""

import importlib
import importlib.util
import inspect
import re
import types

import pytest

import likely
from tests.conftest import ROOT
from tests.docs.pages import PAGES


def load(name):
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load("reference")
NAMES = {name.home: name for name in reference.public_names()}
TEXT = "\n".join(reference.pages().values())
OFFERED = {
    f"{package}.{name}"
    for package in ("likely", *(f"likely.{part}" for part in likely._PACKAGES))
    for name in getattr(importlib.import_module(package), "__all__", ())
    if not isinstance(getattr(importlib.import_module(package), name), types.ModuleType)
} - {"likely.__version__"}


def value_of(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_a_public_name_is_in_the_reference(name):
    same = [home for home in NAMES if value_of(home) is value_of(name)]
    assert same, f"{name} is not in the reference"
    assert any(f"::: {home}\n" in TEXT for home in same)


def test_the_functions_and_classes_of_objectives_are_in_the_reference():
    shown = {home for home in NAMES if home.startswith("likely.objectives.")}
    assert {"likely.objectives.em.run_em", "likely.objectives.nce.Noise"} <= shown
    assert not [home for home in shown if home.rpartition(".")[2].startswith("_")]


@pytest.mark.parametrize("home", NAMES)
def test_a_public_name_has_a_docstring(home):
    text = reference.docstring(home)
    assert text.strip(), f"{home} has no docstring"
    if inspect.isclass(value_of(home)):
        assert not text.startswith(f"{home.rpartition('.')[2]}(")  # what dataclasses write by themselves


def test_a_name_without_a_docstring_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "likely").mkdir()
    (tmp_path / "likely" / "plain.py").write_text('A = 1\nB = 2\n"""Two."""\ndef f():\n    return A\n')
    monkeypatch.setattr(reference, "SOURCE", tmp_path)
    assert [reference.docstring(f"likely.plain.{name}") for name in ("A", "B", "f")] == ["", "Two.", ""]


def test_every_name_stands_once():
    homes = re.findall(r"^::: (\S+)$", TEXT, flags=re.MULTILINE)
    assert sorted(homes) == sorted(NAMES)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
    listed = re.findall(r": (\S+\.md)$", navigation, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {path.name for name, path in PAGES.items() if name.startswith("docs/")} <= set(listed)
