"""TableSource: rows of tables, in files or in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from marginwise._arrays import Ints
from marginwise.data.columns import CellError
from marginwise.data.encoder import TableEncoder
from marginwise.data.errors import DataError
from marginwise.data.labels import LabelColumn
from marginwise.data.matrix import ColumnMatrix
from marginwise.data.rows import (
    check_chunks,
    check_ids,
    gather,
    join_rows,
    rechunk,
    some_rows,
    take,
)
from marginwise.data.table_file import Block
from marginwise.data.table_files import open_tables
from marginwise.data.table_profile import UNUSED, missing_column
from marginwise.data.typed import ColumnTypes


class TableSource:
    """Data source of tables: CSV, JSON Lines, Parquet, Arrow or data frames.

    Rows are encoded by a :class:`TableEncoder`. Unless a fitted encoder is given, the first use of
    the source reads all rows once to fit the encoder and to determine the classes and the number of
    rows. Memory consumption does not depend on the number of rows.

    Parameters
    ----------
    tables : path, pyarrow Table, data frame, dict of columns, or list of paths
        One table, or several files of the same format and with the same columns, which are
        concatenated.
    label : str, default=None
        Column of the class labels. By default, the last column; for JSON lines, the key "label",
        "target", "class" or "y", if there is one.
    labelled : bool, default=True
        Whether rows have labels. If False, all columns except `label` are features, and y is None.
    encoder : TableEncoder, "auto", "types" or None, default="auto"
        Encoder of the rows. A fitted encoder is used unchanged; "auto" or an unfitted encoder is
        fitted to all rows. None returns rows as pyarrow tables, in which values of CSV files are
        strings. "types" returns tables in which columns of CSV files are converted to numbers,
        booleans or dates if all values allow it.
    classes : array-like, default=None
        All class labels. By default, the labels that occur in the data.
    missing : collection of str, default=()
        Values to treat as missing, in addition to empty values. An encoder that is fitted to the
        rows stores them, so that they need not be given again. Without an encoder, only values of
        CSV files and strings among numbers of JSON lines can be declared.
    header : bool, default=True
        Whether the first line of a CSV file contains the column names. Otherwise, columns are named
        "x0", "x1" and so on.

    Attributes
    ----------
    files : list of str
        Names of the files.
    label : str or None
        Column of the class labels.
    random_access : bool
        Whether blocks of rows can be read in any order.

    See Also
    --------
    open_source : Open any kind of data source.
    TableEncoder : Encode the columns of a table as features.

    Examples
    --------
    >>> from marginwise import OnlineSVC
    >>> from marginwise.data import TableSource
    >>> table = {"size": [1.0, 2.0, 8.0, 9.0], "kind": ["cat", "cat", "dog", "dog"]}
    >>> source = TableSource(table)
    >>> len(source), source.classes.tolist(), source.feature_names
    (4, ['cat', 'dog'], ['size'])
    >>> model = OnlineSVC().learn_from(source)
    >>> model.predict(source.encoder.transform({"size": [1.5]})).tolist()
    ['cat']
    """

    def __init__(
        self,
        tables: Any,
        *,
        label: str | None = None,
        labelled: bool = True,
        encoder: Any = "auto",
        classes: ArrayLike | None = None,
        missing: Collection[str] = (),
        header: bool = True,
    ) -> None:
        if isinstance(missing, str):
            raise ValueError(f"missing must be a list of strings, got {missing!r:.60}.")
        self._tables = open_tables(tables, missing=missing, header=header)
        self.files = [table.name for table in self._tables.files]
        self.random_access = self._tables.random_access
        if isinstance(encoder, str) and encoder == "types":
            encoder = ColumnTypes(self._tables.first.parse)
        ready = isinstance(encoder, ColumnTypes | ColumnMatrix)
        self._encoder: Any = encoder if ready else checked_encoder(encoder, missing)
        self.label = self._find_label(label, labelled)
        self._labels: LabelColumn | None = None
        if labelled:
            assert self.label is not None
            known = None if classes is None else np.unique(np.asarray(classes))
            self._labels = LabelColumn(self.label, self._tables.first.parse, known)
        self._declared = classes is not None
        self._fitted = self._encoder is None or hasattr(self._encoder, "kinds_")
        self._check_columns()
        self._observed = False  # whether all labels were seen

    # -- properties ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._starts()[-1])

    @property
    def classes(self) -> NDArray[Any] | None:
        """All class labels, sorted, or None without labels."""
        if self._labels is None:
            return None
        if not self._declared:
            self._scan()
            if len(self._labels.classes) < 2:
                raise DataError(
                    f"{self._tables.first.head}: column {self.label!r} has the label "
                    f"{self._labels.classes.tolist()[0]!r} in all {len(self)} rows; expected at "
                    "least two classes. Name the column of the label, or pass classes."
                )
        return self._labels.classes

    @property
    def encoder(self) -> TableEncoder | None:
        """Fitted encoder, or None if rows are tables."""
        if not self._fitted:
            self._scan()
        return self._encoder if isinstance(self._encoder, TableEncoder) else None

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        if self.encoder is None:
            return self._columns(labels=False)
        names: list[str] = self._encoder.get_feature_names_out().tolist()
        return names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def block(self) -> int | None:
        """Number of rows that are stored together, or None for a table in memory."""
        return self._tables.first.block_rows

    def fingerprint(self) -> str:
        """Return a digest of the files, the label and the encoder.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256. For files, it is computed from their size and parts of their
            content.
        """
        digest = hashlib.sha256(repr(self.label).encode())
        for table in self._tables.files:
            digest.update(table.stamp())
        if self.encoder is not None:
            digest.update(repr(self.encoder.get_feature_names_out().tolist()).encode())
            digest.update(self.encoder.mean_.tobytes() + self.encoder.scale_.tobytes())
        return digest.hexdigest()

    # -- rows ----------------------------------------------------------------------------------

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return rows by index.

        Parameters
        ----------
        ids : ndarray of shape (n_rows,), dtype=int64
            Row indices, in any order.

        Returns
        -------
        X : ndarray, CSR array or pyarrow Table
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        self._prepare()
        ids = check_ids(ids, len(self))
        starts = self._starts()
        blocks = np.searchsorted(starts, ids, side="right") - 1
        parts, places = [], []
        for k in np.unique(blocks).tolist():
            at = np.flatnonzero(blocks == k)
            rows = ids[at] - starts[k]
            parts.append(self._encoded(self._tables.fetch(k, self._columns()), rows))
            places.append(at)
        if not parts:
            block = next(self._tables.blocks(self._columns()), None)
            if block is None:
                raise DataError(
                    f"{self._tables.first.head}: the table has no rows; expected at least one."
                )
            return self._encoded(block, ids)
        return gather(parts, places)

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Iterate over all rows in chunks, in file order.

        Parameters
        ----------
        rows : int, default=4096
            Number of rows per chunk.
        start : int, default=0
            Index of the first row.

        Returns
        -------
        chunks : iterator of (X, y)
            Iterator over features and labels of each chunk.
        """
        rows, start = check_chunks(rows, start)
        self._prepare()
        return rechunk(self._pieces(rows, start), rows)

    def load(self) -> tuple[Any, Any]:
        """Load all rows into memory.

        Returns
        -------
        X : ndarray, CSR array or pyarrow Table
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        parts = list(self.chunks(1 << 16))
        if not parts:
            return self.read(np.empty(0, dtype=np.int64))
        return join_rows(parts)

    def _pieces(self, rows: int, start: int) -> Iterator[tuple[Any, Any]]:
        """Yield encoded rows block by block, starting with row `start`."""
        done = 0
        for block in self._tables.blocks(self._columns()):
            size = block.table.num_rows
            for first in range(max(0, start - done), size, rows):
                some = np.arange(first, min(first + rows, size), dtype=np.int64)
                yield self._encoded(block, some)
            done += size

    def _encoded(self, block: Block, rows: Ints) -> tuple[Any, Any]:
        """Return features and labels of some rows of a block."""
        size = block.table.num_rows
        if 2 * len(rows) < size:
            return self._encode(block, some_rows(block.table, rows), rows)
        # If most rows are needed, encoding all and selecting features is cheaper than selecting
        # rows of the table first.
        X, y = self._encode(block, block.table, np.arange(size, dtype=np.int64))
        if np.array_equal(rows, np.arange(size)):
            return X, y
        return take(X, rows), None if y is None else y[rows]

    def _encode(self, block: Block, table: Any, rows: Ints) -> tuple[Any, Any]:
        """Return features and labels of a table with the given rows of a block."""
        try:
            y = None if self._labels is None else self._labels.read(table)
            if self._encoder is None:
                return table.select(self._columns(labels=False)), y
            return self._encoder.transform(table), y
        except ValueError as error:
            raise _located(error, block, rows) from error

    # -- the first pass ------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Fit the encoder and find the classes, if they are not known yet."""
        if not self._fitted or (self._labels is not None and not self._declared):
            self._scan()

    def _starts(self) -> Ints:
        """Return the index of the first row of each block, followed by the number of rows."""
        if self._tables.starts is None:
            self._scan()
        assert self._tables.starts is not None
        return self._tables.starts

    def _scan(self) -> None:
        """Read all rows, unless everything that this finds is already known."""
        with self._tables.lock:  # one thread scans, and others wait for what it finds
            known = self._observed or self._labels is None
            if not (self._fitted and known and self._tables.starts is not None):
                self._observe_all()

    def _observe_all(self) -> None:
        profile = None if self._fitted else self._encoder._begin()
        features = self._columns(labels=False)
        for block in self._tables.blocks(
            self._columns() if profile is not None else self._label_only()
        ):
            try:
                if self._labels is not None:
                    self._labels.observe(block.table, block.place)
                if profile is not None:
                    profile.observe(block.table.select(features))
            except ValueError as error:
                raise _located(error, block) from error
        self._conclude(profile)

    def _conclude(self, profile: Any) -> None:
        self._observed = True
        if int(self._starts()[-1]) == 0:
            raise DataError(
                f"{self._tables.first.head}: the table has no rows; expected at least one."
            )
        try:
            if self._labels is not None:
                _ = self._labels.classes
            if profile is not None:
                self._encoder._conclude(profile)
                self._encoder._check_features()
                del self._encoder._profile  # may be large
                self._fitted = True
        except ValueError as error:
            prefix = "" if isinstance(error, DataError) else f"{self._tables.first.head}: "
            raise DataError(f"{prefix}{error}") from error

    # -- columns -------------------------------------------------------------------------------

    def _label_only(self) -> list[str]:
        return self._columns()[:1] if self._labels is None else [self._labels.name]

    def _columns(self, labels: bool = True) -> list[str]:
        """Return the columns to read."""
        names = [name for name in self._tables.first.columns if name != self.label]
        if self._fitted and self._encoder is not None:
            kinds = zip(self._encoder.feature_names_in_, self._encoder.kinds_, strict=True)
            names = [name for name, kind in kinds if kind not in UNUSED]
        if labels and self._labels is not None:
            names = [*names, self._labels.name]
        return names

    def _check_columns(self) -> None:
        """Raise unless all columns that the encoder was fitted to exist."""
        first = self._tables.first
        for name in self._columns():
            if name not in first.columns:
                raise DataError(f"{first.head}: {missing_column(name, first.columns)}")

    def _find_label(self, label: str | None, labelled: bool) -> str | None:
        """Return the column of the labels."""
        first = self._tables.first
        if label is not None:
            if labelled and label not in first.columns:
                raise DataError(f"{first.head}: label {missing_column(label, first.columns)}")
            return label
        if not labelled:
            return None
        name = first.default_label
        if self._encoder is not None and name in getattr(self._encoder, "feature_names_in_", ()):
            raise DataError(
                f"{first.head}: expected the labels in the last column, but {name!r} is a feature "
                "of the encoder. Name the column of the label, or pass labelled=False."
            )
        if len(first.columns) == 1:
            raise DataError(
                f"{first.head}: the table has one column, {name!r}; expected features and a label."
            )
        return name


def _located(error: ValueError, block: Block, rows: Ints | None = None) -> DataError:
    """Return an error with the location of the row in the file."""
    if isinstance(error, DataError):
        return error
    if not isinstance(error, CellError):
        return DataError(f"{block.head}: {error}")
    row = error.row if rows is None else int(rows[error.row])
    return DataError(f"{block.place(row)}column {error.column!r}: {error.fault}")


def checked_encoder(encoder: Any, missing: Collection[str] = ()) -> TableEncoder | None:
    """Return a fitted encoder unchanged, or an unfitted copy; raise if it is invalid.

    The copy stores the strings that represent missing values.
    """
    if encoder is None or hasattr(encoder, "kinds_"):
        return encoder  # type: ignore[no-any-return]
    if isinstance(encoder, str) and encoder == "auto":
        encoder = TableEncoder()
    if isinstance(encoder, TableEncoder):
        made: TableEncoder = clone(encoder)
        return made.set_params(missing=[*made._missing(), *missing]) if missing else made
    raise TypeError(
        f"encoder must be a TableEncoder, 'auto', 'types' or None, got {encoder!r:.60}. Use "
        "TransformedSource for other transformers."
    )
