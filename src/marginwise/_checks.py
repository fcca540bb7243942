"""Validation of parameters, rows, labels, weights and ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from marginwise._arrays import Float, Ints
from marginwise._objects import are_objects, lend
from marginwise._sparse import check_sparse

Rule = tuple[Callable[[Any], bool], str]  # a test, and a description of the expected values

MOST = 2**62  # of counts, so that sums of a few counts fit into 64 bits
MOST_DEGREE = 1000  # the core needs this number of multiplications
MOST_MEGABYTES = 2**40
MOST_STEPS = 10**6  # per row; Ctrl-C and time limits are checked only between rows
MOST_REPROCESS = 10**9  # steps end earlier if no violation is left
MOST_FEATURES = 2**28  # some arrays of the core have one value per feature
MOST_ID = 2**63 - 1
MOST_BUDGET = 2**14  # the matrix of kernel values between this number of members takes 1 GB
FEW_VALUES = 4096  # up to this size, checking each value is faster than summing
RENAMED = {"finish": "finish_at_end"}  # parameters of version 0.1.0 and earlier
# Parameters added since then, with the values that correspond to the behaviour of earlier models.
ADDED = {"multiclass": "ovr", "budget": None, "replay": 0, "stop": None, "calibration": None}
_ABSENT = object()

# -- hyperparameters ---------------------------------------------------------------------------


def current(named: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Convert parameters or a state of an earlier version of a class to the current names."""
    added = {name: ADDED[name] for name in kind._get_param_names() if name in ADDED}
    return added | {RENAMED.get(name, name): value for name, value in named.items()}


