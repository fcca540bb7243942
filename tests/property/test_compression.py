"""Laws of compressed models."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.svm import SVC

from marginwise import (
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
    load,
    save,
)
from marginwise._engine.plan import paired
from tests.support import binary_values

CLASSIFIERS = [
    OnlineSVC(C=5.0, gamma=2.0, random_state=0),
    OnlineSVCCV(Cs=[1.0, 5.0], gammas=[1.0, 2.0], cv=2, random_state=0),
    GapSVC(C=5.0, gamma=2.0, random_state=0),
    GapSVC(C=5.0, gamma=2.0, loss="ramp", random_state=0),
    TrackingSVC(C=5.0, gamma=2.0, random_state=0),
    ExactSVC(C=5.0, gamma=2.0),
    ExactRampSVC(C=5.0, gamma=2.0, random_state=0),
    KernelPerceptron(gamma=2.0, average=True, epochs=3, random_state=0),
]


def names(model: Any) -> str:
    return type(model).__name__ + ("-ramp" if getattr(model, "loss", "") == "ramp" else "")


def two_classes(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    return make_moons(n, noise=0.25, random_state=1)


def four_classes(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, centers=4, cluster_std=2.0, random_state=1)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=names)
@pytest.mark.parametrize("data", [two_classes, four_classes])
def test_all_vectors_give_the_model_itself(model: Any, data: Any) -> None:
    X, y = data()
    model.fit(X, y)
    whole = len(model.support_)
    for small in (model.compress(max_vectors=whole), model.compress(X, y, max_vectors=10**9)):
        assert small.n_vectors_ == small.full_n_vectors_ == whole
        assert binary_values(small, X) == pytest.approx(binary_values(model, X), abs=1e-4)
        assert small.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("model", CLASSIFIERS, ids=names)
@pytest.mark.parametrize("size", [1, 7, 30])
def test_there_are_never_more_vectors_than_asked_for(model: Any, size: int) -> None:
    X, y = four_classes()
    model.fit(X, y)
    for small in (model.compress(max_vectors=size), model.compress(X, y, max_vectors=size)):
        assert 1 <= small.n_vectors_ <= size
        assert small.dual_coef_.shape == (len(model.dual_coef_), small.n_vectors_)
        assert small.support_vectors_.shape == (small.n_vectors_, 2)
        assert small.n_support_.sum() == small.n_vectors_


@pytest.mark.slow
@pytest.mark.parametrize("model", CLASSIFIERS, ids=names)
def test_a_tenth_of_the_vectors_predicts_almost_as_well(model: Any) -> None:
    X, y = two_classes(600)
    X_test, y_test = make_moons(1000, noise=0.25, random_state=2)
    model.fit(X, y)
    small = model.compress(X, y, max_vectors=20)
    assert small.score(X_test, y_test) > model.score(X_test, y_test) - 0.01
    assert small.score(X_test, y_test) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 0.5, "coef0": 1.0},
        {"kernel": "sigmoid", "gamma": 0.01},
        {"kernel": "cosine"},
        {"kernel": "tanimoto"},
        {"kernel": "rbf", "gamma": 0.5},
    ],
    ids=lambda kernel: kernel["kernel"],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_kernel_is_compressed(kernel: dict[str, Any], sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 40)) < 0.05, rng.random((300, 40)), 0.0)
    X[:, :4] = rng.random((300, 4))
    y = (X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3]).astype(int)
    rows = sp.csr_array(X) if sparse else X
    model = OnlineSVC(C=10.0, random_state=0, **kernel).fit(rows, y)
    small = model.compress(rows, y, max_vectors=45)
    assert small.n_vectors_ <= 45 < len(model.support_) or kernel["kernel"] != "rbf"
    assert small.score(rows, y) > model.score(rows, y) - 0.05
    again = model.compress(rows, y, max_vectors=45)
    assert (again.decision_function(rows) == small.decision_function(rows)).all()


def test_a_linear_model_needs_as_many_vectors_as_features() -> None:
    X, y = make_blobs(400, centers=2, n_features=3, cluster_std=6.0, random_state=0)
    model = OnlineSVC(kernel="linear", C=1.0, random_state=0).fit(X, y)
    small = model.compress(max_vectors=50)
    assert small.n_vectors_ <= 3
    assert small.coef_ == pytest.approx(model.coef_, rel=1e-3, abs=1e-4)
    assert small.decision_function(X) == pytest.approx(model.decision_function(X), abs=1e-2)


@pytest.mark.slow
def test_decision_values_are_sums_over_the_vectors() -> None:
    X, y = four_classes()
    model = OnlineSVC(C=5.0, gamma=0.3, random_state=0).fit(X, y)
    small = model.compress(X, y, max_vectors=25)
    squares = ((X[:, None, :] - small.support_vectors_) ** 2).sum(axis=2)
    values = np.exp(-0.3 * squares) @ small.dual_coef_.T + small.intercept_
    assert binary_values(small, X) == pytest.approx(values, abs=1e-3)


def test_more_vectors_are_nearer_to_the_model() -> None:
    X, y = two_classes(600)
    model = OnlineSVC(C=10.0, gamma=5.0, random_state=0).fit(X, y)
    f = model.decision_function(X)
    far = [
        np.abs(model.compress(max_vectors=size).decision_function(X) - f).mean()
        for size in (5, 20, 80)
    ]
    assert far[0] > 2 * far[1] > 4 * far[2]


def test_single_and_double_precision_agree() -> None:
    X, y = two_classes(600)
    model = OnlineSVC(C=10.0, gamma=2.0, random_state=0).fit(X, y)
    single = model.compress(X.astype(np.float32), y, max_vectors=30)
    double = model.compress(X, y, max_vectors=30)
    assert single.decision_function(X) == pytest.approx(double.decision_function(X), abs=1e-2)


def test_the_size_that_is_chosen_is_within_the_increase() -> None:
    X, y = two_classes(1500)
    model = OnlineSVC(C=10.0, gamma=2.0, random_state=0).fit(X, y)
    small = model.compress(X, y)
    curve = small.error_curve_
    assert curve["error"][-1] <= curve["full_error"] + 0.001
    assert (curve["error"][:-1] > curve["full_error"] + 0.001).all()
    assert small.n_vectors_ <= curve["chosen"] == curve["n_vectors"][-1] < len(model.support_)


def test_without_rows_the_size_is_chosen_by_the_distance() -> None:
    X, y = two_classes(600)
    model = OnlineSVC(C=1.0, gamma=1.0, random_state=0).fit(X, y)
    small = model.compress()
    assert small.n_vectors_ < len(model.support_)
    assert np.mean(small.predict(X) == model.predict(X)) > 0.97


def test_duplicates_and_unscaled_features_are_no_trouble() -> None:
    X, y = two_classes(200)
    rows, labels = np.vstack([X, X]) * 1e6 + 1e7, np.r_[y, y]
    model = OnlineSVC(C=10.0, gamma="scale", random_state=0).fit(rows, labels)
    small = model.compress(rows, labels, max_vectors=30)
    assert small.score(rows, labels) > model.score(rows, labels) - 0.03


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 30])
def test_features_far_from_zero_have_the_same_centres(size: int) -> None:
    X, y = two_classes(1000)
    X = np.round(X, 4)
    offset = 2.0**30
    near = OnlineSVC(C=10.0, gamma=2.0, random_state=0).fit(X, y)
    far = OnlineSVC(C=10.0, gamma=2.0, random_state=0).fit(X + offset, y)
    vectors = near.compress(X, y, max_vectors=size).support_vectors_
    moved = far.compress(X + offset, y, max_vectors=size).support_vectors_ - offset
    assert np.sort(moved, axis=0) == pytest.approx(np.sort(vectors, axis=0), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_probabilities_are_as_sure_as_the_smaller_model_is_right(
    classes: int, multiclass: str
) -> None:
    X, y = make_classification(
        5000, n_features=30, n_informative=10, n_classes=classes, flip_y=0.05, random_state=0
    )
    model = OnlineSVC(C=10.0, calibration="sigmoid", multiclass=multiclass, random_state=0)
    small = model.fit(X[:3000], y[:3000]).compress(X[:3000], y[:3000], max_vectors=15)
    right = small.score(X[3000:], y[3000:])
    assert right < model.score(X[3000:], y[3000:]) - 0.05
    assert small.predict_proba(X[3000:]).max(axis=1).mean() < right + 0.03


def test_a_class_without_rows_keeps_its_probabilities() -> None:
    X, y = four_classes(600)
    model = OnlineSVC(C=5.0, gamma=0.3, calibration="sigmoid", random_state=0).fit(X, y)
    small = model.compress(X[y < 3], y[y < 3], max_vectors=40)
    kept, full = small._foreseen().kept, model._foreseen().kept
    with_last = list(paired(6)[1] == 3)
    assert kept[with_last].tolist() == full[with_last].tolist()
    assert small.predict_proba(X[y == 3])[:, 3].mean() > 0.5


def test_a_hard_margin_is_compressed() -> None:
    X, y = make_blobs(200, centers=2, random_state=3)
    model = OnlineSVC(C=np.inf, gamma=0.1, random_state=0).fit(X, y)
    assert model.compress(X, y, max_vectors=3).score(X, y) > 0.95


# -- weights ---------------------------------------------------------------------------------------


def mislabelled(classes: int = 2, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which class 0 has many wrong labels, and a mask of the wrong ones."""
    X, y = make_moons(n, noise=0.15, random_state=1)
    if classes > 2:
        X, y = make_blobs(n, centers=classes, cluster_std=1.0, random_state=1)
    wrong = (y == 0) & (np.random.default_rng(0).random(n) < 0.6)
    return X, np.where(wrong, 1, y), wrong


