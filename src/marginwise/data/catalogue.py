"""load_dataset: load benchmark data sets by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise.data.array_files import PARTS
from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError
from marginwise.data.json_lines import JsonLinesFile

VARIABLE = "MARGINWISE_DATA"
SUFFIXES = (".npz", ".jsonl.gz", ".jsonl")
LABELS = ("label", "included", "topics")  # keys of the labels in text data sets


@dataclass
class Dataset:
    """Data set with an optional canonical train-test split.

    Parameters
    ----------
    X_train : ndarray, CSR array, pyarrow Table or data frame
        Training rows, or all rows if there is no canonical split.
    y_train : ndarray
        Labels of the training rows. If rows have several labels, an indicator matrix or an array of
        lists.
    X_test : ndarray, CSR array, pyarrow Table or None, default=None
        Test rows, or None if there is no canonical split.
    y_test : ndarray or None, default=None
        Labels of the test rows.
    name : str, default=""
        Name of the data set.

    See Also
    --------
    load_dataset : Load a data set by name.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise.data import Dataset
    >>> data = Dataset(np.zeros((3, 2)), np.array([0, 1, 0]), name="toy")
    >>> data.X_test is None
    True
    """

    X_train: Any
    y_train: Any
    X_test: Any = None
    y_test: Any = None
    name: str = ""


def load_dataset(
    name: str, *, data: str | os.PathLike[str] | None = None, openml: bool = False
) -> Dataset:
    """Load a data set from a local folder.

    Arrays and sparse matrices are stored in .npz files, texts in JSON Lines files.

    Parameters
    ----------
    name : str
        File name without suffix, relative to the folder, such as "mnist", "adult_raw", "sms_spam"
        or "reviews/nagtegaal_2019".
    data : str or path-like, default=None
        Folder with data sets. By default, the value of the environment variable MARGINWISE_DATA.
    openml : bool, default=False
        Whether to download data sets that are missing from the folder from OpenML, using
        scikit-learn.

    Returns
    -------
    dataset : Dataset
        Features and labels. Features with categorical columns or texts are pyarrow tables.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from marginwise.data import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "toy.npz", X=np.eye(3), y=[0, 1, 1])
    ...     toy = load_dataset("toy", data=folder)
    >>> toy.X_train.shape, toy.y_train.tolist(), toy.X_test
    ((3, 3), [0, 1, 1], None)
    """
    folder = os.environ.get(VARIABLE) if data is None else data
    found = None if folder is None else _find(Path(folder), name)
    if found is not None:
        read = _read_arrays if found.suffix == ".npz" else _read_text
        return read(found, name)
    if openml:
        return _download(name)
    if folder is None:
        raise ValueError(
            f"load_dataset({name!r}) needs the folder of data sets: set {VARIABLE}, pass data, or "
            "pass openml=True to download it."
        )
    there = ", ".join(_names(Path(folder))) or "none"
    raise FileNotFoundError(f"{folder}: there is no data set {name!r}; the folder has {there}.")


def _find(folder: Path, name: str) -> Path | None:
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder}: expected a folder of data sets.")
    return next((p for suffix in SUFFIXES if (p := folder / f"{name}{suffix}").is_file()), None)


def _names(folder: Path) -> list[str]:
    """Return the names of the data sets in a folder."""
    files = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*"))]
    return [
        name.removesuffix(suffix) for name in files for suffix in SUFFIXES if name.endswith(suffix)
    ]


# -- arrays ------------------------------------------------------------------------------------


def _read_arrays(path: Path, name: str) -> Dataset:
    with np.load(path, allow_pickle=False) as archive:
        if not any("_train" in key for key in archive.files):
            return Dataset(_features(path, archive, ""), _y(archive, ""), name=name)
        train, test = ((_features(path, archive, p), _y(archive, p)) for p in ("train", "test"))
    return Dataset(*train, *test, name)


def _key(stem: str, part: str) -> str:
    return f"{stem}_{part}" if part else stem


def _features(path: Path, archive: Any, part: str) -> Any:
    files, key = archive.files, _key("X", part)
    if key in files:
        return archive[key]
    if f"{key}_data" in files:
        data, indices, indptr, shape = (archive[f"{key}_{piece}"] for piece in PARTS)
        return sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    if _key("X_num", part) in files:
        return _mixed(path, archive, part)
    raise DataError(f"{path}: expected the array {key!r}; the file has {', '.join(files)}.")


def _y(archive: Any, part: str) -> Any:
    """Return labels, as class names if the file contains them."""
    if _key("y", part) not in archive.files:
        return archive[_key("Y", part)] if _key("Y", part) in archive.files else None
    y: NDArray[Any] = archive[_key("y", part)]
    if "classes" in archive.files and y.dtype.kind in "iu" and y.size:
        names = archive["classes"]
        if y.min() >= 0 and y.max() < len(names):
            return names[y]
    return y


def _mixed(path: Path, archive: Any, part: str) -> Any:
    """Return a table of numeric and categorical columns."""
    pa = need_arrow()
    numbers, codes = archive[_key("X_num", part)], archive[_key("X_cat", part)]
    given = archive["num_names"].tolist() if "num_names" in archive.files else None
    names = given or [f"x{k}" for k in range(numbers.shape[1])]
    columns = {name: numbers[:, k] for k, name in enumerate(names)}
    for k, (name, levels) in enumerate(_levels(archive)):
        unknown = np.flatnonzero((codes[:, k] < 0) | (codes[:, k] >= len(levels)))
        if unknown.size:
            row = int(unknown[0])
            raise DataError(
                f"{path}: row {row} of {_key('X_cat', part)} has the code {int(codes[row, k])} for "
                f"{name}, whose levels have the codes 0 to {len(levels) - 1}."
            )
        places = pa.array(codes[:, k].astype(np.int32))
        # The type declares categories, of which the levels may be numbers.
        columns[name] = pa.DictionaryArray.from_arrays(places, pa.array(levels, pa.string()))
    return pa.table(columns)


def _levels(archive: Any) -> list[tuple[str, list[str]]]:
    """Return the names and levels of the categorical columns."""
    if "cat_names_and_levels" in archive.files:
        split = [line.split("|") for line in archive["cat_names_and_levels"].tolist()]
        return [(name, levels) for name, *levels in split]
    keys = [key for key in archive.files if key.endswith("_levels")]
    return [(key.removesuffix("_levels"), archive[key].tolist()) for key in keys]


# -- text --------------------------------------------------------------------------------------


def _read_text(path: Path, name: str) -> Dataset:
    pa = need_arrow()
    file = JsonLinesFile(path)
    label = next((key for key in LABELS if key in file.columns), file.default_label)
    columns: dict[str, list[Any]] = {key: [] for key in file.columns}
    for item in file.objects():
        for key, values in columns.items():
            values.append(item.get(key))
    y = _labels(columns.pop(label))
    split = columns.pop("split", None)
    table = pa.table(columns)
    if split is None:
        return Dataset(table, y, name=name)
    train, test = (np.flatnonzero(np.array(split) == part) for part in ("train", "test"))
    return Dataset(table.take(train), y[train], table.take(test), y[test], name)


def _labels(values: list[Any]) -> NDArray[Any]:
    """Return labels as an array; an array of lists if rows have several labels."""
    if not any(isinstance(value, list) for value in values):
        return np.array(values)
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


# -- OpenML ------------------------------------------------------------------------------------


def _download(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml(name, return_X_y=True, as_frame="auto")
    return Dataset(X, np.asarray(y), name=name)
