"""Stores after commands that failed, imports, and starts with other options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marginwise.cli import main
from marginwise.label import Answers, Event, LabelStore
from marginwise.label.item_files import Columns, open_items
from marginwise.label.opening import StoreError
from marginwise.label.security import Address
from tests.label_support import keys, label_some, open_session, queue_of, write_csv
from tests.support import runner

pytest.importorskip("pyarrow", reason="tables are read with pyarrow")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_csv(tmp_path)


def run(*words: str) -> Any:
    return runner().invoke(main, list(words))


def test_a_start_that_fails_leaves_no_store(path: Path) -> None:
    (path.parent / "failing.py").write_text(
        "def f(items):\n    raise RuntimeError('out of luck')\n"
    )
    words = ["label", "texts.csv", "--labels", "good,bad", "--get", "/api/state"]
    failed = run(*words, "--features", "failing:f")
    assert failed.exit_code == 1
    assert "failing:f raised RuntimeError: out of luck" in failed.stderr
    assert not list(path.parent.glob("labels.db*"))


def test_a_start_that_fails_keeps_a_store_that_existed(path: Path) -> None:
    open_session(path, Path("labels.db")).close()
    failed = run("label", "texts.csv", "--features", "none:f", "--get", "/api/state")
    assert failed.exit_code == 1
    assert Path("labels.db").exists()


def test_an_import_that_fails_leaves_no_store(path: Path) -> None:
    Path("wrong.csv").write_text("item,label,flagged\na,good,perhaps\n")
    failed = run("labels", "import", "new.db", "wrong.csv")
    assert failed.exit_code == 1
    assert not list(path.parent.glob("new.db*"))
    Path("right.csv").write_text("item,label\na,good\n")
    assert run("labels", "import", "new.db", "right.csv").exit_code == 0
    assert run("labels", "import", "new.db", "wrong.csv").exit_code == 1
    with LabelStore.open("new.db", create=False) as store:
        assert len(store.events()) == 1


def test_imported_labels_of_other_items_are_refused_by_name(path: Path) -> None:
    Path("other.csv").write_text("item,label\nunknown,good\n")
    assert run("labels", "import", "labels.db", "other.csv").exit_code == 0
    with pytest.raises(StoreError, match=r"1 of its items, such as 'unknown', are not in texts"):
        open_session(path, Path("labels.db"))
    with LabelStore.open("labels.db") as store:  # still without items, so that others can be given
        assert store.items is None


def test_labels_that_were_named_once_stay(path: Path) -> None:
    columns = Columns(label="truth", text=("text",))
    open_session(path, Path("labels.db"), columns, labels=["good", "bad", "odd"]).close()
    again = open_session(path, Path("labels.db"), columns, labels=None)
    assert again.settings.labels == ("good", "bad", "odd")
    again.close()


def test_an_import_under_the_own_name_keeps_queue_and_undo(path: Path) -> None:
    session = open_session(path, Path("labels.db"))
    asked = label_some(session, 5)
    before = queue_of(session)
    free = next(item for item in session.items.ids if item not in {*asked, *before})
    Path("more.csv").write_text(f"item,label,annotator\n{free},good,ann\n")
    assert run("labels", "import", "labels.db", "more.csv").exit_code == 0
    running = queue_of(session)
    assert running == before
    session.close()
    session = open_session(path, Path("labels.db"))
    assert queue_of(session)[:2] == before[:2]  # the third is chosen by a model that knows more
    assert session.undo(next(keys))["undone"]["item"] == asked[-1]
    assert session.item(free)["answer"] == {"kind": "label", "label": "good"}
    session.close()


def test_undo_passes_over_imports(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.append(Event(kind="label", item="a", label="x", annotator="ann"))
        store.append(Event(kind="label", item="b", label="x", annotator="ann", purpose="import"))
        assert store.append(Event(kind="undo", item="", annotator="ann")).item == "a"
        with pytest.raises(ValueError, match="no answer, flag or note to take back"):
            store.append(Event(kind="undo", item="", annotator="ann"))
        answers = Answers(store.events())
        assert answers.undoable("ann") is None
        assert answers.answered() == ["b"]


def test_import_and_label_read_the_same_columns(path: Path) -> None:
    pytest.importorskip("starlette.testclient", reason="needs marginwise[label], httpx")
    Path("studies.csv").write_text("title,abstract\nFirst,one two\nSecond,three four\n")
    item = open_items("studies.csv", Columns(text=("abstract",))).ids[0]
    Path("more.csv").write_text(f"item,label\n{item},good\n")
    words = ["--items", "studies.csv", "--text-column", "abstract"]
    assert run("labels", "import", "labels.db", "more.csv", *words).exit_code == 0
    state = ["label", "studies.csv", "--labels", "good,bad", "--get", "/api/state"]
    assert run(*state, "--text-column", "abstract").exit_code == 0
    assert run(*state).exit_code == 1


@pytest.mark.parametrize("name", ["", " ", "file"])
def test_names_that_annotators_cannot_have(path: Path, name: str) -> None:
    done = run("label", "texts.csv", "--labels", "a,b", "--annotator", name, "--get", "/api/state")
    assert done.exit_code == 2
    assert "expected a name other than 'file'" in done.stderr


def test_tokens_are_quoted_in_the_address() -> None:
    address = Address("127.0.0.1", 8123, "a&b=c#d%e+f g/0123")
    assert address.url == "http://127.0.0.1:8123/?token=a%26b%3Dc%23d%25e%2Bf%20g%2F0123"


def test_browsers_leave_out_port_80() -> None:
    address = Address("127.0.0.1", 80, "token")
    assert address.serves("127.0.0.1")
    assert address.serves("[::1]")
    assert address.serves("localhost:80")
    assert not address.serves("evil.example")
    assert not address.serves("127.0.0.1:81")
    assert not Address("127.0.0.1", 8123, "token").serves("127.0.0.1")


@pytest.mark.parametrize("odd", ["item", "label"])
def test_answers_of_other_processes_that_a_session_does_not_know(tmp_path: Path, odd: str) -> None:
    """They stay in the store; the session neither fails nor learns them."""
    path, store = write_csv(tmp_path), tmp_path / "labels.db"
    session = open_session(path, store)
    label_some(session, 8)
    learned, answers = session.model.version, session.state()["summary"]["answered"]
    unseen = session.model.unseen()[-1]
    item, label = ("none", "good") if odd == "item" else (session.items.ids[unseen], "maybe")
    session.store.append(Event(kind="label", item=item, label=label, annotator="bob"))
    assert session.state()["summary"]["answered"] == answers
    assert session.model.version == learned
    assert len(session.progress()["prequential"]) > 0
    label_some(session, 2)
    assert session.undo("again")["undone"]["kind"] == "label"
    assert session.store.events()[8].item == item
