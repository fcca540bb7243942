"""Fitted attributes that go by scikit-learn's names, and messages about what is not there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
)
from marginwise._engine.plan import FEW
from tests.support import binary_values, blobs

BIASED = [OnlineSVC, ExactSVC]
BIAS_FREE = [GapSVC, TrackingSVC, ExactRampSVC, KernelPerceptron]
CLASSIFIERS = [*BIASED, *BIAS_FREE]


def linear(kind: type, **more: Any) -> Any:
    centred = {} if kind in BIASED else {"center": True}
    return kind(kernel="linear", **centred, **more)


def assert_linear(model: Any, X: Any) -> None:
    problems = model.dual_coef_.shape[0]
    assert model.coef_.shape == (problems, X.shape[1])
    by_hand = X @ model.coef_.T + model.intercept_
    values = binary_values(model, X)
    assert values.shape == by_hand.shape
    assert np.allclose(by_hand, values, rtol=1e-4, atol=1e-4 * np.abs(values).max())


# -- coef_ and intercept_ -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_coef_and_intercept_make_the_decision(
    kind: type, classes: int, offset: float, seed: int
) -> None:
    X, y = blobs(120, seed, classes=classes)
    model = linear(kind).fit(X + offset, y)
    assert_linear(model, X + offset)


@pytest.mark.parametrize(("multiclass", "problems"), [("ovr", 5), ("ovo", 10)])
def test_coef_and_intercept_have_an_entry_per_problem(
    multiclass: str, problems: int, seed: int
) -> None:
    X, y = blobs(120, seed, classes=5)
    model = linear(OnlineSVC, multiclass=multiclass).fit(X, y)
    assert_linear(model, X)
    assert model.coef_.shape == (problems, X.shape[1])
    assert model.intercept_.shape == model.dual_objective().shape == (problems,)
    assert model.dual_coef_.shape == (problems, len(model.support_))


@pytest.mark.parametrize("columns", [0, 200], ids=["dense members", "sparse members"])
def test_coef_of_sparse_rows(columns: int, seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    rows = sp.csr_array(np.hstack([X, np.zeros((len(X), columns))]))
    assert_linear(OnlineSVC(kernel="linear").fit(rows, y), rows)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_coef_of_features_in_other_units(kind: type, factor: float, seed: int) -> None:
    """The core then computes in units of the kernel; coefficients are in the caller's."""
    X, y = blobs(120, seed, classes=2)
    rows = factor * (X + 500.0)
    assert_linear(linear(kind, C=factor**-2).fit(rows, y), rows)


