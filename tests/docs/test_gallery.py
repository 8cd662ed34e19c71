"""Every script of the gallery draws its picture, at a small size; every picture of the documentation has its script."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.pages import PAGES, links

SCRIPTS = sorted((ROOT / "docs" / "gallery").glob("*.py"))
LARGEST = 200_000  # bytes of a picture that is kept in the repository


def load(path):
    spec = importlib.util.spec_from_file_location(f"gallery_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # At a small size chains are too short, on purpose.
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_draws(script, tmp_path):
    module, out = load(script), tmp_path / "picture.png"
    module.main(small=True, out=out)
    data = out.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 5_000  # an empty figure is smaller


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_picture_is_there_and_small(script):
    out = Path(inspect.signature(load(script).main).parameters["out"].default)
    assert out == ROOT / "docs" / "images" / f"{script.stem}.png"
    assert 5_000 < out.stat().st_size < LARGEST


def test_pictures_of_the_pages_have_a_script():
    shown = {target for path in PAGES.values() for target in links(path) if target.endswith(".png")}
    for target in shown:
        name = re.sub(r".*/(.+)\.png", r"\1", target)
        if name.startswith("studio-"):  # a browser's, which `make test-studio` takes
            continue
        homes = (ROOT / "docs" / "gallery", ROOT / "benchmarks")
        assert any((home / f"{name}.py").exists() for home in homes), f"no script draws {target}"
