"""IteratorStream: batches that can be read only once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginwise.data.columns import CellError, as_table
from marginwise.data.encoder import TableEncoder
from marginwise.data.errors import DataError
from marginwise.data.labels import LabelColumn
from marginwise.data.rows import check_chunks, height, is_table, rechunk
from marginwise.data.table_profile import missing_column
from marginwise.data.tables import checked_encoder


class IteratorStream:
    """Stream of batches from an iterator.

    Parameters
    ----------
    batches : iterable
        Batches of rows: tuples (X, y) of features and labels, or record batches, tables or data
        frames with a label column, for example from a pyarrow RecordBatchReader. The stream can be
        read only once.
    label : str, default=None
        Column of the class labels. By default, the last column.
    labelled : bool, default=True
        Whether batches have labels. If False, each batch contains only features, and y is None.
    encoder : TableEncoder, "auto" or None, default="auto"
        Encoder of batches that are tables. Because a stream can be read only once, "auto" fits an
        encoder to the first batch, which should be large. Alternatively, pass a fitted encoder.
        None returns tables without encoding them.
    classes : array-like, default=None
        All labels that can occur. Required to train a new model.

    Attributes
    ----------
    classes : ndarray or None
        All labels that can occur, if they are known.
    n_features : int or None
        Number of features, or None before the first batch.
    feature_names : list of str or None
        Names of the features, if batches are tables.

    See Also
    --------
    open_source : Open any kind of data source.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise import OnlineSVC
    >>> from marginwise.data import IteratorStream
    >>> rng = np.random.default_rng(0)
    >>> def batches():
    ...     for _ in range(10):
    ...         X = rng.normal(size=(50, 2))
    ...         yield X, (X[:, 0] > 0).astype(int)
    >>> model = OnlineSVC().learn_from(IteratorStream(batches(), classes=[0, 1]))
    >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
    array([1, 0])
    """

    random_access = False

    def __init__(
        self,
        batches: Iterable[Any],
        *,
        label: str | None = None,
        labelled: bool = True,
        encoder: Any = "auto",
        classes: ArrayLike | None = None,
    ) -> None:
        self._batches = iter(batches)
        self._label, self._labelled = label, labelled
        self._encoder = checked_encoder(encoder)
        self.classes: NDArray[Any] | None = None if classes is None else np.unique(classes)
        self.n_features: int | None = None
        self.feature_names: list[str] | None = None
        self._seen = 0

    @property
    def encoder(self) -> TableEncoder | None:
        """Encoder of tables, fitted after the first batch."""
        return self._encoder

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Iterate over the remaining batches.

        Parameters
        ----------
        rows : int, default=None
            Number of rows per chunk. By default, batches are not rechunked.
        start : int, default=0
            Number of rows to skip.

        Returns
        -------
        chunks : iterator of (X, y)
            Iterator over features and labels of each chunk.
        """
        _, start = check_chunks(1 if rows is None else rows, start)
        pieces = self._pieces(start)
        return pieces if rows is None else rechunk(pieces, rows)

    def _pieces(self, start: int) -> Iterator[tuple[Any, Any]]:
        for batch in self._batches:
            X, y = self._read(batch)
            size = height(X)
            first = max(0, start - self._seen)
            self._seen += size
            if first < size:
                yield (X, y) if first == 0 else (X[first:], None if y is None else y[first:])

    def _read(self, batch: Any) -> tuple[Any, Any]:
        """Return features and labels of a batch."""
        if isinstance(batch, tuple) and len(batch) == 2:
            X, y = batch
        elif self._labelled or is_table(batch) or hasattr(batch, "columns"):
            X, y = self._read_table(batch)
        else:
            X, y = batch, None
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.ndim != 2 if hasattr(X, "ndim") else False:
            raise DataError(f"{self._place()}expected rows of features, got shape {X.shape}.")
        if self.n_features is None:
            self.n_features = int(X.shape[1])
        if X.shape[1] != self.n_features:
            raise DataError(
                f"{self._place()}expected {self.n_features} features as before, got {X.shape[1]}."
            )
        return X, y if self._labelled else None

    def _place(self) -> str:
        return f"the stream: row {self._seen}: "

    def _read_table(self, batch: Any) -> tuple[Any, Any]:
        """Return features and labels of a table."""
        try:
            table = as_table(batch)
        except TypeError as error:
            raise TypeError(
                f"{self._place()}expected a tuple (X, y) or a table, got {type(batch).__name__}."
            ) from error
        name = self._label
        if name is None and self._labelled:
            name = table.column_names[-1]
        try:
            if self._labelled and name not in table.column_names:
                raise ValueError("label " + missing_column(str(name), table.column_names))
            y = LabelColumn(str(name), False, self.classes).read(table) if self._labelled else None
            if name in table.column_names:
                table = table.drop_columns([name])
            return self._encoded(table), y
        except CellError as error:
            place = f"the stream: row {self._seen + error.row}, column {error.column!r}"
            raise DataError(f"{place}: {error.fault}") from error
        except ValueError as error:
            raise DataError(f"{self._place()}{error}") from error

    def _encoded(self, table: Any) -> Any:
        if self._encoder is None:
            return table
        if not hasattr(self._encoder, "kinds_"):
            self._encoder.fit(table)
        self.feature_names = self._encoder.get_feature_names_out().tolist()
        return self._encoder.transform(table)
