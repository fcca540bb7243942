"""Converters from the public originals of the data sets to the arrays that the scripts read.

A converter takes the folder of the originals and returns arrays by name, or a list of records.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import html
import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Records = list[dict[str, Any]]

OPENERS = {"": Path.read_bytes, ".gz": lambda path: gzip.decompress(path.read_bytes())}
OPENERS[".bz2"] = lambda path: bz2.decompress(path.read_bytes())


def found(folder: Path, name: str) -> Path | None:
    """Return the path of an original, compressed or not, or None."""
    stem = name.removesuffix(".gz").removesuffix(".bz2")
    return next((path for end in OPENERS if (path := folder / (stem + end)).is_file()), None)


def content(folder: Path, name: str) -> bytes:
    """Return the uncompressed bytes of an original."""
    path = found(folder, name)
    if path is None:
        raise FileNotFoundError(f"{folder} has no {name}.")
    return OPENERS[path.suffix if path.suffix in OPENERS else ""](path)


def lines(folder: Path, name: str) -> Iterator[str]:
    """Yield the nonempty lines of an original, stripped."""
    text = io.TextIOWrapper(io.BytesIO(content(folder, name)), encoding="utf-8", errors="strict")
    return (line.strip() for line in text if line.strip())


def rows(folder: Path, name: str) -> Iterator[list[str]]:
    """Yield the stripped cells of comma-separated lines."""
    return ([cell.strip() for cell in line.split(",")] for line in lines(folder, name))


def expect(holds: bool, message: str) -> None:
    """Raise ValueError if an original is not in the expected format."""
    if not holds:
        raise ValueError(message)


def parts(train: tuple[Any, Any], test: tuple[Any, Any]) -> Arrays:
    """Name the rows and labels of a canonical split."""
    return {"X_train": train[0], "y_train": train[1], "X_test": test[0], "y_test": test[1]}


# -- digits --------------------------------------------------------------------------------------


def idx(data: bytes, name: str) -> NDArray[np.uint8]:
    """Read an IDX file of bytes, the format of MNIST."""
    expect(data[:3] == b"\0\0\x08", f"{name} is not an IDX file of bytes.")
    shape = np.frombuffer(data, ">u4", data[3], offset=4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    expect(len(values) == np.prod(shape), f"{name} is incomplete.")
    return values.reshape(tuple(int(n) for n in shape))


def mnist(folder: Path) -> Arrays:
    """Flatten the images; pixels stay bytes."""
    made = []
    for part in ("train", "t10k"):
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        X = idx(content(folder, images), images)
        y = idx(content(folder, labels), labels)
        expect(len(X) == len(y), f"{images} and {labels} differ in length.")
        made.append((X.reshape(len(X), -1), y.astype(np.int64)))
    return parts(*made)


def usps(folder: Path) -> Arrays:
    """Map pixels from [-1, 1] to [0, 1]."""
    made = []
    for name in ("zip.train", "zip.test"):
        table = np.loadtxt(lines(folder, name), dtype=np.float32, ndmin=2)
        expect(table.shape[1] == 257, f"{name} has {table.shape[1]} columns, not 257.")
        made.append(((table[:, 1:] + 1) / 2, table[:, 0].astype(np.int64)))
    return parts(*made)


# -- svmlight text -------------------------------------------------------------------------------


def svmlight(folder: Path, name: str, columns: int) -> tuple[Any, NDArray[np.int64]]:
    """Read svmlight text with one-based columns in any order, as a CSR matrix of float32."""
    from scipy.sparse import csr_matrix

    labels, data, indices, indptr = [], [], [], [0]
    for line in lines(folder, name):
        label, *cells = line.split()
        pairs = sorted({int(column) - 1: value for column, value in map(_pair, cells)}.items())
        labels.append(int(float(label)))
        indices += [column for column, _ in pairs]
        data += [value for _, value in pairs]
        indptr.append(len(indices))
    values = np.array(data, dtype=np.float64).astype(np.float32)
    X = csr_matrix((values, indices, indptr), shape=(len(labels), columns))
    return X, np.array(labels, dtype=np.int64)


def _pair(cell: str) -> tuple[str, str]:
    column, _, value = cell.partition(":")
    return column, value


def csr_parts(names: tuple[str, str], folder: Path, columns: int) -> Arrays:
    """Store a training and a test file as CSR arrays."""
    made: Arrays = {}
    for part, name in zip(("train", "test"), names, strict=True):
        X, made[f"y_{part}"] = svmlight(folder, name, columns)
        made |= csr(X, part)
    return made


def csr(X: Any, part: str) -> Arrays:
    """Name the arrays of a CSR matrix."""
    return {
        f"X_{part}_data": X.data,
        f"X_{part}_indices": X.indices.astype(np.int32),
        f"X_{part}_indptr": X.indptr.astype(np.int32),
        f"X_{part}_shape": np.array(X.shape, dtype=np.int64),
    }


def a9a(folder: Path) -> Arrays:
    """Use 123 columns for both parts, although the test file has only 122."""
    return csr_parts(("a9a", "a9a.t"), folder, 123)


def reuters_moneyfx(folder: Path) -> Arrays:
    """Keep the values, whose rows have unit length."""
    return csr_parts(("reuters.trn", "reuters.tst"), folder, 8315)


def dna(folder: Path) -> Arrays:
    """Classes 1, 2, 3 become 0, 1, 2: ei, ie, n."""
    made = []
    for name in ("dna.scale", "dna.scale.t"):
        X, y = svmlight(folder, name, 180)
        made.append((X.toarray().astype(np.uint8), y - 1))
    return parts(*made) | {"classes": np.array(["ei", "ie", "n"])}


# -- tables --------------------------------------------------------------------------------------


def letter(folder: Path) -> Arrays:
    """Letters become 0 to 25; the last 4,000 rows are the test part."""
    table = list(rows(folder, "letter-recognition.data"))
    y = np.array([ord(row[0]) - ord("A") for row in table], dtype=np.int64)
    X = np.array([row[1:] for row in table], dtype=np.int64).astype(np.uint8)
    cut = len(y) * 4 // 5
    return parts((X[:cut], y[:cut]), (X[cut:], y[cut:]))


def satimage(folder: Path) -> Arrays:
    """The last column is the class."""
    tables = [np.loadtxt(lines(folder, f"sat.{end}"), dtype=np.int64) for end in ("trn", "tst")]
    return parts(*((table[:, :-1].astype(np.uint8), table[:, -1]) for table in tables))


def banana(folder: Path) -> Arrays:
    """Read KEEL's format, whose header lines start with @."""
    table = [row for row in rows(folder, "banana.dat") if not row[0].startswith("@")]
    values = np.array(table, dtype=np.float64)
    return {"X": values[:, :2].astype(np.float32), "y": values[:, 2].astype(np.int64)}


