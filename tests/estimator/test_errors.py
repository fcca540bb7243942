"""Bad input: a ValueError that says what is wrong and where, and the model as it was before."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from marginwise import GapSVC, OnlineSVC
from tests.support import assert_untouched, blobs, differences, rings

X, Y = rings(40, 0, noise=0.1)
X.flags.writeable = Y.flags.writeable = False


def fitted(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 5.0, "gamma": 1.0, "random_state": 0, **params}).fit(X, Y)


def streaming(**params: Any) -> OnlineSVC:
    model = OnlineSVC(**{"C": 5.0, "gamma": 1.0, **params})
    return model.partial_fit(X, Y, classes=[0, 1])


def fresh(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 5.0, "gamma": 1.0, **params})


STATES: dict[str, Callable[..., OnlineSVC]] = {
    "fresh": fresh,
    "fitted": fitted,
    "streaming": streaming,
}


def refused(model: OnlineSVC, call: Callable[[], Any], *expected: str) -> str:
    """Check that `call` raises a ValueError naming all that is expected and changes nothing."""
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are compared below
        call()
    message = str(caught.value)
    for words in expected:
        assert re.search(words, message), f"the message should mention {words!r}: {message}"
    assert_untouched(before, model, f"after the error {message!r}")
    if "_machine" in before:
        model._engine.native.check(1e-5)
        assert np.isfinite(model.decision_function(X)).all()
    else:
        with pytest.raises(NotFittedError):
            model.predict(X)
    return message


@pytest.fixture(params=STATES, ids=str)
def state(request: pytest.FixtureRequest) -> str:
    return request.param


def learn(model: OnlineSVC, way: str, X: Any, y: Any, **more: Any) -> Any:
    if way == "fit":
        return model.fit(X, y, **more)
    return model.partial_fit(X, y, classes=[0, 1], **more)


WAYS = ["fit", "partial_fit"]


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_not_finite(state: str, way: str, value: float, dtype: type) -> None:
    bad = np.array(X, dtype=dtype)
    bad[7, 1], bad[9, 0] = value, np.nan
    kind = "NaN" if np.isnan(value) else "infinity"
    model = STATES[state]()
    refused(model, lambda: learn(model, way, bad, Y), kind, "row 7", "column 1", "finite")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_not_finite_in_csr(state: str, way: str, make: Any) -> None:
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    dense[7, 1] = np.inf
    model = STATES[state]()
    refused(model, lambda: learn(model, way, make(dense), Y), "infinity", "row 7", "column 1")


@pytest.mark.parametrize("state", ["fitted", "streaming"])
@pytest.mark.parametrize("method", ["predict", "decision_function", "score", "duality_gap"])
def test_not_finite_when_asking(state: str, method: str) -> None:
    bad = np.array(X)
    bad[3, 0] = np.nan
    model = STATES[state]()
    arguments = (bad,) if method in ("predict", "decision_function") else (bad, Y)
    refused(model, lambda: getattr(model, method)(*arguments), "NaN", "row 3", "column 0")


def test_large_finite_values_are_no_infinity() -> None:
    """A sum that overflows is no reason to refuse rows that are finite."""
    large = np.full((40, 2), 1e308)
    large[::2] *= -1
    labels = np.arange(40) % 2
    assert (
        OnlineSVC(kernel="cosine", gamma=1.0)
        .fit(large * 1e-160, labels)
        .score(large * 1e-160, labels)
        == 1.0
    )


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_beyond_single_precision(state: str, kernel: str, dtype: type) -> None:
    huge = np.array(X, dtype=dtype)
    huge[5] = 1e19
    model = STATES[state](kernel=kernel)
    refused(model, lambda: model.fit(huge, Y), kernel, "row 5", "scale")


# -- shapes ---------------------------------------------------------------------------------------


WIDE = np.hstack([X, X])


@pytest.mark.parametrize("state", ["fitted", "streaming"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("partial_fit", (WIDE, Y)),
        ("predict", (WIDE,)),
        ("decision_function", (sp.csr_array(WIDE),)),
        ("learn_many", (WIDE, Y)),
        ("learn_one", (WIDE[0], Y[0])),
        ("learn_one", (X[0, :1], Y[0])),
    ],
    ids=["partial_fit", "predict", "decision_function", "learn_many", "learn_one", "too few"],
)
def test_wrong_number_of_features(state: str, method: str, arguments: tuple[Any, ...]) -> None:
    model = STATES[state]()
    given = "1" if method == "learn_one" and len(arguments[0]) == 1 else "4"
    refused(model, lambda: getattr(model, method)(*arguments), r"\b2 features", rf"\b{given}\b")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("rows", "labels"), [(X[:0], Y[:0]), (sp.csr_array((0, 2)), Y[:0])], ids=["dense", "csr"]
)
def test_empty_batch(state: str, way: str, rows: Any, labels: Any) -> None:
    model = STATES[state]()
    refused(model, lambda: learn(model, way, rows, labels), "0 sample", "minimum of 1")


@pytest.mark.parametrize("way", WAYS)
def test_no_features(state: str, way: str) -> None:
    model = STATES[state]()
    refused(model, lambda: learn(model, way, np.empty((40, 0)), Y), "0 feature")


@pytest.mark.parametrize("way", WAYS)
def test_labels_of_another_length(state: str, way: str) -> None:
    model = STATES[state]()
    refused(model, lambda: learn(model, way, X, Y[:-1]), "40", "39")


def test_learn_many_of_bad_sparse_rows() -> None:
    model = OnlineSVC(gamma=1.0).fit(X, Y)
    beyond = sp.csr_matrix(X[:3])
    beyond.indices[1] = 7
    refused(model, lambda: model.learn_many(beyond, Y[:3]), "index 7", "0 to 1")
    refused(model, lambda: model.learn_many(sp.csr_matrix(X[:3] * np.nan), Y[:3]), "NaN")
    refused(model, lambda: model.learn_many(sp.csr_matrix(X[:3, :1]), Y[:3]), r"\(3, 1\)")
    refused(model, lambda: model.learn_many(sp.csr_matrix(X[:3] * 1j), Y[:3]), "complex")


def test_learn_many_of_another_length() -> None:
    model = streaming()
    refused(model, lambda: model.learn_many(X[:5], Y[:4]), r"\(5, 2\)", "4 labels")


def test_learn_one_given_two_rows() -> None:
    model = streaming()
    refused(model, lambda: model.learn_one(X[:2], 1), "2 features")


@pytest.mark.parametrize("call", ["learn_one", "learn_many", "finish", "predict", "dual_objective"])
def test_before_anything_was_learned(call: str) -> None:
    model = fresh()
    arguments = {"learn_one": (X[0], 1), "learn_many": (X, Y), "predict": (X,)}.get(call, ())
    before = model.__getstate__()
    with pytest.raises(NotFittedError, match="OnlineSVC"):
        getattr(model, call)(*arguments)
    assert not differences(before, model.__getstate__())


# -- labels and classes ---------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["fitted", "streaming"])
def test_unseen_class(state: str) -> None:
    labels = np.array(Y)
    labels[4] = 7
    model = STATES[state]()
    refused(model, lambda: model.partial_fit(X, labels), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.learn_many(X, labels), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.learn_one(X[0], 7), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.duality_gap(X, labels), r"\b7\b", r"\[0, 1\]")


def test_unseen_class_in_the_first_call() -> None:
    model = fresh()
    call = lambda: model.partial_fit(X, Y + 1, classes=[0, 1])  # noqa: E731
    refused(model, call, r"\b2\b", r"\[0, 1\]")


def test_unseen_name() -> None:
    model = OnlineSVC(gamma=1.0).fit(X, np.where(Y, "yes", "no"))
    refused(model, lambda: model.learn_one(X[0], "maybe"), "'maybe'", "'no', 'yes'")
    refused(model, lambda: model.partial_fit(X[:1], ["maybe"]), "'maybe'", "'no', 'yes'")


@pytest.mark.parametrize("kind", [int, str])
def test_one_class_in_fit(state: str, kind: type) -> None:
    model = STATES[state]()
    refused(model, lambda: model.fit(X, np.full(40, kind(3))), "one class", "3", "two classes")


def test_one_class_is_left_by_the_weights(state: str) -> None:
    model = STATES[state]()
    call = lambda: model.fit(X, Y, sample_weight=Y)  # noqa: E731
    refused(model, call, "one class", "1", "two classes")


def test_no_classes_in_the_first_call() -> None:
    model = GapSVC(gamma=1.0)
    refused(model, lambda: model.partial_fit(X, Y), "classes", "first call")


def test_one_class_named() -> None:
    model = fresh()
    refused(model, lambda: model.partial_fit(X, Y, classes=[1]), "classes", "two", r"\[1\]")


@pytest.mark.parametrize("state", ["fitted", "streaming"])
def test_other_classes_than_before(state: str) -> None:
    model = STATES[state]()
    call = lambda: model.partial_fit(X, Y, classes=[0, 2])  # noqa: E731
    refused(model, call, r"\[0, 2\]", r"\[0, 1\]")


@pytest.mark.parametrize("way", WAYS)
def test_continuous_labels(state: str, way: str) -> None:
    model = STATES[state]()
    refused(model, lambda: learn(model, way, X, Y + 0.5), "(?i)unknown label|continuous")


def test_balanced_class_weight_in_a_stream() -> None:
    model = fresh(class_weight="balanced")
    call = lambda: model.partial_fit(X, Y, classes=[0, 1])  # noqa: E731
    refused(model, call, "class_weight", "balanced")


@pytest.mark.parametrize(
    "class_weight", [{0: -1.0}, {1: 0.0}, {1: np.nan}, "heavy", [1.0, 2.0]], ids=str
)
def test_bad_class_weight(state: str, class_weight: Any) -> None:
    model = STATES[state]().set_params(class_weight=class_weight)
    refused(model, lambda: model.fit(X, Y), "class_weight")


# -- parameters -----------------------------------------------------------------------------------

BAD_PARAMETERS = [
    ("C", 0, "above 0"),
    ("C", -1.0, "above 0"),
    ("C", -np.inf, "number"),
    ("C", np.nan, "number"),
    ("C", "1", "number"),
    ("C", None, "number"),
    ("kernel", "gaussian", "'rbf'"),
    ("kernel", 3, "'rbf'"),
    ("gamma", 0.0, "above 0"),
    ("gamma", -1.0, "above 0"),
    ("gamma", "wide", "'scale'"),
    ("degree", 0, "integer"),
    ("degree", 2.5, "integer"),
    ("coef0", np.inf, "finite"),
    ("tol", 0.0, "above 0"),
    ("epochs", 0, "at least 1"),
    ("epochs", 1.5, "integer"),
    ("selection", "best", "'random'"),
    ("pool_size", 0, "at least 1"),
    ("reprocess", -1, "from 0"),
    ("reprocess", "delta", "'gap'"),
    ("reprocess_when", "always", "'each'"),
    ("finish_at_end", "yes", "True or False"),
    ("finish_every", 0, "at least 1"),
    ("delta_max", -0.1, "at least 0"),
    ("cache_size", 0, "above 0"),
    ("shuffle", 2, "True or False"),
    ("n_jobs", 1.5, "integer"),
    ("n_jobs", 0, "n_jobs"),
    ("verbose", "loud", "verbose"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "value", "expected"), BAD_PARAMETERS)
def test_bad_parameter(state: str, way: str, name: str, value: Any, expected: str) -> None:
    model = STATES[state]().set_params(**{name: value})
    message = refused(model, lambda: learn(model, way, X, Y), rf"\b{name}\b", expected)
    assert repr(value) in message, f"the message should show what was given: {message}"


# -- weights and ids ------------------------------------------------------------------------------


def weights(value: float) -> np.ndarray:
    w = np.ones(40)
    w[6] = value
    return w


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_weight(state: str, way: str, value: float) -> None:
    model = STATES[state]()
    call = lambda: learn(model, way, X, Y, sample_weight=weights(value))  # noqa: E731
    refused(model, call, "sample_weight", "row 6", str(value))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zeros", [np.zeros(40), 0.0], ids=["array", "scalar"])
def test_all_weights_zero(state: str, way: str, zeros: Any) -> None:
    model = STATES[state]()
    call = lambda: learn(model, way, X, Y, sample_weight=zeros)  # noqa: E731
    refused(model, call, "sample_weight", "zero", "positive")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(39,), (40, 1), (2, 20)])
def test_weights_of_another_shape(state: str, way: str, shape: tuple[int, ...]) -> None:
    model = STATES[state]()
    call = lambda: learn(model, way, X, Y, sample_weight=np.ones(shape))  # noqa: E731
    refused(model, call, "sample_weight", "40")


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(39),
        np.arange(40.0),
        np.arange(40).reshape(2, 20),
        np.arange(40).astype(str),
        np.arange(40, dtype=np.uint64) + np.uint64(2**63),
        [True] * 40,
    ],
    ids=["short", "float", "two-dimensional", "text", "beyond int64", "bool"],
)
@pytest.mark.parametrize("state", ["fresh", "streaming"])
def test_bad_ids(state: str, ids: Any) -> None:
    model = STATES[state]()
    call = lambda: model.partial_fit(X, Y, classes=[0, 1], ids=ids)  # noqa: E731
    refused(model, call, "ids", "40|64-bit")


# -- kernels of the user's ------------------------------------------------------------------------


class Failing:
    """A linear kernel that goes wrong from a given call on."""

    def __init__(self, after: int, fault: str) -> None:
        self.after, self.fault, self.calls = after, fault, 0

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        self.calls += 1
        K = A @ B.T
        if self.calls <= self.after:
            return K
        if self.fault == "raises":
            raise ValueError("kernel shape: the user's own words")
        if self.fault == "Ctrl-C":
            raise KeyboardInterrupt
        return {"shape": np.zeros((A.shape[0] + 1, B.shape[0])), "NaN": K * np.nan}[self.fault]


FAULTS = {
    "shape": ("kernel", "shape", "expected"),
    "NaN": ("kernel", "NaN"),
    "raises": ("the user's own words",),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("after", [0, 1, 7])
def test_failing_kernel_in_a_first_fit(fault: str, after: int) -> None:
    kernel = Failing(after, fault)
    model = OnlineSVC(kernel=kernel)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.fit(X, Y)
    assert all(re.search(words, str(caught.value)) for words in FAULTS[fault])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("way", ["fit", "partial_fit", "learn_many", "learn_one"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_failing_kernel_of_a_model_that_exists(way: str, fault: str, after: int) -> None:
    kernel = Failing(10**9, fault)
    model = OnlineSVC(kernel=kernel, C=5.0).partial_fit(X[:10], Y[:10], classes=[0, 1])
    before = dict(model.__getstate__())
    kernel.calls, kernel.after = 0, after
    calls = {
        "fit": lambda: model.fit(X, Y),
        "partial_fit": lambda: model.partial_fit(X[10:], Y[10:]),
        "learn_many": lambda: model.learn_many(X[10:], Y[10:]),
        "learn_one": lambda: [model.learn_one(x, y) for x, y in zip(X[10:], Y[10:], strict=True)],
    }
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        calls[way]()
    kernel.after = 10**9
    assert all(re.search(words, str(caught.value)) for words in FAULTS[fault])
    model._engine.native.check(1e-4)
    if way != "learn_one":
        assert_untouched(before, model, f"after {way} failed")
    model.partial_fit(X, Y).finish()
    model._engine.native.check(1e-4)
    assert np.isfinite(model.decision_function(X)).all()


INTERRUPTED = """
from tests.estimator.test_errors import *

