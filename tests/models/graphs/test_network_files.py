"""Files of networks: to the bit and back, every format; malformed ones name their line; hostile sizes take no
memory."""

import gzip
import tracemalloc

import numpy as np
import pytest

from likely.models.graphs.bayesian_network.building import read_network
from likely.models.graphs.files.network_file import is_network, read_described, write_described
from likely.storage.files import FileError

BIF = """// a comment
network "two words" { property made by hand; }
variable A/B {
  type discrete [ 3 ] { <5, 5-12, "12 or more" }; /* states
  of three kinds */
}
variable b { type discrete [2] { yes no }; }
variable c { type discrete [ 2 ] { t, f }; }
probability ( A/B ) { table 0.1, 0.2, 0.7; }
probability ( b | A/B, c ) {
  (<5, t) 0.3, 0.7;
  ("12 or more", f) 1e-3 0.999;
  default 0.25, 0.75;
}
probability ( c ) { table 0.5, 0.5; }
"""
NET = """net { name = "asia"; }
node A { states = ( "yes" "no" ); label = "A; with a semicolon"; }
node B { states = ("a" "b" "c"); position = (1 2); } % a comment
potential ( A ) { data = ( 0.25 0.75 ); }
potential ( B | A ) { data = ((0.1 0.2 0.7) % given yes
                              (0.3 0.3 0.4)); }
"""

# Rows with the first parent fastest, as many programs write them.
TURNED = """network t { }
variable a { type discrete [ 2 ] { x, y }; }
variable b { type discrete [ 3 ] { l, m, n }; }
variable c { type discrete [ 2 ] { 0, 1 }; }
probability ( a ) { table 0.5, 0.5; }
probability ( b ) { table 0.25, 0.25, 0.5; }
probability ( c | a, b ) {
  (x, l) 0.1, 0.9;
  (y, l) 0.2, 0.8;
  (x, m) 0.3, 0.7;
  (y, m) 0.4, 0.6;
  (x, n) 0.5, 0.5;
  (y, n) 0.6, 0.4;
}
"""

WIDE_UAI = f"BAYES 40 {'2 ' * 40} 1 40 {' '.join(map(str, range(40)))} 2 .5 .5"


@pytest.fixture
def bif(tmp_path):
    path = tmp_path / "hand.bif"
    path.write_text(BIF)
    return path


def check_turned(path):
    scope, table = read_described(path).tables[-1]
    assert scope == ["a", "b", "c"]
    assert table[..., 0].tolist() == [[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]]


def test_rows_of_a_table_come_in_any_order(tmp_path):
    path = tmp_path / "turned.bif"
    path.write_text(TURNED)
    check_turned(path)
    path.write_text(TURNED.replace("(y, m) 0.4, 0.6;", "").replace("(x, n)", "(y, m) 0.4 0.6;\n(x, n)"))
    check_turned(path)  # row by row, since a comma is missing


def test_bif_is_read(bif):
    net = read_network(bif)
    assert net.schema_.columns[0].categories == ("<5", "5-12", "12 or more")
    assert net.graph_.parents("b") == ("A/B", "c")
    assert net.marginals({"A/B": "12 or more", "c": "f"})["b"]["yes"] == pytest.approx(1e-3)
    assert net.marginals({"A/B": "5-12", "c": "f"})["b"]["yes"] == pytest.approx(0.25)


@pytest.mark.parametrize("ending", [".bif", ".xml", ".uai", ".bif.gz", ".xml.gz", ".uai.gz"])
def test_what_is_written_is_read_to_the_bit(bif, tmp_path, ending):
    rng = np.random.default_rng(0)
    described = read_described(bif)
    described.tables = [(scope, rng.dirichlet(np.ones(t.shape[-1]), t.shape[:-1])) for scope, t in described.tables]
    path, again = tmp_path / f"out{ending}", tmp_path / f"again{ending}"
    write_described(path, described)
    net = read_network(path)
    net.write(again)
    assert again.read_bytes() == path.read_bytes()
    for (_, one), (_, other) in zip(described.tables, read_described(again).tables, strict=True):
        np.testing.assert_array_equal(one, other)
    if "uai" not in ending:
        assert read_described(again).states == described.states
    assert is_network(path)
    assert not is_network("table.csv")


def test_real_networks_keep_every_bit(data_folder, tmp_path):
    paths = sorted((data_folder / "bif").glob("*.bif.gz"))
    assert len(paths) == 10
    for path in paths:
        first = read_described(path)
        for ending in (".bif", ".xml.gz", ".uai"):
            write_described(tmp_path / f"n{ending}", first)
            again = read_described(tmp_path / f"n{ending}")
            assert all(np.array_equal(a[1], b[1]) for a, b in zip(first.tables, again.tables, strict=True))


