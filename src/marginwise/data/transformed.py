"""Sources and classifiers with transformers applied to each chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Ints
from marginwise._training.sources import is_stream, sample_rows
from marginwise.data.encoder import TableEncoder
from marginwise.data.rows import is_table
from marginwise.data.table_profile import missing_column

HASHED = 100  # transformed rows in the fingerprint


class _Transformed:
    """Base class of transformed sources and streams.

    Parameters
    ----------
    source : object
        A source or a stream.
    transformers : list
        Fitted transformers.
    """

    def __init__(self, source: Any, transformers: list[Any]) -> None:
        self.source = source
        self.transformers = transformers
        for transformer in transformers:
            check_is_fitted(transformer)

    @property
    def classes(self) -> NDArray[Any] | None:
        """All class labels, sorted, or None without labels."""
        known: NDArray[Any] | None = getattr(self.source, "classes", None)
        return known

    def transform(self, X: Any) -> Any:
        """Apply the transformers to rows of the source.

        Parameters
        ----------
        X : array, sparse matrix or table
            Rows returned by the source.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            Features.
        """
        names = getattr(self.source, "feature_names", None)
        for place, transformer in enumerate(self.transformers):
            if place == 0:
                X = _as_fitted(X, transformer, names)
            X = transformer.transform(X)
        return X if sp.issparse(X) else np.asarray(X)

    def chunks(self, rows: int = 4096, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Iterate over all rows in chunks, in the order of the source.

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
        for X, y in self.source.chunks(rows, start):
            yield self.transform(X), y


class TransformedSource(_Transformed):
    """Data source that applies transformers to each chunk.

    Parameters
    ----------
    source : object
        Data source with a length, such as returned by :func:`open_source`.
    transformers : transformer or sequence of transformers
        Fitted scikit-learn transformers, applied in this order, or a fitted `Pipeline` of
        transformers. A transformer that was fitted to a data frame receives the columns that it was
        fitted to, in the same order.

    Attributes
    ----------
    source : object
        The source.
    transformers : list
        The transformers.

    See Also
    --------
    StreamPipeline : Pipeline that supports incremental learning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginwise import OnlineSVC
    >>> from marginwise.data import TransformedSource, open_source
    >>> X, y = load_iris(return_X_y=True)
    >>> source = TransformedSource(open_source((X, y)), StandardScaler().fit(X))
    >>> model = OnlineSVC(C=10, random_state=0).learn_from(source)
    >>> model.score(*source.load()) > 0.95
    True
    """

    def __init__(self, source: Any, transformers: Any) -> None:
        if is_stream(source) or not hasattr(source, "__len__"):
            raise TypeError(
                "TransformedSource needs a source with a length, got "
                f"{type(source).__name__}. Use StreamPipeline to learn from a stream."
            )
        super().__init__(source, _listed(transformers))
        self._n_features: int | None = None

    def __len__(self) -> int:
        return len(self.source)

    @property
    def block(self) -> int | None:
        """Number of rows that are stored together, or None."""
        rows: int | None = getattr(self.source, "block", None)
        return rows

    @property
    def random_access(self) -> bool:
        """Whether rows can be read in any order."""
        return bool(getattr(self.source, "random_access", True))

    @property
    def stages(self) -> list[int]:
        """Ids at which the training stages end."""
        return list(getattr(self.source, "stages", [len(self)]))

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self._n_features is None:
            self._n_features = int(self.read(np.zeros(1, dtype=np.int64))[0].shape[1])
        return self._n_features

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if the transformers provide them."""
        names = getattr(self.source, "feature_names", None)
        if self.transformers:
            names = getattr(self.transformers[0], "feature_names_in_", names)
        try:
            for transformer in self.transformers:
                names = transformer.get_feature_names_out(names)
        except (AttributeError, ValueError):
            return None
        return None if names is None else [str(name) for name in names]

    def read(self, ids: Ints) -> tuple[Any, Any]:
        """Return rows by index.

        Parameters
        ----------
        ids : ndarray of shape (n_rows,), dtype=int64
            Row indices, in any order.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        X, y = self.source.read(ids)
        return self.transform(X), y

    def load(self) -> tuple[Any, Any]:
        """Load all rows into memory.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            Features.
        y : ndarray of shape (n_rows,) or None
            Class labels.
        """
        X, y = self.source.load()
        return self.transform(X), y

    def fingerprint(self) -> str:
        """Return a digest of the source and of some transformed rows.

        Returns
        -------
        digest : str
            Hexadecimal SHA-256.
        """
        own = self.source.fingerprint() if hasattr(self.source, "fingerprint") else len(self)
        digest = hashlib.sha256(str(own).encode())
        X, y = self.read(sample_rows(self, len(self), HASHED))
        dense = X.toarray() if sp.issparse(X) else X
        digest.update(np.ascontiguousarray(dense).data)
        digest.update(repr(None if y is None else y.tolist()).encode())
        return digest.hexdigest()


class _TransformedStream(_Transformed):
    """Stream whose batches are transformed as they arrive."""

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of the stream; the arguments are ignored."""
        for X, y in self.source.chunks():
            yield self.transform(X), y