fits = [("fit", None, 1), ("fit", 1000, 4)]  # as a whole, in few calls, and by windows
for way, every, calls in (*fits, ("partial_fit", None, 31), ("learn_many", None, 31)):
    for after in [n for n in (0, 1, 2, 3, 10, 30) if n < calls]:
        print(way, after, flush=True)
        kernel = Failing(10**9, "Ctrl-C")
        model = OnlineSVC(kernel=kernel, C=5.0, finish_every=every)
        model.partial_fit(X[:10], Y[:10], classes=[0, 1])
        kernel.calls, kernel.after = 0, after
        with pytest.raises(KeyboardInterrupt):
            getattr(model, way)(*((X, Y) if way == "fit" else (X[10:], Y[10:])))
        kernel.after = 10**9
        model._engine.native.check(1e-4)
        model.partial_fit(X, Y, ids=np.arange(100, 140)).finish()
        model._engine.native.check(1e-4)
        assert np.isfinite(model.decision_function(X)).all()
"""


@pytest.mark.slow
def test_ctrl_c_inside_a_kernel_leaves_a_usable_model() -> None:
    """In a process of its own: a state that is not whole may take the process with it."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, f"exit {done.returncode} at {last}: {done.stderr[-500:]}"


@pytest.mark.parametrize("after", [0, 1])
def test_failing_kernel_when_asking(after: int) -> None:
    kernel = Failing(10**9, "shape")
    model = OnlineSVC(kernel=kernel, C=5.0).fit(X, Y)
    kernel.calls, kernel.after = 0, after
    many = np.tile(X, (20, 1))
    before = pickle.loads(pickle.dumps(model.__getstate__()["_machine"]))
    with pytest.raises(ValueError, match="shape"):
        model.decision_function(many)
    assert not differences(before, model.__getstate__()["_machine"])


