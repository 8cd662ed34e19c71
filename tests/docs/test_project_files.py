"""The files at the root say what the rest of the project says: versions, checks, rooms, make targets."""

import re
import tomllib

import likely
from tests.conftest import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()


def recipe(target):
    """The commands of a make target."""
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE).group(1).splitlines()
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in lines]


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE).group(1)
    assert project["version"] == likely.__version__ == cited
    assert likely.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_hooks_before_a_commit_are_the_checks_of_make_lint():
    assert re.findall(r"^ +entry: (.+)$", HOOKS, flags=re.MULTILINE) == recipe("lint")
    assert re.findall(r"repo: (\S+)", HOOKS) == ["local"]
    assert set(re.findall(r"language: (\S+)", HOOKS)) == {"system"}


def test_the_guide_names_every_room():
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    table = guide.split("| room of `src/likely/` |", 1)[1].split("\n\n", 1)[0]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:])))
    source = ROOT / "src" / "likely"
    assert named == {path.parent.name for path in source.glob("*/__init__.py")} | {
        path.stem for path in source.glob("[!_]*.py")
    }


def test_commands_of_the_guide_exist():
    targets = set(re.findall(r"^(\w+):", MAKEFILE, flags=re.MULTILINE))
    text = "\n".join((ROOT / name).read_text() for name in ("CONTRIBUTING.md", "README.md"))
    assert set(re.findall(r"^make (\w+)", text, flags=re.MULTILINE)) <= targets
    assert set(re.findall(r"^# make (\w+)", MAKEFILE, flags=re.MULTILINE)) == targets - {"format"}
