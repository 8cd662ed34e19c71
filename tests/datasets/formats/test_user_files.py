import numpy as np
import polars as pl
import pytest

from likely.datasets import DataError, DataNotFoundError, load, read
from tests.datasets.files import idx_bytes, matrix_text, write

BITS = np.random.RandomState(0).randint(0, 2, (30, 4))
GREY = np.random.RandomState(1).randint(0, 256, (30, 3, 2)).astype(np.uint8)


def joined(data) -> np.ndarray:
    return np.concatenate([np.asarray(part) for part in (data.train, data.valid, data.test)])


def same_rows(one: np.ndarray, other: np.ndarray) -> bool:
    return sorted(map(tuple, one.tolist())) == sorted(map(tuple, other.tolist()))


@pytest.mark.parametrize(
    "name", ["bits.csv", "bits.data.gz", "bits.dat", "bits.amat", "bits.npy", "bits.npz", "bits.parquet", "bits.tsv"]
)
def test_every_format_gives_the_same_rows(tmp_path, name):
    path = tmp_path / name
    if name.endswith(("npy", "npz")):
        (np.save if name.endswith("npy") else np.savez)(path, BITS)
    elif name.endswith("parquet"):
        pl.DataFrame(BITS, schema=["a", "b", "c", "d"]).write_parquet(path)
    else:
        write(path, matrix_text(BITS, {"amat": " ", "tsv": "\t"}.get(path.suffix[1:], ",")))
    data = load(path)
    assert same_rows(joined(data), BITS)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [24, 3, 3]
    assert data.schema.kinds == ("binary",) * 4
    assert data.name == "bits"
    assert np.array_equal(data.schema.encode(data.train), np.asarray(data.train))


def test_a_mixed_table_with_holes(tmp_path):
    rows = [f"{i * i % 7 if i % 4 else ''},{'ab?'[i % 3]},{i / 7}" for i in range(30)]
    data = load(str(write(tmp_path / "table.csv", "\n".join(["n,letter,real", *rows]))))
    assert data.schema.kinds == ("count", "categorical", "real")
    assert data.schema.columns[1].categories == ("a", "b")
    codes = np.concatenate([data.schema.encode(part) for part in (data.train, data.valid, data.test)])
    assert np.isnan(codes).sum(axis=0).tolist() == [8, 10, 0]
    assert data.schema.frame == "polars"


def test_categories_come_from_all_parts(tmp_path):
    text = "name,x\n" + "".join(f"c{i % 12},{i}.5\n" for i in range(20))
    data = load(write(tmp_path / "table.csv", text))
    assert data.schema.encode(data.test).shape == (2, 2)


def test_kinds_and_picture_shapes_can_be_given(tmp_path):
    np.save(tmp_path / "bits.npy", BITS)
    data = load(tmp_path / "bits.npy", kinds={0: "real"}, image_shape=(2, 2))
    assert data.schema.kinds == ("real", "binary", "binary", "binary")
    assert data.schema.image_shape == (2, 2)
    with pytest.raises(DataError, match=r"bits\.npy: image_shape"):
        load(tmp_path / "bits.npy", image_shape=(3, 3))
    with pytest.raises(DataError, match=r"bits\.npy: .*'colour'"):
        load(tmp_path / "bits.npy", kinds={"colour": "real"})


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "images.idx", "images.npy"])
def test_pictures_of_bytes_become_pixels(tmp_path, name):
    if name.endswith(".npy"):
        np.save(tmp_path / name, GREY)
    else:
        write(tmp_path / name, idx_bytes(GREY))
    data = load(tmp_path / name)
    assert data.schema.image_shape == (3, 2)
    assert data.schema.kinds == ("real",) * 6
    assert same_rows(joined(data), GREY.reshape(30, 6) / np.float32(255))
    binary = load(tmp_path / name, binarize=0.5)
    assert binary.schema.kinds == ("binary",) * 6
    assert same_rows(joined(binary), GREY.reshape(30, 6) >= 127.5)