def waveform(folder: Path) -> Arrays:
    """The last column is the class."""
    values = np.array(list(rows(folder, "waveform.data")), dtype=np.float64)
    return {"X": values[:, :-1].astype(np.float32), "y": values[:, -1].astype(np.int64)}


ABALONE = "sex_M sex_F sex_I length diameter height whole_wt shucked_wt viscera_wt shell_wt"


def abalone(folder: Path) -> Arrays:
    """Encode the sex as three indicators; the label is the number of rings."""
    table = list(rows(folder, "abalone.data"))
    sexes = np.array([[row[0] == sex for sex in "MFI"] for row in table], dtype=np.float32)
    sizes = np.array([row[1:-1] for row in table], dtype=np.float64).astype(np.float32)
    y = np.array([int(row[-1]) for row in table], dtype=np.int64)
    return {"X": np.hstack([sexes, sizes]), "y": y, "feature_names": np.array(ABALONE.split())}


ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    "native_country",
)
ADULT_NUMBERS = [0, 2, 4, 10, 11, 12]


def adult(folder: Path) -> Arrays:
    """Encode categories by the sorted levels of both files; a question mark is a level."""
    tables = [
        [row for row in rows(folder, name) if len(row) == 15]
        for name in ("adult.data", "adult.test")
    ]
    categories = [k for k in range(14) if k not in ADULT_NUMBERS]
    levels = {k: sorted({row[k] for table in tables for row in table}) for k in categories}
    made: Arrays = {
        "num_names": np.array([ADULT[k] for k in ADULT_NUMBERS]),
        "cat_names_and_levels": np.array(["|".join([ADULT[k], *levels[k]]) for k in categories]),
    }
    for part, table in zip(("train", "test"), tables, strict=True):
        numbers = [[int(row[k]) for k in ADULT_NUMBERS] for row in table]
        codes = [[levels[k].index(row[k]) for k in categories] for row in table]
        made[f"X_num_{part}"] = np.array(numbers, dtype=np.int32)
        made[f"X_cat_{part}"] = np.array(codes, dtype=np.uint8)
        made[f"y_{part}"] = np.array([1 if row[14][0] == ">" else -1 for row in table], np.int64)
    return made


