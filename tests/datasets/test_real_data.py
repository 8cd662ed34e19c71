"""The real files, where there are any: sizes, and figures known from elsewhere."""

import gzip

import numpy as np
import pytest

from likely.datasets import load, names
from tests.datasets.checks import check_upright


def sizes(data) -> list[int]:
    return [len(data.train), len(data.valid), len(data.test)]


def test_all_names_are_available(data_folder):
    assert all(info.available for info in names())


def test_mnist(data_folder):
    data = load("mnist", binarize=None)
    assert sizes(data) == [50_000, 10_000, 10_000]
    assert data.labels["train"][:5].tolist() == [5, 0, 4, 1, 9]
    assert data.labels["test"][:5].tolist() == [7, 2, 1, 0, 4]
    pixels = np.concatenate([data.train, data.valid])
    assert pixels.mean(dtype=np.float64) == pytest.approx(
        0.1307, abs=5e-5
    )  # the constants that everyone standardises with
    assert pixels.std(dtype=np.float64) == pytest.approx(0.3081, abs=5e-5)


def test_binarized_mnist_is_what_the_text_says(data_folder):
    data = load("binarized-mnist")
    assert sizes(data) == [50_000, 10_000, 10_000]
    for part in ("valid", "test"):
        with gzip.open(data_folder / f"binarized_mnist/binarized_mnist_{part}.amat.gz", "rt") as file:
            lines = [next(file) for _ in range(200)]
            n_ones = sum(line.count("1") for line in lines) + file.read().count("1")
        rows = getattr(data, part)
        assert np.array_equal(rows[:200], np.loadtxt(lines))
        assert rows.sum(dtype=np.float64) == n_ones


def test_silhouettes_stand_upright(data_folder):
    data = load("silhouettes")
    assert sizes(data) == [4_100, 2_264, 2_307]
    check_upright(data.train.reshape(-1, *data.schema.image_shape), data.labels["train"])


@pytest.mark.parametrize(
    ("name", "n_columns", "rows"),
    [
        ("nltcs", 16, [16_181, 2_157, 3_236]),
        ("plants", 69, [17_412, 2_321, 3_482]),
        ("jester", 100, [9_000, 1_000, 4_116]),
        ("dna", 180, [1_600, 400, 1_186]),
        ("mushrooms", 112, [2_000, 500, 5_624]),
        ("accidents", 111, [12_758, 1_700, 2_551]),
    ],
)
def test_debd(data_folder, name, n_columns, rows):
    data = load(f"debd/{name}")
    assert sizes(data) == rows
    assert data.schema.kinds == ("binary",) * n_columns


def test_adult(data_folder):
    data = load("adult")
    assert sizes(data) == [29_305, 3_256, 16_281]
    assert data.schema.kinds.count("grid") == 6
    assert data.schema.kinds.count("categorical") == 9
    assert dict(zip(data.schema.names, data.schema.columns, strict=True))["income"].categories == ("<=50K", ">50K")
    # Unobserved cells in adult.test as its description counts them: 966 occupations, 963 work classes, 274 countries.
    holes = {name: data.test[name].null_count() for name in ("occupation", "workclass", "native-country")}
    assert holes == {"occupation": 966, "workclass": 963, "native-country": 274}
    assert np.isnan(data.schema.encode(data.test)).sum() == sum(holes.values())


def test_wine(data_folder):
    data = load("wine")
    assert sizes(data) == [1_279, 160, 160]
    assert data.schema.kinds == ("grid",) * 12
    # Strengths of alcohol are twentieths or thirds, so all are sixtieths.
    np.testing.assert_allclose(data.schema.columns[10].step, 1 / 60, rtol=1e-6)
    quality = np.concatenate([part["quality"].to_numpy() for part in (data.train, data.valid, data.test)])
    assert np.unique(quality, return_counts=True)[1].tolist() == [10, 53, 681, 638, 199, 18]