def test_binary_pictures_stay_binary(tmp_path):
    np.save(tmp_path / "bits.npy", BITS.reshape(30, 2, 2).astype(np.uint8))
    data = load(tmp_path / "bits.npy")
    assert data.schema.kinds == ("binary",) * 4
    assert data.schema.image_shape == (2, 2)


def test_the_seed_decides_the_shuffle(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(60.0).reshape(30, 2))
    one, again, other = (load(tmp_path / "rows.npy", seed=seed).test for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_without_shuffling_the_rows_stay_on_the_disk(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(60.0).reshape(30, 2))
    data = load(tmp_path / "rows.npy", shuffle=False)
    assert all(isinstance(part, np.memmap) for part in (data.train, data.valid, data.test))
    assert np.array_equal(joined(data), np.arange(60.0).reshape(30, 2))


def test_an_archive_with_parts(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        x_train=BITS,
        y_train=BITS[:, 0],
        x_val=BITS[:5],
        y_val=BITS[:5, 0],
        x_test=BITS[:3],
        y_test=BITS[:3, 0],
    )
    data = load(tmp_path / "a.npz")
    assert np.array_equal(data.train, BITS)
    assert np.array_equal(data.valid, BITS[:5])
    assert np.array_equal(data.test, BITS[:3])
    assert np.array_equal(data.labels["test"], BITS[:3, 0])


def test_validation_is_cut_from_training_with_its_labels(tmp_path):
    rows = np.arange(80.0).reshape(20, 4)
    np.savez(tmp_path / "a.npz", x_train=rows, y_train=rows[:, 0], x_test=rows[:3], y_test=rows[:3, 0])
    data = load(tmp_path / "a.npz")
    assert [len(part) for part in (data.train, data.valid, data.test)] == [18, 2, 3]
    assert same_rows(np.concatenate([data.train, data.valid]), rows)
    for part in ("train", "valid", "test"):
        assert np.array_equal(data.labels[part], getattr(data, part)[:, 0])


def test_an_archive_that_tells_no_parts(tmp_path):
    np.savez(tmp_path / "a.npz", weights=BITS, biases=BITS)
    with pytest.raises(DataError, match="holds the arrays weights, biases; needed is a single one, or train"):
        load(tmp_path / "a.npz")


def test_a_folder_with_parts(tmp_path):
    folder = tmp_path / "census"
    for part, category in {"train": "a", "valid": "b", "test": "c"}.items():
        write(folder / f"census_{part}.csv", f"letter,n\n{category},1.5\n{category},2\n")
    write(folder / "README.md", "what this is")
    data = load(folder)
    assert data.name == "census"
    assert data.test["letter"].to_list() == ["c", "c"]
    assert data.schema.columns[0].categories == ("a", "b", "c")  # so that every part can be encoded


def test_a_folder_like_mnist(tmp_path):
    for part in ("train", "t10k"):
        write(tmp_path / f"{part}-images-idx3-ubyte.gz", idx_bytes(GREY))
        write(tmp_path / f"{part}-labels-idx1-ubyte.gz", idx_bytes(np.arange(30, dtype=np.uint8)))
    data = load(tmp_path)
    assert len(data.train) == 27
    assert len(data.test) == 30
    assert np.array_equal(data.labels["test"], np.arange(30))
    assert np.array_equal(data.test, GREY.reshape(30, 6) / np.float32(255))


def test_folders_that_do_not_work(tmp_path):
    with pytest.raises(DataError, match="is a folder, in which files with `train`"):
        load(tmp_path)
    write(tmp_path / "a.train.csv", "1,2\n")
    write(tmp_path / "b.train.csv", "1,2\n")
    with pytest.raises(DataError, match=r"two files for train, a\.train\.csv and b\.train\.csv"):
        load(tmp_path)


def test_parts_with_different_columns(tmp_path):
    write(tmp_path / "train.csv", "a,b\n1,2\n3,4\n")
    write(tmp_path / "test.csv", "a,c\n1,2\n")
    with pytest.raises(DataError, match="columns of test are not those of train"):
        load(tmp_path)


def test_a_column_that_is_text_in_one_part_is_text_in_all(tmp_path):
    write(tmp_path / "train.csv", "a,b\n1,2\n3,4\n")
    write(tmp_path / "test.csv", "a,b\n1,x\n")
    data = load(tmp_path)
    assert data.schema.columns[1].categories == ("2", "4", "x")
    assert data.schema.encode(data.train).shape == (1, 2)


def test_words_stay_as_they_are_written_if_a_part_has_others(tmp_path):
    write(tmp_path / "train.csv", "a,b\n1,yes\n3,no\n")
    write(tmp_path / "test.csv", "a,b\n1,perhaps\n")
    data = load(tmp_path)
    assert data.schema.columns[1].categories == ("no", "perhaps", "yes")


def test_remarks_of_parts_name_their_files(tmp_path):
    write(tmp_path / "train.csv", "a,b\n1,$2.5\n3,$4\n")
    write(tmp_path / "test.csv", "a,b\n1,$1\n")
    assert "train.csv: column 'b': '$2.5' is read as 2.5." in load(tmp_path).notes


def test_a_file_is_read_as_a_schema_asks(tmp_path):
    data = load(write(tmp_path / "table.csv", "code,x\n" + "".join(f"{'ab1'[i % 3]},{i}.5\n" for i in range(30))))
    new = write(tmp_path / "new.csv", "code,x\n1,2\n1,3\n")
    assert read(new)["code"].to_list() == [1, 1]
    assert read(new, schema=data.schema)["code"].to_list() == ["1", "1"]
    with pytest.raises(DataError, match=r"new\.csv, line 3: column 'x' holds 'many', and needed is a number"):
        read(write(new, "code,x\n1,2\n1,many\n"), schema=data.schema)


@pytest.mark.parametrize("text", ["a,b\n", "a,b\n1,2\n3,4\n"])
def test_too_few_rows(tmp_path, text):
    with pytest.raises(DataError, match="rows"):
        load(write(tmp_path / "table.csv", text))


def test_binarize_is_for_pictures(tmp_path):
    np.save(tmp_path / "rows.npy", BITS)
    with pytest.raises(DataError, match="binarize is for pictures of bytes"):
        load(tmp_path / "rows.npy", binarize=0.5)
    with pytest.raises(DataError, match="is a table; binarize is for pictures"):
        load(write(tmp_path / "table.csv", "a,b\n1,2\n"), binarize=0.5)


def test_arrays_that_are_no_matrices(tmp_path):
    np.save(tmp_path / "scalar.npy", np.array(3.0))
    np.save(tmp_path / "complex.npy", np.ones((5, 2), complex))
    np.save(tmp_path / "line.npy", np.arange(12.0))
    with pytest.raises(DataError, match=r"scalar\.npy"):
        load(tmp_path / "scalar.npy")
    with pytest.raises(DataError, match=r"complex\.npy: Complex data not supported"):
        load(tmp_path / "complex.npy")
    assert load(tmp_path / "line.npy").train.shape == (10, 1)


def test_a_missing_file_says_where_and_what_is_near(tmp_path):
    write(tmp_path / "table.csv", "a\n1\n")
    with pytest.raises(DataNotFoundError, match=r"no file or folder .*tabel\.csv.*Did you mean .*table\.csv\?"):
        load(tmp_path / "tabel.csv")
    with pytest.raises(FileNotFoundError):
        load("no/such/table.csv")


def test_a_name_that_tells_no_format(tmp_path):
    with pytest.raises(DataError, match=r"tells no format: known are \.csv"):
        load(write(tmp_path / "table.xlsx", "PK"))


def test_unknown_option(tmp_path):
    with pytest.raises(TypeError, match="no option 'sep': it has kinds, image_shape, header, separator"):
        load(write(tmp_path / "table.csv", "a\n1\n"), sep=";")
