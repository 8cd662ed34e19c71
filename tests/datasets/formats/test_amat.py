import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likely.datasets import DataError
from likely.datasets.formats.amat import read_amat, read_binary_amat
from tests.datasets.files import matrix_text, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("amat")


matrices = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


@given(matrix=matrices.flatmap(lambda shape: hnp.arrays(np.uint8, shape, elements=st.integers(0, 9))))
@pytest.mark.parametrize("separator", [" ", ","])
def test_digits_round_trip(folder, matrix, separator):
    text = matrix_text(matrix, separator)
    for content in (text, text.rstrip("\n")):
        np.testing.assert_array_equal(read_amat(write(folder / "digits.amat.gz", content), separator), matrix)


@given(matrix=matrices.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=st.floats(-1e6, 1e6, width=32))))
@pytest.mark.parametrize("separator", [" ", ","])
def test_numbers_round_trip(folder, matrix, separator):
    np.testing.assert_array_equal(
        read_amat(write(folder / "numbers.amat", matrix_text(matrix, separator)), separator), matrix
    )


def test_the_view_agrees_with_parsing(tmp_path, global_random_seed):
    matrix = np.random.RandomState(global_random_seed).randint(0, 10, (40, 30))
    digits = write(tmp_path / "digits.amat", matrix_text(matrix))
    padded = write(tmp_path / "padded.amat", matrix_text(matrix).replace(" ", "  "))  # no longer two bytes a cell
    np.testing.assert_array_equal(read_amat(digits), np.loadtxt(digits))
    np.testing.assert_array_equal(read_amat(padded), np.loadtxt(digits))


def test_windows_lines_and_blank_lines_at_the_end(tmp_path):
    path = write(tmp_path / "lines.amat", "0 1 1\r\n1 0 0\r\n\r\n \n")
    np.testing.assert_array_equal(read_amat(path), [[0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("0 1 0\n0 1\n0 1 1\n", "line 2 has 2 cells, the lines before it have 3"),
        ("0 1 0\n0 1 0\n0 1 0 1\n", "line 3 has 4 cells, the lines before it have 3"),
        ("0 1 0\n0 x 1\n", "line 2, column 2: 'x' is no number"),
        ("1.5 2.5\n\n1.5\n", "line 3 has 1 cells, the lines before it have 2"),
        ("0 \u00e9 1\n", "line 1, column 2: .* is no number"),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_malformed_text_names_the_line(tmp_path, text, where):
    with pytest.raises(DataError, match=rf"bad\.amat.*{where}"):
        read_amat(write(tmp_path / "bad.amat", text))


def test_binary_needs_zeros_and_ones(tmp_path):
    with pytest.raises(DataError, match="line 2, column 3: needed is 0 or 1, got 7"):
        read_binary_amat(write(tmp_path / "digits.amat", "0 1 1\n0 0 7\n"))
    with pytest.raises(DataError, match=r"line 1, column 2: needed is 0 or 1, got 0\.5"):
        read_binary_amat(write(tmp_path / "numbers.amat", "0 0.5 1\n"))


def test_binary_is_float_so_that_cells_can_be_erased(tmp_path):
    rows = read_binary_amat(write(tmp_path / "bits.data", "0,1\n1,1\n"), ",", n_columns=2)
    rows[0, 0] = np.nan
    assert rows.dtype == np.float32
    with pytest.raises(DataError, match="has 2 columns, needed are 3"):
        read_binary_amat(tmp_path / "bits.data", ",", n_columns=3)


def test_truncated_gzip(tmp_path):
    packed = gzip.compress(b"0 1 0 1\n" * 1000)
    (tmp_path / "cut.amat.gz").write_bytes(packed[:-12])
    with pytest.raises(DataError, match=r"cut\.amat\.gz is cut short or damaged after .* unpacked bytes"):
        read_amat(tmp_path / "cut.amat.gz")
    (tmp_path / "plain.amat.gz").write_bytes(b"0 1 0 1\n")
    with pytest.raises(DataError, match=r"plain\.amat\.gz is no gzip file though its name ends in \.gz"):
        read_amat(tmp_path / "plain.amat.gz")
