"""The web application, called without a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marginwise.label.session import Session
from tests.label_support import client_of, keys, open_session, write_csv


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return open_session(write_csv(tmp_path), tmp_path / "labels.db")


@pytest.fixture
def client(session: Session) -> Any:
    return client_of(session)


def test_the_state_has_the_queue(client: Any) -> None:
    state = client.get("/api/state").json()
    assert state["ok"] is True
    assert state["labels"] == ["good", "bad"]
    assert len(state["queue"]) == 3
    assert state["queue"][0].keys() >= {"id", "kind", "text", "duplicates", "answer", "purpose"}


def test_an_answer_moves_the_queue(client: Any) -> None:
    queue = client.get("/api/state").json()["queue"]
    sent = {"key": next(keys), "item": queue[0]["id"], "label": "good", "duration": 1.5}
    found = client.post("/api/answer", json=sent).json()
    assert found["ok"] is True
    assert [item["id"] for item in found["queue"][:2]] == [item["id"] for item in queue[1:]]
    assert found["summary"]["answered"] == 1
    assert found["undoable"] is True
