"""Files of JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError
from marginwise.data.parsing import TOKENS
from marginwise.data.text_file import RawBlock, TextFile

LABELS = ("label", "target", "class", "y")
BOM = b"\xef\xbb\xbf"


class JsonLinesFile(TextFile):
    """A file of JSON objects, one per line, as a table.

    The columns are the keys that occur in the first block of rows. If a line lacks a key, its value
    is missing; so are strings such as "NA" among numbers.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    missing : collection of str, default=()
        Strings among numbers to treat as missing, in addition to "NA" and the like.
    """

    parse = False

    def __init__(self, path: Path, missing: Collection[str] = ()) -> None:
        super().__init__(path, None)
        self._missing = missing
        first = next(self._raw_blocks(), None)
        if first is None:
            raise DataError(f"{path}:1: the file is empty; expected a JSON object per line.")
        keys = [key for item in self._objects(first) for key in item]
        self.columns = list(dict.fromkeys(keys))
        if not self.columns:
            raise DataError(f"{path}:1: the objects have no keys; expected columns.")
        named = [name for name in self.columns if name.lower() in LABELS]
        self.default_label = named[0] if len(named) == 1 else self.columns[-1]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the objects one by one."""
        for raw in self._raw_blocks():
            yield from self._objects(raw)

    def _objects(self, raw: RawBlock) -> list[dict[str, Any]]:
        lines = [line for line in raw.data.removeprefix(BOM).split(b"\n") if line.strip(b"\r")]
        return [self._object(raw, row, line) for row, line in enumerate(lines)]

    def _object(self, raw: RawBlock, row: int, line: bytes) -> dict[str, Any]:
        try:
            item = json.loads(line)
            if b"\\u" in line:  # escapes may be unpaired surrogates, which are not text
                json.dumps(item, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            fault = f"the escape \\u{ord(error.object[error.start]):04x} is half a character"
        except UnicodeDecodeError as error:
            fault = f"byte {error.start + 1} of the line is not UTF-8 text"
        except (ValueError, RecursionError) as error:
            fault = f"the line is not JSON ({error})"
        else:
            if isinstance(item, dict):
                return item
            fault = f"the line is a {type(item).__name__}"
        place = f"{self.path}:{self._line_of(raw, row)}"
        raise DataError(f"{place}: {fault}; expected a JSON object per line.")

    def _parsed(self, raw: RawBlock, columns: Sequence[str] | None = None) -> Any:
        pa, items = need_arrow(), self._objects(raw)
        for row, item in enumerate(items):
            if not item.keys() <= set(self.columns):
                name = min(item.keys() - set(self.columns))
                raise DataError(
                    f"{self.path}:{self._line_of(raw, row)}: the key {name!r} did not occur in the "
                    f"first {self.block_rows} rows; expected the same keys."
                )
        names = self.columns if columns is None else list(columns)
        arrays = [self._column(raw, name, [item.get(name) for item in items]) for name in names]
        return pa.table(arrays, names=names)

    def _is_missing(self, value: Any) -> bool:
        """Return whether a string represents a missing value among numbers."""
        text = value.strip() if isinstance(value, str) else None
        return text is not None and (text.lower() in TOKENS or text in self._missing)

    def _column(self, raw: RawBlock, name: str, values: list[Any]) -> Any:
        """Return the values of a key as a pyarrow array."""
        pa = need_arrow()
        if {_form(value) for value in values if value is not None} == {"number", "string"}:
            values = [None if self._is_missing(value) else value for value in values]
        first = next((_form(value) for value in values if value is not None), None)
        for row, value in enumerate(values):
            if value is not None and (_form(value) != first or first == "object"):
                was = "numbers, strings or lists of numbers" if first == "object" else first
                raise DataError(
                    f"{self.path}:{self._line_of(raw, row)}: column {name!r}: expected {was} as "
                    f"before, got {json.dumps(value)[:60]}."
                )
        try:
            if first == "number":
                return pa.array([None if v is None else float(v) for v in values], pa.float64())
            if first == "list":
                return pa.array(values, pa.list_(pa.float64()))
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise DataError(
                f"{self.path}:{raw.line}: column {name!r}, in this or the next {raw.rows} lines: "
                f"{error}."
            ) from error


def _form(value: Any) -> str:
    """Return the type of a JSON value, as named in messages."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "list" if isinstance(value, list) else "object"
