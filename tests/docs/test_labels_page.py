"""The page of the label store: every column is described, and its queries run."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from marginwise.label import PURPOSES, Event, LabelStore
from marginwise.label.formats import OWN
from marginwise.label.item_files import Columns, open_items
from marginwise.label.reopening import Request, item_set, remember

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "labels.md").read_text(encoding="utf-8")


def store_with_answers(folder: Path) -> sqlite3.Connection:
    (folder / "items.csv").write_text("text\none two\nthree four\n")
    request = Request(str(folder / "items.csv"), Columns(text=("text",)))
    items = open_items(request.items, request.columns)
    with LabelStore.open(folder / "labels.db", items=item_set(items)) as store:
        remember(store, request)
        for who, label in {"ann": "x", "bob": "y"}.items():
            store.append(Event(kind="label", item=items.ids[0], annotator=who, label=label))
        store.append(Event(kind="label", item=items.ids[1], annotator="ann", label="x"))
    return sqlite3.connect(folder / "labels.db")


def test_every_column_is_described(tmp_path: Path) -> None:
    connection = store_with_answers(tmp_path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(event)")]
    keys = [row[0] for row in connection.execute("SELECT key FROM meta")]
    connection.close()
    assert len(columns) == 14
    for name in columns:
        assert f"\n| `{name}` | " in TEXT, name
    for name in (*keys, *PURPOSES, *OWN):
        assert f"`{name}`" in TEXT, name


def test_queries_run(tmp_path: Path) -> None:
    connection = store_with_answers(tmp_path)
    (block,) = re.findall(r"^```sql\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    counts, disagreements, days = (
        connection.execute(query).fetchall() for query in block.split(";") if query.strip()
    )
    connection.close()
    assert counts == [("x", 1), ("y", 1)]
    assert [row[1] for row in disagreements] == ["ann: x, bob: y"]
    assert [(row[0], row[2]) for row in days] == [("ann", 2), ("bob", 1)]
