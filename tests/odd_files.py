"""A corpus of odd files, each with the encoding or the message that it must have.

Run this script to write the files into a folder: python -m tests.odd_files FOLDER.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROWS = 24  # enough to recognise identifiers and row numbers


@dataclass(frozen=True)
class OddFile:
    """A file, and what the commands must make of it.

    Parameters
    ----------
    content : bytes
        The file.
    kinds : tuple of str
        Kinds of the columns that `train` finds.
    said : tuple of str
        Parts of the warnings of `train`, one for each warning.
    refused : str
        Part of the error message of `train`; empty if it must succeed.
    options : tuple of str
        Options of `train`, which are not repeated for the other commands.
    notation : str
        Notation of the first column.
    classes : tuple
        Labels of the model.
    """

    content: bytes
    kinds: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    refused: str = ""
    options: tuple[str, ...] = ()
    notation: str = ""
    classes: tuple[object, ...] = ("no", "yes")


def repeated(*values: str) -> list[str]:
    """Return a column in which values are repeated."""
    return [values[k % len(values)] for k in range(ROWS)]


def text_of(columns: dict[str, list[str]], delimiter: str = ",", end: str = "\n") -> str:
    """Return CSV text."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


LABELS = repeated("no", "yes")
NUMBERS = repeated("1.5", "2.5", "3.25", "0.5", "7")  # clear numbers, beside the odd column


def table(
    odd: list[str],
    delimiter: str = ",",
    numbers: list[str] = NUMBERS,
    labels: list[str] = LABELS,
    end: str = "\n",
) -> bytes:
    """Return CSV with an odd column, a column of numbers, and labels."""
    columns = {"a": odd, "n": numbers, "label": labels}
    return text_of(columns, delimiter, end).encode()


def column(*values: str, kind: str = "numeric", **more: object) -> OddFile:
    """Return a file with an odd column of these values."""
    delimiter = str(more.pop("delimiter", ","))
    return OddFile(table(repeated(*values), delimiter), (kind, "numeric"), **more)  # type: ignore[arg-type]


def labelled(*labels: str, **more: object) -> OddFile:
    """Return a file with these labels."""
    content = table(repeated("3", "5", "8"), labels=repeated(*labels))
    return OddFile(content, ("numeric", "numeric"), **more)  # type: ignore[arg-type]


def refused(content: str | bytes, message: str, *options: str) -> OddFile:
    """Return a file that must be refused."""
    data = content.encode() if isinstance(content, str) else content
    return OddFile(data, refused=message, options=options)


def json_lines(*values: object) -> bytes:
    """Return JSON lines with an odd column, a column of numbers, and labels."""
    rows = [
        {"a": values[k % len(values)], "n": float(NUMBERS[k]), "label": LABELS[k]}
        for k in range(ROWS)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


PLAIN = table(repeated("3", "5", "8"))
TWO = ("numeric", "numeric")

ENCODINGS = {
    "bom": OddFile(b"\xef\xbb\xbf" + PLAIN, TWO),
    "crlf": OddFile(table(repeated("3", "5", "8"), end="\r\n"), TWO),
    "gzip": OddFile(gzip.compress(PLAIN, mtime=0), TWO),
    "umlauts": column("Köln", "Ürzig", kind="categorical"),
    "utf-16 little-endian": refused(b"\xff\xfe" + PLAIN.decode().encode("utf-16-le"), "UTF-16"),
    "utf-16 big-endian": refused(b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), "UTF-16"),
    "utf-16 without a mark": refused(PLAIN.decode().encode("utf-16-le"), "is not text"),
    "carriage returns": refused(
        PLAIN.replace(b"\n", b"\r"), "expected names of columns, and lines"
    ),
    "latin-1 value": refused(
        table(repeated("Köln", "Bonn")).decode().encode("latin-1"), ":2: byte 2 of the line is not"
    ),
    "latin-1 header": refused(
        PLAIN.replace(b"n,", "ö,".encode("latin-1"), 1), "of the header is not UTF-8 text"
    ),
}

