"""Sessions: the queue, answers, undo, and the same questions after a restart."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise.label.item_files import Columns
from marginwise.label.session import Session
from marginwise.label.store import LabelStore
from tests.label_support import (
    keys,
    label_some,
    open_session,
    queue_of,
    truth_of,
    write_csv,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_csv(tmp_path)


@pytest.fixture
def session(path: Path) -> Session:
    return open_session(path, path.parent / "labels.db")


def summary_of(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = session.state()["summary"]
    return found


# -- answers ---------------------------------------------------------------------------------------


def test_answers_are_learned_and_counted(session: Session) -> None:
    label_some(session, 30)
    summary = summary_of(session)
    assert summary["answered"] == 30
    assert sum(summary["counts"].values()) == 30
    assert summary["left"] == 50
    assert session.model.version == 30
    guesses = [(session.guess(item), session.item(item)) for item in session.items.ids]
    assert (
        sum(guess is not None and guess["label"] == truth_of(item) for guess, item in guesses) > 71
    )


def test_a_guess_names_scores_of_all_labels(session: Session) -> None:
    item = session.items.ids[0]
    assert session.guess(item) is None
    label_some(session, 10)
    guess = session.guess(item)
    assert guess is not None
    assert next(label for label, _ in guess["scores"]) == guess["label"]
    assert 0.5 <= guess["confidence"] <= 1
    with pytest.raises(KeyError, match="there is no item 'x'"):
        session.guess("x")


def test_the_same_request_twice_is_one_answer(session: Session) -> None:
    item = session.state()["queue"][0]["id"]
    first = session.answer("once", item, "good")
    assert session.answer("once", item, "good") == first
    assert summary_of(session)["answered"] == 1


def test_no_question_is_asked_twice(session: Session) -> None:
    asked = label_some(session, 80)
    assert sorted(asked) == sorted(session.items.ids)
    assert queue_of(session) == []
    assert summary_of(session)["stop"] == {
        "stop": True,
        "reason": "all 80 rows of the pool were taught or skipped.",
    }


def test_skipped_items_are_not_learned_and_not_asked_again(session: Session) -> None:
    skipped = queue_of(session)[0]
    session.skip(next(keys), skipped)
    assert session.model.version == 0
    assert summary_of(session)["skipped"] == 1
    assert skipped not in label_some(session, 79)


def test_wrong_labels_and_items_are_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="there is no label 'ugly'; expected one of good, bad"):
        session.answer(next(keys), queue_of(session)[0], "ugly")
    with pytest.raises(KeyError, match="there is no item 'x'"):
        session.answer(next(keys), "x", "good")
    assert summary_of(session)["answered"] == 0


# -- changes and undo ------------------------------------------------------------------------------


def test_undo_puts_the_item_in_front(session: Session) -> None:
    asked = label_some(session, 12)
    for item in reversed(asked):
        found = session.undo(next(keys))
        assert found["undone"]["item"] == item
        assert found["queue"][0]["id"] == item
    assert session.undo(next(keys))["undone"] is None
    assert session.model.version == 0


def test_an_undo_that_is_sent_again_undoes_once(session: Session) -> None:
    label_some(session, 3)
    session.undo("again")
    assert session.undo("again")["undone"] is None
    assert summary_of(session)["answered"] == 2


def test_undo_reaches_across_restarts(path: Path, session: Session) -> None:
    asked = label_some(session, 5)
    session.close()
    again = open_session(path, path.parent / "labels.db")
    assert [again.undo(next(keys))["undone"]["item"] for _ in range(5)] == asked[::-1]


def test_a_changed_answer_keeps_its_place(session: Session) -> None:
    asked = label_some(session, 10)
    queue = queue_of(session)
    other = "bad" if session.item(asked[3])["answer"]["label"] == "good" else "good"
    found = session.answer(next(keys), asked[3], other)
    assert [item["id"] for item in found["queue"]] == queue
    rows = [row for row, _, _ in session.model.taught]
    assert rows == [session.items.row(item) for item in asked]
    assert session.model.taught[3][1] == other
    assert session.undo(next(keys))["undone"] == {"item": asked[3], "kind": "label", "label": other}
    assert session.model.taught[3][1] != other
    assert queue_of(session) == queue


def test_flags_and_notes(session: Session) -> None:
    item = queue_of(session)[0]
    assert session.flag(next(keys), item, True)["summary"]["flagged"] == 1
    session.note(next(keys), item, "unclear")
    assert (session.item(item)["flagged"], session.item(item)["note"]) == (True, "unclear")
    assert session.undo(next(keys))["undone"]["kind"] == "note"
    assert session.item(item)["note"] == ""
    assert session.flag(next(keys), item, False)["summary"]["flagged"] == 0
    assert session.undo(next(keys))["summary"]["flagged"] == 1
    assert queue_of(session)[0] == item


def test_history_is_in_pages(session: Session) -> None:
    asked = label_some(session, 7)
    session.flag(next(keys), asked[2], True)
    first = session.history(limit=4)
    rest = session.history(before=first["entries"][-1]["seq"], limit=4)
    assert (first["more"], rest["more"]) == (True, False)
    entries = first["entries"] + rest["entries"]
    assert [entry["item"]["id"] for entry in entries] == asked[::-1]
    assert [entry["flagged"] for entry in entries] == [item == asked[2] for item in asked[::-1]]


# -- restarts --------------------------------------------------------------------------------------


OPTIONS: list[dict[str, Any]] = [
    {},
    {"holdout": 0.2},
    {"goal": "find"},
    {"overlap": 0.3},
    {"strategy": "near_boundary"},
    {"strategy": "largest_positive"},
    {"strategy": "random"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_restart_at_any_answer_asks_the_same(path: Path, options: dict[str, Any]) -> None:
    store = path.parent / "labels.db"
    session = open_session(path, store, **options)
    asked: list[str] = []
    for step in range(24):
        asked += label_some(session, 1)
        if step % 6 == 5:
            session.undo(next(keys))
        if step % 7 == 3:
            session.skip(next(keys), queue_of(session)[0])
        if step % 9 == 4:
            session.answer(next(keys), asked[step // 2], "good")
        again = open_session(path, store, **options)
        assert queue_of(again) == queue_of(session)
        assert again.model.taught == session.model.taught
        np.testing.assert_array_equal(
            again.model.values(np.arange(80)) if again.model.ready else 0,
            session.model.values(np.arange(80)) if session.model.ready else 0,
        )
        again.close()
    assert session.model.version > 10


@pytest.mark.slow
def test_an_audit_is_continued_after_a_restart(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path, 400), tmp_path / "labels.db"
    session = open_session(path, store)
    for _ in range(14):
        label_some(session, 10)
        again = open_session(path, store)
        assert queue_of(again) == queue_of(session)
        assert again.progress()["stop"] == session.progress()["stop"]
        again.close()
    purposes = [event.purpose for event in session.store.events()]
    assert purposes.count("random") >= 30
    assert session.progress()["stop"]["reason"]


def test_progress_is_the_same_after_a_restart(path: Path) -> None:
    options: dict[str, Any] = {"holdout": 0.25}
    session = open_session(path, path.parent / "labels.db", **options)
    label_some(session, 40)
    again = open_session(path, path.parent / "labels.db", **options)
    assert again.progress() == session.progress()


# -- what is held out, shared, or there before -----------------------------------------------------


def test_held_out_items_are_asked_and_not_learned(path: Path) -> None:
    session = open_session(path, path.parent / "labels.db", holdout=0.25)
    label_some(session, 40)
    held = [e for e in session.answered.counting if e.purpose == "holdout"]
    assert len(held) == 10
    assert session.model.version == 30
    learned = {row for row, _, _ in session.model.taught}
    assert not learned & {session.items.row(event.item) for event in held}
    points = session.progress()["holdout"]
    assert points[-1][0] == 30
    assert all(0 <= low <= error <= high <= 1 for _, error, low, high in points)


def test_labels_of_the_file_start_the_model(path: Path) -> None:
    lines = path.read_text().splitlines()
    lines = [
        lines[0],
        *(line if k % 4 == 0 else line.rsplit(",", 1)[0] + "," for k, line in enumerate(lines[1:])),
    ]
    path.write_text("\n".join(lines) + "\n")
    columns, store = Columns(label="truth", text=("text",)), path.parent / "labels.db"
    for _ in range(2):  # they are stored once
        session = open_session(path, store, columns, labels=None)
        assert session.settings.labels == ("bad", "good")
        assert session.model.version == 20
        assert summary_of(session)["answered"] == 20
        assert session.state()["undoable"] is False
        assert len(session.store.events()) == 20
        session.close()
    session = open_session(path, store, columns)
    known = session.answered.counting[0].item
    assert known not in label_some(session, 60)
    session.answer(next(keys), known, "bad")
    assert {e.purpose for e in session.store.events() if e.item == known} == {"import", "browse"}


def test_two_annotators_share_some_items(path: Path) -> None:
    store = path.parent / "labels.db"
    ann = open_session(path, store, annotator="ann", overlap=0.25)
    bob = open_session(path, store, annotator="bob", overlap=0.25)
    mine: dict[str, list[str]] = {"ann": [], "bob": []}
    for _ in range(28):
        mine["ann"] += label_some(ann, 1)
        mine["bob"] += label_some(bob, 1)
    both = set(mine["ann"]) & set(mine["bob"])
    assert len(both) == 7
    shared = {e.item for e in ann.store.events() if e.purpose == "overlap"}
    assert both <= shared
    ann.state()  # which reads the events of the other
    bob.state()
    assert ann.model.taught == bob.model.taught
    assert ann.progress()["agreement"] == {"kappa": 1.0, "items": 7, "agree": 1.0}
    assert summary_of(ann)["answered"] == 2 * 28 - 7


@pytest.mark.parametrize("goal", ["learn", "find"])
def test_annotators_who_take_turns_have_different_queues(path: Path, goal: str) -> None:
    store = path.parent / "labels.db"
    sessions = [open_session(path, store, annotator=name, goal=goal) for name in ("ann", "bob")]
    for _ in range(12):
        for one in sessions:
            label_some(one, 1)
            assert not set(queue_of(sessions[0])) & set(queue_of(sessions[1]))


def test_annotators_at_the_same_moment_have_different_queues(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server chooses after another has chosen and before that has stored its choice."""
    store = path.parent / "labels.db"
    ann, bob = (open_session(path, store, annotator=name) for name in ("ann", "bob"))
    label_some(ann, 6)
    label_some(bob, 6)
    other = threading.Thread(target=label_some, args=(bob, 1))
    fill = ann._queue.fill

    def fill_while_the_other_does(*taken: set[str]) -> None:
        short = len(ann._queue.questions) < 3
        fill(*taken)
        if short:
            other.start()
            other.join(1)  # it can only finish after this choice is stored

    monkeypatch.setattr(ann._queue, "fill", fill_while_the_other_does)
    label_some(ann, 1)
    monkeypatch.undo()
    other.join()
    assert not set(queue_of(ann)) & set(queue_of(bob))


