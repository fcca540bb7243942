"""The fixed properties of a native model: kernel, gamma, precision, kernel unit, centring."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints
from marginwise._core import SKIP_BELOW
from marginwise._engine.memory import AUTO
from marginwise._engine.suspects import NOTING, no_suspects
from marginwise._warn import warn

NATIVE = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
KERNELS = (*NATIVE, "precomputed")
WITH_GAMMA = ("rbf", "poly", "sigmoid")
FEW = 50  # rows of a first batch below which gamma="scale" warns
LARGEST = 1e37  # kernel value in single precision
# Single precision is used while gamma |x|^2 is below this limit. The error of the exponent of the
# RBF kernel is then at most 1e-4.
SINGLE_LIMIT = 1000.0
# ... and, for kernels of x.y, unless the features vary little around a large offset.
FAR = 1e4  # interquartile ranges between mean and median that only outliers cause
OFFSET_LIMIT = 1600.0
LARGEST_SQUARE = 1e299  # |x|^2
ORDINARY = 2.0**20  # kernel values between its inverse and this value need no unit
# multiclass="auto" pairs up to MOST_PAIRED classes, and more if the number of pairs times that of
# rows is at most MOST_PAIR_ROWS. Each pair stores 12 bytes for each member of the model, and 41 in
# a file: with 500 noisy rows per class, 50 classes take 0.6 GB, and 100 classes would take 5 GB.
MOST_PAIRED, MOST_PAIR_ROWS = 50, 50_000_000
# With other values of these parameters, each row or few rows cost time for each pair.
MOST_PAIRED_IN_STEPS = 32
WITHOUT_STEPS: dict[str, Any] = {
    "budget": None,
    "reprocess": 1,
    "reprocess_when": "processed",
    "finish_at_end": True,
    "finish_every": None,
    "delta_max": None,
}
MOST_ROOT = 80  # exponents of units, so that they do not overflow
EARLY_EXACT_NOTES = 5  # per problem, in states of earlier versions

BlockFunction = Callable[[Float, Float], Float]


@dataclass
class Plan:
    """Everything that defines a learner except its data, as plain values that files can store.

    Plans are immutable; `dataclasses.replace` creates a modified one.
    """

    kernel: str
    gamma: float
    coef0: float
    degree: int
    problems: int
    features: int
    sparse: bool
    double: bool
    cache_bytes: int  # or AUTO
    algorithm: str
    settings: dict[str, Any]  # of the algorithm
    center: list[float] = field(default_factory=list)
    record: bool = False
    unit: float = 1.0  # of the kernel: the core computes with K / unit, and with C times unit
    pairs: bool = False  # one-vs-one instead of one-vs-rest
    budget: int = 0  # maximum number of members; 0: no limit
    foresees: bool = False  # whether decision values are recorded before rows are learned

    def __post_init__(self) -> None:
        # Divisor of x.y that divides the kernel by its unit; a power of 4.
        self.root = 1.0
        if self.kernel in ("linear", "poly"):
            degree = self.degree if self.kernel == "poly" else 1
            self.root = math.ldexp(1.0, round(math.log2(self.unit) / degree))
        # Factor of the features that turns gamma into 1. It is applied in double precision before
        # rounding to single, so that the units of the features do not affect the model.
        gamma = self.gamma if self.kernel in WITH_GAMMA else 1.0
        self.scale = math.sqrt(gamma) / math.sqrt(self.root)


def make_plan(
    model: Any,
    X: Any,
    weights: Float,
    *,
    function: BlockFunction | None,
    settings: dict[str, Any],
    streaming: bool,
    rows: int | None,
) -> Plan:
    """Return the plan of the native model of an estimator, given the first rows to learn.

    Parameters
    ----------
    model : KernelModel
        The estimator.
    X : {ndarray, csr_array} of shape (n, features)
        The rows.
    weights : ndarray of shape (n,)
        Weights of the rows in the variance that determines gamma.
    function : callable or None
        Kernel function, if the kernel is callable.
    settings : dict
        Settings of the algorithm.
    streaming : bool
        Whether more rows follow, for which the first ones may not be representative.
    rows : int or None
        Number of rows that will be learned, if it is known.
    """
    if streaming:
        _warn_if_few(model.gamma, model.kernel, X.shape[0])
    gamma = resolve_gamma(model.gamma, X, weights)
    if not gamma > 0:
        raise ValueError(
            f"gamma={model.gamma!r} is 0 for these rows: their variance overflows. Scale the "
            "features down, or give gamma."
        )
    classes = len(getattr(model, "classes_", ()))
    pairs = classes > 2 and pairs_classes(model, classes, rows)
    precomputed = model.kernel == "precomputed"
    kernel = "callable" if precomputed or callable(model.kernel) else str(model.kernel)
    plan = Plan(
        kernel=kernel,
        gamma=gamma,
        coef0=float(model.coef0),
        degree=int(model.degree),
        problems=problems_of(classes, pairs),
        features=int(X.shape[1]) + precomputed,
        sparse=keeps_lists(X) and kernel != "callable",
        double=model._algorithm.exact or needs_double(X, kernel),
        cache_bytes=AUTO if model.cache_size == "auto" else int(model.cache_size * 2**20),
        algorithm=model._algorithm.name,
        settings=settings,
        center=model._centre(X, kernel, streaming=streaming),
        record=bool(getattr(model, "record", False)),
        pairs=pairs,
        budget=(model._algorithm.budgeted and model.budget) or 0,
        foresees=getattr(model, "calibration", None) is not None and not model._algorithm.exact,
    )
    unit = 1.0 if model._algorithm.exact else unit_for(plan, X, function)
    return plan if unit == 1 else replace(plan, unit=unit)


# -- classes -----------------------------------------------------------------------------------


def pairs_classes(model: Any, classes: int, rows: int | None) -> bool:
    """Return whether an estimator uses one-vs-one for these numbers of classes and rows."""
    multiclass = getattr(model, "multiclass", "ovr")
    if multiclass != "auto":
        return bool(multiclass == "ovo")
    if not may_pair(model):
        return False
    if any(getattr(model, name) != value for name, value in WITHOUT_STEPS.items()):
        return classes <= MOST_PAIRED_IN_STEPS
    few = rows is not None and problems_of(classes, True) * rows <= MOST_PAIR_ROWS
    return classes <= MOST_PAIRED or few


def may_pair(model: Any) -> bool:
    """Return whether multiclass="auto" uses one-vs-one if there are few classes or rows."""
    auto = getattr(model, "multiclass", "ovr") == "auto"
    return auto and model.selection == "random" and model.replay == 0


def problems_of(classes: int, pairs: bool) -> int:
    """Return the number of binary problems."""
    if classes <= 2:
        return 1
    return classes * (classes - 1) // 2 if pairs else classes


def signs(labels: NDArray[Any], problems: int, pairs: bool, some: slice = slice(None)) -> Float:
    """Return classes as +1 and -1, one column per problem; 0 if the problem excludes the class.

    Pairs are in the order (0, 1), (0, 2), ..., and their second class is the positive one.
    """
    column = labels[:, None]
    if not pairs:
        positive = np.ones(1) if problems == 1 else np.arange(problems)
        return np.where(column == positive[some], 1.0, -1.0)
    first, second = paired(problems)
    return np.where(column == second[some], 1.0, np.where(column == first[some], -1.0, 0.0))


def paired(problems: int) -> tuple[Ints, Ints]:
    """Return the first and the second class of each pair."""
    first, second = np.triu_indices((1 + math.isqrt(1 + 8 * problems)) // 2, 1)
    return first, second


# -- gamma -------------------------------------------------------------------------------------


def resolve_gamma(gamma: str | float, X: Any, weights: Float) -> float:
    """Return the value of gamma; "scale" is 1 / (n_features * weighted variance)."""
    if not isinstance(gamma, str):
        return float(gamma)
    d = max(int(X.shape[1]), 1)
    if gamma == "auto":
        return 1.0 / d
    variance = weighted_variance(X, weights)
    return 1.0 / (d * variance) if variance > 0 else 1.0


def _warn_if_few(gamma: str | float, kernel: Any, rows: int) -> None:
    """Warn if the first rows of a stream are too few to choose gamma from."""
    if isinstance(gamma, str) and gamma == "scale" and _uses_gamma(kernel) and rows < FEW:
        warn(
            f"gamma='scale' is computed from the first batch only, which has {rows} row"
            f"{'' if rows == 1 else 's'}: their variance may be far from that of the stream. Pass "
            f"gamma as a number, or start with a batch of at least {FEW} rows."
        )


def _uses_gamma(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in WITH_GAMMA


def weighted_variance(X: Any, weights: Float) -> float:
    """Return the variance of all entries of X, with weighted rows."""
    total = float(weights.sum()) * max(int(X.shape[1]), 1)
    row_sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    mean = float(weights @ row_sums) / total
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
        return max(float(weights @ squares) / total - mean * mean, 0.0)
    deviations = (_centred_squares(X[k : k + 4096], mean) for k in range(0, X.shape[0], 4096))
    return float(weights @ np.concatenate(list(deviations))) / total


def _centred_squares(X: NDArray[Any], mean: float) -> Float:
    centred = X.astype(np.float64) - mean
    squares: Float = np.einsum("ij,ij->i", centred, centred)
    return squares


# -- unit, centre and precision -----------------------------------------------------------------


def unit_near(size: float, degree: int = 1) -> float:
    """Return a unit for kernel values of this size: a power of 4 to the `degree`, usually 1.

    The core's tolerances assume kernel values of about 1. Units are powers of 2, which do not
    change the digits of a model.
    """
    if not 1 / ORDINARY < size < ORDINARY:
        exponent = round(math.log2(size) / (2 * degree)) if 0 < size < math.inf else 0
        return math.ldexp(1.0, 2 * degree * min(max(exponent, -MOST_ROOT), MOST_ROOT))
    return 1.0


def unit_for(plan: Plan, X: Any, function: BlockFunction | None) -> float:
    """Choose the unit of an unbounded kernel from its values on some rows."""
    if plan.kernel not in ("linear", "poly", "callable") or X.shape[0] == 0:
        return 1.0
    if function is not None:
        return unit_near(typical(_function_sizes(plan, X, function)))
    sample = X[:: max(1, X.shape[0] // 1000)]
    with np.errstate(over="ignore", under="ignore"):
        if sp.issparse(sample):
            squares = np.asarray(sample.astype(np.float64).power(2).sum(axis=1)).ravel()
        else:
            rows = sample.astype(np.float64) - (np.asarray(plan.center) if plan.center else 0.0)
            squares = np.einsum("ij,ij->i", rows, rows)
        if plan.kernel == "linear":
            return unit_near(typical(squares))
        values = (plan.gamma * squares + abs(plan.coef0)) ** float(plan.degree)
    return unit_near(typical(values), plan.degree)


def _function_sizes(plan: Plan, X: Any, function: BlockFunction) -> Float:
    """Return the sizes of diagonal values, the largest ones, of a kernel function."""
    if X.shape[1] < plan.features:  # precomputed
        sizes = np.abs(X[:1000]).max(axis=1)
        return np.asarray(sizes.todense() if sp.issparse(sizes) else sizes).ravel()
    some = X[:8].toarray() if sp.issparse(X) else X[:8]
    some = np.ascontiguousarray(some, dtype=np.float64)
    return np.abs(np.diagonal(function(some, some)))


def typical(sizes: Float) -> float:
    """Return the median of the sizes that are not 0; 1 if there are none."""
    sizes = sizes[sizes > 0]
    return float(np.median(sizes)) if len(sizes) else 1.0


def centre_for(X: Any, kernel: str, *, streaming: bool) -> list[float]:
    """Choose the point that is subtracted from the features; empty for none.

    Subtracting a constant does not change the RBF kernel, and centred features lose fewer digits.
    Features that are mostly zero are not centred, because zeros are skipped. If most values of a
    feature are equal, as in standardized indicators, that value is subtracted, so that it is
    skipped as well. With the linear kernel, the bias makes the model independent of the centre;
    features are centred only if they vary little around a large offset.
    """
    if sp.issparse(X) or kernel not in ("rbf", "linear"):
        return []
    if kernel == "linear" and not is_offset(X):
        return []
    sample = X[:1] if streaming else X[:: max(1, X.shape[0] // 1000)]
    if np.count_nonzero(sample) <= 0.5 * sample.size:
        return []
    centre = bulk_of(sample)
    if kernel == "rbf" and not streaming:
        usual = np.median(sample, axis=0)  # the value of most rows, if there is one
        repeats = np.count_nonzero(sample == usual, axis=0) > 0.5 * len(sample)
        skipped = np.where(repeats, usual, centre)
        if np.count_nonzero(sample != skipped) <= SKIP_BELOW * sample.size:
            centre = skipped
    return centre.tolist()  # type: ignore[no-any-return]


def bulk_of(sample: Any) -> Float:
    """Return the mean of each feature, or the median where outliers move the mean far away.

    A single fill value such as 1e20 moves the mean so far that all other rows lose their digits.
    """
    mean: Float = sample.mean(axis=0, dtype=np.float64)
    if len(sample) < 3:
        return mean
    low, median, high = np.quantile(sample.astype(np.float64), (0.25, 0.5, 0.75), axis=0)
    spread = high - low
    spread[spread == 0] = typical(spread)
    return np.where(np.abs(mean - median) > FAR * spread, median, mean)


def is_offset(X: Any) -> bool:
    """Return whether dense features vary little around a large offset."""
    sample = X[:1000].astype(np.float64)
    squares = float(np.einsum("ij,ij->", sample, sample)) / len(sample)
    mean = sample.mean(axis=0)
    spread = max(squares - float(mean @ mean), 0.0)
    return len(sample) > 1 and squares > OFFSET_LIMIT * spread and squares > 0


def needs_double(X: Any, kernel: str) -> bool:
    """Return whether single precision would lose the variation of the data."""
    if kernel == "callable":
        return True
    return kernel in ("poly", "sigmoid") and not sp.issparse(X) and is_offset(X)


def keeps_lists(X: Any) -> bool:
    """Return whether lists of nonzeros suit the members better than dense rows."""
    return bool(sp.issparse(X) and X.shape[1] * X.shape[0] > 16 * max(X.nnz, 1))


# -- range -----------------------------------------------------------------------------------


def check_range(plan: Plan, X: Any) -> None:
    """Raise ValueError if kernel values of these rows would overflow."""
    with np.errstate(over="ignore"):
        squares = squared_norms(X)
        # One factor at a time: the square of a large Python float raises OverflowError.
        check_squares(plan, squares * plan.scale * plan.scale)


def squared_norms(X: Any) -> Float:
    """Return |x|^2 of each row, computed in double precision if single precision overflows."""
    squares = _squares(X)
    if X.dtype != np.float64 and not np.isfinite(squares).all():
        squares = _squares(X.astype(np.float64))
    return squares


def _squares(X: Any) -> Float:
    if sp.issparse(X):  # several times as fast as X.multiply(X)
        squares = sp.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape).sum(axis=1)
    else:
        squares = np.einsum("ij,ij->i", X, X)
    return np.asarray(squares, dtype=np.float64).ravel()


def check_squares(plan: Plan, squares: Float) -> None:
    """Raise ValueError if kernel values would overflow; `squares` are the scaled |x|^2."""
    if squares.size == 0:
        return
    row = int(np.argmax(squares))  # a NaN, if there is one
    size = float(squares[row])
    if not size < LARGEST_SQUARE:
        raise ValueError(f"row {row}: features are too large, |x|^2 overflows; scale them down.")
    if plan.kernel not in ("linear", "poly"):
        return
    try:
        linear = plan.kernel == "linear"
        value = size if linear else (size + abs(plan.coef0) / plan.root) ** plan.degree
    except OverflowError:
        value = math.inf
    if not value < LARGEST:
        relative = " times that of typical rows" if plan.unit != 1 else ""
        raise ValueError(
            f"the {plan.kernel} kernel of row {row} with itself is {value:.3g}{relative}, beyond "
            "the range of kernel values (1e37); scale the features down, or gamma."
        )


# -- kernels that are functions -----------------------------------------------------------------


def checked(function: Callable[[Any, Any], Any]) -> BlockFunction:
    """Wrap a user's kernel function and check the values that it returns."""

    def block(A: Float, B: Float) -> Float:
        values = np.ascontiguousarray(function(A, B), dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"kernel returned shape {values.shape} for blocks of {A.shape[0]} and "
                f"{B.shape[0]} rows; expected {(A.shape[0], B.shape[0])}."
            )
        with np.errstate(invalid="ignore"):  # min and max propagate NaN
            largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if not np.isfinite(largest):
            raise ValueError("kernel returned NaN or infinity; expected finite values.")
        if largest > LARGEST:
            raise ValueError(
                f"kernel returned a value of size {largest:.3g}; expected at most {LARGEST:g}, for "
                "values are stored in single precision. Scale the kernel down, and C up."
            )
        return values

    return block


