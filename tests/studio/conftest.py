"""A small studio, with a table of awkward names and a model that is fitted once, and a client that is let in."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

import likely
from likely.studio.app import create_app
from likely.studio.security import Access
from likely.studio.workspace import Workspace

HOST = "127.0.0.1:8700"
HOSTILE = '"><img src=x onerror=alert(1)>'
TOKEN, SESSION = "t" * 43, "s" * 43


def table(n: int = 240) -> pl.DataFrame:
    """Rows with holes, a hostile name and a hostile category."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, n).astype(float)
    word = np.where(rng.random(n) < age / 100, HOSTILE, "plain")
    frame = pl.DataFrame({"age": age, HOSTILE: rng.normal(age, 5.0), "word": word})
    empty = rng.random((n, 3)) < 0.05
    return frame.with_columns(
        pl.when(pl.Series(empty[:, place])).then(None).otherwise(pl.col(name)).alias(name)
        for place, name in enumerate(frame.columns)
    )


@pytest.fixture(scope="package")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("studio")
    table().write_csv(place / "people.csv")
    data = likely.datasets.load(place / "people.csv")
    likely.Independent(schema=data.schema, random_state=0).fit(data.train).save(place / "model.likely")
    return place


@pytest.fixture
def access() -> Access:
    return Access((HOST, "localhost:8700"), TOKEN, SESSION)


def client_of(space: Workspace, access: Access) -> TestClient:
    """A browser that has shown the token."""
    client = TestClient(create_app(space, access), base_url=f"http://{HOST}", headers={"origin": f"http://{HOST}"})
    client.cookies.set(access.cookie, access.session)
    return client


def python_of(text: str) -> str:
    """The lines of Python that an answer shows."""
    return html.unescape(re.search(r"<code>(.*?)</code>", text, flags=re.S).group(1))


@pytest.fixture
def client(folder, tmp_path, access) -> TestClient:
    """The studio of the table and the model, with an empty folder of its own."""
    return client_of(Workspace(tmp_path, str(folder / "people.csv"), [folder / "model.likely"]), access)