COVTYPE_FIRST, COVTYPE_ROWS = 15_120, 92_962


def covtype(folder: Path) -> Arrays:
    """Take the first 15,120 rows, and a random sample of all rows (seed 0)."""
    data = io.BytesIO(content(folder, "covtype.data"))
    table = np.loadtxt(data, dtype=np.int16, delimiter=",")
    expect(table.shape[1] == 55, f"covtype.data has {table.shape[1]} columns, not 55.")
    count = min(COVTYPE_ROWS, len(table))
    drawn = np.random.default_rng(0).permutation(len(table))[:count]
    X, y = table[:, :-1], table[:, -1].astype(np.int64)
    return {
        "X": X[drawn],
        "y": y[drawn],
        "in_first15120": drawn < COVTYPE_FIRST,
        "X_first15120": X[:COVTYPE_FIRST],
        "y_first15120": y[:COVTYPE_FIRST],
    }


def kddcup(folder: Path) -> Arrays:
    """Encode protocol, service, flag and class by the sorted levels of both files."""
    names = {"train": "kddcup.data_10_percent", "test": "corrected"}
    split = {part: _connections(folder, name) for part, name in names.items()}
    made: Arrays = {f"X_num_{part}": numbers for part, (numbers, _) in split.items()}
    texts = {part: text for part, (_, text) in split.items()}
    keys = ("protocol_levels", "service_levels", "flag_levels", "classes")
    for k, key in enumerate(keys):
        made[key] = np.array(sorted({row[k] for text in texts.values() for row in text}))
    for part, text in texts.items():
        places = [{level: place for place, level in enumerate(made[key].tolist())} for key in keys]
        codes = np.array(
            [[place[value] for place, value in zip(places, row, strict=True)] for row in text]
        )
        made[f"X_cat_{part}"] = codes[:, :3].astype(np.uint8)
        made[f"y_{part}"] = codes[:, 3].astype(np.int16)
    return made


def _connections(folder: Path, name: str) -> tuple[NDArray[np.float32], list[tuple[str, ...]]]:
    """Return the 38 numbers and the four texts of each connection."""
    numbers, texts = [], []
    for row in rows(folder, name):
        expect(len(row) == 42, f"{name} has a row of {len(row)} columns, not 42.")
        numbers.append(np.array([row[0], *row[4:41]], dtype=np.float64).astype(np.float32))
        texts.append((row[1], row[2], row[3], row[41]))
    return np.array(numbers), texts


# -- text ----------------------------------------------------------------------------------------


def sms_spam(folder: Path) -> Records:
    """The first tab separates the label from the message."""
    text = content(folder, "SMSSpamCollection").decode("utf-8")
    pairs = (line.partition("\t") for line in text.splitlines() if line.strip())
    return [{"label": int(label == "spam"), "text": message} for label, _, message in pairs]


DOCUMENT = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)