def precomputed(A: Float, B: Float) -> Float:
    """Look up kernel values: the last feature of a row is its column number in other rows."""
    return np.ascontiguousarray(A[:, B[:, -1].astype(np.intp)])


# -- states of earlier formats ------------------------------------------------------------------


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an engine in the current format."""
    state = {name: value for name, value in state.items() if name != "seconds"}  # of format 2
    plan = state.get("plan")
    if isinstance(plan, dict):
        plan = {"unit": 1.0, "pairs": False, "budget": 0, "foresees": False, **plan}
        zeros = np.zeros(np.shape(state.get("alpha", ())))
        state = {"inherited": zeros, **state, "plan": plan}
        if plan.get("algorithm") in NOTING:
            state = {**no_suspects(zeros.shape[:1]), **state}
    if isinstance(plan, dict) and plan.get("algorithm") == "exact":
        return _with_peaks(state)
    early = ("tol", "reprocess", "reprocess_each", "delta_max")
    if not isinstance(plan, dict) or not set(early) <= set(plan) or "waiting" not in state:
        return state
    rest = {name: value for name, value in plan.items() if name not in early}
    settings = {name: plan[name] for name in early}
    shape = np.shape(state.get("alpha", ()))
    return {
        **{name: value for name, value in state.items() if name != "waiting"},
        "plan": {**rest, "algorithm": "lasvm", "settings": settings, "record": False},
        "box": np.zeros(shape, dtype=np.uint8),
        "trail": np.zeros(shape),
        "notes": np.asarray(state["waiting"], dtype=np.float64).reshape(-1, 1),
    }


def _with_peaks(state: dict[str, Any]) -> dict[str, Any]:
    """Add an unknown peak of the weights to the notes of an exact model of an earlier format."""
    notes = state.get("notes")
    if not isinstance(notes, np.ndarray) or notes.ndim != 2 or notes.shape[1] != EARLY_EXACT_NOTES:
        return state
    return {**state, "notes": np.column_stack([notes, np.zeros(len(notes))])}
