"""The items of a store: their location, and how to read them again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from marginwise.data import open_source
from marginwise.data.recognise import FAMILIES
from marginwise.data.sniff import kind_of
from marginwise.label.item_files import Columns, open_items, plain
from marginwise.label.items import Items
from marginwise.label.opening import StoreError
from marginwise.label.store import ItemSet, LabelStore


@dataclass(frozen=True)
class Request:
    """Items to label, and the store of the answers.

    Parameters
    ----------
    items : str
        File or folder of the items.
    columns : Columns
        Columns of the items to use.
    items_file : str or None
        File or folder of the items to display if `items` contains only features.
    features : str or None
        ``module:function`` that computes features.
    store : str
        File that stores the answers.
    """

    items: str
    columns: Columns
    items_file: str | None = None
    features: str | None = None
    store: str = "labels.db"


def item_set(items: Items) -> ItemSet:
    """Return the identity of items."""
    return ItemSet(items.name, len(items), items.fingerprint)


def remember(store: LabelStore, request: Request) -> None:
    """Store the location and columns of the items, for commands that read them again."""
    shown = request.items_file
    values = {
        "items_path": os.path.abspath(request.items),
        "items_columns": json.dumps(asdict(request.columns)),
        "items_file": "" if shown is None else os.path.abspath(shown),
        "features": request.features or "",
    }
    if values.items() - store.meta().items():
        store.set_meta(**values)


def request_of(store: LabelStore, items: str | None = None, texts: tuple[str, ...] = ()) -> Request:
    """Return the request that reads the items of a store.

    Parameters
    ----------
    store : LabelStore
        The store.
    items : str or None
        Current path of the items; None uses the stored path.
    texts : tuple of str, default=()
        Columns of text; if empty, the stored columns are used.
    """
    meta = store.meta()
    path = items or meta.get("items_path")
    if path is None:
        raise StoreError(
            f"{store.path}: does not know where its items are. Name their file or folder by "
            "--items."
        )
    if not os.path.exists(path):
        raise StoreError(
            f"{store.path}: its items were in {path}, which does not exist. Name their file or "
            "folder by --items."
        )
    stated = json.loads(meta.get("items_columns", "{}"))
    columns = Columns(
        stated.get("label"),
        texts or tuple(stated.get("text", ())),
        stated.get("image"),
        tuple(stated.get("missing", ())),
    )
    shown, function = meta.get("items_file") or None, meta.get("features") or None
    return Request(path, columns, shown, function, str(store.path))


def items_of(store: LabelStore, request: Request) -> Items:
    """Return the items of a store; raise if its labels belong to other items."""
    found = open_items(request.items, request.columns, request.items_file)
    if store.items is None:
        check_answers(store, found)
    store.identify(item_set(found))
    return found


def check_answers(store: LabelStore, items: Items) -> None:
    """Raise if a store has answers to other items."""
    others = {event.item for event in store.events()} - set(items.ids)
    if others:
        raise StoreError(
            f"{store.path}: {len(others):,} of its items, such as {min(others)!r}, are not in "
            f"{items.name} ({len(items):,} items). Give the items that the labels are of, or "
            "another store."
        )


def fields_of(items: Items, request: Request) -> dict[str, dict[str, Any]]:
    """Return the columns of each item by id, from its table or from its displayed content."""
    table = request.items_file or request.items
    if is_table(table):
        source = open_source(table, labelled=False, encoder=None)
        rows = source.load()[0].take(items.first).to_pylist()
        shown = ({name: plain(value) for name, value in row.items()} for row in rows)
        return dict(zip(items.ids, shown, strict=True))
    return {item: _shown(items, row) for row, item in enumerate(items.ids)}


def is_table(path: str) -> bool:
    """Return whether a path is a file with named columns."""
    return not os.path.isdir(path) and FAMILIES[kind_of(Path(path))] == "table"


def _shown(items: Items, row: int) -> dict[str, Any]:
    path = items.content.path(row)
    if path is not None:
        return {"image": str(path)}
    shown = items.content.show(row)
    fields = {str(name): value for name, value in shown.get("fields", [])}
    return {key: shown[key] for key in ("title", "text") if key in shown} | fields
