import subprocess
import sys

import numpy as np
import pytest

from likely.datasets import DataError, DataNotFoundError, load, names
from tests.datasets.files import idx_bytes, matrix_text, write


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("LIKELY_DATA", raising=False)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LIKELY_DATA", str(tmp_path))
    return tmp_path


def test_digits_are_the_same_rows_binary_and_real():
    binary, real = load("digits"), load("digits-gray")
    assert binary.schema.kinds == ("binary",) * 64
    assert real.schema.kinds == ("real",) * 64
    for data in (binary, real):
        assert [len(data.train), len(data.valid), len(data.test)] == [1000, 297, 500]
        assert data.schema.image_shape == (8, 8)
    for part in ("train", "valid", "test"):
        assert np.array_equal(getattr(binary, part), getattr(real, part) >= 0.5)
        assert np.array_equal(binary.labels[part], real.labels[part])


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    bunch, data = load_digits(), load("digits-gray")
    rows = np.concatenate([data.train, data.valid, data.test]) * 16
    labels = np.concatenate([data.labels[part] for part in ("train", "valid", "test")])
    ours = sorted((int(label), *row) for row, label in zip(rows.astype(int).tolist(), labels, strict=True))
    theirs = sorted((int(y), *row) for row, y in zip(bunch.data.astype(int).tolist(), bunch.target, strict=True))
    assert ours == theirs


def test_names_say_what_is_there(no_folder):
    known = {info.name: info for info in names()}
    assert known["digits"].available
    assert known["digits-gray"].available
    assert not known["mnist"].available
    assert "debd/nltcs" in known
    assert all(info.description for info in names())


def test_names_look_into_the_folder(folder):
    for part in ("train", "valid", "test"):
        write(folder / f"debd/tiny.{part}.data.gz", "0,1\n1,1\n")
    known = {info.name: info.available for info in names()}
    assert known["debd/tiny"]
    assert not known["wine"]
    assert load("debd/tiny").train.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("name", ["mnist", "binarized-mnist", "silhouettes", "debd/nltcs", "adult", "wine"])
def test_a_missing_file_says_where_and_what_to_do(name, monkeypatch, tmp_path):
    monkeypatch.delenv("LIKELY_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match=r"LIKELY_DATA names, which is not set.*export LIKELY_DATA="):
        load(name)
    monkeypatch.setenv("LIKELY_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"{name}.*{tmp_path}/.*is not there: put the file there"):
        load(name)
    monkeypatch.setenv("LIKELY_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match="nor is the folder"):
        load(name)


def test_unknown_names_come_with_near_ones(no_folder):
    with pytest.raises(DataError, match=r"unknown data set 'mnsit'.*Did you mean 'mnist'.*Known are digits,"):
        load("mnsit")


def test_unknown_debd_names_come_with_those_there(folder):
    write(folder / "debd/nltcs.train.data", "0,1\n")
    with pytest.raises(DataError, match="Did you mean 'debd/nltcs'"):
        load("debd/ntlcs")


def test_unknown_options_come_with_the_known():
    with pytest.raises(TypeError, match="'digits' has no option 'binarize': it has none"):
        load("digits", binarize=0.5)
    with pytest.raises(TypeError, match="'mnist' has no option 'size': it has binarize, dequantize, seed"):
        load("mnist", size=3)


def test_mnist_from_small_files(folder, global_random_seed):
    images = np.random.RandomState(global_random_seed).randint(0, 256, (10_020, 28, 28)).astype(np.uint8)
    for part, n_rows in {"train": 10_020, "t10k": 30}.items():
        write(folder / f"mnist/{part}-images-idx3-ubyte", idx_bytes(images[:n_rows]))
        write(folder / f"mnist/{part}-labels-idx1-ubyte", idx_bytes((np.arange(n_rows) % 10).astype(np.uint8)))
    real = load("mnist", binarize=None)
    assert [len(real.train), len(real.valid), len(real.test)] == [20, 10_000, 30]
    np.testing.assert_array_equal(real.valid[0], images[20].ravel() / np.float32(255))
    assert real.labels["valid"][0] == 0
    binary = load("mnist")
    assert binary.schema.kinds == ("binary",) * 784
    assert binary.train[images[:20].reshape(20, -1) == 0].max() == 0
    write(folder / "mnist/t10k-labels-idx1-ubyte", idx_bytes(np.zeros(29, np.uint8)))
    with pytest.raises(DataError, match=r"labels of shape \(29,\) for 30 images"):
        load("mnist")


def test_binarized_mnist_needs_784_columns(folder):
    for part in ("train", "valid", "test"):
        write(folder / f"binarized_mnist/binarized_mnist_{part}.amat", matrix_text(np.eye(3)))
    with pytest.raises(DataError, match=r"binarized_mnist_train\.amat has 3 columns, needed are 784"):
        load("binarized-mnist")


def test_damaged_silhouettes(folder):
    path = write(folder / "silhouettes/caltech101_silhouettes_28_split1.mat", b"MATLAB 5.0 MAT-file" + bytes(300))
    with pytest.raises(DataError, match=r"split1\.mat"):
        load("silhouettes")
    write(path, b"")
    with pytest.raises(DataError, match="no MATLAB file, or damaged"):
        load("silhouettes")


def test_adult_in_its_official_form(folder):
    row = "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K"
    write(folder / "tabular/adult.data", f"{row}\n" * 10 + "\n")
    write(folder / "tabular/adult.test", f"|1x3 Cross validator\n{row}.\n{row.replace('Cuba', 'Peru')}.\n\n")
    data = load("adult")
    assert [len(data.train), len(data.valid), len(data.test)] == [9, 1, 2]
    assert data.test["income"].to_list() == ["<=50K"] * 2
    assert data.train["occupation"].null_count() == 9
    assert data.schema.columns[data.schema.names.index("native-country")].categories == ("Cuba", "Peru")
    assert [column.name for column in data.schema.left_out] == ["occupation"]


@pytest.mark.parametrize("form", ["plain", "official"])
def test_wine_with_and_without_header(folder, form):
    rows = "".join(";".join(str(i + j / 10) for j in range(12)) + "\n" for i in range(20))
    header = ";".join(f'"c{j}"' for j in range(12)) + "\n" if form == "official" else ""
    write(folder / "tabular/winequality-red.csv", header + rows)
    data = load("wine")
    assert [len(data.train), len(data.valid), len(data.test)] == [16, 2, 2]
    assert data.schema.names[-1] == "quality"
    assert data.schema.measure == "counting"


def test_loading_data_is_light():
    heavy = ("jax", "sklearn", "scipy", "polars")
    code = f"import sys, likely.datasets as d; d.names(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
