"""Every kind of file that the library reads: small sound examples, and the reader that strangers' files go through."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import likely
from likely.datasets.formats.user_files import read_table
from likely.models.language.embeddings.word2vec_format import read_vectors
from likely.models.language.ngram.arpa import read_arpa
from likely.schema.files import read_schema, to_toml
from likely.training import checkpoints
from tests.campaign import structures
from tests.campaign.mutations import mutated
from tests.campaign.structures import described, mostly


@dataclass(frozen=True)
class Format:
    """A kind of file.

    ending : of its name. examples : sound files, as bytes. read : what a stranger's file is given to. words : those
    with a meaning in it. damage : how an example is turned into a hostile file. share : of all inputs, beside 1 of
    other formats; less where a file takes a reader long.
    """

    ending: str
    examples: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    words: tuple[bytes, ...] = ()
    damage: Callable[[np.random.Generator, bytes, tuple[bytes, ...]], bytes] = mutated
    share: float = 1.0


def _table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    names = ["Ulm", "Rome", None, "Oslo"]
    return pl.DataFrame(
        {
            "city": [names[i % 4] for i in range(12)],
            "price": [f"${i},{100 + i}.50" for i in range(12)],
            "share": [f"{i * 3}%" for i in range(12)],
            "day": [f"2024-0{1 + i % 9}-1{i % 10}" for i in range(12)],
            "size": rng.normal(size=12).round(3),
            "age": rng.integers(18, 90, 12),
        }
    )


def _csv() -> list[bytes]:
    """Two columns a file: what a reader takes grows with them, and each is read by itself."""
    pairs = (("city", "size"), ("price", "day"), ("share", "age"))
    texts = [_table().head(8).select(pair).write_csv().encode() for pair in pairs]
    others = [text.replace(b",", b";").replace(b".", b",") for text in texts]
    quoted = b'name,"a ""b"""\r\n"Ulm, old",170 cm\r\n"two\nlines",165 cm\r\n,\r\n'
    return [
        *texts,
        *others,
        b"1 2 3\n4 5 6\n7 8 9\n",
        b"a\tb\n-999\t1\n3\t-\n",
        quoted,
        quoted.decode().encode("utf-16"),
    ]


def _parquet() -> list[bytes]:
    """As polars writes it, and as Arrow does with other packings, pages and types."""
    import pyarrow as pa
    import pyarrow.parquet

    frame = _table()
    more = frame.select(
        pl.col("city").cast(pl.Categorical),
        (pl.col("size") > 0).alias("is large"),
        pl.col("day").str.to_date(strict=False),
        pl.col("age").cast(pl.Int8),
    )
    files = [in_memory(frame.write_parquet), in_memory(more.write_parquet)]
    words = frame.select("day", "share").to_arrow()
    for table, options in (
        (frame.select("city", "age").to_arrow(), {"compression": "gzip", "data_page_version": "2.0"}),
        (frame.select("size", "age").to_arrow(), {"compression": "none", "use_dictionary": False, "row_group_size": 5}),
        (words, {"compression": "snappy", "write_page_index": True, "store_schema": False}),
    ):
        files.append(
            in_memory(lambda file, table=table, options=options: pa.parquet.write_table(table, file, **options))
        )
    return files