def test_items_that_another_annotator_answered_leave_the_queue(path: Path) -> None:
    ann = open_session(path, path.parent / "labels.db", annotator="ann")
    bob = open_session(path, path.parent / "labels.db", annotator="bob")
    item = queue_of(ann)[1]
    bob.answer(next(keys), item, "good")
    assert item not in queue_of(ann)
    assert ann.undo(next(keys))["undone"] is None  # the answer is not ann's


def test_threads_may_share_a_session(session: Session) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for k in range(15):
                queue = session.state()["queue"]
                item = queue[(number + k) % len(queue)]
                session.answer(f"{number} {k}", item["id"], truth_of(item))
                session.progress()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    events = session.store.events()
    assert len(events) == 60
    assert len({event.item for event in events}) == summary_of(session)["answered"]


# -- stores ----------------------------------------------------------------------------------------


def test_a_store_of_other_items_is_refused(path: Path, session: Session) -> None:
    session.close()
    other = path.parent / "other.csv"
    other.write_text("text\nsome other text\nand one more\n")
    with pytest.raises(ValueError, match=r"labels\.db has labels of texts\.csv \(80 items\)"):
        open_session(other, path.parent / "labels.db")


def test_labels_of_a_store_stay_known(path: Path, session: Session) -> None:
    label_some(session, 4)
    session.close()
    store = path.parent / "labels.db"
    assert open_session(path, store, labels=None).settings.labels == ("good", "bad")
    assert open_session(path, store, labels=["bad", "good", "odd"]).settings.labels[2] == "odd"
    with pytest.raises(ValueError, match="which is not one of fine, odd"):
        open_session(path, store, labels=["fine", "odd"])


def test_settings_of_a_store_stay(path: Path) -> None:
    store = path.parent / "labels.db"
    open_session(path, store, holdout=0.2).close()
    with pytest.warns(UserWarning, match=r"was started with holdout 0\.2, which stays"):
        assert open_session(path, store, holdout=0.1).settings.holdout == 0.2


def test_nothing_is_acknowledged_that_is_not_stored(path: Path, session: Session) -> None:
    before = session.state()
    session.store.close()
    with pytest.raises(ValueError, match="closed"):
        session.answer(next(keys), before["queue"][0]["id"], "good")
    session.store = LabelStore.open(path.parent / "labels.db")
    assert session.state() == before


def test_events_say_why_and_by_which_model(session: Session) -> None:
    label_some(session, 20)
    events = session.store.events()
    assert [event.model_version for event in events[:3]] == [0, 0, 0]
    assert events[-1].model_version == 17  # two more were in the queue already
    assert events[0].score is None
    assert isinstance(events[-1].score, float)
    assert json.dumps(events[-1].pending).count(":strategy") == 2
