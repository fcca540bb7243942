"""`predict_proba` as others see it: when it is there, what it raises, and who uses it."""

from __future__ import annotations

import inspect
import traceback
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from marginwise import (
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
)
from marginwise.active import ActiveLearner
from tests.support import blobs, rings

KINDS = [OnlineSVC, GapSVC, TrackingSVC, ExactSVC, ExactRampSVC, KernelPerceptron, OnlineSVCCV]
METHODS = ["predict_proba", "predict_log_proba"]
X, Y = blobs(150, 0, 2)
X3, Y3 = blobs(150, 1, 3)


def made(kind: Any, **params: Any) -> Any:
    search = {"Cs": [1.0], "gammas": [0.5], "cv": 2} if kind is OnlineSVCCV else {"gamma": 0.5}
    return kind(**search, **params)


def calibrated(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"gamma": 0.5, "calibration": "sigmoid", "random_state": 0, **params})


# -- when there are probabilities --------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_there_are_none_by_default(kind: Any, method: str) -> None:
    model = made(kind)
    assert not hasattr(model, method)
    assert not hasattr(model.fit(X, Y), method)
    with pytest.raises(AttributeError) as raised:
        getattr(model, method)
    assert str(raised.value) == (
        f"this {kind.__name__} has no attribute '{method}', because it does not estimate "
        "probabilities. Set calibration='sigmoid' or 'isotonic' and fit it again."
    )
    assert "does not estimate" in traceback.format_exception(raised.value)[-1]
    assert raised.value.__suppress_context__


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_compressed_model_refers_to_the_original(method: str) -> None:
    small = made(OnlineSVC).fit(X, Y).compress(max_vectors=5)
    assert not hasattr(small, method)
    with pytest.raises(AttributeError, match=r"this CompressedSVC .* in the original classifier"):
        getattr(small, method)


