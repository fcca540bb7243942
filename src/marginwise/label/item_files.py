"""Reading items from files and folders."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise._arrays import Ints
from marginwise.data import DataError, open_source
from marginwise.data.columns import need_arrow
from marginwise.data.recognise import FAMILIES
from marginwise.data.sniff import kind_of
from marginwise.data.table_profile import TableProfile, missing_column
from marginwise.label.images import IMAGES, ImageContent, inside, readable
from marginwise.label.items import Items, grouped

PROSE = ("text", "title", "abstract", "body", "message", "content", "review", "comment", "question")
LISTED = 10  # maximum number of files that a note lists
SHOWN = 50  # maximum number of displayed values of a row of numbers
PROFILED = 2000  # rows that are inspected to recognise text columns


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table to use.

    Parameters
    ----------
    label : str or None
        Column of existing labels.
    text : tuple of str
        Columns of text, which are joined.
    image : str or None
        Column of paths to images, relative to the folder of the table.
    missing : tuple of str
        Values to treat as missing if features are computed from columns.
    """

    label: str | None = None
    text: tuple[str, ...] = ()
    image: str | None = None
    missing: tuple[str, ...] = ()


# -- contents --------------------------------------------------------------------------------------


@dataclass
class TextContent:
    """Texts in a pyarrow array, with optional titles.

    Titles are not part of the texts. Headings, from the column "title" of a table, are at the
    beginning of the texts.
    """

    texts: Any
    titles: list[str] | None = None
    headings: list[str] | None = None
    kind = "text"

    def __len__(self) -> int:
        return len(self.texts)

    def show(self, row: int) -> dict[str, Any]:
        """Return the text, and the title."""
        shown = {"text": self.texts[row].as_py()}
        heading = self.headings[row] if self.headings is not None else None
        if heading and len(shown["text"]) > len(heading):
            return {"text": shown["text"][len(heading) :].removeprefix("\n\n"), "title": heading}
        return shown if self.titles is None else shown | {"title": self.titles[row]}

    def values(self) -> list[Any]:
        """Return all texts."""
        found: list[Any] = self.texts.to_pylist()
        return found

    def digests(self) -> Iterator[bytes]:
        """Yield the texts."""
        for text in self.texts:
            yield text.as_py().encode()

    def take(self, rows: Ints) -> TextContent:
        """Return the texts of some rows."""
        titles = None if self.titles is None else [self.titles[row] for row in rows.tolist()]
        heads = None if self.headings is None else [self.headings[row] for row in rows.tolist()]
        return TextContent(self.texts.take(need_arrow().array(rows)), titles, heads)

    def path(self, row: int) -> Path | None:
        """Return None: texts are not in files of their own."""
        return None


@dataclass
class RowContent:
    """Rows of a pyarrow table."""

    table: Any
    kind = "table"

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def show(self, row: int) -> dict[str, Any]:
        """Return the names and values of the columns."""
        values = self.table.slice(row, 1).to_pylist()[0]
        return {"fields": [[name, plain(value)] for name, value in values.items()]}

    def values(self) -> list[Any]:
        """Return all rows as dicts."""
        found: list[Any] = self.table.to_pylist()
        return found

    def digests(self) -> Iterator[bytes]:
        """Yield the column names and values of each row."""
        for row in self.table.to_pylist():
            yield json.dumps(row, sort_keys=True, default=str).encode()

    def take(self, rows: Ints) -> RowContent:
        """Return some rows."""
        return RowContent(self.table.take(need_arrow().array(rows)))

    def path(self, row: int) -> Path | None:
        """Return None: rows are not files."""
        return None


@dataclass
class NumberContent:
    """Rows of features without another representation."""

    X: Any
    kind = "table"

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def show(self, row: int) -> dict[str, Any]:
        """Return the nonzero values, or the largest ones if there are many."""
        values = self.X[[row]].toarray()[0] if sp.issparse(self.X) else np.asarray(self.X[row])
        largest = np.argsort(-np.abs(values), kind="stable")[:SHOWN]
        kept = sorted(k for k in largest.tolist() if values[k] != 0)
        shown = [(k, float(values[k])) for k in kept]
        return {
            "fields": [[f"x{k}", value if math.isfinite(value) else None] for k, value in shown]
        }

    def values(self) -> list[Any]:
        """Return all rows as arrays."""
        return list(self.X)

    def digests(self) -> Iterator[bytes]:
        """Yield the bytes of each row."""
        for row in range(len(self)):
            X = self.X[[row]]
            parts = (X.indices, X.data) if sp.issparse(X) else (X,)
            yield b"".join(np.ascontiguousarray(part).tobytes() for part in parts)

    def take(self, rows: Ints) -> NumberContent:
        """Return some rows."""
        return NumberContent(self.X[rows])

    def path(self, row: int) -> Path | None:
        """Return None: rows are not files."""
        return None


