"""Bad input to the learners without a bias: a ValueError that names it, before anything is learned.

What all classifiers refuse alike, and in which words, is in `test_errors`.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from marginwise import ExactRampSVC, GapSVC, KernelPerceptron, TrackingSVC
from tests.support import Rows, differences, rings

X, Y = rings(40, 0, noise=0.1)
X.flags.writeable = Y.flags.writeable = False
KINDS = [GapSVC, TrackingSVC, ExactRampSVC, KernelPerceptron]
Kind = Callable[..., Any]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(params=["fit", "partial_fit", "learn_from"])
def way(request: pytest.FixtureRequest) -> str:
    return request.param


def learn(model: Any, way: str, X: Any, y: Any) -> Any:
    if way == "learn_from":
        return model.learn_from(Rows(X, np.asarray(y), classes=[0, 1]))
    return model.fit(X, y) if way == "fit" else model.partial_fit(X, y, classes=[0, 1])


def refused(model: Any, call: Callable[[], Any], *expected: str) -> str:
    """Check that `call` raises a ValueError naming all that is expected and changes nothing."""
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the words are compared below
        call()
    message = str(caught.value)
    for words in expected:
        assert re.search(words, message), f"the message should mention {words!r}: {message}"
    found = differences(before, model.__getstate__())
    assert not found, f"after the error {message!r}: {found}"
    if "_machine" not in before:
        with pytest.raises(NotFittedError):
            model.predict(X)
    return message


# -- parameters -----------------------------------------------------------------------------------

COMMON: list[tuple[str, Any, str]] = [
    ("C", 0.0, "above 0"),
    ("C", -1.0, "above 0"),
    ("C", np.nan, "number"),
    ("C", "1", "number"),
    ("kernel", "gaussian", "'rbf'"),
    ("gamma", 0.0, "above 0"),
    ("gamma", "wide", "'scale'"),
    ("degree", 0, "integer"),
    ("coef0", np.inf, "finite"),
    ("epochs", 0, "at least 1"),
    ("epochs", 1.5, "integer"),
    ("center", 1, "True or False"),
    ("center", "yes", "True or False"),
    ("cache_size", 0, "above 0"),
    ("class_weight", {0: -1.0}, "above 0"),
    ("class_weight", "heavy", "'balanced'"),
    ("shuffle", 2, "True or False"),
    ("n_jobs", 0, "other than 0"),
    ("n_jobs", 1.5, "integer"),
    ("verbose", "loud", "verbose"),
]
CHOOSING: list[tuple[str, Any, str]] = [
    ("selection", "best", "'random'"),
    ("pool_size", 0, "at least 1"),
    ("record", 1, "True or False"),
    ("record", "all", "True or False"),
]
OWN: dict[Kind, list[tuple[str, Any, str]]] = {
    GapSVC: [
        ("loss", "squared", "'hinge', 'ramp', 'filter'"),
        ("loss", None, "'hinge'"),
        ("ramp", 1.0, r"below 1\b"),
        ("ramp", 2, r"below 1\b"),
        ("ramp", np.nan, "number"),
        ("ramp", -np.inf, "number"),
        ("clean_every", 0, "at least 1"),
        ("clean_every", 2.5, "integer"),
        ("max_idle", -1, "at least 0"),
        ("max_idle", None, "integer"),
        ("max_idle", 0.5, "integer"),
        ("tol", 0.0, "above 0"),
        ("tol", -1e-3, "above 0"),
        ("finish_at_end", "yes", "True or False"),
        *CHOOSING,
    ],
    TrackingSVC: [
        ("steps", 0, "from 1"),
        ("steps", -1, "from 1"),
        ("steps", 2.5, "integer"),
        ("process", "yes", "True or False"),
        ("average", 1, "True or False"),
        ("gradients", "none", "'all', 'support'"),
        ("gradients", True, "'all', 'support'"),
        *CHOOSING,
    ],
    ExactRampSVC: [
        ("max_idle", -1, "at least 0"),
        ("max_idle", 0.5, "integer"),
        ("tol", 0.0, "above 0"),
        ("tol", np.inf, "number"),
    ],
    KernelPerceptron: [
        ("budget", 0, "at least 1"),
        ("budget", -3, "at least 1"),
        ("budget", 1.5, "integer"),
        ("margin", -0.5, "at least 0"),
        ("margin", np.nan, "number"),
        ("average", "yes", "True or False"),
        ("update", "sgd", "'perceptron', 'pa'"),
        ("update", None, "'perceptron'"),
    ],
}
BAD_PARAMETERS = [
    pytest.param(kind, *bad, id=f"{kind.__name__}-{bad[0]}-{bad[1]}")
    for kind in KINDS
    for bad in COMMON + OWN[kind]
]


@pytest.mark.parametrize(("kind", "name", "value", "expected"), BAD_PARAMETERS)
def test_bad_parameter(kind: Kind, name: str, value: Any, expected: str) -> None:
    fresh = kind(**{name: value})
    message = refused(fresh, lambda: fresh.fit(X, Y), rf"\b{name}\b", expected)
    assert repr(value) in message, f"the message should show what was given: {message}"
    assert kind.__name__ in message
    refused(fresh, lambda: fresh.partial_fit(X, Y, classes=[0, 1]), rf"\b{name}\b")
    refused(fresh, lambda: fresh.learn_from(Rows(X, Y)), rf"\b{name}\b")
    model = kind(gamma=1.0).partial_fit(X, Y, classes=[0, 1]).set_params(**{name: value})
    refused(model, lambda: model.partial_fit(X, Y), rf"\b{name}\b", expected)
    refused(model, lambda: model.fit(X, Y), rf"\b{name}\b", expected)


def test_parameters_are_given_by_name(kind: Kind) -> None:
    with pytest.raises(TypeError):
        kind(1.0)


def test_parameters_are_checked_when_learning_only(kind: Kind) -> None:
    """As scikit-learn wants it: __init__ stores what it is given."""
    assert kind(C="nonsense").get_params()["C"] == "nonsense"


TOGETHER = [
    (KernelPerceptron, {"average": True, "budget": 10}, ("average", "budget")),
    (TrackingSVC, {"gradients": "support", "process": False}, ("gradients", "process")),
]


@pytest.mark.parametrize(("kind", "params", "expected"), TOGETHER)
def test_parameters_that_do_not_go_together(
    kind: Kind, params: dict[str, Any], expected: tuple[str, ...], way: str
) -> None:
    model = kind(**params)
    refused(model, lambda: learn(model, way, X, Y), *expected)


@pytest.mark.parametrize("name", ["ramp", "clean_every", "max_idle", "steps", "budget", "margin"])
def test_bools_are_no_numbers(name: str) -> None:
    for kind in KINDS:
        if name in kind().get_params():
            model = kind(**{name: True})
            refused(model, lambda model=model: model.fit(X, Y), rf"\b{name}\b", "True")


# -- features off their centre --------------------------------------------------------------------


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_cannot_be_centred(kind: Kind, way: str, make: Any) -> None:
    model = kind(kernel="linear", center=True)
    refused(model, lambda: learn(model, way, make(X), Y), "center", "sparse")


def test_sparse_rows_after_centred_ones_are_measured_from_the_same_centre(kind: Kind) -> None:
    model = kind(kernel="linear", center=True, C=0.1).partial_fit(X, Y, classes=[0, 1])
    dense = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(sp.csr_array(X)), dense, atol=1e-6)


def test_a_kernel_of_the_users_cannot_be_centred(kind: Kind, way: str) -> None:
    model = kind(kernel=lambda A, B: A @ B.T + 1.0, center=True)
    before = dict(model.__getstate__())
    with pytest.raises(ValueError, match="center"):
        learn(model, way, X, Y)
    assert not differences(before, model.__getstate__())


# -- K(x, x) must be above 0 ----------------------------------------------------------------------


def zeroed(row: int) -> np.ndarray:
    bad = np.array(X)
    bad[row] = 0.0
    return bad


@pytest.mark.parametrize("state", ["fresh", "streaming"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 1.0, "degree": 3},
        {"kernel": "cosine"},
    ],
    ids=lambda params: params["kernel"],
)
def test_a_row_of_zeros(kind: Kind, state: str, form: Any, params: dict[str, Any]) -> None:
    model = kind(**params, C=0.1)
    if state == "streaming":
        model.partial_fit(form(X), Y, classes=[0, 1])
    bad = form(zeroed(7))
    for way in ("fit", "partial_fit"):
        message = refused(
            model, lambda way=way: learn(model, way, bad, Y), r"\brow 7\b", r"K\(x, x\)"
        )
        assert kind.__name__ in message


def test_the_first_row_of_a_stream_may_be_the_bad_one(kind: Kind) -> None:
    model = kind(kernel="linear")
    bad = np.zeros((1, 2))
    refused(model, lambda: model.partial_fit(bad, [1], classes=[0, 1]), r"\brow 0\b", r"K\(x, x\)")


def test_learn_one_looks_at_the_kernel_too(kind: Kind) -> None:
    model = kind(kernel="linear").partial_fit(X, Y, classes=[0, 1])
    refused(model, lambda: model.learn_one([0.0, 0.0], 1), r"\brow 0\b", r"K\(x, x\)")
    refused(model, lambda: model.learn_many(zeroed(7), Y), r"\brow 7\b", r"K\(x, x\)")


def test_a_kernel_that_is_no_inner_product(kind: Kind) -> None:
    # tanh(|x|^2 - 1) < 0 for the short rows
    model = kind(kernel="sigmoid", gamma=1.0, coef0=-1.0)
    row = int(np.argmin((X**2).sum(axis=1)))
    value = np.tanh((X[row] ** 2).sum() - 1)
    refused(model, lambda: model.fit(X, Y), rf"\brow {row}\b", re.escape(f"{value:.3g}"))
    refused(model, lambda: model.partial_fit(X, Y, classes=[0, 1]), rf"\brow {row}\b")


def test_a_callable_that_is_not_positive(kind: Kind) -> None:
    model = kind(kernel=lambda A, B: (A - 0.5) @ (B - 0.5).T - 1e-3)
    bad = np.array(X)
    bad[11] = 0.5
    before = dict(model.__getstate__())
    for way in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"\brow 11\b"):
            learn(model, way, bad, Y)
        assert not differences(before, model.__getstate__())


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_precomputed_matrix_that_is_not_positive(kind: Kind, value: float) -> None:
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    K[5, 5] = value
    model = kind(kernel="precomputed")
    refused(model, lambda: model.fit(K, Y), r"\brow 5\b", r"K\(x, x\)")
    refused(model, lambda: model.partial_fit(K, Y, classes=[0, 1]), r"\brow 5\b")


def test_rows_of_weight_zero_may_be_anything_finite(kind: Kind) -> None:
    """They are left out, so there is no step along them."""
    weights = np.ones(40)
    weights[7] = 0.0
    model = kind(kernel="linear", C=0.1).fit(zeroed(7), Y, sample_weight=weights)
    assert 7 not in model.ids_
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("kernel", ["rbf", "tanimoto"])
def test_rows_of_zeros_are_fine_where_the_kernel_is(kind: Kind, kernel: str) -> None:
    model = kind(kernel=kernel, gamma=1.0).fit(np.abs(zeroed(7)), Y)
    assert np.isfinite(model.decision_function(np.abs(X))).all()


# -- values, shapes and labels --------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(kind: Kind, way: str, value: float) -> None:
    bad = np.array(X)
    bad[7, 1] = value
    model = kind(gamma=1.0)
    refused(model, lambda: learn(model, way, bad, Y), "NaN" if np.isnan(value) else "infinity")


def test_unknown_label(kind: Kind) -> None:
    labels = np.array(Y)
    labels[4] = 7
    model = kind(gamma=1.0).partial_fit(X, Y, classes=[0, 1])
    refused(model, lambda: model.partial_fit(X, labels), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.learn_many(X, labels), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.learn_one(X[0], 7), r"\b7\b", r"\[0, 1\]")
    refused(model, lambda: model.duality_gap(X, labels), r"\b7\b", r"\[0, 1\]")


def test_wrong_number_of_features(kind: Kind) -> None:
    wide = np.hstack([X, X])
    model = kind(gamma=1.0).partial_fit(X, Y, classes=[0, 1])
    refused(model, lambda: model.partial_fit(wide, Y), r"\b2 features", r"\b4\b")
    refused(model, lambda: model.learn_many(wide, Y), r"\b2 features", r"\b4\b")
    refused(model, lambda: model.predict(wide), r"\b2 features", r"\b4\b")


def test_one_class_and_no_classes(kind: Kind) -> None:
    model = kind(gamma=1.0)
    refused(model, lambda: model.fit(X, np.ones(40, dtype=int)), "one class", "two classes")
    refused(model, lambda: model.partial_fit(X, Y), "classes", "first call")


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_weight(kind: Kind, value: float) -> None:
    weights = np.ones(40)
    weights[6] = value
    model = kind(gamma=1.0)
    refused(model, lambda: model.fit(X, Y, sample_weight=weights), "sample_weight", "row 6")


def test_precomputed_not_square(kind: Kind) -> None:
    model = kind(kernel="precomputed")
    refused(model, lambda: model.fit(np.ones((40, 39)), Y), "precomputed", "square", "40", "39")


# -- before anything was learned ------------------------------------------------------------------

CALLS: dict[str, tuple[Any, ...]] = {
    "predict": (X,),
    "decision_function": (X,),
    "score": (X, Y),
    "learn_one": (X[0], 1),
    "learn_many": (X, Y),
    "dual_objective": (),
    "duality_gap": (X, Y),
    "wants": (X,),
    "ramp_objective": (),
    "finish": (),
}
ATTRIBUTES = [
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "ids_",
    "stats_",
    "history_",
    "bound_",
    "normalised_gap_",
]


@pytest.mark.parametrize("call", CALLS)
def test_call_before_anything_was_learned(kind: Kind, call: str) -> None:
    model = kind()
    before = model.__getstate__()
    if not hasattr(kind, call):
        assert call in ("wants", "ramp_objective", "finish")
        return
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(model, call)(*CALLS[call])
    assert not differences(before, model.__getstate__())


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute_before_anything_was_learned(kind: Kind, name: str) -> None:
    if not hasattr(kind, name) or (name == "history_" and "record" not in kind().get_params()):
        assert not hasattr(kind(), name)
        return
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(kind(), name)


def test_history_that_was_not_recorded(kind: Kind) -> None:
    model = kind(gamma=1.0).fit(X, Y)
    assert not hasattr(model, "history_")
    if "record" in model.get_params():
        with pytest.raises(AttributeError, match="record=True"):
            _ = model.history_


def test_only_gap_svc_has_something_to_finish(kind: Kind) -> None:
    """The others are settled after each example, or by their nature never."""
    assert ("finish_at_end" in kind().get_params()) is (kind is GapSVC)
    assert hasattr(kind(), "finish") is (kind is GapSVC)
