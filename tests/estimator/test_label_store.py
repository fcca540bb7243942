"""The label store: durability, several processes, and files that are refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from marginwise.label import Answers, Event, ItemSet, LabelStore, StoreError
from marginwise.label.schema import APPLICATION_ID, VERSION
from marginwise.label.store import ACTIVE

posix = pytest.mark.skipif(os.name == "nt", reason="forks and kills processes as POSIX does")
SMS = ItemSet("sms.csv", 5574, "f1")


def label(item: str, name: str = "spam", key: str | None = None) -> Event:
    more = {} if key is None else {"key": key}
    return Event(kind="label", item=item, annotator="ann", label=name, time=1.0, **more)


def test_what_was_appended_is_read_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    event = Event(
        kind="label",
        item="ü/1",
        annotator="Änn",
        label="spam\n",
        key="k",
        time=12.5,
        duration=2.0,
        model_version=3,
        score=-0.25,
        purpose="strategy",
        pending=("a", "b"),
    )
    with LabelStore.open(path, items=SMS) as store:
        stored = store.append(event)
        store.set_meta(labels='["spam", "ham"]')
    with LabelStore.open(path, items=SMS) as store:
        assert store.events() == [stored]
        assert store.items == SMS
        assert store.meta()["labels"] == '["spam", "ham"]'
        assert store.meta()["created"].endswith("Z")
    assert stored.seq == 1


def test_the_same_key_is_stored_once(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        first = store.append(label("a", "spam", key="one"))
        again = store.append(label("a", "ham", key="one"))
        assert again == first
        assert store.events() == [first]


def test_an_undo_takes_back_the_newest_event_of_its_annotator(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.append(label("a"))
        newest = store.append(label("b"))
        store.append(Event(kind="skip", item="c", annotator="bob"))
        undo = store.append(Event(kind="undo", item="", annotator="ann"))
        assert (undo.undone, undo.item) == (newest.seq, "b")
        with pytest.raises(ValueError, match="event 2 cannot be taken back: the newest event of"):
            store.append(Event(kind="undo", item="b", annotator="ann", undone=2))
        with pytest.raises(ValueError, match="'eve' has no answer, flag or note to take back"):
            store.append(Event(kind="undo", item="", annotator="eve"))
        assert Answers(store.events()).answered() == ["a", "c"]


def test_several_events_are_stored_as_a_whole(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        with pytest.raises(ValueError, match="to take back"):
            store.append_all([label("a"), Event(kind="undo", item="", annotator="eve")])
        assert store.events() == []
        assert [event.seq for event in store.append_all([label("a"), label("b")])] == [1, 2]


def test_values_of_the_whole_are_those_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as one, LabelStore.open(path) as two:
        assert one.default_meta(seed="1", goal="find") == {"seed": "1", "goal": "find"}
        assert two.default_meta(seed="2") == {"seed": "1"}
        two.set_meta(seed="3")
        assert one.meta()["seed"] == "3"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET label = 'ham'",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event (key, kind, item, annotator, time) "
        "VALUES ('one', 'skip', 'a', 'ann', 0)",
        "INSERT OR REPLACE INTO event (seq, key, kind, item, annotator, time) "
        "VALUES (1, 'two', 'skip', 'a', 'ann', 0)",
    ],
)
def test_events_cannot_be_changed_even_by_other_programs(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as store:
        kept = store.append(label("a", key="one"))
        connection = sqlite3.connect(path)
        with pytest.raises(sqlite3.IntegrityError, match="events are never"):
            connection.execute(statement)
        connection.close()
        assert store.events() == [kept]


def test_the_file_is_durable_and_names_its_format(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        read = store._connection.execute
        assert read("PRAGMA journal_mode").fetchone() == ("wal",)
        assert read("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert read("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert read("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_store_of_version_1_is_migrated_and_keeps_its_events(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as store:
        kept = store.append(label("a"))
        store._connection.execute("DROP TABLE assigned")
        store._connection.execute("PRAGMA user_version = 1")
    with LabelStore.open(path, readonly=True) as store:
        assert store.events() == [kept]
    with LabelStore.open(path) as store:
        assert store.events() == [kept]
        store.assign("ann", 0, lambda taken: [f"{item}:random" for item in taken])
        found: list[set[str]] = []
        store.assign("bob", kept.seq, lambda taken: found.append(taken) or [])
        assert found == [{"a"}]


def test_questions_of_inactive_annotators_are_free_again(tmp_path: Path) -> None:
    found: list[set[str]] = []
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.assign("ann", 0, lambda _: ["a:random", "b:strategy"])
        store.assign("bob", 0, lambda taken: found.append(taken) or [])
        store._connection.execute("UPDATE assigned SET time = time - ?", [ACTIVE])
        store.assign("bob", 0, lambda taken: found.append(taken) or [])
    assert found == [{"a", "b"}, set()]


def test_questions_of_another_program_are_reported(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.assign("ann", 0, lambda _: [])
        for text in ("[", "7", "[7]"):
            store._connection.execute("UPDATE assigned SET questions = ?", [text])
            with pytest.raises(StoreError, match="the table assigned has questions that marg"):
                store.assign("bob", 0, lambda _: [])


# -- several at once -------------------------------------------------------------------------------


def test_threads_share_one_store(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:

        def work(name: str) -> None:
            for number in range(25):
                store.append(label(f"{name}{number}", key=f"{name}{number}"))

        threads = [threading.Thread(target=work, args=[name]) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.seq for event in store.events()] == list(range(1, 101))


TWO_WRITERS = """
import os, sys
from marginwise.label import Event, LabelStore

