"""TableEncoder: encode columns of a table as features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import Rule, boolean, check_params, integer, one_of
from marginwise.data.columns import (
    CellError,
    Column,
    Numbers,
    Vectors,
    as_table,
    read_column,
)
from marginwise.data.features import measured, one_hot
from marginwise.data.matrix import standardised
from marginwise.data.notations import COMMA, PLAIN, POINT
from marginwise.data.parsing import TOKENS, Spelling, conform, numbers_of
from marginwise.data.readings import NOTATIONS
from marginwise.data.table_profile import (
    MEASURED,
    UNUSED,
    TableProfile,
    missing_column,
    without,
)

Names = Sequence[str] | None

DENSE = 0.25  # fraction of nonzero values from which features are dense


def _strings(what: str) -> Rule:
    def are_strings(value: Any) -> bool:
        return value is None or (
            not isinstance(value, str)
            and isinstance(value, Sequence | np.ndarray)
            and all(isinstance(name, str) for name in value)
        )

    return are_strings, f"a list of {what} or None"


_RULES: dict[str, Rule] = {
    "numeric": _strings("column names"),
    "categorical": _strings("column names"),
    "text": _strings("column names"),
    "drop": _strings("column names"),
    "unseen": one_of("ignore", "error"),
    "max_categories": integer(1),
    "scale": boolean(),
    "missing": _strings("strings"),
    "decimal": one_of("auto", ".", ","),
}


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as features for a kernel machine.

    `fit` recognises the kind of each column:

    - Numbers, booleans and dates (as days) are standardised. Missing values are replaced by the
      mean. Strings are parsed if all of them are numbers, booleans or dates; "NA", "null", "?" and
      similar strings are missing values then. Numbers may have separators of thousands, a decimal
      comma, a percent sign or a currency, if all numbers of the column are written in one way.
    - Strings with few distinct values are categories, which are one-hot encoded. Missing values are
      a separate category.
    - Strings of several words that are mostly distinct are texts, which are encoded as TF-IDF
      features.
    - Lists of numbers of equal length, such as embeddings, are used unchanged.

    Constant columns are dropped. Columns that look like identifiers or row numbers are dropped with
    a warning.

    Parameters
    ----------
    numeric : list of str, default=None
        Columns to treat as numbers, regardless of their content.
    categorical : list of str, default=None
        Columns to treat as categories, with any number of distinct values. Integers are treated as
        categories only if they are listed here.
    text : list of str, default=None
        Columns to treat as text.
    drop : list of str, default=None
        Columns to ignore.
    unseen : {"ignore", "error"}, default="ignore"
        How `transform` handles categories that did not occur in `fit`: "ignore" encodes them as
        zeros, "error" raises a ValueError.
    max_categories : int, default=1000
        Maximum number of distinct strings of a column that is recognised as categorical.
    scale : bool, default=True
        Whether to standardise numbers. If False, they are used unchanged.
    missing : list of str, default=None
        Strings that represent missing values in all columns, such as "unknown" or "-999", which
        also stands for the number. They are stored with the encoder.
    decimal : {"auto", ".", ","}, default="auto"
        Decimal mark of numbers in strings that can be read in two ways, such as "1,234". "auto"
        reads them as thousands, with a warning.

    Attributes
    ----------
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns seen by `fit`.
    n_features_in_ : int
        Number of columns seen by `fit`.
    kinds_ : list of str
        Kind of each column: "numeric", "boolean", "date", "categorical", "text" or "vector".
        Columns that are not used have the kind "constant", "identifier", "row number" or "dropped".
    mean_ : ndarray
        Mean of each standardised column.
    scale_ : ndarray
        Standard deviation of each standardised column.
    fill_ : ndarray
        Replacement of missing values for each standardised column.
    categories_ : list of list of str
        Categories of each categorical column, sorted.
    missing_ : list of bool
        Whether missing values are a category, for each categorical column.
    vectorizers_ : list of TfidfVectorizer
        Vectorizer of each text column.
    sizes_ : list of int
        Number of values of each vector column.
    notations_ : list of str
        Notation of the numbers in each column of strings: the decimal mark, followed by the sign
        that accompanies each number, such as "," or ".%". Empty for numbers in plain notation and
        for columns of other kinds.
    tokens_ : list of str
        Strings that represent missing values in columns of numbers, booleans and dates, in lower
        case.
    sparse_ : bool
        Whether `transform` returns a sparse matrix, which is the case if less than a quarter of the
        features are expected to be nonzero.

    See Also
    --------
    open_source : Open any kind of data source.
    sklearn.compose.ColumnTransformer : Apply given transformers to columns of data frames.

    Examples
    --------
    >>> from marginwise.data import TableEncoder
    >>> table = {"age": [25, 35, None], "job": ["cook", "nurse", "cook"], "site": ["x", "x", "x"]}
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.kinds_
    ['numeric', 'categorical', 'constant']
    >>> encoder.transform(table).round(2)
    array([[-1.22,  1.  ,  0.  ],
           [ 1.22,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  0.  ]], dtype=float32)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'job=cook', 'job=nurse']
    """

    feature_names_in_: NDArray[Any]
    n_features_in_: int
    kinds_: list[str]
    mean_: Float
    scale_: Float
    fill_: Float
    categories_: list[list[str]]
    missing_: list[bool]
    vectorizers_: list[Any]
    sizes_: list[int]
    notations_: list[str]
    tokens_: list[str]
    sparse_: bool
    _unchecked = False

    def __init__(
        self,
        *,
        numeric: Names = None,
        categorical: Names = None,
        text: Names = None,
        drop: Names = None,
        unseen: str = "ignore",
        max_categories: int = 1000,
        scale: bool = True,
        missing: Names = None,
        decimal: str = "auto",
    ) -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.text = text
        self.drop = drop
        self.unseen = unseen
        self.max_categories = max_categories
        self.scale = scale
        self.missing = missing
        self.decimal = decimal

    # -- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Recognise the kinds of columns and learn their encoding.

        Parameters
        ----------
        X : pyarrow Table or RecordBatch, data frame or dict of columns
            The table.
        y : None, default=None
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        profile = self._begin()
        profile.observe(as_table(X))
        self._conclude(profile)
        self._check_features()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more rows of a table.

        The features may change with each call. Fit a model after the last call.

        Parameters
        ----------
        X : pyarrow Table or RecordBatch, data frame or dict of columns
            More rows, with the same columns.
        y : None, default=None
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        profile: TableProfile | None = getattr(self, "_profile", None)
        if profile is None and hasattr(self, "kinds_"):
            raise ValueError(
                "this encoder was loaded from a file, which does not store the counts that "
                "partial_fit adds to. Call fit with all rows."
            )
        profile = self._begin() if profile is None else profile
        profile.observe(as_table(X))
        return self._conclude(profile)

    def _begin(self) -> TableProfile:
        """Return a profile for the first rows."""
        check_params(self, _RULES)
        declared: dict[str, str] = {}
        lists = {"numeric": self.numeric, "categorical": self.categorical, "text": self.text}
        for kind, names in (lists | {"dropped": self.drop}).items():
            for name in names if names is not None else ():
                if name in declared:
                    raise ValueError(
                        f"column {name!r} is declared as {declared[name]} and as {kind}; name it "
                        "once in numeric, categorical, text or drop."
                    )
                declared[name] = kind
        notations = (COMMA, PLAIN, POINT) if self.decimal == COMMA else NOTATIONS
        return TableProfile(declared, self.max_categories, self._missing(), notations)

    def _missing(self) -> list[str]:
        """Return the strings that represent missing values in all columns."""
        return [] if self.missing is None else list(self.missing)

    def _conclude(self, profile: TableProfile) -> Self:
        """Set the fitted attributes."""
        kinds = profile.kinds()
        self._profile = profile
        self._unchecked = True
        self.feature_names_in_ = np.array(profile.names, dtype=object)
        self.n_features_in_ = len(profile.names)
        self.kinds_ = kinds
        moments = profile.moments(kinds)
        self.mean_ = np.array([moment.mean for moment in moments])
        self.scale_ = np.array([moment.scale for moment in moments])
        if not self.scale:
            self.mean_, self.scale_ = np.zeros_like(self.mean_), np.ones_like(self.scale_)
        self.fill_ = np.array([moment.mean for moment in moments])
        self.categories_, self.missing_ = profile.categories(kinds)
        self.vectorizers_ = profile.vectorizers(kinds)
        self.sizes_ = profile.sizes(kinds)
        self.notations_, self.tokens_ = profile.notations(kinds), list(TOKENS)
        self.sparse_ = profile.nonzeros(kinds) < DENSE * len(self.get_feature_names_out())
        return self

    def _check_features(self) -> None:
        """Raise if there are no features, and warn of dropped columns.

        This check is postponed until the encoder is used, because more rows may change the kinds of
        columns.
        """
        kinds = zip(self.feature_names_in_.tolist(), self.kinds_, strict=True)
        if all(kind in UNUSED for kind in self.kinds_):
            listed = ", ".join(f"{name!r} is {kind}" for name, kind in kinds)
            raise ValueError(
                f"the table has no column with features: {listed}. Declare one in numeric, "
                "categorical or text."
            )
        if self._unchecked:
            self._unchecked = False
            self._profile.warn(self.kinds_, doubts=self.decimal == "auto")

    # -- encoding ------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Encode a table.

        Parameters
        ----------
        X : pyarrow Table or RecordBatch, data frame or dict of columns
            Table to encode. Columns are matched by name; additional columns are ignored.

        Returns
        -------
        X : ndarray or CSR array of shape (n_samples, n_features)
            Features, in single precision.
        """
        check_is_fitted(self, "kinds_")
        self._check_features()
        if (numbers := self._all_numbers(table := as_table(X))) is not None:
            return numbers
        parts = self._parts(table)
        if self.sparse_:
            stacked = sp.hstack(parts, format="csr", dtype=np.float32)
            return sp.csr_array(stacked)
        made = [part.toarray() if sp.issparse(part) else part for part in parts]
        return np.ascontiguousarray(np.hstack(made), dtype=np.float32)

    def _all_numbers(self, table: Any) -> NDArray[np.float32] | None:
        """Return the features of a table in a single step if all columns are plain numbers."""
        kinds = zip(self.feature_names_in_.tolist(), self.kinds_, strict=True)
        used = {name: kind for name, kind in kinds if kind not in UNUSED}
        if self.sparse_ or {*used.values()} != {"numeric"} or not {*used} <= {*table.column_names}:
            return None
        if numbers_of(self._missing()):
            return None
        return standardised([table[name] for name in used], self.mean_, self.scale_, self.fill_)

    def _parts(self, table: Any) -> list[Any]:
        """Return the features of each column."""
        parts: list[Any] = []
        places = dict.fromkeys((*MEASURED, "categorical", "text", "vector"), 0)
        present = set(table.column_names)  # a property that builds a list on each access
        names = self.feature_names_in_.tolist()
        missing, tokens = self._missing(), tuple(self.tokens_)
        gaps = numbers_of(missing)
        for name, kind, notation in zip(names, self.kinds_, self.notations_, strict=True):
            if kind in UNUSED:
                continue
            group = "numeric" if kind in MEASURED else kind
            if name not in present:
                raise ValueError(missing_column(name, table.column_names))
            column = without(read_column(table[name], name), missing, gaps)
            column = conform(column, name, kind, table.num_rows, Spelling(notation, tokens, gaps))
            parts.append(self._encode(column, name, kind, places[group]))
            places[group] += 1
        return parts

    def _encode(self, column: Column, name: str, kind: str, place: int) -> Any:
        """Return the features of a column; `place` is its position among columns of its kind."""
        if isinstance(column, Numbers):
            return measured(
                column.values, name, self.mean_[place], self.scale_[place], self.fill_[place]
            )
        if isinstance(column, Vectors):
            if column.values.shape[1] != self.sizes_[place]:
                size = column.values.shape[1]
                raise CellError(
                    0, name, f"the vector has {size} values; expected {self.sizes_[place]}."
                )
            return column.values.astype(np.float32, copy=False)
        if kind == "text":
            return self.vectorizers_[place].transform(column.values.fill_null("").to_pylist())
        categories, missing = self.categories_[place], self.missing_[place]
        return one_hot(column, name, categories, missing, strict=self.unseen == "error")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : None, default=None
            Not used, present for API consistency by convention.

        Returns
        -------
        names : ndarray of shape (n_features,)
            Names such as "age" for a number, "job=cook" for a category, "job is missing" for
            missing values, "note: word" for a term of a text, and "embedding[0]" for an element of
            a vector.
        """
        check_is_fitted(self, "kinds_")
        names: list[str] = []
        categories = zip(self.categories_, self.missing_, strict=True)
        vectorizers, sizes = iter(self.vectorizers_), iter(self.sizes_)
        for name, kind in zip(self.feature_names_in_.tolist(), self.kinds_, strict=True):
            if kind in MEASURED:
                names.append(name)
            elif kind == "categorical":
                known, missing = next(categories)
                names += [f"{name}={category}" for category in known]
                names += [f"{name} is missing"] * missing
            elif kind == "text":
                names += [f"{name}: {term}" for term in next(vectorizers).get_feature_names_out()]
            elif kind == "vector":
                names += [f"{name}[{k}]" for k in range(next(sizes))]
        return np.array(names, dtype=object)