DELIMITERS = {
    "semicolons": column("3", "5", "8", delimiter=";"),
    "tabs": column("3", "5", "8", delimiter="\t"),
    "bars": column("3", "5", "8", delimiter="|"),
    "a declared delimiter": OddFile(b"\xef\xbb\xbfsep=;\r\n" + PLAIN.replace(b",", b";"), TWO),
    "quoted numbers": OddFile(
        PLAIN.replace(b",", b'","').replace(b"\n", b'"\n"').join([b'"', b""])[:-1], TWO
    ),
    "quoted delimiters": column("x,y", "z", kind="categorical"),
    "quoted newlines": column("x\ny", "z", kind="categorical"),
    "doubled quotes": column('the "x"', "y", kind="categorical"),
    "spaces around values": OddFile(
        b"a , n ,label\n" + b" 3 , 1.5 , no \n 5 ,2.5, yes \n" * 12, TWO
    ),
}

MISSING = {
    "empty values": column("3", "", "8"),
    "NA": column("3", "NA", "8"),
    "n/a in any case": column("3", "n/a", "N/A", "Na", "8"),
    "NaN": column("3", "NaN", "nan", "-nan", "8"),
    "null": column("3", "null", "NULL", "8"),
    "None": column("3", "None", "8"),
    "#N/A": column("3", "#N/A", "8"),
    "question marks": column("3", "?", "8"),
    "NA at first": OddFile(table(["NA"] * 10 + repeated("3", "5")[10:]), TWO),
    "NA in distinct numbers": OddFile(table(["NA", *map(str, range(100, 99 + ROWS))]), TWO),
    "NA among dates": column("2024-01-31", "NA", "2023-05-01", kind="date"),
    "NA among booleans": column("true", "NA", "FALSE", kind="boolean"),
    "NA among categories": column("x", "NA", kind="categorical"),
    "NA in decimal commas": column("3,5", "NA", "8", delimiter=";", notation=","),
    "only NA": column("NA", "null", kind="constant"),
    "an empty column": column("", kind="constant"),
    "a code": column("3", "-999", "8", options=("--missing", "-999")),
    "a word": column("3", "unknown", "8", options=("--missing", "unknown")),
    "a word that is not declared": column(
        *("3", "unknown", "8"),
        kind="categorical",
        said=(
            "column 'a' has numbers in 66 % of its values, but also 'unknown', first in row 1; it "
            "is read as strings (categorical). If they mean that the value is missing, pass them "
            "to --missing; otherwise pass the column to --categorical, --text or --drop.",
        ),
    ),
    "a word in declared numbers": OddFile(
        table(repeated("3", "unknown")),
        refused=":3: column 'a': expected a number, got 'unknown'. If it means that the value is "
        "missing, pass it to --missing.",
        options=("--numeric", "a"),
    ),
    "a dash that is not declared": OddFile(
        table(["-", *map(str, range(100, 99 + ROWS))]),
        ("identifier", "numeric"),
        said=("but also '-', first in row 0; it is dropped as an identifier. If they mean",),
    ),
}