def agreement(small: Any, model: Any, X: np.ndarray) -> float:
    return float(np.mean(small.predict(X) == model.predict(X)))


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.0, 0.01])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [*CLASSIFIERS[:3], CLASSIFIERS[5]], ids=names)
def test_a_weighted_model_is_compressed_to_a_similar_one(
    model: Any, classes: int, weight: float
) -> None:
    X, y, wrong = mislabelled(classes)
    size = 20 * (classes - 1)
    weights = np.where(wrong, weight, 1.0)
    model = clone(model).fit(X, y, sample_weight=weights)
    assert model.score(X[wrong], y[wrong]) < 0.2
    assert agreement(model.compress(X, y, max_vectors=size), model, X) > 0.97
    assert agreement(model.compress(X, y, max_vectors=size, sample_weight=weights), model, X) > 0.94
    ones = model.compress(X, y, max_vectors=size, sample_weight=np.ones(len(y)))
    assert agreement(ones, model, X) < 0.9


def streamed(X: Any, y: Any, weights: Any) -> OnlineSVC:
    model = OnlineSVC(C=5.0, gamma=2.0).partial_fit(X[:50], y[:50], sample_weight=weights[:50])
    for first in range(50, len(y), 50):
        some = slice(first, first + 50)
        model.partial_fit(X[some], y[some], sample_weight=weights[some])
    return model.learn_many(X[:1], y[:1]).finish()