def test_hugin_net_is_read(tmp_path):
    path = tmp_path / "n.net"
    path.write_text(NET)
    net = read_network(path)
    assert net.query("B", {"A": "no"})["probability"].to_list() == pytest.approx([0.3, 0.3, 0.4])
    assert net.schema_.columns[1].categories == ("a", "b", "c")
    with pytest.raises(FileError, match=r"must end in \.bif, \.xml"):
        net.write(tmp_path / "out.net")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[ 3 ]", "[ 4 ]", r"line 4: expected the number of states of 'A/B', of which 3 are listed, found '4'"),
        ("[ 3 ]", "[ 999999999999 ]", "line 4: expected the number of states"),
        ("(<5, t) 0.3, 0.7;", "(<6, t) 0.3, 0.7;", r"line 11: expected a state of 'A/B' \(<5, 5-12"),
        ("(<5, t) 0.3, 0.7;", "(<5, t) 0.3, 0.6;", "line 11: expected probabilities that sum to 1, not to 0.9"),
        ("(<5, t) 0.3, 0.7;", "(<5, t) 0.3, x;", "line 11: expected a number"),
        ("(<5, t) 0.3, 0.7;", "(<5, t) 0.3;", "line 11: expected 2 numbers"),
        ("(<5, t) 0.3, 0.7;", "(<5) 0.3, 0.7;", "line 11: expected a state for each of 2 parents"),
        ("(<5, t) 0.3, 0.7;", "(<5, t) nan, 0.7;", "line 11: expected probabilities"),
        ("default 0.25, 0.75;", "", r"line 10: expected a row for parents \(<5, f\)"),
        ("| A/B, c", "| A/C, c", r"line 10: expected a variable that was declared, got 'A/C'\. Did you mean 'A/B'"),
        ("variable c", "variable b", "line 8: expected a new variable; 'b' was declared before"),
        ("variable c", "valuable c", "line 8: expected 'network' or 'variable' or 'probability', found 'valuable'"),
        ("probability ( c ) { table 0.5, 0.5; }", "", "'c' must have one table of probabilities, and has none"),
        ("probability ( c ) { table 0.5, 0.5; }", "probability ( c ) { table 0.5, 0.5", "and the file ends"),
        ("0.1, 0.2, 0.7;", "-0.1, 0.4, 0.7;", "line 9: expected probabilities"),
    ],
)
def test_a_malformed_bif_names_its_line(tmp_path, old, new, message):
    path = tmp_path / "bad.bif"
    assert old in BIF
    path.write_text(BIF.replace(old, new, 1))
    with pytest.raises(FileError, match=message):
        read_network(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BAYES 2 2 2 2 1 0 2 0 1 2 0.5 0.5 4 0.5 0.5 0.5", r"expected 4 numbers, of which 3"),
        ("BAYES 1 900000000000 1 1 0 2 .5 .5", "expected a number of states"),
        ("BAYES\n1\n2\n1\n2 0 0\n\n4 1 0 0 1", "line 5: expected"),
        (WIDE_UAI, "expected 1099511627776 entries"),
        ("GRAPH 1", "expected 'BAYES' or 'MARKOV', found 'GRAPH'"),
        ("BAYES 1 2 1 1 0 2 .5 .5 7", "expected the end of the file"),
        ("BAYES 2 2 2 2 1 0 1 0 2 .5 .5 2 .5 .5", "must have one table"),
    ],
)
def test_a_malformed_uai_is_refused(tmp_path, text, message):
    (tmp_path / "bad.uai").write_text(text)
    with pytest.raises(FileError, match=message):
        read_network(tmp_path / "bad.uai")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<TABLE>0.5 0.5", "<TABLE>0.5", r"line \d+: expected 2 numbers"),
        ("</NETWORK>", "", "line 12: expected XML"),
        ("<FOR>c", "<FOR>d", "expected a variable that was declared"),
        ('<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE a [<!ENTITY x "y">]>', "needs no entities"),
    ],
)
def test_a_malformed_xmlbif_is_refused(bif, tmp_path, old, new, message):
    path = tmp_path / "bad.xml"
    write_described(path, read_described(bif))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FileError, match=message):
        read_network(path)


def test_a_malformed_net_is_refused(tmp_path):
    path = tmp_path / "bad.net"
    path.write_text(NET.replace("0.3 0.3 0.4", "0.3 0.3"))
    with pytest.raises(FileError, match="line 5: expected 6 numbers, got 5"):
        read_network(path)
    path.write_text(NET.replace("B | A", "B | C"))
    with pytest.raises(FileError, match="line 5: expected a variable that was declared, got 'C'"):
        read_network(path)


def test_hostile_sizes_take_no_memory(tmp_path):
    """A node with 40 parents, whose table would have 2^41 entries, and a gzip file that unpacks without end."""
    names = [f"v{i}" for i in range(41)]
    text = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in names)
    text += "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in names[1:])
    text += f"probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}\n"
    (tmp_path / "wide.bif").write_text(text)
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(b" " * (1 << 24), 9))
    tracemalloc.start()
    with pytest.raises(FileError, match="at most 16777216 entries"):
        read_network(tmp_path / "wide.bif")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24
    from likely.models.graphs.files import network_file

    most, network_file.MOST_BYTES = network_file.MOST_BYTES, 1 << 20
    try:
        with pytest.raises(FileError, match="more than 1 MB of text"):
            read_network(tmp_path / "bomb.bif.gz")
    finally:
        network_file.MOST_BYTES = most


def test_files_that_are_not_there_or_not_networks(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        read_network(tmp_path / "none.bif")
    with pytest.raises(FileError, match="must end in"):
        read_network(tmp_path / "table.csv")
    (tmp_path / "empty.bif").write_text("")
    with pytest.raises(FileError, match="no variables"):
        read_network(tmp_path / "empty.bif")
    (tmp_path / "cut.bif.gz").write_bytes(gzip.compress(BIF.encode())[:50])
    with pytest.raises(FileError, match="cannot read"):
        read_network(tmp_path / "cut.bif.gz")