NOTATIONS = {
    "decimal commas": column("3,5", "8", delimiter=";", notation=","),
    "quoted decimal commas": column("3,5", "8,25", notation=","),
    "points and decimal commas": column("1.234,5", "8", delimiter=";", notation=","),
    "thousands": column("1,234,567", "1,234", "12", notation="."),
    "thousands and decimals": column("1,234.5", "1,234", notation="."),
    "spaces as thousands": column("1 234", "12", notation="."),
    "hard spaces as thousands": column("1\u00a0234,5", "12", delimiter=";", notation=","),
    "apostrophes as thousands": column("1'234.50", "12", notation="."),
    "percentages": column("12%", "7.5%", notation=".%"),
    "percentages with commas": column("12,5 %", "7 %", delimiter=";", notation=",%"),
    "dollars": column("$1,234.50", "-$12", notation=".$"),
    "euros": column("1.234,50 €", "NA", "12 €", delimiter=";", notation=",€"),
    "currency codes": column("EUR 12", "EUR 7.5", notation=".EUR"),
    "scientific numbers": column("1e-3", "2.5E4"),
    "plus and minus signs": column("+3", "−5", notation="."),
    "thousands or decimals": column(
        *("1,234", "2,500"),
        delimiter="\t",
        notation=".",
        said=(
            "column 'a' has numbers such as '1,234', which can be 1234 or 1.234; they are read as "
            "1234. Pass --decimal , if the comma is the decimal mark, and --decimal . if it is not",
        ),
    ),
    "declared decimal commas": column(
        "1,234", "2,500", delimiter=";", notation=",", options=("--decimal", ",")
    ),
    "points beside decimal commas": OddFile(
        text_of(
            {"a": repeated("1,5", "2"), "n": repeated("1.234", "2.500"), "y": LABELS}, ";"
        ).encode(),
        TWO,
        notation=",",
        said=("column 'n' has numbers such as '1.234', which can be 1.234 or 1234",),
    ),
    "a unit": column(
        *("5 kg", "7.5 kg"),
        kind="categorical",
        said=("column 'a' has numbers with the unit 'kg', first in row 0; it is read as strings",),
    ),
    "a unit with other signs": column(
        *("5 km/h", "7.5 km/h"), kind="categorical", said=("numbers with the unit 'km/h'",)
    ),
    "thin spaces as thousands": column("1\u2009234", "12", notation="."),
    "negative numbers in parentheses": column(
        *("(1,234)", "12"), kind="categorical", said=("different notations, such as '(1,234)'",)
    ),
    "trailing minus signs": column(
        *("5-", "7-"), kind="categorical", said=("different notations, such as '5-' in row 0",)
    ),
    "numbers and bounds": column(
        *("<0.01", "0.5", "0.7"), kind="categorical", said=("in 66 % of its values, but also '<0",)
    ),
    "brackets": column("<18", "18-30", ">65", kind="categorical"),
    "codes that are no numbers": column("A5", "B7", "5-7", "5/7", "12:30", kind="categorical"),
    "two currencies": column(
        *("$5", "€4"), kind="categorical", said=("'a' has numbers in different notations",)
    ),
    "amounts with and without a sign": column(
        *("5", "€4"), kind="categorical", said=("'a' has numbers in different notations",)
    ),
}

COLUMNS = {
    "dates": column("2024-01-31", "2023-05-01", kind="date"),
    "times": column("2024-01-31 10:00:00", "2023-05-01T12:30:00", kind="date"),
    "dates in another notation": column(
        *("31.01.2024", "1.5.2023"),
        kind="categorical",
        said=("column 'a' has dates in an unknown notation, such as '31.01.2024' in row 0; it is",),
    ),
    "dates and a word": column(
        *("2024-01-31", "2023-05-01", "never"),
        kind="categorical",
        said=("column 'a' has dates in 66 % of its values, but also 'never'; it is read as",),
    ),
    "times with and without a zone": column(
        *("2024-01-31T10:00:00Z", "2023-05-01T12:30:00"),
        kind="categorical",
        said=("column 'a' has dates in an unknown notation, such as '2024-01-31T10:00:00Z' in",),
    ),
    "dates with slashes": column(
        *("01/31/2024", "05/01/2023"), kind="categorical", said=("dates in an unknown notation",)
    ),
    "booleans": column("True", "FALSE", kind="boolean"),
    "yes and no": column("yes", "no", kind="categorical"),
    "a constant": column("7", kind="constant"),
    "texts": OddFile(
        table([f"word{k} and word{k * k}" if k else "" for k in range(ROWS)]), ("text", "numeric")
    ),
    "identifiers": OddFile(
        table([f"p{k}" for k in range(ROWS)]),
        ("identifier", "numeric"),
        said=("column 'a' has too many distinct values to be categories",),
    ),
    "an index": OddFile(
        table(list(map(str, range(ROWS)))).replace(b"a,", b",", 1),
        ("row number", "numeric"),
        said=("column 'unnamed 1' numbers the rows",),
    ),
    "the same name twice": refused("a,a,label\n1,2,no\n2,3,yes\n", "the name 'a' twice"),
    "a column without a name at the end": OddFile(
        PLAIN.replace(b"\n", b",\n"), (*TWO, "constant"), options=("--label", "label")
    ),
    "the label in the middle": OddFile(
        text_of({"a": repeated("3", "5"), "y": LABELS, "n": NUMBERS}).encode(),
        TWO,
        options=("--label", "y"),
    ),
    "no header": OddFile(PLAIN.partition(b"\n")[2], TWO, options=("--no-header",)),
    "no header that is declared": refused(PLAIN.partition(b"\n")[2], "--no-header"),
    "declared categories": column(
        "0815", "4711", kind="categorical", options=("--categorical", "a")
    ),
}