def in_memory(write: Callable[[io.BytesIO], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _npy() -> list[bytes]:
    arrays = (np.arange(12.0).reshape(4, 3), np.array([["a", "b"]]), np.zeros((2, 2), "u1", order="F"))
    return [in_memory(lambda file, array=array: np.save(file, array, allow_pickle=False)) for array in arrays]


def _npz() -> list[bytes]:
    parts = {"train": np.eye(4), "test": np.ones((2, 4))}
    return [in_memory(lambda file, save=save: save(file, **parts)) for save in (np.savez, np.savez_compressed)]


def _idx() -> list[bytes]:
    sound = bytes([0, 0, 8, 3]) + np.array([2, 2, 2], ">u4").tobytes() + bytes(range(8))
    return [sound, bytes([0, 0, 0x0D, 1]) + np.array([2], ">u4").tobytes() + np.zeros(2, ">f4").tobytes()]


def _written(name: str, write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


@cache
def network() -> Any:
    rng = np.random.default_rng(0)
    rain = rng.random(200) < 0.3
    wet = np.where(rng.random(200) < 0.1, ~rain, rain)
    words = np.array(["no", "yes/maybe"])
    frame = pl.DataFrame({"rain": words[rain.astype(int)], "wet": words[wet.astype(int)], "on": words[[0, 1] * 100]})
    return likely.BayesianNetwork(structure="tree", random_state=0).fit(frame)


def _networks(ending: str) -> Callable[[], list[bytes]]:
    return lambda: [_written(f"net{ending}", network().write)]


_HUGIN = b"""net { node_size = (80 40); }
node rain { label = "rain"; states = ("yes" "no"); }
node wet { states = ("yes" "no" "so so"); }
potential (rain) { data = (0.2 0.8); }
potential (wet | rain) { data = ((0.7 0.2 0.1) (0.1 0.8 0.1)); }
"""

_ARPA = b"""\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-99\t<s>\t-0.3
-0.6\t</s>
-0.7\t<unk>
-0.5\tcat\t-0.2
-0.8\tdog\t-0.1

\\2-grams:
-0.2\t<s> cat
-0.4\tcat dog
-0.3\tdog </s>

\\end\\
"""


def _vectors(binary: bool) -> Callable[[], list[bytes]]:
    def examples() -> list[bytes]:
        if not binary:
            return [b"2 3\ncat 0.1 0.2 0.3\ndog -1 2e-1 3\n"]
        rows = [word + b" " + np.arange(3, dtype="<f4").tobytes() for word in (b"cat", "über".encode())]
        return [b"2 3\n" + b"\n".join(rows) + b"\n"]

    return examples


def _schemas() -> list[bytes]:
    schema = likely.Schema.infer(_table().select("city", "size", "age"))
    return [to_toml(schema).encode(), json.dumps(schema.to_json()).encode()]


@cache
def _models() -> list[bytes]:
    rng = np.random.default_rng(0)
    frame = _table().select("city", "size", "age")
    models = [
        likely.Independent(random_state=0).fit(frame),
        likely.Autoregressive(n_chains=2, random_state=0).fit(pl.concat([frame] * 4)),
        network(),
        likely.Circuit(n_states=2, n_trees=1, n_epochs=1, random_state=0).fit(
            (rng.random((40, 3)) < 0.5).astype(float)
        ),
    ]
    return [_written("model.likely", model.save) for model in models]


def _checkpoint() -> list[bytes]:
    tree = {"weight": np.zeros((2, 3), np.float32), "step": np.array(3)}
    return [_written("run.ckpt", lambda path: checkpoints.save(path, tree, {"epoch": 2}))]


_NUMBERS_OF_NETWORKS = (b"probability", b"variable", b"discrete", b"default", b"table", b"network", b"property")

FORMATS: dict[str, Format] = {
    "csv": Format(
        ".csv", _csv, read_table, (b",", b";", b"\t", b'"', b"-999", b"2024-13-45", b"$1.2.3", b"NaN"), share=0.2
    ),
    "csv.gz": Format(
        ".csv.gz",
        lambda: [gzip.compress(text, mtime=0) for text in _csv()[:3]],
        read_table,
        damage=mostly(structures.packed),
        share=0.1,
    ),
    "parquet": Format(".parquet", _parquet, read_table, damage=mostly(structures.parquet), share=0.5),
    "npy": Format(
        ".npy",
        _npy,
        read_table,
        (b"|O", b"descr", b"fortran_order", b"(9999999999,)", b"<f8", b"<U99999"),
        damage=mostly(structures.array),
    ),
    "npz": Format(
        ".npz",
        _npz,
        likely.datasets.load,
        (b"train.npy", b"../x.npy", b"PK\x01\x02", b"PK\x05\x06"),
        damage=mostly(structures.archive),
    ),
    "idx": Format(".idx3-ubyte", _idx, likely.datasets.formats.idx.read_idx, damage=mostly(structures.idx, 0.3)),
    "bif": Format(".bif", _networks(".bif"), likely.read_network, _NUMBERS_OF_NETWORKS),
    "xmlbif": Format(".xml", _networks(".xml"), likely.read_network, (b"<VARIABLE>", b"</FOR>", b"<GIVEN>", b"TABLE")),
    "uai": Format(".uai", _networks(".uai"), likely.read_network, (b"BAYES", b"MARKOV")),
    "hugin": Format(".net", lambda: [_HUGIN], likely.read_network, (b"node", b"potential", b"data", b"states")),
    "arpa": Format(".arpa", lambda: [_ARPA], read_arpa, (b"\\data\\", b"\\2-grams:", b"\\end\\", b"ngram 3=9", b"<s>")),
    "word2vec": Format(".txt", _vectors(False), lambda path: read_vectors(path, binary=False)),
    "word2vec binary": Format(".bin", _vectors(True), lambda path: read_vectors(path, binary=True)),
    "schema": Format(
        ".toml",
        _schemas,
        read_schema,
        (b"kind", b"support", b"[[columns]]", b"real", b"categories"),
        damage=mostly(structures.schema, 0.5),
    ),
    "model": Format(".likely", _models, likely.load, damage=mostly(described(_written)), share=0.2),
    "checkpoint": Format(".ckpt", _checkpoint, checkpoints.load, damage=mostly(described(_written)), share=0.5),
}
