from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from paired_towns import HOSTILE, LYON, PARIS, RHONE, SEINE, Memory, session_on, towns
from starlette.testclient import TestClient

from clusterea.errors import InputError
from clusterea.review.server import LONGEST_BODY, application, bound, remember, remembered
from clusterea.types import Answer

TOKEN = "t" * 43
GIVEN = {"Authorization": f"Bearer {TOKEN}"}
ADDRESS = "http://127.0.0.1:8000"
PATHS = ("/api/question", "/api/progress", f"/api/candidate?source={PARIS}&target={LYON}")


def client(log: Memory | None = None, *, label: str = "Paris", base: str = ADDRESS) -> TestClient:
    session = session_on(towns(label=label), log or Memory())
    return TestClient(application(session, TOKEN, run="my run"), base_url=base)


def answer(**changed: Any) -> dict[str, Any]:
    return {"source": SEINE, "target": RHONE, "verdict": "same", **changed}


def test_the_page_needs_the_token() -> None:
    web = client()
    assert web.get(f"/?token={TOKEN}").status_code == 200
    for query in ("", "?token=", "?token=wrong", f"?token={TOKEN}x", f"?Token={TOKEN}", "?token=é"):
        refused = web.get(f"/{query}")
        assert refused.status_code == 403
        assert "clusterea review" in refused.json()["error"]
    assert web.get("/", headers=GIVEN).status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_the_interface_needs_the_token_in_a_header(path: str) -> None:
    web = client()
    assert web.get(path, headers=GIVEN).status_code == 200
    with_token = f"{path}{'&' if '?' in path else '?'}token={TOKEN}"
    assert web.get(with_token).status_code == 403
    for header in ("", TOKEN, "Bearer", "Bearer wrong", f"Basic {TOKEN}"):
        assert web.get(path, headers={"Authorization": header}).status_code == 403


def test_no_answer_is_kept_without_the_token() -> None:
    log = Memory()
    web = client(log)
    assert web.post("/api/answer", json=answer()).status_code == 403
    assert web.post("/api/undo", json={}).status_code == 403
    assert log.answers == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1:8000"])
def test_other_hosts_are_refused(host: str) -> None:
    refused = client().get("/api/progress", headers={**GIVEN, "Host": host})
    assert refused.status_code == 400
    assert "answered" not in refused.text


def test_localhost_is_this_machine() -> None:
    assert client(base="http://localhost:8000").get("/api/progress", headers=GIVEN).is_success


def test_headers_keep_the_page_to_itself() -> None:
    web = client()
    page = web.get(f"/?token={TOKEN}")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    (nonce,) = set(re.findall(r"'nonce-([^']+)'", policy))
    tags = re.findall(r"<(?:style|script)\b[^>]*>", page.text)
    assert len(tags) == 3
    assert all(f'nonce="{nonce}"' in tag or "application/json" in tag for tag in tags)
    assert nonce not in web.get(f"/?token={TOKEN}").text  # new each time
    for each in (page, web.get("/api/progress", headers=GIVEN), web.get("/")):
        assert each.headers["Cache-Control"] == "no-store"
        assert each.headers["Referrer-Policy"] == "no-referrer"
        assert each.headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in each.headers if name.lower().startswith("access-control")]
        assert "frame-ancestors 'none'" in each.headers["Content-Security-Policy"]


def test_the_page_loads_nothing() -> None:
    text = client().get(f"/?token={TOKEN}").text
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text.partition("<script nonce")[0]


def test_names_are_data_not_html() -> None:
    web = client(label=HOSTILE)
    assert "onerror" not in web.get(f"/?token={TOKEN}").text
    told = web.get(f"/api/candidate?source={PARIS}&target={PARIS}", headers=GIVEN)
    assert told.headers["Content-Type"] == "application/json"
    assert told.json()["question"]["source"]["label"] == HOSTILE


def test_answers_and_undo() -> None:
    log = Memory()
    web = client(log)
    first = web.get("/api/question", headers=GIVEN).json()
    assert first["question"]["source"]["number"] == SEINE
    assert first["progress"]["answered"] == 0
    told = web.post(
        "/api/answer", json=answer(other=SEINE, comment="a river"), headers=GIVEN
    ).json()
    assert told["last"]["verdict"] == "same"
    assert told["question"]["source"]["number"] == PARIS
    assert told["progress"]["accepted"] == 1
    assert log.answers[-1].comment == "a river"
    back = web.post("/api/undo", json={}, headers=GIVEN).json()
    assert back["question"]["source"]["number"] == SEINE
    assert back["progress"]["accepted"] == 0
    nothing = web.post("/api/undo", json={}, headers=GIVEN)
    assert nothing.status_code == 400
    assert "no answer of this session" in nothing.json()["error"]
    after = web.get(f"/api/question?after_source={SEINE}&after_target={RHONE}", headers=GIVEN)
    assert after.json()["question"]["source"]["number"] == PARIS