class StreamPipeline(Pipeline):  # type: ignore[misc]
    """Pipeline that supports incremental learning.

    A :class:`sklearn.pipeline.Pipeline` with the additional methods `partial_fit` and `learn_from`.
    These methods do not change the transformers, which must be fitted; only the classifier is
    trained. `fit` fits all steps.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and estimators of the steps. The last step is a classifier of this package.
    memory : str or joblib.Memory, default=None
        Cache of fitted transformers for `fit`, as in `Pipeline`. None disables caching.
    verbose : bool, default=False
        Whether `fit` prints the time of each step.

    See Also
    --------
    TransformedSource : Data source that applies transformers to each chunk.
    sklearn.pipeline.Pipeline : Pipeline without incremental learning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginwise import OnlineSVC
    >>> from marginwise.data import StreamPipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> scaler = StandardScaler().fit(X)
    >>> model = StreamPipeline([("scale", scaler), ("svc", OnlineSVC(C=10, random_state=0))])
    >>> for part in (slice(0, None, 2), slice(1, None, 2)):
    ...     model = model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(self, steps: Any, *, memory: Any = None, verbose: bool = False) -> None:
        super().__init__(steps, memory=memory, verbose=verbose)

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Train the classifier on more rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or table
            Rows before transformation.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like, default=None
            All labels that can occur. Required in the first call.
        **params : dict
            Keyword arguments passed to `partial_fit` of the classifier.

        Returns
        -------
        self : object
            The updated pipeline.
        """
        features = _Transformed(None, self._fitted_transformers()).transform(X)
        self.steps[-1][1].partial_fit(features, y, classes=classes, **params)
        return self

    def learn_from(self, source: Any, classes: ArrayLike | None = None, **params: Any) -> Self:
        """Train the classifier on a data source or a stream.

        Parameters
        ----------
        source : object
            Data source or stream, such as returned by :func:`open_source`. Open a table with
            ``encoder=None`` if the first step of the pipeline encodes it.
        classes : array-like, default=None
            All labels that can occur. By default, ``source.classes``.
        **params : dict
            Keyword arguments passed to `learn_from` of the classifier.

        Returns
        -------
        self : object
            The updated pipeline.
        """
        transformers = self._fitted_transformers()
        if transformers:
            made = _TransformedStream if is_stream(source) else TransformedSource
            source = made(source, transformers)
        self.steps[-1][1].learn_from(source, classes, **params)
        return self

    def _fitted_transformers(self) -> list[Any]:
        return _listed([step for _, step in self.steps[:-1]])


def _listed(transformers: Any) -> list[Any]:
    """Return a flat list of transformers, with pipelines expanded and "passthrough" removed."""
    if isinstance(transformers, Pipeline):
        transformers = [step for _, step in transformers.steps]
    elif not isinstance(transformers, Sequence):
        transformers = [transformers]
    flat = [
        inner
        for one in transformers
        for inner in (_listed(one) if isinstance(one, Pipeline) else [one])
    ]
    return [one for one in flat if one is not None and not _is_word(one, "passthrough")]


def _is_word(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


def _as_fitted(X: Any, transformer: Any, names: list[str] | None) -> Any:
    """Return rows with the columns that a transformer was fitted to, in the same order."""
    wanted = getattr(transformer, "feature_names_in_", None)
    if is_table(X):
        if isinstance(transformer, TableEncoder):
            return X
        if wanted is None or isinstance(transformer, ColumnTransformer):  # selects columns itself
            wanted = X.column_names
        return _frame(X, wanted)
    if wanted is None or names is None or sp.issparse(X) or hasattr(X, "columns"):
        return X
    import pandas as pd

    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(missing_column(str(missing[0]), names))
    return pd.DataFrame(X, columns=names, copy=False)[list(wanted)]


def _frame(table: Any, names: Sequence[str]) -> Any:
    """Return columns of a pyarrow table as a data frame, as pandas would have read them."""
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(missing_column(str(missing[0]), table.column_names))
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "scikit-learn's transformers read tables as data frames of pandas, which is not "
            "installed. Run pip install pandas."
        ) from error
    frame = table.select(list(names)).to_pandas()
    for name in frame.columns[frame.dtypes == np.dtype("O")]:
        values = frame[name].to_numpy(copy=True)
        values[frame[name].isna()] = np.nan  # pyarrow has None, which encoders tell from NaN
        frame[name] = values
    return frame
