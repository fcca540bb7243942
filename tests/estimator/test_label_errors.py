"""find_label_errors: which estimators and data it takes, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedKFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

import marginwise
from marginwise import ExactOneClassSVM, GapSVC, OnlineSVC
from marginwise.inspect import LabelErrors, find_label_errors
from marginwise.inspect.decisions import distances
from tests.support import blobs, rings

CLASSIFIERS = [
    name
    for name in marginwise.__all__
    if hasattr(kind := getattr(marginwise, name), "duality_gap") and hasattr(kind, "partial_fit")
]  # those that learn
OTHERS = [
    SVC(gamma=0.5),
    SVC(gamma=0.5, decision_function_shape="ovo"),
    LinearSVC(),
    LogisticRegression(),
    RidgeClassifier(),
    SGDClassifier(),
    make_pipeline(StandardScaler(), OnlineSVC(gamma=0.5)),
    Pipeline([("none", "passthrough"), ("svc", SVC(gamma=0.5))]),
    GridSearchCV(OnlineSVC(gamma=0.5), {"C": [1.0, 10.0]}, cv=2),
]


def noisy(classes: int, seed: int, n: int = 120) -> tuple[Any, Any, Any]:
    """Separate blobs with six flipped labels."""
    X, y = blobs(n, seed, classes=classes)
    X += 2 * np.column_stack([np.cos(angle := 2 * np.pi * y / classes), np.sin(angle)])
    rows = np.random.default_rng(seed).permutation(n)[:6]
    y[rows] = (y[rows] + 1) % classes
    return X, y, set(rows.tolist())


def assert_same(one: LabelErrors, other: LabelErrors) -> None:
    for name in ("order", "is_suspect", "suggested", "probability", "margin", "decision"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


# -- estimators ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [*[getattr(marginwise, name)() for name in CLASSIFIERS], *OTHERS],
    ids=lambda estimator: str(estimator)[:40],
)
def test_any_classifier_finds_flipped_labels(estimator: Any, classes: int, seed: int) -> None:
    X, y, flipped = noisy(classes, seed)
    before = str(clone(estimator).get_params())
    found = find_label_errors(estimator, X, y, random_state=seed)
    assert len(flipped & set(found.order[:8].tolist())) >= 5
    assert found.decision.shape == ((120,) if classes == 2 else (120, 3))
    assert sorted(found.order.tolist()) == list(range(120))
    assert str(estimator.get_params()) == before
    assert not [name for name in vars(estimator) if name.endswith("_")], "it was fitted"


def test_a_fitted_estimator_is_not_changed(seed: int) -> None:
    X, y, _ = noisy(2, seed)
    model = OnlineSVC(random_state=seed).fit(X[:50], y[:50])
    before = model.decision_function(X)
    find_label_errors(model, X, y, random_state=seed)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_votes_become_distances(seed: int) -> None:
    """Votes of SVC and of OnlineSVC differ by whole numbers; distances of the two agree."""
    X, y = load_iris(return_X_y=True)
    ours = OnlineSVC(C=1, gamma=0.5, tol=1e-5, multiclass="ovo", random_state=seed).fit(X, y)
    for shape in ("ovr", "ovo"):
        svc = SVC(C=1, gamma=0.5, tol=1e-6, decision_function_shape=shape).fit(X, y)
        np.testing.assert_allclose(distances(svc, X), distances(ours, X), atol=1e-2)
        assert svc.decision_function_shape == shape
    piped = make_pipeline(StandardScaler(), SVC(C=1)).fit(X, y)
    inner = SVC(C=1).fit(piped[0].transform(X), y)
    np.testing.assert_array_equal(distances(piped, X), distances(inner, piped[0].transform(X)))


# -- data ------------------------------------------------------------------------------------------


def test_forms_of_data_do_not_matter(seed: int) -> None:
    X, y, _ = noisy(3, seed)
    model = OnlineSVC(gamma=0.5)
    names = np.array(["one", "three", "two"])
    dense = find_label_errors(model, X, y, random_state=seed)
    for rows in (X.tolist(), pd.DataFrame(X, columns=["a", "b"])):
        assert_same(find_label_errors(model, rows, y, random_state=seed), dense)
    for sparse in (sp.csr_matrix(X), sp.coo_array(X)):
        found = find_label_errors(model, sparse, y, random_state=seed)
        np.testing.assert_allclose(found.decision, dense.decision, atol=2e-3)  # of tol
        np.testing.assert_array_equal(found.suspects, dense.suspects)
    labels = pd.Series(names[y], index=np.arange(1000, 1120))
    text = find_label_errors(model, X, labels, random_state=seed)
    assert text.suggested.tolist() == names[dense.suggested].tolist()
    np.testing.assert_array_equal(text.order, dense.order)


def test_precomputed_kernels(seed: int) -> None:
    X, y, _ = noisy(2, seed)
    one = find_label_errors(OnlineSVC(kernel="linear", tol=1e-6), X, y, random_state=seed)
    other = find_label_errors(
        OnlineSVC(kernel="precomputed", tol=1e-6), X @ X.T, y, random_state=seed
    )
    np.testing.assert_allclose(one.decision, other.decision, atol=1e-3)


def test_threads_and_seeds(seed: int) -> None:
    X, y = rings(150, seed, noise=0.3)
    model = OnlineSVC(C=3)
    one = find_label_errors(model, X, y, random_state=seed)
    assert_same(find_label_errors(model, X, y, n_jobs=2, random_state=seed), one)
    state = np.random.RandomState(seed)
    assert_same(find_label_errors(model, X, y, random_state=state), one)
    other = find_label_errors(model, X, y, random_state=seed + 1)
    assert (other.decision != one.decision).any()


def test_the_seed_is_for_estimators_without_one(seed: int) -> None:
    X, y = rings(150, seed, noise=0.3)
    kept = SGDClassifier(random_state=5)
    folds = list(KFold(5).split(X))
    one, other = (find_label_errors(kept, X, y, cv=folds, random_state=s) for s in (0, 1))
    assert_same(one, other)
    piped = make_pipeline(StandardScaler(), SGDClassifier())
    again = [find_label_errors(piped, X, y, cv=folds, random_state=s) for s in (0, 0, 1)]
    assert_same(again[0], again[1])
    assert (again[0].decision != again[2].decision).any()


def test_folds_may_be_given(seed: int) -> None:
    X, y, _ = noisy(2, seed)
    model, folds = OnlineSVC(gamma=0.5, random_state=0), list(KFold(4).split(X))
    one = find_label_errors(model, X, y, cv=KFold(4))
    assert_same(find_label_errors(model, X, y, cv=folds), one)
    assert_same(find_label_errors(model, X, y, cv=iter(folds)), one)
    masks = [(~np.isin(np.arange(120), test), np.isin(np.arange(120), test)) for _, test in folds]
    assert_same(find_label_errors(model, X, y, cv=masks), one)
    grouped = find_label_errors(model, X, y, cv=GroupKFold(4), groups=np.repeat(np.arange(8), 15))
    assert (grouped.decision != one.decision).any()


def test_weights(seed: int) -> None:
    """Rows of weight zero are not learned from, but ranked."""
    X, y, flipped = noisy(2, seed)
    weights = np.ones(120)
    weights[list(flipped)] = 0
    model = OnlineSVC(gamma=0.5, random_state=0)
    folds = list(KFold(4).split(X))
    found = find_label_errors(model, X, y, cv=folds, sample_weight=weights, rounds=1)
    kept = np.flatnonzero(weights)
    for train, test in folds:
        alone = clone(model).fit(X[np.intersect1d(train, kept)], y[np.intersect1d(train, kept)])
        np.testing.assert_allclose(
            found.decision[test], alone.decision_function(X[test]), atol=1e-4
        )
    piped = make_pipeline(StandardScaler(with_mean=False, with_std=False), model)
    other = find_label_errors(piped, X, y, cv=folds, sample_weight=weights, rounds=1)
    np.testing.assert_allclose(other.decision, found.decision)
    search = GridSearchCV(model, {"C": [1.0]}, cv=2)
    searched = find_label_errors(search, X, y, cv=folds, sample_weight=weights, rounds=1)
    np.testing.assert_allclose(searched.decision, found.decision)
    both = GridSearchCV(piped, {"onlinesvc__C": [1.0]}, cv=2)
    searched = find_label_errors(both, X, y, cv=folds, sample_weight=weights, rounds=1)
    np.testing.assert_allclose(searched.decision, found.decision)


def test_weights_of_an_ensemble_whose_estimator_is_not_set(seed: int) -> None:
    X, y, flipped = noisy(2, seed)
    model = AdaBoostClassifier(n_estimators=5)
    weights = np.where(np.isin(np.arange(120), list(flipped)), 1e-6, 1.0)
    found = find_label_errors(model, X, y, sample_weight=weights, random_state=seed)
    other = find_label_errors(model, X, y, random_state=seed)
    assert (found.decision != other.decision).any()


def test_a_class_whose_rows_all_look_wrong_is_still_learned(seed: int) -> None:
    X, y, _ = noisy(2, seed)
    y = y.copy()
    y[:3] = 7  # three rows of another class in the midst of the others
    found = find_label_errors(OnlineSVC(gamma=0.5), X, y, cv=3, rounds=3, random_state=seed)
    assert found.decision.shape == (120, 3)
    assert found.is_suspect[:3].all()


def test_two_rounds_are_better_with_a_large_c(seed: int) -> None:
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600], (truth[:600] % 2).astype(int)
    flipped = np.random.default_rng(seed).permutation(600)[:60]
    y = truth.copy()
    y[flipped] = 1 - y[flipped]
    hits = [
        np.isin(
            find_label_errors(OnlineSVC(C=100), X, y, rounds=rounds, random_state=seed).order[:60],
            flipped,
        ).sum()
        for rounds in (1, 2)
    ]
    assert hits[0] < hits[1] >= 48


# -- what is refused -------------------------------------------------------------------------------

X0, Y0 = np.arange(20.0)[:, None], np.arange(20) % 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cv": 1}, "cv must be an integer from 2 to the number of rows, 20"),
        ({"cv": 21}, "cv must be an integer from 2"),
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2)}, "holds out row 0 2 times"),
        ({"cv": ShuffleSplit(2, test_size=0.3, random_state=0)}, r"holds out row \d+ never"),
        ({"cv": [(range(10, 20), range(10))]}, "holds out row 10 never; every row must be held"),
        ({"cv": [(range(20), range(20))]}, "holds out row 0 in fold 0, whose training rows"),
        (
            {"cv": [(range(10), range(10, 21))]},
            "names row 20 in fold 0, but X has the rows 0 to 19",
        ),
        ({"cv": [([0.5], [1])]}, "gives training rows of type float64"),
        ({"cv": [([0], [])]}, "gives held-out rows of type float64"),
        ({"y": Y0[:19]}, "y has 19 labels, but X has 20 rows"),
        ({"cv": [1, 2]}, "cv could not split the rows: .*pairs"),
        ({"cv": [([0], [1], [2])]}, "cv could not split the rows: .*pairs"),
        ({"cv": GroupKFold(2)}, "cv could not split the rows: .*groups"),
        ({"y": np.zeros(20)}, "y has only one class, 0.0"),
        ({"X": X0[:0], "y": Y0[:0]}, "y has no label"),
        ({"y": np.full(20, np.nan)}, "contains NaN"),
        ({"y": np.linspace(0, 1, 20)}, "Unknown label type"),
        (
            {"y": np.array([5] + [0] * 10 + [1] * 9), "cv": KFold(2)},
            "fold 0 lack the class 5, which has 1 row ",
        ),
        ({"y": np.array(["x", *"ab" * 9, "a"]), "cv": KFold(2)}, "fold 0 lack the class 'x'"),
        ({"sample_weight": Y0}, "lack the class 0, which has 10 rows"),
        ({"sample_weight": [1.0]}, r"sample_weight has shape \(1,\)"),
        ({"sample_weight": -np.ones(20)}, "sample_weight is -1.0 at row 0"),
        ({"rounds": 0}, "rounds must be an integer of at least 1, got 0"),
        ({"threshold": 0.0}, "threshold must be a number above 0, got 0.0"),
        ({"rank_by": "votes"}, "rank_by must be one of 'probability', 'margin', got 'votes'"),
    ],
)
def test_bad_input_is_named_before_any_fit(changed: Any, said: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(OnlineSVC, "_fit", lambda *_, **__: pytest.fail("it was fitted"))
    given = {"X": X0, "y": Y0, **changed}
    with pytest.raises(ValueError, match=said):
        find_label_errors(OnlineSVC(), given.pop("X"), given.pop("y"), **given)


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (KNeighborsClassifier(), "KNeighborsClassifier has no decision_function"),
        (ExactOneClassSVM(), "ExactOneClassSVM is not a classifier"),
        (SVR(), "SVR has no decision_function"),
        (OnlineSVC, "estimator is the class OnlineSVC; expected an instance"),
    ],
)
def test_other_estimators_are_refused(estimator: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        find_label_errors(estimator, X0, Y0)


def test_weights_need_support() -> None:
    class Weightless(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            return super().fit(X, y)

    with pytest.raises(ValueError, match="fit of Weightless does not support it"):
        find_label_errors(Weightless(), X0, Y0, sample_weight=np.ones(20))
    several = OneVsRestClassifier(OnlineSVC())
    with pytest.raises(ValueError, match="fit of OneVsRestClassifier does not support it"):
        find_label_errors(several, X0, Y0, sample_weight=np.ones(20))


def test_decision_values_must_be_usable() -> None:
    class Broken(GapSVC):
        def _distances(self, X: Any) -> Any:
            return self.broken(len(X))

    Broken.broken = lambda self, n: np.full(n, np.nan)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="decision_function of Broken is not finite for the row"):
        find_label_errors(Broken(), X0, Y0)
    Broken.broken = lambda self, n: np.zeros((n, 3))  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"returned an array of shape \(4, 3\) for 2 classes"):
        find_label_errors(Broken(), X0, Y0)