def test_the_last_question_is_followed_by_none() -> None:
    web = client()
    while (told := web.get("/api/question", headers=GIVEN).json())["question"] is not None:
        pair = (told["question"][side]["number"] for side in ("source", "target"))
        body = dict(zip(("source", "target"), pair, strict=True), verdict="unsure")
        assert web.post("/api/answer", json=body, headers=GIVEN).is_success
    assert told["progress"]["unsure"] == 4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "must be JSON"),
        (b"{", "must be JSON"),
        (b"[" * 50_000, "must be JSON"),
        (b"\xff", "must be JSON"),
        (b"[]", "must be a JSON object"),
        (b"{}", "source must be the number of an entity. Got None"),
        (b'{"source": true, "target": 1}', "source must be the number"),
        (b'{"source": 0, "target": "1"}', "target must be the number"),
        (b'{"source": 0, "target": 1, "verdict": ["same"]}', "verdict must be one of same"),
        (b'{"source": 0, "target": 1, "verdict": "yes"}', "verdict must be one of same"),
        (b'{"source": 0, "target": 1, "verdict": "same", "other": 1.5}', "other must be"),
        (b'{"source": 0, "target": 1, "verdict": "same", "comment": 1}', "comment must be text"),
        (b'{"source": 0, "target": 1, "verdict": "same", "random": 1}', "random must be"),
        (b'{"source": 0, "target": 1, "verdict": "same", "x": 1}', "unknown field 'x'"),
        (b'{"source": 99, "target": 1, "verdict": "same"}', r"source must be an entity in [0, 6)"),
        (b'{"source": -1, "target": 1, "verdict": "same"}', r"source must be an entity in [0, 6)"),
        (b'"' + b"x" * LONGEST_BODY + b'"', "at most 65,536 bytes"),
    ],
)
def test_bad_bodies(body: bytes, message: str) -> None:
    log = Memory()
    kind = {"Content-Type": "application/json"}
    refused = client(log).post("/api/answer", content=body, headers={**GIVEN, **kind})
    assert refused.status_code == 400
    assert message in refused.json()["error"]
    assert log.answers == []


def test_bad_requests() -> None:
    web = client()
    form = web.post("/api/answer", data={"source": "1"}, headers=GIVEN)
    assert (form.status_code, "application/json" in form.json()["error"]) == (400, True)
    for query in (
        "",
        "?source=1",
        "?source=-1&target=0",
        "?source=1&target=²",
        "?source=9&target=0",
    ):
        assert web.get(f"/api/candidate{query}", headers=GIVEN).status_code == 400
    assert web.get("/api/answer", headers=GIVEN).status_code == 405
    assert web.get("/nothing", headers=GIVEN).status_code == 404


def test_a_failure_is_told_to_the_page() -> None:
    class Broken(Memory):
        def append(self, *answers: Answer) -> None:
            raise RuntimeError("secret")

    app = application(session_on(towns(), Broken()), TOKEN)
    web = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
    failed = web.post("/api/answer", json=answer(), headers=GIVEN)
    assert failed.status_code == 500
    assert failed.json() == {"error": "the server failed; its terminal says why."}


def test_small_packets_are_sent_at_once() -> None:
    """asyncio turns off Nagle's algorithm only for sockets whose protocol is named."""
    with bound(None) as place:
        assert place.proto == socket.IPPROTO_TCP


def test_a_port_in_use_is_told() -> None:
    with bound(None) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} is in use"):
            bound(port)
        with bound(None, before=port) as other:
            assert other.getsockname()[1] != port
    with bound(None, before=port) as again:
        assert again.getsockname() == ("127.0.0.1", port)
        assert again.family == socket.AF_INET


def test_the_address_is_remembered(tmp_path: Path) -> None:
    nothing, token = remembered(tmp_path)
    assert nothing is None
    assert len(token) >= 32
    assert remembered(tmp_path)[1] != token
    remember(tmp_path, 4711, token)
    assert remembered(tmp_path) == (4711, token)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    for damaged in ("", "[]", "{}", '{"port": 1, "token": "short"}', '{"port": "x", "token": 1}'):
        file.write_text(damaged)
        assert remembered(tmp_path)[0] is None
