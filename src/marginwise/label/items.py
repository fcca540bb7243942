"""Items to label, identified by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from marginwise._arrays import Ints
from marginwise.data import DataError

ID_BYTES = 10  # length of the digest of an item's content; ids are hexadecimal


class Content(Protocol):
    """Content of items, by row."""

    kind: str  # "text", "image" or "table"

    def __len__(self) -> int: ...

    def show(self, row: int) -> dict[str, Any]:
        """Return the content that the page displays: "text", "fields" or "title"."""

    def values(self) -> list[Any]:
        """Return all items in the form that is passed to user-defined functions."""

    def digests(self) -> Iterable[bytes]:
        """Yield the bytes that identify each item."""

    def take(self, rows: Ints) -> Content:
        """Return the content of some rows."""

    def path(self, row: int) -> Path | None:
        """Return the file of an image."""


@dataclass
class Items:
    """Distinct items in the order of their file.

    Rows with the same content are combined into one item, which is labelled once.

    Parameters
    ----------
    name : str
        Name of the file or folder.
    content : Content
        Content of the items; one entry per distinct item.
    ids : list of str
        Digests of the contents.
    counts : ndarray of shape (n_items,)
        Number of rows of the file that each item represents.
    labels : list of str or None
        Labels in the file, None for rows without a label.
    first : ndarray of shape (n_items,)
        Row of the file that each item was read from.
    given : array or sparse matrix, default=None
        Features in the file, one row per item.
    notes : list of str
        Messages about items that were combined or omitted.
    table : pyarrow Table, default=None
        Columns from which features can be encoded, one row per item.
    rows : int, default=0
        Number of rows or files that were read, including omitted ones.
    """

    name: str
    content: Content
    ids: list[str]
    counts: Ints
    labels: list[str | None]
    first: Ints
    given: Any = None
    notes: list[str] = field(default_factory=list)
    table: Any = None
    rows: int = 0

    def __post_init__(self) -> None:
        self._rows = {item: row for row, item in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, item: object) -> bool:
        return item in self._rows

    @property
    def kind(self) -> str:
        """Kind of the items: "text", "image" or "table"."""
        return self.content.kind

    @property
    def fingerprint(self) -> str:
        """Digest of the set of items; it does not depend on their order."""
        digest = hashlib.sha256()
        for item in sorted(self.ids):
            digest.update(item.encode())
        return digest.hexdigest()

    def row(self, item: str) -> int:
        """Return the row of an item; raise KeyError for an unknown id."""
        if item not in self._rows:
            raise KeyError(f"there is no item {item!r:.40} in {self.name}.")
        return self._rows[item]

    def show(self, row: int) -> dict[str, Any]:
        """Return the content of an item that the page displays."""
        shown = {"id": self.ids[row], "kind": self.kind, "duplicates": int(self.counts[row]) - 1}
        if self.kind == "image":
            shown["image"] = f"/api/image/{self.ids[row]}"
        return shown | self.content.show(row)


def grouped(
    name: str,
    content: Content,
    labels: Sequence[str | None] | None = None,
    *,
    given: Any = None,
    table: Any = None,
    notes: Iterable[str] = (),
) -> Items:
    """Combine rows with the same content into items, with a note about combined rows.

    Parameters
    ----------
    name : str
        Name of the file or folder.
    content : Content
        Content of the rows of the file.
    labels : sequence of str or None, default=None
        Labels of the rows.
    given : array or sparse matrix, default=None
        Features of the rows.
    table : pyarrow Table, default=None
        Columns of the rows, from which features can be encoded.
    notes : iterable of str, default=()
        Messages about rows or files that were already omitted.
    """
    n, noted = len(content), list(notes)
    if n == 0:
        why = "".join(f" {note}" for note in noted)
        raise DataError(f"{name}: there are no items; expected at least one row or file.{why}")
    ids = [hashlib.blake2b(part, digest_size=ID_BYTES).hexdigest() for part in content.digests()]
    groups: dict[str, int] = {}
    of = np.fromiter((groups.setdefault(item, len(groups)) for item in ids), np.int64, n)
    first = np.unique(of, return_index=True)[1].astype(np.int64)
    counts = np.bincount(of).astype(np.int64)
    merged, conflicts = _merged(labels, of, len(groups))
    if len(groups) < n:
        several = int(np.count_nonzero(counts > 1))
        noted.append(
            f"{n - len(groups):,} of {n:,} rows are duplicates of others; each group of identical "
            f"rows ({several:,} in all) is one item, which is labelled once."
        )
        content = content.take(first)
        given = None if given is None else given[first]
        table = None if table is None else table.take(first)
    if conflicts:
        noted.append(
            f"{conflicts:,} items have duplicates with different labels; the first label counts."
        )
    return Items(name, content, list(groups), counts, merged, first, given, noted, table, n)


def _merged(labels: Sequence[str | None] | None, of: Ints, n: int) -> tuple[list[str | None], int]:
    """Return the first label of each group, and the number of groups with different labels."""
    found: list[str | None] = [None] * n
    differing = set()
    for group, label in zip(of.tolist(), labels or (), strict=False):
        if label is None:
            continue
        if found[group] is None:
            found[group] = label
        elif found[group] != label:
            differing.add(group)
    return found, len(differing)


def checked_labels(items: Items, labels: Sequence[str] | None) -> list[str]:
    """Return the permitted labels; raise if items have other labels, or if none are known."""
    there = sorted({label for label in items.labels if label is not None})
    if not labels:
        if len(there) < 2:
            raise ValueError(
                f"{items.name}: the labels are not known: the items have "
                f"{'only ' + repr(there[0]) if there else 'no labels'}. Name two or more by "
                "--labels, such as --labels yes,no."
            )
        return there
    names = [label.strip() for label in labels]
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise ValueError(f"--labels must name two or more different labels, got {','.join(names)}.")
    for row, label in enumerate(items.labels):
        if label is not None and label not in names:
            raise DataError(
                f"{items.name}: row {int(items.first[row]) + 1} has the label {label!r}; expected "
                f"one of {', '.join(names)}. Correct the label, or name it in --labels."
            )
    return names
