"""Attacks on the server: each is refused, and changes nothing."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from typing import Any

import pytest

from marginwise.label.item_files import Columns, open_items
from marginwise.label.session import Session
from tests.label_support import ADDRESS, TOKEN, client_of, keys, open_session, write_csv


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session that no test changes."""
    folder = tmp_path_factory.mktemp("label")
    return open_session(write_csv(folder), folder / "labels.db")


def answer_to(session: Session) -> dict[str, Any]:
    return {"key": next(keys), "item": session.state()["queue"][0]["id"], "label": "good"}


def refused(session: Session, response: Any, status: int) -> None:
    assert response.status_code == status
    assert response.json()["ok"] is False
    assert response.json()["error"]
    assert session.state()["summary"]["answered"] == 0


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/progress", "/page/index.html", "/x"])
@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "é"])
def test_without_the_token_nothing_is_served(session: Session, path: str, token: str) -> None:
    client = client_of(session, "")
    header = {"Authorization": f"Bearer {token}".encode()} if token else {}
    refused(session, client.get(path, headers=header), 403)
    refused(session, client.post(path, json={}, headers=header), 403)


def test_a_wrong_token_in_the_address_sets_no_cookie(session: Session) -> None:
    response = client_of(session, "").get("/?token=guess")
    refused(session, response, 403)
    assert "set-cookie" not in response.headers


def test_the_token_in_the_address_becomes_a_cookie(session: Session) -> None:
    client = client_of(session, "")
    response = client.get(f"/?token={TOKEN}")
    assert response.status_code == 303
    assert response.headers["location"] == "/"
    cookie = response.headers["set-cookie"].lower()
    assert f"marginwise_{ADDRESS.port}=" in cookie
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/state").json()["ok"] is True


def test_the_token_in_the_address_is_for_the_page_only(session: Session) -> None:
    refused(session, client_of(session, "").get(f"/api/state?token={TOKEN}"), 403)


def test_a_password_may_be_the_token(session: Session) -> None:
    sent = base64.b64encode(f"user:{TOKEN}".encode()).decode()
    client = client_of(session, "")
    assert client.get("/api/state", headers={"Authorization": f"Basic {sent}"}).status_code == 200
    refused(session, client.get("/api/state", headers={"Authorization": "Basic !!"}), 403)


# -- where requests come from ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "localhost:8123.evil", ""],
)
def test_other_hosts_are_refused(session: Session, host: str) -> None:
    refused(session, client_of(session).get("/api/state", headers={"Host": host}), 421)


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123"])
def test_names_of_the_loopback_are_served(session: Session, host: str) -> None:
    assert client_of(session).get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8123"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_change_nothing(session: Session, headers: dict[str, str]) -> None:
    response = client_of(session).post("/api/answer", json=answer_to(session), headers=headers)
    refused(session, response, 403)


def test_requests_of_the_page_are_accepted(tmp_path: Path) -> None:
    session = open_session(write_csv(tmp_path), tmp_path / "labels.db")
    headers = {"Origin": "http://127.0.0.1:8123", "Sec-Fetch-Site": "same-origin"}
    response = client_of(session).post("/api/answer", json=answer_to(session), headers=headers)
    assert response.json()["summary"]["answered"] == 1


# -- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_forms_are_refused(session: Session, kind: str) -> None:
    response = client_of(session).post("/api/undo", content=b"{}", headers={"Content-Type": kind})
    refused(session, response, 415)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'"text"', b"\xff", b"[" * 50_000])
