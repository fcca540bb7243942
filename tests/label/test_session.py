"""Sessions: the queue, answers, undo, and the same questions after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from marginwise.label.session import Session
from tests.label_support import keys, label_some, open_session, queue_of, truth_of, write_csv


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return open_session(write_csv(tmp_path), tmp_path / "labels.db")


def test_answers_are_learned_and_counted(session: Session) -> None:
    label_some(session, 30)
    summary = session.state()["summary"]
    assert summary["answered"] == 30
    assert sum(summary["counts"].values()) == 30
    assert summary["left"] == 50
    assert session.model.version == 30
    right = [
        truth_of(session.item(item)) == session.guess(item)["label"] for item in session.items.ids
    ]
    assert sum(right) >= 72


def test_the_same_request_twice_is_one_answer(session: Session) -> None:
    item = session.state()["queue"][0]["id"]
    first = session.answer("once", item, "good")
    assert session.answer("once", item, "good") == first
    assert session.state()["summary"]["answered"] == 1


def test_no_question_is_asked_twice(session: Session) -> None:
    asked = label_some(session, 80)
    assert sorted(asked) == sorted(session.items.ids)
    assert queue_of(session) == []


def test_undo_puts_the_item_in_front(session: Session) -> None:
    asked = label_some(session, 12)
    for item in reversed(asked):
        found = session.undo(next(keys))
        assert found["undone"]["item"] == item
        assert found["queue"][0]["id"] == item
    assert session.undo(next(keys))["undone"] is None
    assert session.model.version == 0


@pytest.mark.parametrize("options", [{}, {"holdout": 0.2}, {"goal": "find"}, {"overlap": 0.3}])
def test_a_restart_at_any_answer_asks_the_same(tmp_path: Path, options: dict[str, object]) -> None:
    path, store = write_csv(tmp_path), tmp_path / "labels.db"
    session = open_session(path, store, **options)
    for step in range(25):
        label_some(session, 1)
        if step % 6 == 5:
            session.undo(next(keys))
        if step % 7 == 3:
            session.skip(next(keys), queue_of(session)[0])
        again = open_session(path, store, **options)
        assert queue_of(again) == queue_of(session)
        assert again.model.taught == session.model.taught
        again.close()
    assert session.model.version > 10
