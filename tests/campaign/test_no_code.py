"""No file can run code: nothing in the source unpickles, evaluates or loads objects."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src" / "likely"
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml", "code"}
# Of joblib: they send work to processes of our own, and read no file.
WORKERS = {"Parallel", "delayed", "effective_n_jobs"}
CALLS = {"eval", "exec", "compile", "__import__"}  # the builtins; methods of these names are others
NUMPY = {"load", "save", "savez", "savez_compressed"}


def dangers(text: str) -> list[str]:
    """What in a source could run what a file says."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            harmless = node.module == "joblib" and {name.name for name in node.names} <= WORKERS
            found += [] if harmless else [str(node.module)]
        elif isinstance(node, ast.Call):
            found += danger_of_call(node)
    return found


def danger_of_call(node: ast.Call) -> list[str]:
    called = node.func
    if isinstance(called, ast.Name) and called.id in CALLS:
        return [called.id]
    of_numpy = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "np"
    if not of_numpy or called.attr not in NUMPY:
        return []
    given = {word.arg: word.value for word in node.keywords}
    allowed = given.get("allow_pickle")
    return [] if isinstance(allowed, ast.Constant) and allowed.value is False else [f"np.{called.attr}"]


def test_nothing_in_the_source_runs_what_a_file_says():
    found = {str(path.relative_to(SOURCE)): dangers(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("import pickle", "pickle"),
        ("from joblib import load", "joblib"),
        ("from joblib import Parallel, load", "joblib"),
        ("import joblib", "joblib"),
        ("def f(x):\n    return eval(x)", "eval"),
        ("np.load(path)", "np.load"),
        ("np.load(path, allow_pickle=True)", "np.load"),
        ("np.load(path, allow_pickle=flag)", "np.load"),
    ],
)
def test_dangers_are_seen(bug, said):
    assert dangers(bug) == [said]


def test_words_that_only_look_like_dangers_are_none():
    assert dangers("re.compile('x')\nnp.load(path, allow_pickle=False)\nmodel.eval()") == []


def test_the_source_is_there():
    assert len(list(Path(SOURCE).rglob("*.py"))) > 100