def plain(value: Any) -> Any:
    """Convert NumPy scalars, alone or in a sequence, to Python scalars for messages."""
    if isinstance(value, np.ndarray | list):
        return [plain(one) for one in value]
    if type(value) is tuple:
        return tuple(plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


def is_real(value: Any) -> bool:
    """Return whether a value is a finite number (a bool is not)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer (a bool is not)."""
    return not isinstance(value, bool | np.bool_) and isinstance(value, Integral)


def positive(at_most: float | None = None) -> Rule:
    if at_most is None:
        return lambda v: is_real(v) and v > 0, "a number above 0"
    return lambda v: is_real(v) and 0 < v <= at_most, f"a number above 0, at most {at_most}"


def positive_or_infinite() -> Rule:
    return (
        lambda v: (is_real(v) and v > 0) or (isinstance(v, Real) and bool(v == math.inf)),
        "a number above 0, or infinity",
    )


def non_negative(below: float | None = None) -> Rule:
    if below is None:
        return lambda v: is_real(v) and v >= 0, "a number of at least 0"
    return lambda v: is_real(v) and 0 <= v < below, f"a number of at least 0, below {below}"


def real() -> Rule:
    return is_real, "a finite number"


def below(most: float) -> Rule:
    return lambda v: is_real(v) and v < most, f"a number below {most:g}"


def integer(at_least: int, at_most: int | None = None) -> Rule:
    if at_most is None:
        return count(at_least)[0], f"an integer of at least {at_least}"
    return count(at_least, at_most)


def count(least: int = 0, most: int = MOST) -> Rule:
    return lambda v: is_integer(v) and least <= v <= most, f"an integer from {least} to {most}"


def boolean() -> Rule:
    return lambda v: isinstance(v, bool | np.bool_), "True or False"


def one_of(*options: str) -> Rule:
    listed = ", ".join(repr(option) for option in options)
    text = f"one of {listed}" if len(options) > 1 else listed
    return lambda v: isinstance(v, str) and v in options, text


def either(*rules: Rule) -> Rule:
    return lambda v: any(test(v) for test, _ in rules), " or ".join(text for _, text in rules)


def one_value(value: float) -> Rule:
    return lambda v: is_real(v) and v == value, str(value)


def none() -> Rule:
    return lambda v: v is None, "None"


def threads() -> Rule:
    return (
        lambda v: is_integer(v) and v != 0 and abs(v) <= MOST,
        "an integer other than 0 (-1 for one per processor)",
    )


def weights() -> Rule:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return value == "balanced"
        return isinstance(value, Mapping) and all(is_real(w) and w > 0 for w in value.values())

    return test, "'balanced' or a dict of class weights above 0"


# Rules of values in files.


def class_weights() -> Rule:
    return (
        lambda v: isinstance(v, dict) and all(is_real(w) and w >= 0 for w in v.values()),
        "a dict of weights",
    )


def floats() -> Rule:
    return (
        lambda v: isinstance(v, list) and all(type(x) is float and is_real(x) for x in v),
        "a list of finite numbers",
    )


def power_of_two() -> Rule:
    return lambda v: is_real(v) and v > 0 and math.frexp(v)[0] == 0.5, "a power of 2"


def whole() -> Rule:
    return is_integer, "an integer"


def instance(kind: type, text: str) -> Rule:
    return lambda v: isinstance(v, kind), text


def key_of(table: Mapping[str, Any], text: str) -> Rule:
    return lambda v: isinstance(v, str) and v in table, text


def check_params(estimator: Any, rules: Mapping[str, Rule] | None = None) -> None:
    """Raise a ValueError that names the first parameter that violates its rule.

    Parameters
    ----------
    estimator : object
        Estimator whose parameters are checked.
    rules : mapping of str to Rule, default=None
        Rules of the parameters. By default, the rules of the estimator, including conflicts between
        parameters.
    """
    params = estimator.get_params(deep=False)
    for name, (test, expected) in (estimator._rules if rules is None else rules).items():
        if name not in params:  # a subclass may have fewer
            continue
        value = params[name]
        if not test(value):
            kind = type(estimator).__name__
            if is_integer(value) and abs(value) > MOST and "integer" in expected:
                expected += " (and at most 2^62)"
            raise ValueError(f"{kind}: {name} must be {expected}, got {plain(value)!r}.")
    conflict = estimator._conflict() if rules is None else None
    if conflict is not None:
        raise ValueError(f"{type(estimator).__name__}: {conflict}")


def check_arguments(rules: Mapping[str, Rule], **given: Any) -> None:
    """Raise a ValueError that names the first argument that violates its rule."""
    for name, value in given.items():
        test, expected = rules[name]
        if not test(value):
            raise ValueError(f"{name} must be {expected}, got {plain(value)!r}.")


def obey(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise a ValueError that names the first value of a state that violates its rule."""
    for name, (test, expected) in rules.items():
        if name in values and not test(values[name]):
            raise ValueError(f"{name} must be {expected}, not {values[name]!r:.40}")


# -- rows, labels, weights and ids -------------------------------------------------------------


def check_fit(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None
) -> tuple[Any, NDArray[Any], Float, Ints, int]:
    """Validate the arguments of `fit`; return rows of positive weight and ids."""
    check_params(estimator)
    X, y = check_features(estimator, X, y, reset=True)
    check_classification_targets(y)
    given = X.shape[0]
    weights = check_weights(sample_weight, given)
    check_square(estimator, X)
    kept = np.flatnonzero(weights > 0).astype(np.int64)
    if len(kept) < len(weights):
        X, y, weights = take_rows(X, kept), y[kept], weights[kept]
    return X, np.asarray(y), weights, kept, given


def check_square(estimator: Any, X: Any) -> None:
    """Raise unless a matrix of precomputed kernel values is square."""
    if estimator.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs the square matrix of kernel values between the "
            f"training rows, got {X.shape[0]} rows and {X.shape[1]} columns."
        )


def check_features(estimator: Any, X: Any, y: Any = _ABSENT, *, reset: bool) -> tuple[Any, Any]:
    """Validate X (and y) as scikit-learn does; errors name the first entry that is not finite."""
    if callable(estimator.kernel):
        before = not reset and "_objects" in estimator.__dict__
        if are_objects(X, expected=before):
            handles = lend(estimator, X, reset=reset)
            return handles, None if y is _ABSENT else _check_labels(handles, y)
        if before:
            raise ValueError(
                f"X has rows of numbers, but {type(estimator).__name__} was fitted with a sequence "
                "of objects. Pass rows of the same kind as in fit."
            )
    if reset:
        estimator.__dict__.pop("_objects", None)
    given = X
    if estimator.kernel == "precomputed" and sp.issparse(X):
        raise TypeError(
            "Sparse precomputed kernels are not supported: with kernel='precomputed', X must be a "
            "dense matrix of kernel values. Pass X.toarray()."
        )
    X = check_rows(X, "X", estimator)
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(
            f"X has {X.shape[1]} features; at most {MOST_FEATURES} are supported. Hash them to "
            "fewer columns, or drop columns without entries."
        )
    if y is _ABSENT:
        validate_data(estimator, given, reset=reset, skip_check_array=True)
        return canonical(X), None
    validate_data(estimator, given, y, reset=reset, skip_check_array=True)
    return canonical(X), _check_labels(X, y)


def check_rows(X: Any, name: str, estimator: Any = None) -> Any:
    """Return finite rows of floats, as an array or a CSR matrix with valid indices."""
    if sp.issparse(X):
        check_sparse(X)
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        estimator=estimator,
        input_name=name,
    )
    if sp.issparse(X):
        check_sparse(X)  # again, because conversions copy invalid indices
    check_finite(X)
    return X


def _check_labels(X: Any, y: Any) -> Any:
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


def check_finite(X: Any, names: Ints | None = None) -> None:
    """Raise a ValueError that names the first row and column that is NaN or infinite.

    Parameters
    ----------
    X
        The rows.
    names
        Ids of the rows, for the message. By default, their indices.
    """
    values = X.data if sp.issparse(X) else X
    if values.size <= FEW_VALUES and np.isfinite(values).all():
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # fast path; the sum may overflow
            return
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    if bad.size == 0:
        return
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        column = int(X.indices[bad[0]])
    else:
        row, column = (int(k) for k in np.unravel_index(bad[0], X.shape))
    row = row if names is None else int(names[row])
    kind = "NaN" if np.isnan(values.ravel()[bad[0]]) else "infinity"
    raise ValueError(
        f"Input X contains {kind} at row {row}, column {column}; every feature must be a finite "
        "number. Impute or drop such rows first."
    )


def check_weights(sample_weight: ArrayLike | None, n: int) -> Float:
    """Return one non-negative weight per row, not all zero."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of {n} rows."
        )
    check_weight_values(weights)
    return weights


def check_weight_values(weights: Float) -> None:
    """Raise unless weights are finite, not negative and not all zero."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight is {weights[bad[0]]} at row {bad[0]}; weights must be finite and not "
            "negative."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows; at least one must be positive.")


def check_ids(ids: ArrayLike | None, n: int, first: int) -> Ints:
    """Return one integer id per row; by default, consecutive ids starting with `first`."""
    if ids is None:
        if first + n > MOST_ID:
            raise ValueError(f"the running count of ids has reached {first}; give ids.")
        return np.arange(first, first + n, dtype=np.int64)
    array = np.asarray(ids)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"ids must be {n} integers, one per row; got {array.dtype} of shape {array.shape}."
        )
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"ids must be 64-bit integers with a sign (int64), got {array.max()}.")
    names = np.ascontiguousarray(array, dtype=np.int64)
    known, times = np.unique(names, return_counts=True)
    if len(known) < n:
        raise ValueError(
            f"the id {known[times > 1][0]} is given twice or more; an id names one example."
        )
    return names


def canonical(X: Any) -> Any:
    """Return rows in the layout of the core: C-contiguous, or CSR with sorted indices."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Select rows of a dense or CSR matrix."""
    return canonical(X[rows])