def plain(value: Any) -> Any:
    """Return a value of a table as a JSON value; whole numbers become integers."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, str | int | bool | None):
        return value
    return str(value)


# -- files -----------------------------------------------------------------------------------------


def open_items(
    path: str | os.PathLike[str],
    columns: Columns | None = None,
    items_file: str | os.PathLike[str] | None = None,
) -> Items:
    """Read items.

    Parameters
    ----------
    path : str or path-like
        CSV, JSON lines, Parquet, Arrow, svmlight, .npy or .npz file, or a folder of text files or
        images.
    columns : Columns, default=None
        Columns of a table to use.
    items_file : str or path-like, default=None
        File or folder of the items to display if `path` contains only features, in the same order.

    Returns
    -------
    items : Items
        The items.
    """
    where, columns = Path(path), columns or Columns()
    if where.is_dir():
        found = _from_folder(where, columns)
    elif FAMILIES[kind_of(where)] == "table":
        found = _from_table(where, columns)
    else:
        return _from_numbers(where, columns, items_file)
    if items_file is not None:
        raise ValueError(
            f"{where} has items of its own; --items-file goes with files of features (.npy, .npz "
            "or svmlight). Leave it out."
        )
    return found


def _from_table(path: Path, columns: Columns) -> Items:
    source = open_source(path, labelled=False, encoder=None)
    names = source.feature_names
    for name in (columns.label, *columns.text, columns.image):
        if name is not None and name not in names:
            raise DataError(f"{path}: {missing_column(name, names)}")
    if columns.label is not None and columns.label in (*columns.text, columns.image):
        raise ValueError(
            f"{path}: column {columns.label!r} is the label column, so it cannot be shown as well; "
            "choose another --text-column or --image-column."
        )
    table = source.load()[0]
    if table.num_rows == 0:
        raise DataError(f"{path}: the table has no rows; expected at least one.")
    labels = None if columns.label is None else _labels(table[columns.label])
    rest = table.drop_columns([columns.label]) if columns.label is not None else table
    if columns.image is not None:
        named = rest[columns.image].to_pylist()
        paths = [path.parent / str(name) if name else None for name in named]
        return _images(path.name, paths, path.parent, labels)
    texts = list(columns.text) or prose_columns(rest)
    if texts:
        return grouped(path.name, _texts(rest, texts), labels)
    if not rest.column_names:
        raise DataError(f"{path}: there is no column besides the label {columns.label!r}.")
    typed = open_source(path, labelled=False, label=columns.label, encoder="types").load()[0]
    return grouped(path.name, RowContent(rest), labels, table=typed)


def _labels(column: Any) -> list[str | None]:
    """Return labels as strings; None for missing or empty labels."""
    shown = (plain(value) for value in column.to_pylist())
    texts = (None if value is None else str(value).strip() for value in shown)
    return [text or None for text in texts]


def prose_columns(table: Any) -> list[str]:
    """Return the columns with usual names of text, or else those whose content is text."""
    pa = need_arrow()
    head = table.slice(0, PROFILED)
    strings = [
        name
        for name in table.column_names
        if pa.types.is_string(table.schema.field(name).type)
        or pa.types.is_large_string(table.schema.field(name).type)
    ]
    usual = [name for name in strings if name.lower() in PROSE]
    if usual or not strings:
        return usual
    profile = TableProfile({}, 1000)
    profile.observe(head.select(strings))
    return [name for name, kind in zip(strings, profile.kinds(), strict=True) if kind == "text"]


def _texts(table: Any, names: Sequence[str]) -> TextContent:
    """Return the texts of columns; a first column "title" is shown as a heading."""
    headed = len(names) > 1 and names[0].lower() == "title"
    headings = _joined(table, names[:1]).to_pylist() if headed else None
    return TextContent(_joined(table, names), headings=headings)


def _joined(table: Any, names: Sequence[str]) -> Any:
    """Return the texts of columns, joined by blank lines; missing values are omitted."""
    pa = need_arrow()
    columns = [table[name].cast(pa.large_string()) for name in names]
    if len(columns) > 1:
        # binary_join_element_wise would drop rows in which all values are missing.
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        parts = ("\n\n".join(part for part in row if part is not None) for row in rows)
        return pa.array(parts, pa.large_string(), size=table.num_rows)
    filled = pa.compute.fill_null(columns[0], "")
    return filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled


def _from_numbers(path: Path, columns: Columns, items_file: str | os.PathLike[str] | None) -> Items:
    """Read features, and the content to display for their rows."""
    labelled = columns.label is not None
    if items_file is None:
        if columns.text or columns.image:
            raise ValueError(
                f"{path} has features and no columns of text or images; leave out --text-column "
                "and --image-column, or name a table by --items-file."
            )
        X, y = open_source(path, labelled=labelled).load()
        X = X if sp.issparse(X) else np.asarray(X, dtype=np.float32)
        labels = None if y is None else [str(plain(value)) for value in y.tolist()]
        return grouped(path.name, NumberContent(X), labels, given=X)
    X, _ = open_source(path, labelled=False).load()
    X = X if sp.issparse(X) else np.asarray(X, dtype=np.float32)
    shows = Path(items_file)
    found = _from_folder(shows, columns) if shows.is_dir() else _from_table(shows, columns)
    if found.rows != X.shape[0]:
        raise DataError(
            f"{shows}: there are {found.rows:,} items, but {path} has {X.shape[0]:,} rows of "
            "features; expected one row per item, in the same order."
        )
    found.given, found.table = X[found.first], None
    return found


# -- folders ---------------------------------------------------------------------------------------


def _from_folder(folder: Path, columns: Columns) -> Items:
    """Read the images of a folder, or its text files if it has no images."""
    if columns.label or columns.text or columns.image:
        raise ValueError(f"{folder} is a folder of files, which has no columns; leave them out.")
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p[0] in "._" for p in path.relative_to(folder).parts)
    )
    images = [path for path in files if path.suffix.lower() in IMAGES]
    if 2 * len(images) > len(files):
        return _images(folder.name, list(images), folder, None, files)
    found = [_text_of(path, folder) for path in files]
    good = np.array([k for k, text in enumerate(found) if text is not None], dtype=np.int64)
    bad = [path for path, text in zip(files, found, strict=True) if text is None]
    pa = need_arrow()
    content = TextContent(
        pa.array([text for text in found if text is not None], pa.large_string()),
        [files[k].relative_to(folder).as_posix() for k in good.tolist()],
    )
    items = grouped(folder.name, content, notes=_left_out(bad, "text files (UTF-8)"))
    items.first, items.rows = good[items.first], len(files)
    return items


def _text_of(path: Path, folder: Path) -> str | None:
    """Return the text of a file; None if it is not UTF-8 or outside the folder."""
    try:
        return path.read_text(encoding="utf-8") if inside(path, folder) else None
    except (UnicodeDecodeError, OSError):
        return None


def _left_out(bad: Sequence[Path | None], expected: str) -> list[str]:
    """Return a note about files that were omitted."""
    if not bad:
        return []
    names = ", ".join("a missing path" if path is None else str(path) for path in bad[:LISTED])
    more = f" and {len(bad) - LISTED:,} more" if len(bad) > LISTED else ""
    return [f"{len(bad):,} files are left out, which are not {expected}: {names}{more}."]


def _images(
    name: str,
    paths: Sequence[Path | None],
    folder: Path,
    labels: list[str | None] | None,
    files: Sequence[Path] = (),
) -> Items:
    """Read images; omit unreadable ones, with a note."""
    found = [path if path is not None and readable(path, folder) else None for path in paths]
    good = np.array([k for k, path in enumerate(found) if path is not None], dtype=np.int64)
    known = set(paths)
    others = [path for path in files if path not in known]
    bad = [paths[k] for k, path in enumerate(found) if path is None]
    kept = [path for path in found if path is not None]
    hashes = [hashlib.sha256(path.read_bytes()).digest() for path in kept]
    items = grouped(
        name,
        ImageContent(kept, hashes, folder),
        None if labels is None else [labels[k] for k in good.tolist()],
        notes=_left_out([*bad, *others], "readable images within the folder"),
    )
    items.first, items.rows = good[items.first], len(paths)
    return items