def test_coef_is_that_of_svc(seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    for offset in (0.0, 1000.0):
        ours = ExactSVC(kernel="linear").fit(X + offset, y)
        theirs = SVC(kernel="linear", tol=1e-8).fit(X, y)  # where it converges well
        assert np.allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
        moved = theirs.intercept_ - theirs.coef_.sum() * offset
        assert np.allclose(ours.intercept_, moved, rtol=1e-4, atol=1e-4)


def test_coef_cannot_be_changed(seed: int) -> None:
    X, y = blobs(60, seed, classes=2)
    model = OnlineSVC(kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0


@pytest.mark.parametrize(
    "kernel", ["rbf", "poly", lambda A, B: A @ B.T], ids=["rbf", "poly", "function"]
)
def test_coef_is_of_the_linear_kernel_only(kernel: Any, seed: int) -> None:
    X, y = blobs(60, seed, classes=2)
    model = OnlineSVC(kernel=kernel, gamma=0.5).fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="only kernel='linear'"):
        model.coef_  # noqa: B018


def test_a_sphere_has_no_coef(seed: int) -> None:
    X, _ = blobs(60, seed, classes=2)
    assert not hasattr(ExactOneClassSVM(kernel="linear").fit(X), "coef_")


# -- gamma_, n_iter_, predict_proba ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [*CLASSIFIERS, ExactOneClassSVM])
def test_gamma_and_steps(kind: type, seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    model = kind().fit(X, y)
    assert model.gamma_ == pytest.approx(1 / (X.shape[1] * X.var()))
    assert kind(gamma=0.25).fit(X, y).gamma_ == 0.25
    assert isinstance(model.n_iter_, int)
    stats = model.stats_
    assert model.n_iter_ == stats["process"] + stats["reprocess"] > 0
    more = model.partial_fit(X, y, ids=range(500, 620)) if kind is not ExactOneClassSVM else model
    assert more.n_iter_ == more.stats_["process"] + more.stats_["reprocess"]


def test_a_kernel_without_gamma(seed: int) -> None:
    X, y = blobs(60, seed, classes=2)
    model = OnlineSVC(kernel="cosine").fit(X, y)
    with pytest.raises(AttributeError, match="kernel='cosine' does not use gamma"):
        model.gamma_  # noqa: B018


@pytest.mark.parametrize("name", ["coef_", "gamma_", "n_iter_", "predict_proba"])
def test_nothing_before_fit(name: str) -> None:
    assert not hasattr(OnlineSVC(kernel="linear"), name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_way_to_probabilities(kind: type, seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    model = kind(gamma=0.5).fit(X, y)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=name) as error:
            getattr(model, name)
        assert "Set calibration='sigmoid' or 'isotonic'" in str(error.value)
    chances = CalibratedClassifierCV(kind(gamma=0.5)).fit(X, y).predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)


# -- messages -------------------------------------------------------------------------------------


def refusals() -> dict[str, Any]:
    X, y = blobs(60, 0, classes=2)
    names = np.array(["cat", "dog"])[y]
    model = OnlineSVC(gamma=0.5).fit(X, names)
    mixed = names.astype(object)
    mixed[:] = [np.str_(name) for name in names]
    return {
        "one class": lambda: OnlineSVC().fit(X, np.full(60, "cat")),
        "unknown label": lambda: model.partial_fit(X[:1], np.array(["cow"])),
        "unknown label of one": lambda: model.learn_one(X[0], np.str_("cow")),
        "other classes": lambda: model.partial_fit(X, names, classes=np.array(["cat", "cow"])),
        "classes as objects": lambda: OnlineSVC(gamma=0.5).fit(X, mixed).learn_one(X[0], "cow"),
        "a parameter": lambda: OnlineSVC(kernel=np.str_("dog")).fit(X, names),
        "a number": lambda: OnlineSVC(C=np.float64(-1.0)).fit(X, names),
    }


@pytest.mark.parametrize("case", refusals())
def test_labels_in_messages_are_plain(case: str) -> None:
    with pytest.raises(ValueError, match=r"'(cat|cow|dog)'|-1\.0") as caught:
        refusals()[case]()
    assert "np." not in str(caught.value)


@pytest.mark.parametrize("source", ["rows.parquet", Path("rows.parquet"), 7, None], ids=repr)
def test_a_path_is_not_a_source(source: Any) -> None:
    with pytest.raises(TypeError, match=r"source must be .*source\.read\(ids\)") as caught:
        OnlineSVC().learn_from(source, classes=[0, 1])
    assert ("the path 'rows.parquet'" in str(caught.value)) == (source not in (7, None))


@pytest.mark.parametrize("kind", [OnlineSVC, ExactOneClassSVM])
def test_a_sparse_precomputed_kernel_is_refused(kind: type) -> None:
    with pytest.raises(TypeError, match=r"Sparse precomputed kernels.*dense"):
        kind(kernel="precomputed").fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])


# -- gamma="scale" of a stream --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*CLASSIFIERS, ExactOneClassSVM])
def test_gamma_from_a_small_first_batch_warns_once(kind: type, seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    model = kind()
    classes = {} if kind is ExactOneClassSVM else {"classes": [0, 1]}
    with pytest.warns(UserWarning, match="first batch only, which has 1 row: .*gamma as a number"):
        model.partial_fit(X[:1], y[:1], **classes)
    for k in range(1, 5):
        model.partial_fit(X[k : k + 1], y[k : k + 1])


def test_no_warning_where_gamma_is_sound(seed: int) -> None:
    X, y = blobs(120, seed, classes=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineSVC().partial_fit(X[:FEW], y[:FEW], classes=[0, 1])
        OnlineSVC(gamma=0.5).partial_fit(X[:1], y[:1], classes=[0, 1])
        OnlineSVC(gamma="auto").partial_fit(X[:1], y[:1], classes=[0, 1])
        OnlineSVC(kernel="linear").partial_fit(X[:1], y[:1], classes=[0, 1])
        OnlineSVC().fit(X[:20], y[:20])
    assert [str(warning.message) for warning in caught] == []