def test_kernel_errors_of_any_kind_come_through() -> None:
    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        OnlineSVC(kernel=kernel).fit(X, Y)


@pytest.mark.parametrize("shape", [(40, 39), (39, 40)])
def test_precomputed_not_square(shape: tuple[int, int]) -> None:
    K = np.zeros(shape)
    model = OnlineSVC(kernel="precomputed")
    call = lambda: model.fit(K, Y[: shape[0]])  # noqa: E731
    refused(model, call, "precomputed", "square", str(shape[0]), str(shape[1]))


def test_precomputed_rows_without_a_column() -> None:
    K = X @ X.T
    model = OnlineSVC(kernel="precomputed")
    call = lambda: model.partial_fit(K, Y, classes=[0, 1], ids=np.arange(1, 41))  # noqa: E731
    before = model.__getstate__()
    with pytest.raises(ValueError, match=r"ids.*column"):
        call()
    assert not differences(before, model.__getstate__())


# -- the first offender is the one named ----------------------------------------------------------


def test_rows_are_counted_in_the_batch_that_was_given() -> None:
    model = streaming()
    bad = np.array(X)
    bad[11, 0] = np.nan
    refused(model, lambda: model.partial_fit(bad[10:], Y[10:]), "row 1,", "column 0")


def test_rows_of_weight_zero_are_checked_too() -> None:
    bad = np.array(X)
    bad[2, 1] = np.nan
    w = np.ones(40)
    w[2] = 0.0
    model = streaming()
    refused(model, lambda: model.partial_fit(bad, Y, sample_weight=w), "row 2", "column 1")


def test_columns_that_int32_cannot_count() -> None:
    """Refused by name; never counted modulo 2^32."""
    indices = np.array([0, 2**31 + 5, 3, 2**32 + 7], dtype=np.int64)
    wide = sp.csr_array((np.ones(4), indices, np.arange(5)), shape=(4, 2**33))
    model = fresh(kernel="linear")
    before = model.__getstate__()
    with pytest.raises(ValueError, match=r"column|feature"):
        model.fit(wide, [0, 1, 0, 1])
    assert not differences(before, model.__getstate__())


def test_an_error_in_one_of_several_classes_changes_none() -> None:
    Z, labels = blobs(60, 0, classes=3)
    model = OnlineSVC(gamma=1.0).partial_fit(Z, labels, classes=[0, 1, 2])
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    bad = np.where(np.arange(60)[:, None] == 59, np.nan, Z)
    with pytest.raises(ValueError, match="row 59"):
        model.partial_fit(bad, labels)
    assert_untouched(before, model, "after the error")
