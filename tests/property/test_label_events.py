"""Events of labelling: any sequence of actions gives the state that a plain replay gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marginwise.label import Answers, Event, LabelStore

ITEMS = ("a", "b", "c")
PEOPLE = ("ann", "bob")
VALUES = {
    "label": st.sampled_from(["spam", "ham"]),
    "skip": st.none(),
    "undo": st.none(),
    "flag": st.sampled_from(["on", "off"]),
    "note": st.sampled_from(["", "odd", "<b>"]),
}

Action = tuple[str, str, str, str | None]  # kind, annotator, item, value

actions = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(kind), st.sampled_from(PEOPLE), st.sampled_from(ITEMS), value)
            for kind, value in VALUES.items()
        )
    ),
    max_size=40,
)


def made(kind: str, annotator: str, item: str, value: str | None, **more: Any) -> Event:
    label, text = (value, None) if kind == "label" else (None, value)
    return Event(kind=kind, annotator=annotator, item=item, label=label, text=text, **more)


def store_all(store: LabelStore, done: Sequence[Action]) -> list[Event]:
    """Store the events of actions, except undos where there is nothing to take back."""
    stored = []
    for number, action in enumerate(done):
        event = made(*action, key=f"k{number}", time=float(number))
        alive = Naive(done[:number]).undoable(action[1])
        if action[0] == "undo" and alive is None:
            with pytest.raises(ValueError, match="no answer, flag or note to take back"):
                store.append(event)
        else:
            stored.append(store.append(event))
    return stored


class Naive:
    """The state by its definition: actions that are not taken back, searched from the end."""

    def __init__(self, done: Sequence[Action]) -> None:
        self.alive: list[tuple[int, Action]] = []
        seq = 0
        for action in done:
            own = [entry for entry in self.alive if entry[1][1] == action[1]]
            if action[0] != "undo":
                seq += 1
                self.alive.append((seq, action))
            elif own:
                seq += 1
                self.alive.remove(own[-1])

    def newest(self, kinds: Sequence[str], item: str, who: str | None) -> Action | None:
        for _, action in reversed(self.alive):
            if action[0] in kinds and action[2] == item and who in (None, action[1]):
                return action
        return None

    def undoable(self, who: str) -> int | None:
        own = [seq for seq, action in self.alive if action[1] == who]
        return own[-1] if own else None

    def order(self, who: str | None) -> list[str]:
        answers = [a for _, a in self.alive if a[0] in ("label", "skip") and who in (None, a[1])]
        return list(dict.fromkeys(action[2] for action in answers))


@settings(max_examples=60, deadline=None)
@given(done=actions)
@example([("label", "ann", "a", "spam"), ("label", "bob", "a", "ham"), ("undo", "ann", "a", None)])
@example([("label", "ann", "a", "spam"), ("label", "ann", "a", "ham"), ("undo", "ann", "b", None)])
def test_any_sequence_gives_the_state_of_a_plain_replay(done: list[Action]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "labels.db"
        with LabelStore.open(path) as store:
            returned = store_all(store, done)
            assert store.events() == returned
            answers = Answers(store.events())
        check_state(answers, Naive(done))
        check_view(path, answers)


def check_state(answers: Answers, naive: Naive) -> None:
    for who in (None, *PEOPLE):
        assert answers.answered(who) == naive.order(who)
        for item in ITEMS:
            expected = naive.newest(("label", "skip"), item, who)
            found = answers.answer(item, who)
            assert (found and (found.kind, found.label)) == (
                expected and (expected[0], expected[3])
            )
            flag = naive.newest(("flag",), item, who)
            assert answers.flagged(item, who) == (flag is not None and flag[3] == "on")
            note = naive.newest(("note",), item, who)
            assert answers.note(item, who) == ("" if note is None else note[3])
    for who in PEOPLE:
        newest = answers.undoable(who)
        assert (newest and newest.seq) == naive.undoable(who)
    assert sorted(answers.touched()) == sorted({action[2] for _, action in naive.alive})


def check_view(path: Path, answers: Answers) -> None:
    """The view of the file has the same answers."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT item, annotator, kind, label FROM answer").fetchall()
    connection.close()
    expected = [
        (item, who, found.kind, found.label)
        for item in ITEMS
        for who in PEOPLE
        if (found := answers.answer(item, who)) is not None
    ]
    assert sorted(rows, key=str) == sorted(expected, key=str)