path = sys.argv[1]
children = []
for name in ("ann", "bob"):
    child = os.fork()
    if child == 0:
        with LabelStore.open(path) as store:  # both create it
            for number in range(100):
                given = Event(kind="skip", item=str(number), annotator=name, key=f"{name}{number}")
                store.append(given)
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitpid(child, 0)[1] for child in children))
"""

KILLED = """
import os, random, select, signal, sys, time
from marginwise.label import Event, LabelStore

path, rounds = sys.argv[1], int(sys.argv[2])
moments = random.Random(0)

def write(start, door):
    with LabelStore.open(path) as store:
        for number in range(start, 10**9):
            store.append(Event(kind="label", item=str(number), annotator="ann", label="x",
                               key=f"k{number}"))
            os.write(door, b".")  # acknowledged

acknowledged = 0
for turn in range(rounds):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        write(acknowledged, writing)  # begins with the event that was not acknowledged
    os.close(writing)
    if turn % 4:  # else: a moment that may be before the first event
        select.select([reading], [], [])
    time.sleep(moments.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while dots := os.read(reading, 65536):
        acknowledged += len(dots)
    os.close(reading)
    with LabelStore.open(path) as store:
        keys = [event.key for event in store.events()]
    assert keys == [f"k{number}" for number in range(len(keys))], keys[-3:]
    assert acknowledged <= len(keys) <= acknowledged + 1, (acknowledged, len(keys))
print(acknowledged)
"""


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@posix
def test_two_processes_append_at_once(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    run(TWO_WRITERS, path)
    with LabelStore.open(path, create=False) as store:
        events = store.events()
    assert [event.seq for event in events] == list(range(1, 201))
    for name in ("ann", "bob"):
        own = [event.item for event in events if event.annotator == name]
        assert own == [str(number) for number in range(100)]


@pytest.mark.slow
@posix
def test_kills_lose_no_acknowledged_event_and_double_none(tmp_path: Path) -> None:
    acknowledged = int(run(KILLED, tmp_path / "labels.db", 50))
    assert acknowledged > 37  # the turns that wait for an event


# -- refused ---------------------------------------------------------------------------------------


def test_a_store_of_other_items_is_refused_by_both_names(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    LabelStore.open(path, items=SMS).close()
    with pytest.raises(StoreError, match=r"labels of sms.csv \(5,574 items\), not of mail.csv"):
        LabelStore.open(path, items=ItemSet("mail.csv", 3, "f2"))
    with LabelStore.open(path, items=ItemSet("moved/sms.csv", 5574, "f1")) as store:
        assert store.items == SMS


def test_a_store_that_does_not_know_its_items_learns_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as store:
        assert store.items is None
    with LabelStore.open(path, items=SMS) as store:
        assert store.items == SMS


def test_a_newer_version_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    LabelStore.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(StoreError, match=r"of version 7, made by a newer marginwise; .* up to 2"):
        LabelStore.open(path)


def test_other_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    text, other = tmp_path / "text.csv", tmp_path / "other.db"
    text.write_text("id,label\n" * 300)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = {path: path.read_bytes() for path in (text, other)}
    with pytest.raises(StoreError, match=r"text.csv: is not a label store; it is left as it is"):
        LabelStore.open(text)
    with pytest.raises(StoreError, match=r"other.db: is an SQLite database of another program"):
        LabelStore.open(other)
    assert {path: path.read_bytes() for path in (text, other)} == before


def test_places_that_cannot_hold_a_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a directory; give the name of a file"):
        LabelStore.open(tmp_path)
    with pytest.raises(StoreError, match=r"there is no directory .*none. Create it"):
        LabelStore.open(tmp_path / "none" / "labels.db")
    with pytest.raises(StoreError, match=r"labels.db: does not exist; give the name of a label"):
        LabelStore.open(tmp_path / "labels.db", create=False)
    with pytest.raises(StoreError, match=r"labels.db: does not exist"):
        LabelStore.open(tmp_path / "labels.db", readonly=True)
    assert not (tmp_path / "labels.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="is empty, not a label store"):
        LabelStore.open(tmp_path / "empty.db", readonly=True)


@posix
def test_special_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(StoreError, match="fifo: is not a regular file"):
        LabelStore.open(tmp_path / "fifo")


READ_ONLY = """
import os, sys
from marginwise.label import LabelStore, StoreError
if os.geteuid() == 0:
    os.setuid(65534)  # a user for whom permissions count
for name in ("new.db", "labels.db"):
    try:
        LabelStore.open(f"{sys.argv[1]}/{name}")
    except StoreError as error:
        print(error)
with LabelStore.open(f"{sys.argv[1]}/labels.db", readonly=True) as store:
    print(store.items.name, len(store.events()))
"""


@pytest.mark.slow
@posix
def test_read_only_folders_are_refused_but_can_be_read() -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path has parents that are private
        LabelStore.open(Path(folder) / "labels.db", items=SMS).close()
        (Path(folder) / "labels.db").chmod(0o444)
        Path(folder).chmod(0o555)
        try:
            new, old, read = run(READ_ONLY, folder).splitlines()
        finally:
            Path(folder).chmod(0o755)
    assert "new.db: cannot be opened: no permission to read or write the file or its folder" in new
    assert "labels.db: cannot be written: the file or its folder is read-only" in old
    assert read == "sms.csv 0"


def test_a_full_disk_is_reported_and_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        kept = store.append(label("a"))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="because the disk is full; the last answer was not"):
            store.append(label("b" * 10_000))
        store._connection.execute(f"PRAGMA max_page_count = {pages + 100}")
        assert store.events() == [kept]
        assert store.append(label("b" * 10_000)).seq == 2


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as store:
        store.append_all([label(f"{number:050}") for number in range(500)])
    content = bytearray(path.read_bytes())
    for place in range(4096, len(content) - 4096, 4096):
        content[place : place + 64] = b"\xff" * 64
    path.write_bytes(content)
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"labels.db: is damaged \("):
            LabelStore.open(path, readonly=readonly)
    path.write_bytes(content[:5000])
    with pytest.raises(StoreError, match="is damaged"):
        LabelStore.open(path)


def test_a_store_without_its_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.close()
    with (
        LabelStore.open(path) as store,
        pytest.raises(StoreError, match="is not a complete label store"),
    ):
        store.events()


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("kind", "'label'"),
        ("kind, pending", "'skip', '[1]'"),
        ("kind, pending", "'skip', '{'"),
        ("kind, score", "'skip', x'00'"),
        ("kind, purpose", "'skip', 'fun'"),
    ],
)
def test_events_of_other_programs_are_refused_by_number(
    tmp_path: Path, columns: str, values: str
) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store._connection.execute(
            f"INSERT INTO event (key, item, annotator, time, {columns}) "
            f"VALUES ('k', 'a', 'ann', 0, {values})"
        )
        with pytest.raises(
            StoreError, match=r"labels.db: event 1 is not one that marginwise wrote"
        ):
            store.events()


def test_a_locked_store_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as one, LabelStore.open(path) as two:
        one._connection.execute("BEGIN IMMEDIATE")
        two._connection.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(StoreError, match="is in use by another process"):
            two.append(label("a"))
        one._connection.execute("ROLLBACK")
        assert two.append(label("a")).seq == 1


def test_a_store_that_was_opened_to_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    with LabelStore.open(path) as store:
        store.append(label("a"))
        with LabelStore.open(path, readonly=True) as reader:
            assert len(reader.events()) == 1
            store.append(label("b"))
            assert len(reader.events(after=1)) == 1
            with pytest.raises(StoreError, match="cannot be written"):
                reader.append(label("c"))
    with pytest.raises(StoreError, match="has been closed"):
        store.events()


def test_names_with_signs_of_addresses_are_files(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory&b#c %41.db"
    with LabelStore.open(path) as store:
        store.append(label("a"))
    assert path.exists()
    with LabelStore.open(path, readonly=True) as store:
        assert len(store.events()) == 1