@pytest.mark.parametrize("method", METHODS)
def test_the_methods_look_like_methods(method: str) -> None:
    model = calibrated().fit(X, Y)
    assert getattr(OnlineSVC, method).__name__ == getattr(model, method).__name__ == method
    assert list(inspect.signature(getattr(OnlineSVC, method)).parameters) == ["self", "X"]
    assert inspect.getdoc(getattr(OnlineSVC, method)) == inspect.getdoc(getattr(model, method))
    assert np.array_equal(getattr(OnlineSVC, method)(model, X), getattr(model, method)(X))
    with pytest.raises(AttributeError, match=f"has no attribute '{method}'"):
        getattr(OnlineSVC, method)(made(OnlineSVC).fit(X, Y), X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_there_are_some_once_it_is_fitted(kind: Any, method: str) -> None:
    model = made(kind, calibration="sigmoid")
    assert hasattr(model, method)
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
        getattr(model, method)(X)
    assert getattr(model.fit(X, Y), method)(X).shape == (150, 2)


@pytest.mark.parametrize(
    "value", ["platt", "Sigmoid", True, False, 1, 0.5, ["sigmoid"], b"sigmoid"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_other_values_are_refused(kind: Any, value: Any) -> None:
    model = made(kind, calibration=value)
    expected = f"{kind.__name__}: calibration must be None or one of 'sigmoid', 'isotonic', got"
    with pytest.raises(ValueError, match=expected):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_clones(kind: Any) -> None:
    model = made(kind, calibration="isotonic").fit(X, Y)
    again = clone(model)
    assert again.get_params()["calibration"] == "isotonic"
    assert "calibration='isotonic'" in repr(model)
    assert not hasattr(again, "classes_")
    assert hasattr(again, "predict_proba")


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_that_is_set_after_fit(kind: Any) -> None:
    """Nothing was noted for it; an exact model needs no notes."""
    model = made(kind).fit(X, Y).set_params(calibration="sigmoid")
    if kind is ExactSVC:
        fitted = made(kind, calibration="sigmoid").fit(X, Y)
        assert np.array_equal(model.predict_proba(X), fitted.predict_proba(X))
        return
    for method in METHODS:
        with pytest.raises(NotFittedError, match="was fitted without calibration"):
            getattr(model, method)(X)
    model.partial_fit(X, Y)
    with pytest.raises(NotFittedError, match="was fitted without calibration"):
        model.predict_proba(X)
    assert model.fit(X, Y).predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_that_is_changed_after_fit(kind: Any) -> None:
    model = made(kind, calibration="sigmoid").fit(X, Y)
    one = model.predict_proba(X)
    other = model.set_params(calibration="isotonic").predict_proba(X)
    assert not np.array_equal(one, other)
    assert not hasattr(model.set_params(calibration=None), "predict_proba")
    assert np.array_equal(model.set_params(calibration="sigmoid").predict_proba(X), one)


def test_rows_that_are_wrong() -> None:
    model = calibrated().fit(X, Y)
    with pytest.raises(ValueError, match="3 features, but OnlineSVC is expecting 2"):
        model.predict_proba(np.ones((4, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict_proba([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.predict_proba(np.ones((0, 2)))


def test_columns_are_in_the_order_of_classes() -> None:
    names = np.array(["pear", "apple", "fig"])[Y3]
    model = calibrated().fit(X3, names)
    p = model.predict_proba(X3)
    assert model.classes_.tolist() == ["apple", "fig", "pear"]
    assert (model.classes_[p.argmax(axis=1)] == names).mean() > 0.8
    single = model.predict_proba(X3[:1])
    np.testing.assert_allclose(single, p[:1], atol=1e-12)


def test_probabilities_follow_what_is_learned() -> None:
    """They are fitted again after each change, whichever way it was made."""
    model = calibrated().partial_fit(X[:60], Y[:60], classes=[0, 1])
    before = model.predict_proba(X[:5])
    for change in (
        lambda: model.learn_one(X[60], Y[60]),
        lambda: model.learn_many(X[61:70], Y[61:70]),
        lambda: model.partial_fit(X[70:90], Y[70:90]),
        lambda: model.finish(),
        lambda: model.fit(X3, Y3 % 2),
    ):
        change()
        after = model.predict_proba(X[:5])
        assert not np.array_equal(after, before)
        assert np.array_equal(model.predict_proba(X[:5]), after)
        before = after
    exact = ExactSVC(gamma=0.5, calibration="sigmoid").fit(X, Y)
    before = exact.predict_proba(X[:5])
    for change in (lambda: exact.forget(range(40)), lambda: exact.set_C(0.05)):
        change()
        after = exact.predict_proba(X[:5])
        assert not np.array_equal(after, before)
        before = after


# -- scikit-learn ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_scores_by_log_loss(kind: Any) -> None:
    scores = cross_val_score(
        made(kind, calibration="sigmoid"), X3, Y3, scoring="neg_log_loss", cv=3
    )
    assert np.isfinite(scores).all()
    if kind is not KernelPerceptron:  # which differs too much from one fold to the next
        assert scores.mean() > -0.6  # guesses have -1.1


def test_inside_other_estimators() -> None:
    line = make_pipeline(StandardScaler(), calibrated())
    assert line.fit(X3, Y3).predict_proba(X3).shape == (150, 3)
    vote = VotingClassifier([("svc", calibrated()), ("line", LogisticRegression())], voting="soft")
    assert vote.fit(X3, Y3).score(X3, Y3) > 0.8
    stack = StackingClassifier([("svc", calibrated())], stack_method="predict_proba", cv=3)
    assert stack.fit(X3, Y3).score(X3, Y3) > 0.8
    rest = OneVsRestClassifier(calibrated()).fit(X3, Y3)
    np.testing.assert_allclose(rest.predict_proba(X3).sum(axis=1), 1)
    chain = ClassifierChain(calibrated()).fit(X3, np.column_stack([Y3 == 0, Y3 == 1]).astype(int))
    assert chain.predict_proba(X3).shape == (150, 2)
    p = cross_val_predict(calibrated(), X3, Y3, method="predict_proba", cv=3)
    assert log_loss(Y3, p) < 0.6


def test_grid_search_by_log_loss() -> None:
    grid = {"C": [0.01, 1.0], "calibration": ["sigmoid", "isotonic"]}
    search = GridSearchCV(calibrated(), grid, scoring="neg_log_loss", cv=3).fit(X3, Y3)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X3).shape == (150, 3)


def test_self_training() -> None:
    some = np.where(np.arange(150) < 60, Y, -1)
    model = SelfTrainingClassifier(calibrated(), threshold=0.9).fit(X, some)
    assert (model.labeled_iter_ > 0).any(), "no row was certain"
    assert model.score(X, Y) > 0.9


def test_calibration_display() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    display = CalibrationDisplay.from_estimator(calibrated().fit(X, Y), X, Y, n_bins=4)
    assert len(display.prob_true) > 1


def test_active_learning_of_the_package() -> None:
    learner = ActiveLearner(calibrated(), X, random_state=0)
    learner.teach([0, 1], Y[:2])
    for _ in range(10):
        row = learner.ask()
        learner.teach(row, Y[row])
    assert learner.estimator_.predict_proba(X).shape == (150, 2)


# -- the search --------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_a_search_by_probabilities(scoring: str) -> None:
    params = {"Cs": [1.0], "gammas": [0.5, 5000.0], "cv": 3, "scoring": scoring}
    with pytest.raises(ValueError, match=f"scoring='{scoring}' needs probabilities, but calibrat"):
        OnlineSVCCV(**params).fit(X, Y)
    model = OnlineSVCCV(**params, calibration="sigmoid").fit(X, Y)
    assert model.gamma_ == 0.5
    assert -0.4 < model.best_score_ < 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize(
    "cv", [3, ShuffleSplit(4, test_size=0.2, random_state=0), "halving"], ids=str
)
def test_a_search_over_several_classes(cv: Any, multiclass: str, kind: str) -> None:
    search = {"cv": 3, "search": "halving"} if cv == "halving" else {"cv": cv}
    model = OnlineSVCCV(
        Cs=3, gammas=2, **search, scoring="neg_log_loss", multiclass=multiclass, calibration=kind
    )
    weights = np.where(np.arange(150) % 9, 1.0, 0.0)
    model.set_params(random_state=0).fit(X3, Y3, sample_weight=weights)
    assert log_loss(Y3, model.predict_proba(X3)) < 0.5
    assert np.isfinite(model.best_score_)


def test_a_search_where_a_class_is_rare() -> None:
    """Some folds have no row of it to learn, and some none to score."""
    y = np.where(np.arange(150) < 4, 2, Y)
    model = OnlineSVCCV(Cs=[1.0], gammas=[0.5], cv=4, scoring="neg_log_loss", calibration="sigmoid")
    assert np.isfinite(model.fit(X, y).best_score_)


# -- scikit-activeml ---------------------------------------------------------------------------


POOL = {
    "least_confident": ("UncertaintySampling", "least_confident"),
    "margin": ("UncertaintySampling", "margin_sampling"),
    "entropy": ("UncertaintySampling", "entropy"),
    "expected_error": ("MonteCarloEER", "misclassification_loss"),
    "committee": ("QueryByCommittee", "KL_divergence"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POOL)
def test_pool_strategies_of_scikit_activeml(name: str) -> None:
    pool = pytest.importorskip("skactiveml.pool")
    from skactiveml.classifier import SklearnClassifier

    def classifier(C: float) -> Any:
        return SklearnClassifier(calibrated(C=C), classes=[0, 1], random_state=0)

    kind, method = POOL[name]
    strategy = getattr(pool, kind)(method=method, random_state=0)
    given: dict[str, Any] = {"clf": classifier(1.0)}
    if name == "committee":
        given = {"ensemble": [classifier(C) for C in (0.1, 1.0, 10.0)]}
    rows, labels = rings(30, 2)
    told = np.where(np.arange(30) < 6, labels, np.nan)
    for _ in range(3):
        asked = strategy.query(X=rows, y=told, **given)
        assert np.isnan(told[asked]).all()
        told[asked] = labels[asked]
    assert classifier(1.0).fit(rows, told).predict_proba(rows).shape == (30, 2)


@pytest.mark.parametrize(
    "name",
    ["FixedUncertainty", "VariableUncertainty", "RandomVariableUncertainty", "Split"],
)
def test_stream_strategies_of_scikit_activeml(name: str) -> None:
    stream = pytest.importorskip("skactiveml.stream")
    from skactiveml.classifier import SklearnClassifier

    rows, labels = rings(120, 3)
    classifier = SklearnClassifier(calibrated(), classes=[0, 1], random_state=0)
    classifier.fit(rows[:10], labels[:10])
    known = {"classes": [0, 1]} if name == "FixedUncertainty" else {}
    strategy = getattr(stream, name)(random_state=0, **known)
    asked = 0
    for k in range(10, 120):
        queried, utilities = strategy.query(
            candidates=rows[k : k + 1], clf=classifier, return_utilities=True
        )
        assert np.isfinite(utilities).all()
        strategy.update(rows[k : k + 1], queried)
        if len(queried):
            asked += 1
            classifier.partial_fit(rows[k : k + 1], labels[k : k + 1])
    assert 0 < asked < 110


# -- river and cleanlab ------------------------------------------------------------------------


def test_inside_river() -> None:
    pytest.importorskip("river")
    from river.compat import SKL2RiverClassifier

    model = SKL2RiverClassifier(
        OnlineSVC(gamma=0.5, calibration="sigmoid"), classes=["a", "b", "c"]
    )
    names = np.array(["a", "b", "c"])[Y3]
    right = 0
    for k, (row, name) in enumerate(zip(X3, names, strict=True)):
        features = {"x": row[0], "y": row[1]}
        if k > 30:
            p = model.predict_proba_one(features)
            assert sum(p.values()) == pytest.approx(1)
            right += max(p, key=lambda label: p[label]) == name
        model.learn_one(features, name)
    assert right > 80


def test_river_asks_for_labels() -> None:
    river = pytest.importorskip("river")
    from river import active
    from river.compat import SKL2RiverClassifier

    model = active.EntropySampler(
        SKL2RiverClassifier(OnlineSVC(gamma=0.5, calibration="sigmoid"), classes=[0, 1]), seed=0
    )
    asked = 0
    for k in range(150):
        features = {"x": X[k, 0], "y": X[k, 1]}
        if k < 10:
            model.learn_one(features, int(Y[k]))
            continue
        p, ask = model.predict_proba_one(features)
        assert sum(p.values()) == pytest.approx(1)
        if ask:
            asked += 1
            model.learn_one(features, int(Y[k]))
    assert 0 < asked < 140, river.__version__


def test_label_errors_of_cleanlab() -> None:
    pytest.importorskip("cleanlab")
    from cleanlab.classification import CleanLearning
    from cleanlab.rank import get_label_quality_scores

    turned = np.arange(5, 150, 15)
    given = Y.copy()
    given[turned] = 1 - given[turned]
    p = cross_val_predict(calibrated(), X, given, method="predict_proba", cv=5)
    worst = np.argsort(get_label_quality_scores(given, p))[: len(turned)]
    assert np.isin(worst, turned).mean() >= 0.7
    issues = CleanLearning(calibrated(), cv_n_folds=3, seed=0).find_label_issues(X, given)
    found = np.flatnonzero(issues["is_label_issue"])
    assert np.isin(turned, found).mean() >= 0.7
    assert CleanLearning(calibrated(), cv_n_folds=3, seed=0).fit(X, given).score(X, Y) > 0.9