def reuters_text(folder: Path) -> Records:
    """Return the documents of the ModApte split: title and body, or all text without a body."""
    records = []
    for attributes, document in DOCUMENT.findall(_reuters_sgml(folder)):
        given = dict(re.findall(r'(\w+)="(.*?)"', attributes))
        if given["TOPICS"] == "YES" and given["LEWISSPLIT"] in ("TRAIN", "TEST"):
            topics = re.search(r"<TOPICS>(.*?)</TOPICS>", document)
            records.append(
                {
                    "id": int(given["NEWID"]),
                    "split": given["LEWISSPLIT"].lower(),
                    "topics": re.findall(r"<D>(.*?)</D>", topics[1] if topics else ""),
                    "text": _reuters_document(document),
                }
            )
    return sorted(records, key=lambda record: record["id"])


def _reuters_sgml(folder: Path) -> str:
    """Join the 22 files of the folder or of the archive."""
    archive = found(folder, "reuters21578.tar.gz")
    if archive is None:
        data = [path.read_bytes() for path in sorted(folder.glob("reut2-*.sgm"))]
    else:
        with tarfile.open(archive) as files:
            names = sorted(name for name in files.getnames() if name.endswith(".sgm"))
            data = [file.read() for name in names if (file := files.extractfile(name))]
    expect(
        bool(data), f"{folder} has neither reuters21578.tar.gz nor reut2-000.sgm to reut2-021.sgm."
    )
    return "".join(part.decode("latin-1") for part in data)


def _reuters_document(document: str) -> str:
    title = re.search(r"<TITLE>(.*?)</TITLE>", document, re.DOTALL)
    body = re.search(r"<BODY>(.*?)</BODY>", document, re.DOTALL)
    text = re.search(r"<TEXT.*?>(.*?)</TEXT>", document, re.DOTALL)
    rest = (
        body[1] if body else re.sub(r"<TITLE>.*?</TITLE>", "", text[1] if text else "", flags=re.S)
    )
    # html.unescape removes references to control characters.
    return (html.unescape(title[1] if title else "") + "\n" + html.unescape(rest)).strip()


def reuters_tfidf(folder: Path) -> Arrays:
    """Compute tf-idf of the documents that have one of the 90 topics of both parts."""
    return tfidf(reuters_text(folder))


def tfidf(records: Iterable[dict[str, Any]]) -> Arrays:
    """Fit tf-idf to the training documents."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    split: dict[str, Records] = {"train": [], "test": []}
    for record in records:
        split[record["split"]].append(record)
    known = ({topic for record in part for topic in record["topics"]} for part in split.values())
    topics = sorted(set.intersection(*known))
    words = TfidfVectorizer(
        token_pattern=r"\b[a-z]{2,}\b", min_df=3, sublinear_tf=True, dtype=np.float32
    )
    made: Arrays = {"topics": np.array(topics)}
    for part, every in split.items():
        kept = [record for record in every if set(record["topics"]) & set(topics)]
        texts = [record["text"] for record in kept]
        made |= csr(words.fit_transform(texts) if part == "train" else words.transform(texts), part)
        marks = [[topic in record["topics"] for topic in topics] for record in kept]
        made[f"Y_{part}"] = np.array(marks, dtype=np.uint8)
        made[f"id_{part}"] = np.array([record["id"] for record in kept], dtype=np.int64)
    return made | {"vocab": words.get_feature_names_out().astype(str)}


INCLUDED = ("included", "label_included", "included_final", "final_included", "label")


def review(folder: Path, name: str) -> Records:
    """Keep title, abstract and the final decision of a systematic review."""
    text = io.StringIO(content(folder, name).decode("utf-8-sig"), newline="")
    table = csv.DictReader(text)
    names = {str(key).strip().lower(): key for key in table.fieldnames or ()}
    decision = next((names[key] for key in INCLUDED if key in names), None)
    expect(
        decision is not None and {"title", "abstract"} <= names.keys(),
        f"{name} needs the columns title, abstract and one of {', '.join(INCLUDED)}.",
    )
    return [
        {
            "title": row[names["title"]] or "",
            "abstract": row[names["abstract"]] or "",
            "included": int(float(row[decision] or 0)),
        }
        for row in table
    ]
