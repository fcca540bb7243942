"""Models that continue from scikit-learn's SVC, compared with it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from marginwise import OnlineSVC, load, save
from marginwise._estimator.pairs import votes
from tests.support import binary_values, blobs, rings

PARAMETERS: list[dict[str, Any]] = [
    {"C": 10.0, "gamma": 1.0},
    {"C": 0.01, "gamma": 1.0},  # no coefficient is free
    {"kernel": "linear", "C": 2.0},
    {"kernel": "poly", "coef0": 1.0, "gamma": 0.5, "degree": 2},
    {"kernel": "sigmoid", "gamma": 0.1, "coef0": -0.2},
    {"class_weight": "balanced", "gamma": "scale"},
    {"class_weight": {0: 3.0, 1: 0.5}, "gamma": "auto"},
]
each = pytest.mark.parametrize("parameters", PARAMETERS, ids=str)


def differences(model: OnlineSVC, svc: SVC, X: Any) -> float:
    """The largest difference of decision values of pairs, relative to the largest of them."""
    pairs = copy.copy(svc).set_params(decision_function_shape="ovo")
    expected = pairs.decision_function(X)
    found = binary_values(model, X)
    expected = expected[:, None] if expected.ndim == 1 else -expected
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@each
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_decision_values_are_those_of_the_svc(parameters: dict[str, Any], offset: float) -> None:
    if offset and parameters.get("kernel") in ("poly", "sigmoid"):
        pytest.skip("kernels of x.y have no meaning so far from the origin")
    X, y = blobs(300, seed=1, classes=2)
    X = X + offset
    svc = SVC(**parameters).fit(X[:200], y[:200])
    model = OnlineSVC.from_svc(svc, X[:200], y[:200])
    assert differences(model, svc, X) < 1e-6
    np.testing.assert_allclose(model.intercept_, svc.intercept_, rtol=1e-6)
    np.testing.assert_allclose(model.dual_coef_, svc.dual_coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.support_, svc.support_)
    np.testing.assert_array_equal(model.n_support_, svc.n_support_)
    assert (model.predict(X) == svc.predict(X)).all()
    model._engine.native.check(1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_several_classes_are_separated_in_pairs(sparse: bool) -> None:
    X, y = blobs(300, seed=2, classes=4, d=40 if sparse else 2)
    if sparse:
        X = sp.csr_array(np.where(np.abs(X) > 2.3, X, 0.0))
    names = np.array(["d", "a", "c", "b"])[y]
    svc = SVC(C=3.0, gamma=0.3).fit(X[:200], names[:200])
    model = OnlineSVC.from_svc(svc, X[:200], names[:200])
    assert model._engine.plan.sparse == sparse
    assert differences(model, svc, X) < 1e-6
    decided = votes(binary_values(model, X)).max(axis=1) > 2.5  # ties are broken by other rules
    assert decided.mean() > 0.5
    assert (model.predict(X) == svc.predict(X))[decided].all()
    model._engine.native.check(1e-4)


def test_rows_may_be_sparse_in_one_place_and_dense_in_the_other() -> None:
    X, y = blobs(100, seed=2, d=5)
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense, sparse = SVC(gamma=0.5).fit(X, y), SVC(gamma=0.5).fit(sp.csr_matrix(X), y)
    for svc, rows in ((dense, sp.csr_array(X)), (sparse, X), (sparse, sp.csr_matrix(X))):
        assert differences(OnlineSVC.from_svc(svc, rows, y), dense, X) < 1e-6


@pytest.mark.parametrize("classes", [2, 3])
def test_training_continues_to_the_solution_of_all_rows(classes: int) -> None:
    X, y = blobs(400, seed=3, classes=classes)
    svc = SVC(C=2.0, gamma=0.5).fit(X[:200], y[:200])
    model = OnlineSVC.from_svc(svc, X[:200], y[:200])
    model.partial_fit(X[200:], y[200:])
    model._engine.native.check(1e-4)
    # Rows that were not support vectors may be by now; those that are stored are known by id.
    model.partial_fit(X, y, ids=np.arange(400)).finish()
    model._engine.native.check(1e-4)
    whole = OnlineSVC.from_svc(SVC(C=2.0, gamma=0.5, tol=1e-5).fit(X, y), X, y)
    np.testing.assert_allclose(model.dual_objective(), whole.dual_objective(), rtol=1e-3)


def test_sample_weights_are_bounds() -> None:
    X, y = rings(200, seed=4, noise=0.1)
    weights = np.random.default_rng(4).uniform(0.2, 5.0, size=200)
    svc = SVC(C=1.0, gamma=1.0).fit(X, y, sample_weight=weights)
    model = OnlineSVC.from_svc(svc, X, y, sample_weight=weights)
    assert differences(model, svc, X) < 1e-6
    model._engine.native.check(1e-4)
    with pytest.raises(ValueError, match="Pass the sample_weight"):
        OnlineSVC.from_svc(svc, X, y)


def test_coefficients_at_their_bounds_are_there() -> None:
    X, y = rings(200, seed=5, noise=0.2)
    svc = SVC(C=0.7, gamma=1.0, class_weight={0: 0.3, 1: 1.7}).fit(X, y)
    model = OnlineSVC.from_svc(svc, X, y)
    state = model._engine.state()
    bounds = np.array([0.3, 1.7])[state["labels"]] * 0.7
    at_bound = np.abs(svc.dual_coef_[0]) > bounds * (1 - 1e-12)
    assert at_bound.sum() > 10
    np.testing.assert_array_equal(np.abs(state["alpha"][0]) == state["costs"], at_bound)


def test_given_bias_lasts_until_a_problem_is_moved() -> None:
    # Without free coefficients the interval of the bias is wide, and its middle another point.
    X, y = rings(200, seed=6, noise=0.3)
    svc = SVC(C=0.001, gamma=1.0, class_weight="balanced").fit(X[:100], y[:100])
    model = OnlineSVC.from_svc(svc, X[:100], y[:100])
    own = model._engine.native.bias()
    assert abs(own[0] - svc.intercept_[0]) > 1e-4
    assert model.intercept_[0] == svc.intercept_[0]
    model.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.intercept_, model._engine.native.bias())


def test_given_bias_is_saved_pickled_and_copied(tmp_path: Path) -> None:
    X, y = blobs(200, seed=7)
    svc = SVC(C=0.5, gamma=0.5).fit(X, y)
    model = OnlineSVC.from_svc(svc, X, y)
    save(model, tmp_path / "model.mwz")
    for twin in (load(tmp_path / "model.mwz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(binary_values(twin, X), binary_values(model, X))
        more = X[:50] + 0.1
        twin.partial_fit(more, y[:50])
        again = copy.deepcopy(model).partial_fit(more, y[:50])
        np.testing.assert_array_equal(binary_values(twin, X), binary_values(again, X))


def test_given_bias_of_a_file_is_checked() -> None:
    X, y = blobs(100, seed=7)
    state = OnlineSVC.from_svc(SVC(gamma=0.5).fit(X, y), X, y)._stored_state()
    good = state["_given_bias"]
    OnlineSVC._check_state(state)
    for bad in (good.tolist(), good[:1], good.astype(np.float32), good * np.nan, good[0]):
        with pytest.raises(ValueError, match="_given_bias must be two rows"):
            OnlineSVC._check_state({**state, "_given_bias": bad})
    with pytest.raises(ValueError, match="_given_bias must have a column per problem"):
        OnlineSVC().__setstate__({**state, "_given_bias": good[:, :2]})


def test_compressed_model_has_the_given_bias() -> None:
    X, y = rings(200, seed=8, noise=0.2)
    svc = SVC(C=0.01, gamma=1.0, class_weight={0: 1.0, 1: 2.0}).fit(X, y)
    small = OnlineSVC.from_svc(svc, X, y).compress(max_vectors=len(svc.support_))
    np.testing.assert_allclose(small.decision_function(X), svc.decision_function(X), atol=1e-6)


def test_new_classes_are_paired() -> None:
    X, y = blobs(150, seed=9)
    two = y < 2
    svc = SVC(C=2.0, gamma=0.5).fit(X[two], y[two])
    model = OnlineSVC.from_svc(svc, X[two], y[two])
    model.partial_fit(X[~two], y[~two], classes=[0, 1, 2]).finish()
    assert binary_values(model, X).shape == (150, 3)
    assert model.score(X, y) > 0.8
    model._engine.native.check(1e-4)


class Lookalike:
    """What another implementation of SVC may have: no private attributes, another order."""

    def __init__(self, svc: SVC) -> None:
        for name, value in vars(svc).items():
            if not name.startswith("_") and name != "shape_fit_":
                setattr(self, name, value)
        order = np.argsort(svc.support_)
        self.dual_coef_, self.intercept_ = svc.dual_coef_[:, order], svc.intercept_
        self.support_, self.n_support_ = svc.support_[order], svc.n_support_
        self.support_vectors_ = svc.support_vectors_[order].astype(np.float32)


@pytest.mark.parametrize("classes", [2, 3])
def test_other_implementations_are_accepted(classes: int) -> None:
    X, y = blobs(200, seed=10, classes=classes)
    svc = SVC(gamma="scale").fit(X, y)
    model: Any = OnlineSVC.from_svc(Lookalike(svc), X, y)
    assert model.gamma_ == pytest.approx(svc._gamma, rel=1e-12)
    assert differences(model, svc, X) < 1e-6
