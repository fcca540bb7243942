"""CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError
from marginwise.data.sniff import HEAD, open_bytes, read_some
from marginwise.data.text_file import RawBlock, RowCutter, TextFile

DELIMITERS = ",;\t|"
DECLARED = re.compile(f"sep=([{DELIMITERS}])", re.IGNORECASE)  # a first line for spreadsheets
BOM = b"\xef\xbb\xbf"


class CsvFile(TextFile):
    """A CSV file, read as columns of strings.

    Values may be quoted. White space around values is ignored. Empty values are missing.

    Parameters
    ----------
    path : Path
        The file, plain or compressed. The delimiter is the comma, semicolon, tab or vertical bar
        that is most frequent in the header, or that a first line such as "sep=;" declares.
    missing : collection of str, default=()
        Values to treat as missing, in addition to empty values.
    header : bool, default=True
        Whether the first line contains the column names. Otherwise, columns are named "x0", "x1"
        and so on.
    """

    def __init__(self, path: Path, missing: Collection[str] = (), header: bool = True) -> None:
        start, number, line = _first_line(path)
        text = _decoded(line, path)
        declared = DECLARED.fullmatch(text.strip())
        if declared is not None:
            start, number, line = _first_line(path, skip=start + len(line))
            text = _decoded(line, path)
        frequent = max(DELIMITERS, key=lambda mark: text.count(mark))
        self._delimiter = frequent if declared is None else declared[1]
        names = _split(text, self._delimiter, path)
        if header:
            start, number = start + len(line), number + line.count(b"\n")
        super().__init__(path, self._delimiter.encode(), skip=start, line=number)
        names = [name.strip() for name in names]
        self.columns = _checked(names, path) if header else [f"x{k}" for k in range(len(names))]
        self.default_label = self.columns[-1]
        self._missing = ["", *missing]

    def _parsed(self, raw: RawBlock, columns: Sequence[str] | None = None) -> Any:
        pa = need_arrow()
        try:
            table, wrong = self._read(raw, columns)
        except pa.ArrowCancelled:
            # A signal cancelled the parser, but its handler returned, so reading continues.
            return self._parsed(raw, columns)
        except pa.ArrowInvalid as error:
            raise self._refusal(raw, error) from error
        if wrong:
            row = wrong[0]
            raise DataError(
                f"{self.path}:{self._line_of(raw, row.number - 1)}: expected "
                f"{row.expected_columns} values as in the header, got {row.actual_columns}."
            )
        if table.num_rows != raw.rows:
            raise DataError(
                f"{self.path}:{raw.line}: expected {raw.rows} rows from here, one per line, got "
                f"{table.num_rows}. Check line ends and quotes."
            )
        return self._trimmed(table)

    def _read(self, raw: RawBlock, columns: Sequence[str] | None) -> tuple[Any, list[Any]]:
        """Return the rows with the expected number of values, and the invalid rows."""
        from pyarrow import csv as reader

        pa, wrong = need_arrow(), []

        def keep(row: Any) -> str:
            wrong.append(row)
            return "skip"

        table = reader.read_csv(
            pa.py_buffer(raw.data),
            read_options=reader.ReadOptions(
                use_threads=False, column_names=self.columns, block_size=len(raw.data) + 1
            ),
            parse_options=reader.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=keep
            ),
            convert_options=reader.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pa.string()),
                include_columns=list(columns or ()),
            ),
        )
        return table, wrong

    def _refusal(self, raw: RawBlock, error: Exception) -> DataError:
        """Return the error for a block that cannot be read."""
        for row, text in enumerate(raw.data.split(b"\n")):
            try:
                text.decode()
            except UnicodeDecodeError as fault:
                return DataError(
                    f"{self.path}:{raw.line + row}: byte {fault.start + 1} of the line is not "
                    "UTF-8 text; expected UTF-8. Convert the file, for instance with iconv."
                )
        return DataError(f"{self.path}:{raw.line}: {error}.")

    def _trimmed(self, table: Any) -> Any:
        """Strip white space from values, and replace missing values by null."""
        pa = need_arrow()
        absent = pa.array(self._missing, pa.string())
        columns = []
        for column in table.columns:
            values = pa.compute.utf8_trim_whitespace(column.combine_chunks())
            gone = pa.compute.is_in(values, value_set=absent)
            columns.append(pa.compute.if_else(gone, pa.scalar(None, pa.string()), values))
        return pa.table(columns, names=table.column_names)


def _first_line(path: Path, skip: int = 0) -> tuple[int, int, bytes]:
    """Return the offset, the number and the content of the first non-empty line after `skip`."""
    with open_bytes(path) as file:
        head = read_some(file, HEAD, path)
        while len(head) < 64 * HEAD and (more := read_some(file, HEAD, path)):
            if len(RowCutter(b",").ends(head[skip:])):
                break
            head += more
    mark = max(skip, len(BOM) if head.startswith(BOM) else 0)
    start = len(head) - len(head[mark:].lstrip(b"\r\n"))
    if start == len(head):
        raise DataError(f"{path}:1: the file is empty; expected a header and rows.")
    body = head[start:]
    ends = RowCutter(b",").ends(body)
    return start, 1 + head[:start].count(b"\n"), body[: int(ends[0])] if len(ends) else body


def _decoded(line: bytes, path: Path) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:1: byte {error.start + 1} of the header is not UTF-8 text; expected UTF-8. "
            "Convert the file, for instance with iconv."
        ) from error


def _split(text: str, delimiter: str, path: Path) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [""])
    except csv.Error as error:
        raise DataError(
            f"{path}:1: the header cannot be read ({error}); expected names of columns, and lines "
            "that end in \\n or \\r\\n."
        ) from error


def _checked(names: list[str], path: Path) -> list[str]:
    """Return the names in a header; raise if they cannot be column names."""
    names = [name or f"unnamed {k + 1}" for k, name in enumerate(names)]
    numbers = [name for name in names if _is_number(name)]
    if numbers and numbers not in ([str(k + s) for k in range(len(numbers))] for s in (0, 1)):
        raise DataError(
            f"{path}:1: the header has the number {numbers[0]!r}; expected names of columns. If "
            "the file has no header, pass header=False."
        )
    for k, name in enumerate(names):
        if name in names[:k]:
            raise DataError(
                f"{path}:1: the header has the name {name!r} twice, in columns "
                f"{names.index(name) + 1} and {k + 1}; expected distinct names."
            )
    return names


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return name.lower() not in ("nan", "inf", "infinity")
