"""ExactOneClassSVM as an estimator: learning, forgetting, judging, copies and files."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginwise import ExactOneClassSVM, load, save
from tests.support import assert_same_model, sparse_rows

X = np.random.default_rng(0).normal(size=(60, 2))
X.flags.writeable = False
BOUNDS: list[dict[str, Any]] = [{"nu": 0.05}, {"nu": 0.5}, {"nu": 1.0}, {"C": 0.05}, {"C": 3.0}]


def fitted(**params: Any) -> ExactOneClassSVM:
    return ExactOneClassSVM(**{"gamma": 0.5, **params}).fit(X)


def test_it_is_an_outlier_detector() -> None:
    assert is_outlier_detector(ExactOneClassSVM())
    said = ExactOneClassSVM(gamma=0.5, nu=0.3).fit_predict(X)
    assert set(said.tolist()) == {-1, 1}
    assert np.array_equal(said, fitted(nu=0.3).predict(X))


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_values_agree_with_each_other(bounds: dict[str, Any]) -> None:
    model = fitted(**bounds)
    f = model.decision_function(X)
    np.testing.assert_allclose(model.score_samples(X) - model.offset_, f, atol=1e-12)
    assert np.array_equal(model.predict(X), np.where(f >= 0, 1, -1))
    assert model.n_support_.tolist() == [len(model.support_)]
    assert model.support_vectors_.shape == (len(model.support_), 2)
    assert (model.dual_coef_ > 0).all()
    singly = [model.decision_function(X[[k]])[0] for k in range(60)]
    assert f.tolist() == singly, "a row's value depends on the rows it is given with"


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.3, 0.7])
def test_nu_bounds_outliers_and_support_vectors(nu: float) -> None:
    model = fitted(nu=nu)
    assert np.mean(model.decision_function(X) < -1e-9) <= nu + 1e-12
    assert len(model.support_) >= nu * 60 - 1e-9


def test_c_takes_the_place_of_nu() -> None:
    one, other = fitted(C=0.1, nu=0.9), fitted(C=0.1, nu=0.2)
    assert_same_model(one, other, "nu beside C")
    assert one.dual_coef_.sum() == pytest.approx(1.0, rel=1e-12)


def test_labels_are_ignored() -> None:
    assert_same_model(ExactOneClassSVM(gamma=0.5).fit(X, np.arange(60)), fitted(), "y")
    streamed = ExactOneClassSVM(gamma=0.5).partial_fit(X, y=None)
    np.testing.assert_allclose(
        streamed.decision_function(X), fitted().decision_function(X), atol=1e-12
    )


def test_a_duplicate_is_no_outlier() -> None:
    model = ExactOneClassSVM(nu=0.5, gamma=1.0).fit(np.ones((10, 3)))
    assert model.predict(np.ones((1, 3))).tolist() == [1]
    assert model.predict(np.zeros((1, 3))).tolist() == [-1]
    assert model.dual_coef_.sum() == pytest.approx(5.0)
    model.forget(range(9))
    assert model.predict(np.zeros((1, 3))).tolist() == [-1]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_forgetting_all_and_learning_again(bounds: dict[str, Any]) -> None:
    model = fitted(**bounds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in np.random.default_rng(0).permutation(60):
            model.forget([row])
            model._engine.native.check(1e-9)
    assert not caught, [str(one.message) for one in caught]
    assert model.ids_.size == model.support_.size == 0
    assert model.dual_objective() == pytest.approx(0.0, abs=1e-12)
    for ask in (model.predict, model.decision_function, model.score_samples):
        with pytest.raises(NotFittedError, match="is empty, because all rows were forgotten"):
            ask(X)
    model.partial_fit(X, ids=range(60))
    np.testing.assert_allclose(
        model.decision_function(X), fitted(**bounds).decision_function(X), atol=1e-9
    )


def test_the_running_count_names_rows() -> None:
    model = ExactOneClassSVM(gamma=0.5).partial_fit(X[:5]).partial_fit(X[5:8])
    assert model.ids_.tolist() == list(range(8))
    model.forget([7]).partial_fit(X[7:9])
    assert model.ids_.tolist() == [*range(7), 8, 9]


@pytest.mark.parametrize("kernel", ["linear", "poly", "cosine", "tanimoto", "rbf"])
def test_kernels(kernel: str) -> None:
    rows = np.abs(X)
    model = ExactOneClassSVM(kernel=kernel, gamma=0.5, coef0=1.0, degree=2, nu=0.2).fit(rows)
    model._engine.native.check(1e-9)
    assert np.mean(model.decision_function(rows) < -1e-9) <= 0.2
    model.forget(range(30))
    fresh = ExactOneClassSVM(kernel=kernel, gamma=0.5, coef0=1.0, degree=2, nu=0.2).fit(rows[30:])
    np.testing.assert_allclose(
        model.decision_function(rows), fresh.decision_function(rows), atol=1e-9
    )


def test_a_linear_sphere_may_lie_anywhere() -> None:
    here = ExactOneClassSVM(kernel="linear", nu=0.2).fit(X)
    there = ExactOneClassSVM(kernel="linear", nu=0.2).fit(X + 100.0)
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(X + 100.0), atol=1e-7
    )


def test_sparse_rows_are_dense_rows() -> None:
    lists = sparse_rows(60, 300, 0.02, np.random.default_rng(0))
    for kernel in ("linear", "rbf"):
        ours = ExactOneClassSVM(kernel=kernel, gamma=0.5, nu=0.3).fit(lists)
        dense = ExactOneClassSVM(kernel=kernel, gamma=0.5, nu=0.3).fit(lists.toarray())
        assert np.array_equal(ours.decision_function(lists), dense.decision_function(lists))
        assert np.array_equal(ours.score_samples(lists.toarray()), dense.score_samples(lists))


def test_a_kernel_of_the_users() -> None:
    def rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2)))

    ours = ExactOneClassSVM(kernel=rbf, nu=0.3).fit(X)
    np.testing.assert_allclose(
        ours.decision_function(X), fitted(nu=0.3).decision_function(X), atol=1e-12
    )


def test_precomputed_rows() -> None:
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    model = ExactOneClassSVM(kernel="precomputed", nu=0.3)
    for k in range(60):
        model.partial_fit(K[[k]])
    np.testing.assert_allclose(
        model.decision_function(K), fitted(nu=0.3).decision_function(X), atol=1e-12
    )
    again = pickle.loads(pickle.dumps(model)).forget([0, 1])
    assert len(again.ids_) == 58
    twice = ExactOneClassSVM(kernel="precomputed", nu=0.3).fit(2 * K)
    np.testing.assert_allclose(
        twice.decision_function(2 * K), 2 * model.decision_function(K), atol=1e-9
    )
    twice.fit(K)  # other lengths than before are fine in a new fit
    np.testing.assert_allclose(twice.decision_function(K), model.decision_function(K), atol=1e-9)


def test_rows_of_weight_zero_are_left_out() -> None:
    weights = np.ones(60)
    weights[[0, 7, 59]] = 0.0
    model = ExactOneClassSVM(gamma=0.5).fit(X, sample_weight=weights)
    kept = np.flatnonzero(weights)
    assert model.ids_.tolist() == kept.tolist()
    np.testing.assert_allclose(
        model.decision_function(X),
        ExactOneClassSVM(gamma=0.5).fit(X[kept]).decision_function(X),
        atol=1e-12,
    )


def test_names_of_features() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["height", "width"])
    model = ExactOneClassSVM(gamma=0.5).fit(frame)
    assert model.feature_names_in_.tolist() == ["height", "width"]
    with pytest.raises(ValueError, match="feature names"):
        model.decision_function(frame[["width", "height"]])


def test_the_window_is_never_exceeded() -> None:
    for evict in ("oldest", "lightest"):
        model = ExactOneClassSVM(gamma=0.5, window=10, evict=evict)
        for k in range(60):
            model.partial_fit(X[[k]])
            assert len(model.ids_) == min(10, k + 1)
            assert k in model.ids_
            assert model.dual_coef_.sum() == pytest.approx(0.1 * len(model.ids_), rel=1e-12)


def test_an_indefinite_kernel_is_warned_of_and_ends() -> None:
    model = ExactOneClassSVM(kernel="sigmoid", gamma=1.0, coef0=-1.0, nu=0.3)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model.fit(X)
    assert np.isfinite(model.decision_function(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.forget(range(30))
    assert model.dual_coef_.sum() == pytest.approx(0.3 * 30, rel=1e-9)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model.fit(X)


@pytest.mark.parametrize("way", ["pickle", "file", "deepcopy"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_copies_go_on_alike(bounds: dict[str, Any], way: str, tmp_path: Path) -> None:
    model = fitted(**bounds, window=40, record=True)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    elif way == "deepcopy":
        again = copy.deepcopy(model)
    else:
        save(model, tmp_path / "m.mwz")
        again = load(tmp_path / "m.mwz")
    for one in (model, again):
        one.partial_fit(X[:10]).forget(np.sort(one.ids_)[:5])
    assert_same_model(model, again, way)
    assert np.array_equal(model.path_, again.path_)
    assert again.offset_ == model.offset_


def test_clones_know_nothing() -> None:
    copied = clone(fitted(C=0.2, window=9))
    assert copied.C == 0.2
    assert not hasattr(copied, "n_features_in_")


def test_a_second_fit_forgets_the_first() -> None:
    model = fitted(record=True)
    path = model.path_
    model.fit(X[:20]).fit(X)
    assert_same_model(model, fitted(record=True), "fitted again")
    assert np.array_equal(model.path_, path)
