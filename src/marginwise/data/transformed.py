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

HASHED = 100  # rows whose transforms identify the transformers


class _Transformed:
    """What transformed sources and transformed streams share.

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
        """All class labels, sorted; None without labels."""
        known: NDArray[Any] | None = getattr(self.source, "classes", None)
        return known

    def transform(self, X: Any) -> Any:
        """Return rows of the source as the transformers encode them.

        Parameters
        ----------
        X : array, sparse matrix or table
            Rows as the source gives them.

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
        """Give the rows in the order of the source.

        Parameters
        ----------
        rows : int, default=4096
            Number of rows of a chunk.
        start : int, default=0
            The row to begin with.

        Returns
        -------
        chunks : iterator of (X, y)
            Features and labels of each chunk.
        """
        for X, y in self.source.chunks(rows, start):
            yield self.transform(X), y


class TransformedSource(_Transformed):
    """Data source of which each chunk is transformed when it is read.

    Parameters
    ----------
    source : object
        A source with a length, such as `open_source` returns.
    transformers : transformer or sequence of transformers
        Fitted scikit-learn transformers, or a fitted `Pipeline` of them, applied in this order. A
        transformer that was fitted to a data frame is given the columns that it knows, in its
        order.

    Attributes
    ----------
    source : object
        The source.
    transformers : list
        The transformers.

    See Also
    --------
    StreamPipeline : Fitted transformers and a classifier that continues to learn.

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
        """Number of rows that are stored together; None if each row is by itself."""
        rows: int | None = getattr(self.source, "block", None)
        return rows

    @property
    def random_access(self) -> bool:
        """Whether rows can be read in any order."""
        return bool(getattr(self.source, "random_access", True))

    @property
    def stages(self) -> list[int]:
        """Ids at which the stages of learning end."""
        return list(getattr(self.source, "stages", [len(self)]))

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self._n_features is None:
            self._n_features = int(self.read(np.zeros(1, dtype=np.int64))[0].shape[1])
        return self._n_features

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, where the transformers know them."""
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
        """Return the rows of some numbers.

        Parameters
        ----------
        ids : ndarray of shape (n_rows,), dtype=int64
            Numbers of rows, in any order.

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
        """Return all rows, in memory.

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
    """Stream of which each batch is transformed when it comes."""

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """Give the batches as they come."""
        for X, y in self.source.chunks():
            yield self.transform(X), y


class StreamPipeline(Pipeline):  # type: ignore[misc]
    """Pipeline of fitted transformers and a classifier that continues to learn.

    It is a scikit-learn `Pipeline` that also has `partial_fit` and `learn_from`. These use the
    transformers as they are; only the classifier learns. `fit` fits all steps.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and estimators of the steps; the last one is a classifier of this package.
    memory : str or joblib.Memory, default=None
        Where `fit` caches fitted transformers, as in `Pipeline`.
    verbose : bool, default=False
        Whether `fit` prints the time of each step.

    See Also
    --------
    TransformedSource : A source with transformers applied to each chunk.
    sklearn.pipeline.Pipeline : The pipeline without streams.

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
        """Learn more rows with the classifier; the transformers stay as they are.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or table
            Rows, before they are transformed.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like, default=None
            All labels that may occur; needed in the first call.
        **params : dict
            Passed to `partial_fit` of the classifier.

        Returns
        -------
        self : object
            The updated pipeline.
        """
        features = _Transformed(None, self._fitted_transformers()).transform(X)
        self.steps[-1][1].partial_fit(features, y, classes=classes, **params)
        return self

    def learn_from(self, source: Any, classes: ArrayLike | None = None, **params: Any) -> Self:
        """Learn from a data source or a stream with the classifier.

        Parameters
        ----------
        source : object
            A source or a stream, such as `open_source` returns. Open a table with
            ``encoder=None`` if the first step of the pipeline encodes it.
        classes : array-like, default=None
            All labels that may occur. By default, ``source.classes``.
        **params : dict
            Passed to `learn_from` of the classifier.

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
    """Return transformers one by one; those of a pipeline, without the ones that do nothing."""
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
    """Return rows with the columns that a transformer knows, in its order."""
    wanted = getattr(transformer, "feature_names_in_", None)
    if is_table(X):
        if isinstance(transformer, TableEncoder):
            return X
        if wanted is None or isinstance(transformer, ColumnTransformer):  # which picks its own
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
    """Return columns of a pyarrow table as a data frame."""
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
    return table.select(list(names)).to_pandas()
