"""A search is a loop over `OnlineSVC`: the same scores, out-of-fold values and choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)

from marginwise import OnlineSVC, OnlineSVCCV
from marginwise._engine.plan import WITH_GAMMA
from marginwise._tuning import search as search_module
from tests.support import blobs, rings

CS = [0.5, 4.0, 100.0]
GAMMAS = [0.2, 1.0, 20.0]


def looped(model: OnlineSVCCV, X: Any, y: Any) -> GridSearchCV:
    """The plain loop, with exact solutions."""
    given = {k: v for k, v in model.get_params().items() if k not in search_module.OF_SEARCH}
    plain = OnlineSVC(**{**given, "epochs": "converge"})
    grid = {"C": list(model.Cs)}
    if model.kernel in WITH_GAMMA:
        grid["gamma"] = list(model.gammas)
    return GridSearchCV(plain, grid, cv=model.cv, scoring=model.scoring).fit(X, y)


def assert_same_scores(model: OnlineSVCCV, loop: GridSearchCV, rows_per_fold: float) -> None:
    ours, theirs = model.cv_results_, loop.cv_results_
    assert ours["params"] == theirs["params"]
    names = [f"split{fold}_test_score" for fold in range(loop.n_splits_)]
    scores = np.array([ours[name] - theirs[name] for name in names])
    # Rows nearer to the boundary than the tolerance may change sides.
    assert np.abs(scores).max() <= max(2.5 / rows_per_fold, 0.006)
    assert np.sqrt(np.mean(scores**2)) <= max(1.5 / rows_per_fold, 0.0025)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 5000])  # one working set, or several
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_two_classes(n: int, form: Any, seed: int) -> None:
    X, y = rings(n, seed, noise=0.4)
    gammas = GAMMAS if n < 1000 else GAMMAS[:2]
    model = OnlineSVCCV(Cs=CS, gammas=gammas, cv=3).fit(form(X), y)
    assert_same_scores(model, looped(model, X, y), n / 3)
    assert model.cv_results_["mean_test_score"][model.best_index_] == model.best_score_
    best = OnlineSVC(C=model.C_, gamma=model.gamma_, epochs="converge")
    oof = cross_val_predict(best, X, y, cv=3, method="decision_function")
    assert np.abs(model.decision_oof_ - oof).max() < 0.1


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes(multiclass: str, seed: int) -> None:
    X, y = blobs(400, seed, classes=4)
    model = OnlineSVCCV(Cs=CS, gammas=GAMMAS, cv=3, multiclass=multiclass).fit(X, y)
    assert_same_scores(model, looped(model, X, y), 400 / 3)
    best = OnlineSVC(C=model.C_, gamma=model.gamma_, multiclass=multiclass, epochs="converge")
    oof = cross_val_predict(best, X, y, cv=3, method="decision_function")
    same = model.decision_oof_.argmax(axis=1) == oof.argmax(axis=1)
    assert np.mean(same) > 0.99


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "cosine"])
def test_kernels(kernel: str) -> None:
    X, y = load_iris(return_X_y=True)
    gammas = [0.05, 0.2] if kernel in ("poly", "sigmoid") else [1.0]
    settings: dict[str, Any] = {"kernel": kernel, "coef0": 1.0 if kernel == "poly" else 0.0}
    model = OnlineSVCCV(Cs=[0.1, 1.0], gammas=gammas, cv=3, **settings).fit(X, y)
    assert_same_scores(model, looped(model, X, y), 50)


def test_weights_of_rows_and_classes(seed: int) -> None:
    X, y = rings(400, seed, noise=0.5)
    kept = y == 1
    kept[:150] = True  # rare zeros
    X, y = X[kept], y[kept]
    weights = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    settings: dict[str, Any] = {"class_weight": "balanced"}
    model = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=4, **settings).fit(X, y, weights)
    some = np.flatnonzero(weights)
    plain = OnlineSVC(gamma=1.0, epochs="converge", **settings)
    for k, C in enumerate(CS):
        scores = []
        for train, test in StratifiedKFold(4).split(X[some], y[some]):
            rows = some[train]
            plain.set_params(C=C).fit(X[rows], y[rows], weights[rows])
            rows = some[test]
            scores.append(plain.score(X[rows], y[rows], weights[rows]))
        assert model.cv_results_["mean_test_score"][k] == pytest.approx(np.mean(scores), abs=0.01)
    assert np.isnan(model.decision_oof_).tolist() == (weights == 0).tolist()


def weighted_function(held_out: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(held_out.predict(X) == y, weights=sample_weight))


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        (None, accuracy_score),
        (weighted_function, accuracy_score),
        ("f1", f1_score),
        ("roc_auc", roc_auc_score),
    ],
)
def test_scores_count_rows_by_their_weights(scoring: Any, metric: Any, seed: int) -> None:
    X, y = rings(200, seed, noise=0.6)
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, len(y))
    model = OnlineSVCCV(Cs=[0.5], gammas=[1.0], cv=3, scoring=scoring).fit(X, y, weights)
    f = model.decision_oof_
    f = f if scoring == "roc_auc" else f > 0
    scores = [
        metric(y[test], f[test], sample_weight=weights[test])
        for _, test in StratifiedKFold(3).split(X, y)
    ]
    assert model.best_score_ == pytest.approx(np.mean(scores), abs=1e-12)


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", "f1"])
def test_scores(scoring: str, seed: int) -> None:
    X, y = rings(300, seed, noise=0.5)
    model = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=3, scoring=scoring).fit(X, y)
    theirs = looped(model, X, y).cv_results_["mean_test_score"]
    assert model.cv_results_["mean_test_score"] == pytest.approx(theirs, abs=0.02)


def test_splits_that_overlap_or_leave_rows_out(seed: int) -> None:
    X, y = rings(300, seed, noise=0.5)
    cv = ShuffleSplit(4, test_size=0.2, random_state=seed)
    model = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=cv).fit(X, y)
    assert_same_scores(model, looped(model, X, y), 60)
    held_out = np.unique(np.concatenate([test for _, test in cv.split(X)]))
    assert np.flatnonzero(~np.isnan(model.decision_oof_)).tolist() == held_out.tolist()


def test_models_that_are_fitted_one_by_one_reach_the_same(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    X, y = rings(300, seed, noise=0.5)
    shared = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=3).fit(X, y)
    monkeypatch.setattr(search_module, "MOST_SHARED", 10)
    alone = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=3).fit(X, y)
    ours, theirs = shared.cv_results_, alone.cv_results_
    assert ours["mean_test_score"] == pytest.approx(theirs["mean_test_score"], abs=0.01)


def test_a_precomputed_kernel(seed: int) -> None:
    X, y = rings(200, seed, noise=0.3)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    given = OnlineSVCCV(Cs=CS, kernel="precomputed", cv=3).fit(K, y)
    usual = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=3).fit(X, y)
    ours, theirs = given.cv_results_, usual.cv_results_
    assert ours["mean_test_score"] == pytest.approx(theirs["mean_test_score"], abs=0.015)


@pytest.mark.parametrize("predefined", [False, True])
def test_splits_count_rows_of_weight_zero(predefined: bool, seed: int) -> None:
    X, y = rings(300, seed, noise=0.5)
    part = np.random.default_rng(seed).permutation(300) % 3
    weights = (np.arange(300) % 4 != 1).astype(float)
    kept = np.flatnonzero(weights)
    cv: Any = PredefinedSplit(part)
    cv = cv if predefined else list(cv.split())
    given = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=cv).fit(X, y, weights)
    usual = OnlineSVCCV(Cs=CS, gammas=[1.0], cv=PredefinedSplit(part[kept])).fit(X[kept], y[kept])
    assert given.best_score_ == usual.best_score_
    assert np.array_equal(given.decision_oof_[kept], usual.decision_oof_)
    assert np.isnan(given.decision_oof_[weights == 0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("search", ["grid", "halving"])
def test_rows_of_weight_zero_are_no_part_of_a_precomputed_kernel(search: str, seed: int) -> None:
    X, y = rings(900, seed, noise=0.3)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    weights = np.ones(len(y))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    settings: dict[str, Any] = {"Cs": CS, "cv": 3, "search": search, "random_state": 0}
    given = OnlineSVCCV(kernel="precomputed", **settings).fit(K, y, weights)
    usual = OnlineSVCCV(kernel="precomputed", **settings).fit(K[np.ix_(kept, kept)], y[kept])
    assert given.best_score_ == usual.best_score_
    assert np.array_equal(given.decision_oof_[kept], usual.decision_oof_)


def test_a_small_cache_changes_nothing(seed: int) -> None:
    X, y = rings(5000, seed, noise=0.5)
    X = X.astype(np.float32)
    results = [
        OnlineSVCCV(Cs=[1.0, 10.0], gammas=[1.0], cv=2, cache_size=size).fit(X, y).best_score_
        for size in (0.001, 1000)
    ]
    assert results[0] == pytest.approx(results[1], abs=0.002)


def test_penalties_far_apart(seed: int) -> None:
    """The smallest ones leave no rounding errors in the models of the others."""
    X, y = rings(300, seed, noise=0.4)
    model = OnlineSVCCV(Cs=[1e-18, 1e-9, 1.0], gammas=[0.5], cv=3).fit(X, y)
    alone = OnlineSVCCV(Cs=[1.0], gammas=[0.5], cv=3).fit(X, y)
    assert model.C_ == 1.0
    assert model.best_score_ == pytest.approx(alone.best_score_, abs=0.01)
    np.testing.assert_allclose(model.decision_oof_, alone.decision_oof_, atol=0.1)