WAYS: dict[str, Any] = {
    "pickled": lambda X, y, w: pickle.loads(pickle.dumps(streamed(X, y, w))),
    "imported": lambda X, y, w: OnlineSVC.from_svc(
        SVC(C=5.0, gamma=2.0).fit(X, y, np.maximum(w, 1e-3)), X, y, np.maximum(w, 1e-3)
    ),
    "replayed": lambda X, y, w: OnlineSVC(C=5.0, gamma=2.0, replay=50).partial_fit(
        X, y, sample_weight=w
    ),
    "with a budget": lambda X, y, w: OnlineSVC(C=5.0, gamma=2.0, budget=100).fit(X, y, w),
    "calibrated": lambda X, y, w: OnlineSVC(C=5.0, gamma=2.0, calibration="sigmoid").fit(X, y, w),
    "class weights": lambda X, y, w: (
        ExactSVC(C=5.0, gamma=2.0, class_weight="balanced").fit(X, y, w).set_C(9.0).forget([0])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.0, 0.01])
@pytest.mark.parametrize("way", WAYS)
def test_weights_of_models_trained_in_any_way_are_known(
    way: str, weight: float, tmp_path: Path
) -> None:
    X, y, wrong = mislabelled()
    model = WAYS[way](X, y, np.where(wrong, weight, 1.0))
    save(model, tmp_path / "model.mwz")
    for one in (model, load(tmp_path / "model.mwz")):
        assert agreement(one.compress(X, y, max_vectors=25), one, X) > 0.97