LINES = {
    "blank lines": OddFile(b"\n\n" + PLAIN.replace(b"\n", b"\n\n"), TWO),
    "no newline at the end": OddFile(PLAIN.rstrip(), TWO),
    "a short row": refused("a,n,label\n1,2,no\n3,yes\n", ":3: expected 3 values as in the header"),
    "a long row": refused("a,n,label\n1,2,no\n3,4,5,yes\n", ":3: expected 3 values as in the"),
    "unquoted decimal commas": refused(
        "a,n,label\n1,5,2,no\n3,4,yes\n", ":2: expected 3 values as in the header, got 4"
    ),
    "an open quote": refused('a,n,label\n1,"2,no\n3,4,yes\n', ":2: a quoted value begins"),
    "only a header": refused("a,n,label\n", "the table has no rows"),
    "no content": refused("", "the file is empty"),
    "only blank lines": refused("\n\n", "the file is empty"),
    "one column": refused("label\nno\nyes\n", "the table has one column"),
    "one row": refused("a,n,label\n1,2,no\n", "'a' is constant, 'n' is constant"),
}

LABELLED = {
    "one class": refused(table(repeated("3"), labels=["no"] * ROWS), "at least two classes"),
    "leading zeros": labelled("01", "1", "02", classes=("01", "02", "1")),
    "integers": labelled("1", "10", classes=(1, 10)),
    "signs": labelled("+1", "-1", classes=(-1, 1)),
    "whole floats": labelled("1.0", "2.0", classes=(1, 2)),
    "fractions": refused(
        table(repeated("3"), labels=repeated("0.5", "1")), "the label is the number 0.5"
    ),
    "truths": labelled("True", "False", classes=("False", "True")),
    "quoted labels": labelled("no, never", "yes", classes=("no, never", "yes")),
    "a label that is missing": refused(
        table(repeated("3", "5"), labels=["no", "", *LABELS[2:]]),
        ":3: column 'label': the label is missing",
    ),
    "NA among numbers as labels": refused(
        table(repeated("3", "5"), labels=["0", "NA", *repeated("0", "1")[2:]]),
        ":3: column 'label': the label is 'NA', but all other labels are numbers",
    ),
}

OTHERS = {
    "dates in JSON": OddFile(json_lines("2024-01-31", "2023-05-01", None), ("date", "numeric")),
    "strings of numbers in JSON": OddFile(json_lines("3", "NA", "8"), TWO),
    "decimal commas in JSON": OddFile(json_lines("3,5", "8"), TWO, notation=","),
    "numbers and NA in JSON": OddFile(json_lines("NA", 3, " null ", 8), TWO),
    "numbers and a word that is missing in JSON": OddFile(
        json_lines("unknown", 3, 8), TWO, options=("--missing", "unknown")
    ),
    "numbers and words in JSON": refused(json_lines(3, "NA", "x"), 'number as before, got "x"'),
}

ODD_FILES: dict[str, OddFile] = {
    **{f"encoding: {name}": file for name, file in ENCODINGS.items()},
    **{f"delimiter: {name}": file for name, file in DELIMITERS.items()},
    **{f"missing: {name}": file for name, file in MISSING.items()},
    **{f"notation: {name}": file for name, file in NOTATIONS.items()},
    **{f"column: {name}": file for name, file in COLUMNS.items()},
    **{f"lines: {name}": file for name, file in LINES.items()},
    **{f"labels: {name}": file for name, file in LABELLED.items()},
    **{f"other: {name}": file for name, file in OTHERS.items()},
}


def write(folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in ODD_FILES.items():
        (folder / name.replace(": ", "-").replace(" ", "_").replace("/", "_")).write_bytes(
            file.content
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