@settings(max_examples=25, deadline=None)
@given(done=actions, cut=st.integers(0, 40))
def test_events_may_be_applied_in_parts_and_undo_reaches_across_them(
    done: list[Action], cut: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "labels.db"
        with LabelStore.open(path) as store:
            store_all(store, done[:cut])
            answers = Answers(store.events())
        with LabelStore.open(path) as store:  # after a restart
            for number, action in enumerate(done[cut:]):
                if action[0] == "undo" and answers.undoable(action[1]) is None:
                    continue
                answers.apply(store.append(made(*action, key=f"later{number}", time=1.0)))
            assert store.events(after=answers.seq) == []
    check_state(answers, Naive(done))


def test_an_answer_that_is_changed_keeps_its_place_and_an_undone_one_vanishes() -> None:
    answers = Answers()
    given = [("a", "spam"), ("b", "ham"), ("a", "ham"), ("c", "ham")]
    for seq, (item, label) in enumerate(given, start=1):
        answers.apply(made("label", "ann", item, label, seq=seq))
    counted = [(event.item, event.label) for event in answers.effective()]
    assert counted == [("a", "ham"), ("b", "ham"), ("c", "ham")]
    answers.apply(made("undo", "ann", "c", None, undone=4, seq=5))
    answers.apply(made("undo", "ann", "a", None, undone=3, seq=6))
    counted = [(event.item, event.label) for event in answers.effective()]
    assert counted == [("a", "spam"), ("b", "ham")]


def test_an_undo_reverts_only_events_of_its_own_annotator() -> None:
    answers = Answers([made("label", "ann", "a", "spam", seq=1)])
    answers.apply(made("undo", "bob", "a", None, undone=1, seq=2))
    assert [(event.item, event.label) for event in answers.effective()] == [("a", "spam")]
    newest = answers.undoable("ann")
    assert newest is not None
    assert newest.seq == 1
    answers.apply(made("undo", "ann", "a", None, undone=1, seq=3))
    assert answers.effective() == []


def test_pending_items_of_the_last_event_are_found_again(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.append(made("label", "ann", "a", "spam", pending=["b", "c"], score=[0.5, -1.0]))
        store.append(made("skip", "bob", "c", None, pending=[]))
    with LabelStore.open(tmp_path / "labels.db") as store:
        answers = Answers(store.events())
    last = answers.last("ann")
    assert last is not None
    assert (last.pending, last.score) == (("b", "c"), [0.5, -1.0])
    assert answers.last("eve") is None
    assert answers.annotators() == ["ann", "bob"]


def test_events_out_of_order_are_refused() -> None:
    answers = Answers([made("skip", "ann", "a", None, seq=2)])
    with pytest.raises(ValueError, match="event 2 was applied after event 2; apply events in the"):
        answers.apply(made("skip", "ann", "a", None, seq=2))


WRONG = {
    "kind": {"kind": "delete"},
    "item": {"item": ""},
    "annotator": {"annotator": ""},
    "label": {"label": ""},
    "text": {"text": "on"},
    "undone": {"undone": 1},
    "key": {"key": ""},
    "time": {"time": float("nan")},
    "duration": {"duration": -1.0},
    "model_version": {"model_version": 0.5},
    "purpose": {"purpose": "fun"},
    "pending": {"pending": [1]},
}


@pytest.mark.parametrize("name", WRONG)
def test_events_with_wrong_values_are_refused(name: str) -> None:
    right: dict[str, Any] = {"kind": "label", "item": "a", "annotator": "ann", "label": "spam"}
    with pytest.raises(ValueError, match=f"{name} must be .*; got "):
        Event(**{**right, **WRONG[name]})


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_cannot_be_encoded_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="item must be the id of an item"):
        Event(kind="skip", item=text, annotator="ann")
