"""What editors and type checkers see: the names that `likely` exports, and the settings that an estimator takes."""

from __future__ import annotations

import ast
from pathlib import Path

from mypy import api

import likely

ROOT = Path(__file__).resolve().parents[2]


def shown_to_type_checkers() -> dict[str, str]:
    """The imports under `if TYPE_CHECKING:` of likely/__init__.py: where each name comes from."""
    tree = ast.parse((ROOT / "src" / "likely" / "__init__.py").read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    for line in imports:  # `as` the same name is what makes it public
        assert all(alias.asname == alias.name for alias in line.names), ast.unparse(line)
    return {alias.name: str(line.module) for line in imports for alias in line.names}


def test_type_checkers_are_shown_what_is_exported():
    assert shown_to_type_checkers() == likely._HOMES | dict.fromkeys(likely._PACKAGES, "likely")


# Each line, and what mypy says of it if anything.
SNIPPET = {
    "import likely": None,
    "from likely.models.latent.mixture.mixture import Mixture": None,
    'Mixture(3, covariance="full")': None,
    'likely.Mixture(3, covariance="full", random_state=0).fit([[0.0], [1.0]]).covariance': None,
    'likely.RBM(16, objective="cd", learning_rate=None, schema=None)': None,
    "likely.VAE(4, hidden=(32, 16), warm_start=True)": None,
    'likely.Mixture(3, covariances="full")': 'Unexpected keyword argument "covariances" for "Mixture"',
    'likely.Mixture(3, "full")': 'Too many positional arguments for "Mixture"',
    'likely.Mixture(3, covariance="round")': 'Argument "covariance" to "Mixture" has incompatible type',
    'likely.RBM(16, objective="dc")': 'Argument "objective" to "RBM" has incompatible type',
    'likely.RBM("many")': 'Argument 1 to "RBM" has incompatible type "str"; expected "int"',
    'likely.VAE(4, hidden=(32, "a"))': 'Argument "hidden" to "VAE" has incompatible type',
    "likely.VAE(4).patients": '"VAE" has no attribute "patients"',
    "likely.Mixtures(3)": 'Module has no attribute "Mixtures"',
}


def test_wrong_settings_are_found_without_running(tmp_path, monkeypatch):
    path = tmp_path / "snippet.py"
    path.write_text("\n".join(SNIPPET) + "\n")
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    monkeypatch.chdir(ROOT)
    options = ["--config-file", "pyproject.toml", "--no-warn-unused-configs", "--hide-error-context", "--no-pretty"]
    # Without the types of what the library stands on, which take two thirds of the time, mypy misses names in the
    # library itself. What it says of that is not asked here, but by `make lint`.
    said, trouble, _ = api.run([*options, "--no-site-packages", "--ignore-missing-imports", str(path)])
    assert not trouble
    ours = [line for line in said.splitlines() if line.startswith(f"{path}:") and ": error: " in line]
    errors = {int(line.removeprefix(f"{path}:").split(":")[0]): line for line in ours}
    for number, (line, expected) in enumerate(SNIPPET.items(), 1):
        found = errors.pop(number, None)
        if expected is None:
            assert found is None, line
        else:
            assert expected in (found or ""), line
    assert not errors
