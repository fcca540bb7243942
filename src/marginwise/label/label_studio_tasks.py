"""Projects and tasks of Label Studio: labelling configurations, and the items of tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

from marginwise.label.items import ID_BYTES, Items

KINDS = {"Text": "text", "HyperText": "text", "Image": "image", "Table": "table"}  # by tag
NAME = "item"  # field of a task's data or metadata with the id of its item; exports include it
UPLOADED = re.compile(r"^[0-9a-f]{8}-")  # prefix that Label Studio adds to uploaded files


@dataclass(frozen=True)
class Config:
    """The supported part of a labelling configuration.

    Parameters
    ----------
    control, target : str
        Names of the Choices tag and of the tag that it refers to.
    kind : {"text", "image", "table"}
        Kind of the displayed items.
    field : str
        Field of a task's data that is displayed.
    choices : tuple of str
        The choices; aliases replace values.
    """

    control: str
    target: str
    kind: str
    field: str
    choices: tuple[str, ...]


def read_config(text: str, labels: Sequence[str]) -> Config:
    """Parse a labelling configuration whose choices are the labels of a session.

    Parameters
    ----------
    text : str
        The configuration, as XML.
    labels : sequence of str
        Labels of the session.

    Raises
    ------
    ValueError
        If the configuration is not XML or does not have these choices.
    """
    root = _parsed(text)
    objects = {tag.get("name"): tag for tag in root.iter() if tag.tag in KINDS}
    wrong = []
    for control in root.iter("Choices"):
        name, target = control.get("name") or "", control.get("toName") or ""
        shown = objects.get(target)
        choices = tuple(
            tag.get("alias") or tag.get("value") or "" for tag in control.iter("Choice")
        )
        if shown is None:
            wrong.append(f"{name!r} is about {target!r}, which is not {_one_of(KINDS)}")
        elif control.get("choice", "single") == "multiple":
            wrong.append(f"{name!r} allows several choices")
        elif set(choices) != set(labels):
            wrong.append(f"{name!r} offers {', '.join(choices) or 'nothing'}")
        else:
            field = re.fullmatch(r"\$(\w+)", shown.get("value") or "")
            if field:
                return Config(name, target, KINDS[shown.tag], field[1], choices)
            wrong.append(f'{target!r} does not show a field, such as value="$text"')
    found = "; ".join(wrong) if wrong else "there is no Choices tag"
    raise ValueError(
        f"the labelling configuration does not fit: {found}. Expected a Choices tag with the "
        f"choices {', '.join(labels)} about {_one_of(KINDS)}. Change the configuration, or start "
        "marginwise with other --labels."
    )


def _parsed(text: str) -> ElementTree.Element:
    """Parse XML; reject document types, because their entities could expand without bound."""
    if "<!DOCTYPE" in text.upper() or "<!ENTITY" in text.upper():
        raise ValueError("the labelling configuration must not define a document type.")
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"the labelling configuration is not XML: {error}.") from None


def _one_of(names: Any) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"


class Matcher:
    """Finds the items that correspond to tasks of Label Studio.

    Parameters
    ----------
    items : Items
        The items.
    """

    def __init__(self, items: Items) -> None:
        self._items = items

    def find(self, task: dict[str, Any], field: str | None = None) -> str | None:
        """Return the id of the item of a task, or None if there is none.

        Parameters
        ----------
        task : dict
            The task.
        field : str, default=None
            Displayed field of the task's data; None if it is unknown.
        """
        data, meta = task.get("data"), task.get("meta")
        if not isinstance(data, dict):
            return None
        for named in (meta.get(NAME) if isinstance(meta, dict) else None, data.get(NAME)):
            if isinstance(named, str) and named in self._items:
                return named
        values = [value for value in data.values() if isinstance(value, str)]
        if field is not None and isinstance(data.get(field), str):
            values.insert(0, data[field])
        if self._items.kind == "text":
            return self._text([*values, "\n\n".join(values[field is not None :])])
        if self._items.kind == "image":
            return next((item for item in map(self._image, values) if item is not None), None)
        return self._row(data)

    def _text(self, texts: list[str]) -> str | None:
        """Return the item whose text equals one of the given texts."""
        for text in texts:
            digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=ID_BYTES)
            if digest.hexdigest() in self._items:
                return digest.hexdigest()
        return None

    def _image(self, address: str) -> str | None:
        """Return the item whose file matches an address."""
        for name in _names(address):
            if self._files.get(name):
                return self._files[name]
        return None

    @cached_property
    def _files(self) -> dict[str, str | None]:
        """Items by the paths and names of their files; None for ambiguous names."""
        found: dict[str, str | None] = {}
        for row, item in enumerate(self._items.ids):
            path = PurePosixPath(self._items.content.show(row)["title"])
            for name in {str(path), path.name}:
                found[name] = item if found.get(name, item) == item else None
        return found

    def _row(self, data: dict[str, Any]) -> str | None:
        """Return the item with the same values as a task."""
        nested = [value for value in data.values() if isinstance(value, dict)]
        for values in (data, *nested):
            item = self._by_values.get(tuple(_plain(values.get(name)) for name in self._columns))
            if item is not None:
                return item
        return None

    @cached_property
    def _columns(self) -> list[str]:
        return [name for name, _ in self._items.content.show(0).get("fields", [])]

    @cached_property
    def _by_values(self) -> dict[tuple[str, ...], str]:
        found = {}
        for row, item in enumerate(self._items.ids):
            values = dict(self._items.content.show(row).get("fields", []))
            found[tuple(_plain(values.get(name)) for name in self._columns)] = item
        return found


def _names(address: str) -> Iterator[str]:
    """Yield the file names that an address of Label Studio may refer to, most specific first."""
    try:
        parts = urlsplit(address)
        local = parse_qs(parts.query).get("d", [])  # files that Label Studio serves from a folder
    except ValueError:
        return
    for text in (*local, unquote(parts.path)):
        path = PurePosixPath(text.lstrip("/"))
        for start in range(len(path.parts)):
            yield str(PurePosixPath(*path.parts[start:]))
        yield UPLOADED.sub("", path.name)


def _plain(value: Any) -> str:
    """Return a value as text, so that quoted and unquoted numbers are equal."""
    if value is None or isinstance(value, dict | list):
        return ""
    try:
        return repr(float(value))
    except (ValueError, OverflowError):
        return str(value)
