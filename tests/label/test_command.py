"""The command `marginwise label`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise.cli import main
from marginwise.label.store import LabelStore
from tests.label_support import write_csv
from tests.support import runner

pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
pytest.importorskip("uvicorn", reason="needs marginwise[label]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_csv(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Any:
    return runner().invoke(main, ["label", *words])


def test_get_prints_an_answer_without_a_server(folder: Path) -> None:
    done = run(
        "texts.csv", "--labels", "good,bad", "--annotator", "ann", "-q", "--get", "/api/state"
    )
    assert done.exit_code == 0
    state = json.loads(done.stdout)
    assert (state["annotator"], state["items"], state["labels"]) == ("ann", 80, ["good", "bad"])
    assert (folder / "labels.db").exists()
    missing = run("texts.csv", "--get", "/api/item/none")
    assert missing.exit_code == 1
    assert "404" in missing.stderr


def test_the_run_is_described(folder: Path) -> None:
    (folder / "twice.csv").write_text("text\nsome words\nsome words\nother words\n")
    done = run("twice.csv", "--labels", "a,b", "--get", "/api/state")
    assert "1 of 3 rows are duplicates" in done.stderr
    assert "2 items, TF-IDF, 3 terms" in done.stderr


def test_three_labels_of_features_and_of_table_rows(folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + 6 * np.eye(3, 2)[y]
    np.save(folder / "x.npy", X * [1, 1000])
    rows = [f"{a},{b},{'rgb'[k]}" for (a, b), k in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "rows.csv").write_text("\n".join(["width,height,y", *rows]) + "\n")
    words = ["--label-column", "y", "-q", "--store"]
    table = json.loads(run("rows.csv", *words, "t.db", "--get", "/api/progress").stdout)["progress"]
    assert table["counts"] == {"b": 20, "g": 20, "r": 20}
    assert table["answers"][-1] == 60
    words = ["x.npy", "--items-file", "rows.csv", *words, "n.db"]
    found = json.loads(run(*words, "--get", "/api/progress").stdout)["progress"]
    assert found["support_vectors"][-1] < 60
    item = json.loads(run(*words, "--get", "/api/history").stdout)
    assert item["entries"] == []  # the labels of the file are not those of the annotator


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["texts.csv"], 1, "the labels are not known: the items have no labels"),
        (["texts.csv", "--labels", "a"], 1, "--labels must name two or more different labels"),
        (["none.csv", "--labels", "a,b"], 1, "none.csv: No such file or directory"),
        (["texts.csv", "--labels", "a,b", "--text-column", "body"], 1,
         "column 'body' is missing; the data has 'number', 'text', 'truth'"),
        (["texts.csv", "--labels", "a,b", "--label-column", "truth"], 1, "row 1 has the label"),
        (["texts.csv", "--labels", "a,b", "--features", "no.where:f"], 1, "cannot be imported"),
        (["texts.csv", "--labels", "a,b", "--holdout", "0.9"], 2, "0.9 is not in the range"),
        (["texts.csv", "--labels", "a,b", "--C", "-1"], 2, "C must be"),
        (["texts.csv", "--labels", "a,b", "--store", "texts.csv"], 1, "is not a label store"),
        (["texts.csv", "--labels", "a,b", "--host", "999.1.1.1"], 1, "cannot listen on 999.1.1.1"),
    ],
)  # fmt: skip
def test_bad_calls_end_with_one_line(
    folder: Path, words: list[str], code: int, message: str
) -> None:
    done = run(*words, "-q", "--no-open")
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("texts.csv", "--labels", "a,b", "-q", "--no-open", "--port", str(port))
    assert done.exit_code == 1
    assert f"port {port} of 127.0.0.1 is in use by another program" in done.stderr


@contextlib.contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run the command in a process; yield the process, the address and the token."""
    command = [sys.executable, "-m", "marginwise", "label", "texts.csv", *words]
    with subprocess.Popen(
        [*command, "--labels", "good,bad", "--no-open", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            base, token = json.loads(process.stdout.readline())["url"].split("/?token=")
            yield process, base, token
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_runs_until_it_is_stopped(folder: Path, number: signal.Signals) -> None:
    with served("-q") as (process, base, token):
        asked = urllib.request.Request(
            f"{base}/api/state", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as response:
            assert len(json.load(response)["queue"]) == 3
        process.send_signal(number)
        assert process.wait(30) == 130
    assert not (folder / "labels.db-wal").exists()  # the store was closed


def begun(base: str, token: str, request: str) -> socket.socket:
    """Send the start of a request, or all of it, on a connection of its own."""
    host = base.removeprefix("http://")
    opened = socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=30)
    head, _, body = request.partition("|")
    lines = f"{head} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{body}"
    opened.sendall(lines.encode())
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_open_requests_do_not_delay_the_end(folder: Path, number: signal.Signals) -> None:
    """Idle connections, half a head and half a body: one line, and no traceback."""
    half = "POST /api/answer|Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    requests = ["GET /api/state|\r\n", half, half, "GET /api/state|"]
    with served() as (process, base, token), contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(begun(base, token, one)) for one in requests]
        assert sockets[0].recv(12) == b"HTTP/1.1 200"
        process.send_signal(number)
        assert process.wait(30) == 130
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
    assert lines[-1].startswith("marginwise: stopped; all answers are stored")
    assert all(line.startswith("marginwise: ") for line in lines)


def test_an_answer_on_its_way_is_stored_before_the_end(folder: Path) -> None:
    with served() as (process, base, token):
        body = json.dumps({"key": "k", "item": "", "label": "good"})
        with begun(base, token, "GET /api/state|Connection: close\r\n\r\n") as opened:
            state = opened.makefile().read().partition("\n\n")[2]
        body = body.replace('""', json.dumps(json.loads(state)["queue"][0]["id"]))
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        store = sqlite3.connect("labels.db", isolation_level=None)
        store.execute("BEGIN IMMEDIATE")  # the server waits for this
        with begun(base, token, f"POST /api/answer|{head}{body}"):
            with begun(base, token, "GET /api/none|\r\n") as idle:
                assert idle.recv(12) == b"HTTP/1.1 404"
                process.send_signal(signal.SIGINT)
                while idle.recv(4096):
                    pass  # until the server closes the connection
            store.execute("ROLLBACK")
            assert process.wait(30) == 130
        store.close()
    with LabelStore.open("labels.db", readonly=True) as found:
        assert [event.key for event in found.events()] == ["k"]
