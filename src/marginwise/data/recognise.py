"""open_source: open any kind of data as a source."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginwise.data.arrays import ArraySource
from marginwise.data.declared import DeclaredSource
from marginwise.data.errors import DataError
from marginwise.data.joined import JoinedSource
from marginwise.data.sniff import kind_of
from marginwise.data.streams import IteratorStream
from marginwise.data.svmlight import SvmlightSource
from marginwise.data.tables import TableSource, checked_encoder

FAMILIES = {
    "csv": "table",
    "json": "table",
    "parquet": "table",
    "arrow": "table",
    "arrow stream": "table",
    "svmlight": "svmlight",
    "npy": "array",
    "npz": "array",
}


def open_source(
    data: Any,
    *,
    label: Any = None,
    labelled: bool = True,
    classes: ArrayLike | None = None,
    encoder: Any = "auto",
    zero_based: bool | str | None = None,
    n_features: int | None = None,
    missing: Collection[str] = (),
    header: bool = True,
) -> Any:
    r"""Open files or objects as a data source.

    The returned source can be passed to the `learn_from` method of the classifiers. The format of a
    file is recognised by its content, not by its name. Text files may be compressed with gzip or
    Zstandard.

    Parameters
    ----------
    data : path, glob, list of paths, array, tuple (X, y), table, iterator or source
        One of the following:

        - Path of an svmlight, CSV, JSON Lines, Parquet, Arrow, .npy or .npz file. A list of files
          of one format, a glob pattern or a folder is opened as a single source.
        - Array or sparse matrix of features, or a tuple (X, y) of features and labels.
        - Pyarrow table, data frame or dict of columns.
        - Record-batch reader, or iterator of batches (X, y), as a stream that can be read once.
        - Data source, which is returned unchanged.
    label : str, int or path, default=None
        Location of the labels: a column of a table or of a .npy array (by default, the last one),
        or a .npy file with the labels of a .npy array. Not used for svmlight and .npz files, which
        contain labels.
    labelled : bool, default=True
        Whether the data have labels. If False, y is None, and `label` is the name of a column of a
        table to ignore.
    classes : array-like, default=None
        All class labels. By default, the labels that occur in the data.
    encoder : TableEncoder, "auto", "types" or None, default="auto"
        Encoder of the rows of tables; see :class:`TableSource`.
    zero_based : bool or "auto", default=None
        Whether indices in svmlight files start at 0. None uses the default of
        :class:`SvmlightSource`.
    n_features : int, default=None
        Number of features of svmlight files. None determines it from the files.
    missing : collection of str, default=()
        Values of tables to treat as missing, in addition to empty values; see :class:`TableSource`.
    header : bool, default=True
        Whether the first line of CSV files contains the column names.

    Returns
    -------
    source : ArraySource, SvmlightSource, TableSource or IteratorStream
        The source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginwise.data import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     _ = path.write_text("size,color,pet\n1,red,cat\n9,blue,dog\n2,red,cat\n")
    ...     source = open_source(path)
    ...     X, y = source.load()
    >>> X.shape, y.tolist()
    ((3, 3), ['cat', 'dog', 'cat'])
    """
    options = {"label": label, "labelled": labelled, "classes": classes}
    if _is_path(data) or (isinstance(data, list) and data and all(map(_is_path, data))):
        paths = expand(data)
        family = _family(paths)
        if family == "table":
            return TableSource(paths, **options, encoder=encoder, missing=missing, header=header)
        if family == "array":
            return _open_arrays(paths, **options)
        source = _open_svmlight(paths, zero_based, n_features)
        return source if labelled and classes is None else DeclaredSource(source, classes, labelled)
    return _open_object(data, encoder, missing, **options)


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _open_object(
    data: Any,
    encoder: Any,
    missing: Collection[str],
    label: Any,
    labelled: bool,
    classes: ArrayLike | None,
) -> Any:
    """Open an object in memory."""
    if callable(getattr(data, "read", None)) and callable(getattr(data, "chunks", None)):
        return data
    if hasattr(data, "read_next_batch") or isinstance(data, Iterator):
        return IteratorStream(
            data,
            label=label,
            labelled=labelled,
            classes=classes,
            encoder=checked_encoder(encoder, missing),
        )
    if isinstance(data, tuple) and len(data) == 2:
        return ArraySource(*data, labelled=labelled, classes=classes)
    if isinstance(data, np.ndarray) or sp.issparse(data):
        return ArraySource(data, label, labelled=labelled, classes=classes)
    if hasattr(data, "__len__") and callable(getattr(data, "read", None)):
        return data  # a custom source, such as a VirtualSet
    try:
        return TableSource(
            data,
            label=label,
            labelled=labelled,
            classes=classes,
            encoder=encoder,
            missing=missing,
        )
    except TypeError as error:
        raise TypeError(
            f"open_source cannot read {type(data).__name__}; expected a path, a list of paths, an "
            "array, a tuple (X, y), a table, a data frame, an iterator of (X, y), or a source."
        ) from error


# -- files -------------------------------------------------------------------------------------


def expand(data: Any) -> list[Path]:
    """Return the files that match paths, glob patterns and folders."""
    given = [data] if _is_path(data) else data
    found: list[Path] = []
    for one in given:
        path = Path(one)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
            if not inside:
                raise DataError(f"{path}: the folder is empty; expected files.")
            found += inside
        elif path.exists() or not glob.has_magic(str(path)):
            found.append(path)
        else:
            matching = [Path(name) for name in glob.glob(str(path), recursive=True)]
            files = sorted(name for name in matching if name.is_file())
            if not files:
                raise FileNotFoundError(f"{path}: no file matches; expected at least one.")
            found += files
    return found


def _family(paths: list[Path]) -> str:
    """Return the family of the format of files; raise if their formats differ."""
    kinds = [kind_of(path) for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{path}: the file is {kind}, but {paths[0]} is {kinds[0]}; expected files of one "
                "kind. Open them one by one."
            )
    return FAMILIES[kinds[0]]


def _open_arrays(
    paths: list[Path], label: Any, labelled: bool, classes: ArrayLike | None
) -> ArraySource | JoinedSource:
    if label is None and labelled and kind_of(paths[0]) == "npy":
        label = -1
    if _is_path(label) and len(paths) > 1:
        raise ValueError(
            f"label={label!r} is a file, but there are {len(paths)} files of features; expected a "
            "column number."
        )
    made = [ArraySource(path, label, labelled=labelled, classes=classes) for path in paths]
    return made[0] if len(made) == 1 else JoinedSource(made, classes)


def _open_svmlight(paths: list[Path], zero_based: Any, n_features: int | None) -> SvmlightSource:
    based: Any = "auto" if zero_based is None else zero_based
    return SvmlightSource(
        paths if len(paths) > 1 else paths[0], zero_based=based, n_features=n_features
    )
