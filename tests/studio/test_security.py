"""Who is let in, what is refused, and that nothing of the data becomes markup."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from starlette.testclient import TestClient

from likely.studio.app import STATIC, create_app
from likely.studio.security import MAX_BODY, MAX_MODEL, Guard
from likely.studio.workspace import Workspace
from tests.studio.conftest import HOST, HOSTILE, TOKEN, client_of

PAGES = ("/table", "/table/rows?order=surprise", "/table/columns", "/compare", "/what-if", "/what-if/answer?a0=40&b2=1")
FORM = {"content-type": "application/x-www-form-urlencoded"}
BYTES = {"content-type": "application/octet-stream"}


@pytest.fixture
def stranger(folder, tmp_path, access):
    return TestClient(create_app(Workspace(tmp_path, str(folder / "people.csv")), access), base_url=f"http://{HOST}")


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_sees(stranger):
    assert stranger.get("/table").status_code == 401
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")  # the token leaves the address at once
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in answer.headers["set-cookie"]
    assert stranger.get("/table").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:8700", ""])
def test_another_name_of_the_host_is_refused(client, host):
    assert client.get("/table", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8700", "http://127.0.0.1:8701", ""]
)
def test_changes_come_from_the_studio_itself(client, origin, tmp_path):
    headers = FORM | {"origin": origin}
    assert client.post("/table/column", content="column=0&kind=real", headers=headers).status_code == 403
    assert not (tmp_path / ".likely-studio").exists()


def test_a_change_without_an_origin_is_refused(stranger, access):
    stranger.cookies.set(access.cookie, access.session)
    assert stranger.post("/compare/start", content="m-mixture=1", headers=FORM).status_code == 403


def test_every_answer_forbids_foreign_and_inline_code(client):
    for address in (*PAGES, "/nowhere", "/static/studio.js"):
        policy = client.get(address).headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


class Elements(HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, name, attributes):
        self.found.append((name, dict(attributes)))


@pytest.mark.parametrize(
    "address", [*PAGES, "/samples", "/samples/deal?deal=3", "/samples/judge?deal=3&c0=1", "/samples/pairs"]
)
def test_names_and_categories_stay_text(client, address):
    answer = client.get(address)
    assert answer.status_code == 200
    for name, attributes in Elements(answer.text).found:
        assert name != "img"
        assert not {"onerror", "style"} & set(attributes)
        assert not any(key.startswith("on") for key in attributes)
        assert name != "script" or attributes == {"src": "/static/studio.js", "defer": None}
    if address not in ("/compare", "/samples"):
        assert "&lt;img src=x" in answer.text  # it is shown, as text


def test_a_page_that_forgets_to_escape_is_caught():
    """A planted bug: the same name, pasted into markup."""
    found = Elements(f"<td>{HOSTILE}</td>").found
    assert ("img", {"src": "x", "onerror": "alert(1)"}) in found


def test_no_served_file_names_another_machine():
    for path in STATIC.rglob("*"):
        if path.is_file():
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # a name space, which nobody fetches
            assert not re.search(r"(https?:|wss?:)?//[a-z0-9]", re.sub(r"^\s*//.*$", "", text, flags=re.M)), path


def malformed(rng: np.random.Generator, host: str = HOST) -> tuple[str, str, dict[str, str], bytes]:
    """A request that no page of the studio sends."""
    good = FORM | {"origin": f"http://{host}"}
    noise = "".join(rng.choice([*"!$()*,-.;@[]^_~xyz"], 12))
    number = str(int(rng.integers(10**6, 10**12)))
    letters = "".join(map(chr, rng.integers(97, 122, 9)))
    kinds = [
        lambda: ("GET", f"/?token={letters}", {"cookie": "x=y"}, b""),
        lambda: ("GET", "/table", {"cookie": f"likely-studio-8700={letters}"}, b""),
        lambda: ("GET", "/table", {"host": f"{letters}.example:8700"}, b""),
        lambda: (str(rng.choice(["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])), "/table", good, b""),
        lambda: (
            "POST",
            str(rng.choice(["/table", "/what-if", "/samples", "/map", "/structure", "/table/filled.csv"])),
            good,
            b"",
        ),
        lambda: ("GET", str(rng.choice(["/table/column", "/compare/start", "/use"])), {}, b""),
        lambda: ("GET", f"/table/rows?start={rng.choice(['-1', '0', '1e3', '١', noise, number])}", {}, b""),
        lambda: ("GET", f"/table/rows?order={letters}", {}, b""),
        lambda: ("GET", f"/table/rows?start=1&start=2&{letters}=1", {}, b""),
        lambda: (
            "GET",
            f"/what-if/answer?a{rng.choice(['0', '1', '2'])}={rng.choice(['nan', 'inf', '1e99', 'x'])}",
            {},
            b"",
        ),
        lambda: ("GET", f"/what-if/answer?a{rng.integers(3, 999)}=1", {}, b""),
        lambda: ("GET", f"/what-if/answer?{letters}=1", {}, b""),
        lambda: ("GET", f"/map/answer?{rng.choice(['x=0', 'view=a', 'x0=nan', 'colour=99', f'{letters}=1'])}", {}, b""),
        lambda: ("GET", f"/map/sentence?text={letters}&at={letters}", {}, b""),
        lambda: ("GET", f"/map/words?word={letters}", {}, b""),
        lambda: ("GET", f"/structure/answer?{rng.choice(['node=99', 'tree=7', 'g0=1', f'{letters}=1'])}", {}, b""),
        lambda: ("GET", f"/what-if/paint?pixels={letters}", {}, b""),
        lambda: ("GET", f"/what-if?row={letters}", {}, b""),
        lambda: ("GET", f"/samples/pairs?x={rng.choice(['-1', '99', letters])}", {}, b""),
        lambda: ("GET", f"/table/sentences?start={number}", {}, b""),
        lambda: ("GET", f"/samples/rows.csv?n={rng.choice(['0', '-4', number, letters])}", {}, b""),
        lambda: ("GET", f"/samples/picture.png?deal=1&card={rng.choice(['99', '-1', '0'])}", {}, b""),
        lambda: (
            "GET",
            f"/static/{rng.choice(['../app.py', '%2e%2e/app.py', '..%2f..%2fpyproject.toml', letters])}",
            {},
            b"",
        ),
        lambda: ("GET", f"/models/{rng.choice(['../x', '%2e%2e%2fx', letters, '0001-0'])}.likely", {}, b""),
        lambda: ("GET", f"/compare/{rng.choice(['9999', '..', letters])}/events", {}, b""),
        lambda: ("POST", f"/compare/{rng.choice(['9999', letters])}/stop", good, b""),
        lambda: ("POST", "/compare/start", good, f"m-{letters}=1".encode()),
        lambda: ("POST", "/compare/start", good, b""),
        lambda: ("POST", "/compare/start", good | {"content-type": "application/json"}, b'{"m-mixture": 1}'),
        lambda: ("POST", "/compare/start", good, bytes(rng.integers(128, 255, 40).tolist())),
        lambda: ("POST", "/table/column", good, f"column={number}&kind=real".encode()),
        lambda: ("POST", "/table/column", good, f"column=0&kind={letters}".encode()),
        lambda: ("POST", "/table/column", good, b"a" * (MAX_BODY + int(rng.integers(1, 1000)))),
        lambda: ("POST", "/use", good, f"model=../{letters}".encode()),
        lambda: ("POST", "/use", good, b"model=%00"),
        lambda: ("POST", f"/models/load?name={letters}", good, b"x"),
        lambda: ("POST", f"/models/load?name=../{letters}", good | BYTES, rng.bytes(200)),
        lambda: ("POST", f"/models/load?{letters}=1", good | BYTES, b""),
        lambda: ("POST", "/models/load", good | BYTES | {"content-length": str(MAX_MODEL + 1)}, b""),
        lambda: ("GET", "/table?" + "a=1&" * 9000, {}, b""),
        lambda: ("GET", f"/{letters}", {}, b""),
        lambda: ("POST", "/compare/start", FORM | {"origin": f"http://{letters}.example"}, b"m-mixture=1"),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def test_a_thousand_malformed_requests_get_an_error_and_change_nothing(folder, tmp_path, access):
    space = Workspace(tmp_path, str(folder / "people.csv"), [folder / "model.likely"])
    rng = np.random.default_rng(0)
    stranger = TestClient(create_app(space, access), base_url=f"http://{HOST}")
    ours = client_of(space, access)
    for _ in range(1000):
        method, address, headers, body = malformed(rng)
        client = stranger if "cookie" in headers else ours
        answer = client.request(method, address, headers=headers, content=body, follow_redirects=False)
        assert 400 <= answer.status_code < 500, (method, address[:200], headers, body[:80], answer.status_code)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_stranger_is_not_read(stranger, folder, tmp_path):
    content = (folder / "model.likely").read_bytes()
    answer = stranger.post("/models/load", content=content, headers=BYTES | {"origin": f"http://{HOST}"})
    assert answer.status_code == 401
    assert list(tmp_path.iterdir()) == []


def test_a_body_is_counted_though_its_head_says_nothing(client):
    def pieces():
        for _ in range(9):
            yield b"a" * 10_000

    headers = FORM | {"origin": f"http://{HOST}"}
    assert client.post("/compare/start", content=pieces(), headers=headers).status_code == 413


def test_who_waits_when_the_studio_ends_is_told(access):
    async def forever(scope, receive, send):
        await asyncio.Event().wait()

    async def wait_and_end():
        sent = []
        headers = [(b"host", HOST.encode()), (b"cookie", f"{access.cookie}={access.session}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/table", "query_string": b"", "headers": headers}

        async def send(message):
            sent.append(message)

        task = asyncio.create_task(Guard(forever, access)(scope, None, send))
        await asyncio.sleep(0)
        task.cancel()
        await task  # and is not an error in the terminal
        return sent

    head, body = asyncio.run(wait_and_end())
    assert head["status"] == 503
    assert b"has ended" in body["body"]