def test_a_weighted_file_of_an_earlier_version_is_recognised_by_its_costs() -> None:
    X, y, wrong = mislabelled()
    model = OnlineSVC(C=5.0, gamma=2.0).fit(X, y, sample_weight=np.where(wrong, 0.01, 1.0))
    state = model.__getstate__()
    assert state.pop("_weighs")
    old = OnlineSVC()
    old.__setstate__(state)
    assert agreement(old.compress(X, y, max_vectors=20), old, X) > 0.97


UNWEIGHTED: dict[str, Any] = {
    **{names(model): lambda X, y, model=model: clone(model).fit(X, y) for model in CLASSIFIERS},
    "class weights": lambda X, y: OnlineSVC(class_weight="balanced").fit(X, y),
    "a stream": lambda X, y: OnlineSVC(class_weight={0: 2.0}).partial_fit(X, y).partial_fit(X, y),
    "a hard margin": lambda X, y: ExactSVC(C=np.inf, gamma=20.0).fit(X, y),
    "another C": lambda X, y: ExactSVC(gamma=1.0).fit(X, y).set_C(1e4).set_C(0.3),
    "forgotten": lambda X, y: ExactSVC(class_weight="balanced").fit(X, y).forget([0, 1]),
    "a budget": lambda X, y: OnlineSVC(C=1e6, budget=20).fit(X, y),
    "other units": lambda X, y: OnlineSVC(kernel="linear").fit(X * 1e9, y),
    "duplicates": lambda X, y: OnlineSVC().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)),
    "weights of 1": lambda X, y: OnlineSVC().fit(X, y, sample_weight=np.ones(len(y))),
    "weights before": lambda X, y: OnlineSVC().fit(X, y, np.where(y == 1, 1.0, 0.1)).fit(X, y),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", [two_classes, four_classes])
@pytest.mark.parametrize("way", UNWEIGHTED)
def test_models_without_weights_are_fitted_to_labels(way: str, data: Any) -> None:
    X, y = data(120)
    model = UNWEIGHTED[way](X, y)
    given = X * 1e9 if way == "other units" else X
    found = model.compress(given, y, max_vectors=4)
    fitted = model.compress(given, y, max_vectors=4, sample_weight=np.ones(len(y)))
    assert binary_values(found, given).tolist() == binary_values(fitted, given).tolist()
    assert not model.__getstate__().get("_weighs", False)


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_weights_act_like_repeated_rows(multiclass: str) -> None:
    X, y = four_classes(150)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    model = OnlineSVC(C=2.0, gamma=0.1, multiclass=multiclass, random_state=0).fit(X, y)
    weighted = model.compress(X, y, max_vectors=10, sample_weight=times)
    repeated = model.compress(np.repeat(X, times, axis=0), np.repeat(y, times), max_vectors=10)
    assert binary_values(weighted, X) == pytest.approx(binary_values(repeated, X), abs=2e-3)


def test_the_size_is_chosen_by_weighted_errors_or_by_agreement() -> None:
    X, y, wrong = mislabelled(n=600)
    weights = np.where(wrong, 0.01, 1.0)
    model = OnlineSVC(C=5.0, gamma=2.0, random_state=0).fit(X, y, sample_weight=weights)
    weighted = model.compress(X, y, max_error_increase=0.02, sample_weight=weights)
    assert weighted.error_curve_["full_error"] < 0.1
    similar = model.compress(X, y, max_error_increase=0.02)
    assert similar.error_curve_["full_error"] == 0.0
    assert similar.error_curve_["error"][-1] <= 0.02
    assert max(weighted.n_vectors_, similar.n_vectors_) < len(model.support_) / 2


def test_probabilities_have_weights() -> None:
    X, y, wrong = mislabelled()
    weights = np.where(wrong, 0.0, 1.0)
    model = OnlineSVC(C=5.0, gamma=2.0, calibration="sigmoid", random_state=0).fit(X, y, weights)
    for given in ({}, {"sample_weight": weights}):
        small = model.compress(X, y, max_vectors=20, **given)
        assert small.predict_proba(X[wrong])[:, 0].mean() > 0.9
