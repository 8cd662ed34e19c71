"""Networks on the command line: asked, drawn, written in other formats."""

import json

import pytest

import likely
from tests.cli.test_commands import refused, succeed

BIF = """network cancer { }
variable Smoker { type discrete [ 2 ] { yes, no }; }
variable Cancer { type discrete [ 2 ] { yes, no }; }
probability ( Smoker ) { table 0.3, 0.7; }
probability ( Cancer | Smoker ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }
"""


@pytest.fixture(scope="module")
def bif(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "cancer.bif"
    path.write_text(BIF)
    return path


def test_query_prints_a_table(bif):
    lines = succeed("query", bif, "--given", "Smoker=yes", "--of", "Cancer").stdout.splitlines()
    assert [line.split() for line in lines] == [["Cancer", "probability"], ["yes", "0.1"], ["no", "0.9"]]
    found = json.loads(succeed("query", bif, "--given", "Cancer=yes", "--json").stdout)
    assert found["kind"] == "exact"
    assert found["marginals"]["Smoker"]["yes"] == pytest.approx(0.03 / 0.037)
    refused("query", bif, "--given", "Smoker=yess", "--of", "Cancer", words="Did you mean 'yes'?")
    refused("query", bif, "--given", "Smoker", words="--given needs COLUMN=VALUE")
    refused("query", bif, "--of", "Cancr", words="Did you mean 'Cancer'?")


def test_graph_is_drawn_or_written(bif, tmp_path):
    assert '"Smoker" -> "Cancer";' in succeed("graph", bif).stdout
    succeed("graph", bif, "--out", tmp_path / "net.png")
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    refused("graph", bif, "--out", tmp_path / "net.png", words="--force")


def test_convert_keeps_the_probabilities(bif, tmp_path):
    succeed("convert", bif, tmp_path / "net.uai.gz")
    assert likely.read_network(tmp_path / "net.uai.gz").marginals()["x1"]["0"] == pytest.approx(0.037)
    refused("convert", bif, tmp_path / "net.csv", words="must end in .bif")