def test_what_is_not_a_json_object_is_refused(session: Session, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    refused(session, client_of(session).post("/api/answer", content=body, headers=headers), 400)


def test_large_bodies_are_refused(session: Session) -> None:
    client = client_of(session)
    item = session.state()["queue"][0]["id"]
    sent = {"key": next(keys), "item": item, "text": "x" * 70_000}
    refused(session, client.post("/api/note", json=sent), 413)

    def parts() -> Any:  # without a length
        for _ in range(100):
            yield b" " * 1000

    headers = {"Content-Type": "application/json"}
    refused(session, client.post("/api/note", content=parts(), headers=headers), 413)


@pytest.mark.parametrize(
    "change",
    [
        {"item": "nothing"},
        {"item": 7},
        {"item": ""},
        {"label": "ugly"},
        {"label": None},
        {"key": None},
        {"key": ""},
        {"duration": -1},
        {"duration": "long"},
        {"duration": True},
        {"duration": 1e300},
    ],
)
def test_wrong_answers_are_refused(session: Session, change: dict[str, Any]) -> None:
    response = client_of(session).post("/api/answer", json=answer_to(session) | change)
    refused(session, response, 404 if change.get("item") == "nothing" else 400)


@pytest.mark.parametrize(
    "query", ["before=x", "limit=-1", "limit=1e3", "before=٣", f"before={'9' * 30}"]
)
def test_wrong_queries_are_refused(session: Session, query: str) -> None:
    refused(session, client_of(session).get(f"/api/history?{query}"), 400)


def test_methods_and_paths_that_do_not_exist_are_refused(session: Session) -> None:
    client = client_of(session)
    refused(session, client.get("/api/nothing"), 404)
    refused(session, client.get("/api/answer"), 405)
    refused(session, client.delete("/api/state", headers={"Content-Type": "application/json"}), 405)


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/nothing", "/page/nothing.js", "/health"])
def test_every_answer_has_the_headers(session: Session, path: str) -> None:
    for token in (TOKEN, ""):
        headers = client_of(session, token).get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_markup_in_texts_is_data(tmp_path: Path) -> None:
    text = "<script>alert(1)</script><img src=x onerror=alert(2)> & more"
    path = tmp_path / "texts.csv"
    path.write_text(f'text\n"{text}"\n"another text here"\n')
    response = client_of(open_session(path, tmp_path / "labels.db")).get("/api/state")
    assert response.headers["content-type"] == "application/json"
    assert text in [item["text"] for item in response.json()["queue"]]


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "..\\server.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "....//server.py",
        "index.html%00.js",
        ".",
        "",
    ],
)
def test_page_names_do_not_leave_the_folder(session: Session, name: str) -> None:
    response = client_of(session).get(f"/page/{name}")
    assert response.status_code == 404
    assert b"import" not in response.content


def make_image(path: Path, shade: int = 0, size: tuple[int, int] = (8, 8)) -> Path:
    image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")
    image.new("L", size, shade).save(path)
    return path


def test_paths_of_images_do_not_leave_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "data"
    folder.mkdir()
    secret = make_image(tmp_path / "secret.png", 200)
    make_image(folder / "a.png", 10)
    os.symlink(secret, folder / "link.png")
    os.symlink(tmp_path, folder / "up")
    names = ["a.png", "../secret.png", str(secret), "link.png", "up/secret.png", "", "missing.png"]
    table = folder / "images.csv"
    table.write_text("\n".join(["image,n", *(f"{name},1" for name in names)]) + "\n")
    items = open_items(table, Columns(image="image"))
    assert [path.name for path in items.content.values()] == ["a.png"]
    assert "6 files are left out" in items.notes[0]
    assert [p.name for p in open_items(folder).content.values()] == ["a.png"]


def test_an_image_that_becomes_a_link_is_not_served(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    secret = make_image(tmp_path / "secret.png", 200)
    for k in range(3):
        make_image(folder / f"{k}.png", 10 * k)
    session = open_session(folder, tmp_path / "labels.db", Columns())
    client = client_of(session)
    item = session.items.ids[0]
    served = client.get(f"/api/image/{item}")
    assert served.headers["content-type"] == "image/png"
    assert served.content == (folder / "0.png").read_bytes()
    (folder / "0.png").unlink()
    os.symlink(secret, folder / "0.png")
    assert client.get(f"/api/image/{item}").status_code == 404
    (folder / "1.png").write_text("<svg onload=alert(1)>")
    assert client.get(f"/api/image/{session.items.ids[1]}").status_code == 404
    for name in ("../secret.png", "..%2fsecret.png", "nothing"):
        assert client.get(f"/api/image/{name}").status_code == 404


def test_decompression_bombs_are_left_out(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")
    buffer = io.BytesIO()
    image.new("1", (10_000, 6_000)).save(buffer, "PNG")  # 60 million pixels in some kilobytes
    assert len(buffer.getvalue()) < 100_000
    (tmp_path / "bomb.png").write_bytes(buffer.getvalue())
    make_image(tmp_path / "a.png")
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:40])
    items = open_items(tmp_path)
    assert [path.name for path in items.content.values()] == ["a.png"]
    for name in ("bomb.png", "text.png", "cut.png"):
        assert name in items.notes[0]
