"""Active learning beside the plain definition, and beside the packages that others use.

A failure of the first part means that a strategy does not choose what it says, or that a stated
confidence does not hold; of the second, that an estimator does not fit into other people's loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score

from marginwise import OnlineSVC
from marginwise.active import ActiveLearner, MarginExhausted, closeness, pool_size_for
from tests.active_support import Given, begun, pool, values_of

# -- strategies by brute force --------------------------------------------------------------------


def nearest(f: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """|f|, or half of what the best class is ahead."""
    ordered = np.sort(f, axis=-1)
    return np.abs(f) if f.ndim == 1 else (ordered[:, -1] - ordered[:, -2]) / 2


def surest(f: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return -f if f.ndim == 1 else -f.max(axis=1)


def contradicted(f: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """By how much the noted class is ahead of the best other one."""
    if f.ndim == 1:
        return np.where(labels == 1, f, -f)
    rows = range(len(f))
    return np.array([(f[k, labels[k]] - np.delete(f[k], labels[k]).max()) / 2 for k in rows])


BRUTE = {
    "near_boundary": nearest,
    "active": nearest,
    "autoactive": nearest,
    "largest_positive": surest,
    "gradient": contradicted,
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", BRUTE)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("own", ["ovr", "ovo", None])
def test_searching_the_whole_pool(strategy: str, classes: int, own: str | None, seed: int) -> None:
    X, y = pool(120, seed, classes)
    noted = np.random.default_rng(seed).permutation(y)
    learner = ActiveLearner(
        OnlineSVC(C=10, multiclass=own) if own else SGDClassifier(random_state=0),
        X,
        strategy=strategy,
        pool_size=None,
        stop=None,  # no question is drawn at random
        y_pool=noted,
        random_state=seed,
    ).teach(np.arange(classes), y[:classes])
    for _ in range(40):
        row = learner.ask()
        values = BRUTE[strategy](values_of(learner.estimator_, X), noted)
        values[[step["row"] for step in learner.history_]] = np.inf
        assert values[row] <= values.min() + 1e-9, f"row {values.argmin()} is better than {row}"
        learner.teach(row, y[row])


def test_active_in_the_whole_pool_is_near_boundary(seed: int) -> None:
    X, y = pool(120, seed)
    rows = [
        [step["row"] for step in begun(X, y, 60, random_state=seed, **options).history_]
        for options in ({"strategy": "near_boundary"}, {"strategy": "active", "pool_size": None})
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("strategy", ["active", "autoactive", "gradient"])
def test_the_best_of_a_sample(strategy: str, seed: int) -> None:
    """Of the rows looked at the nearest is asked; outside the margin "active" asks for any."""
    X, y = pool(400, seed)
    learner = begun(X, y, 4, strategy=strategy, pool_size=20, random_state=seed)
    for _ in range(60):
        values = closeness(learner.candidate_values())
        inside = values < 1 + learner._model.delta / 2
        if strategy == "autoactive":
            assert len(values) == 100 or (inside.sum() == 5 and inside[-1])
        else:
            assert len(values) == 20
        row = learner.ask()
        if inside.any() or strategy == "gradient":
            assert closeness(learner.decision_values([row]))[0] == pytest.approx(values.min())
        learner.teach(row, y[row])


# -- stated confidences ---------------------------------------------------------------------------

TRIALS = 300
ODDS = 1e-6  # of failing although all is well


def test_the_best_of_59_is_among_the_best_twentieth() -> None:
    """In 95 of 100 cases: the others are no more than chance allows."""
    f = np.random.default_rng(0).normal(size=(4000, 1))
    limit = np.quantile(np.abs(f), 0.05)
    size = pool_size_for(0.05, 0.95)
    asked = [
        ActiveLearner(Given(), f / 9, pool_size=size, random_state=k).ask() for k in range(TRIALS)
    ]
    missed = int((np.abs(f[asked, 0]) > limit).sum())
    assert missed <= binom.ppf(1 - ODDS, TRIALS, 0.05)
    assert missed >= binom.ppf(ODDS, TRIALS, 0.0485), "more rows are looked at than were asked for"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "active"])
@pytest.mark.parametrize(("share", "wrong"), [(0.02, 0.1), (0.05, 0.01)])
def test_margin_exhausted_is_as_sure_as_it_says(strategy: str, share: float, wrong: float) -> None:
    """Where just the share `top` of the rows lies within, it stops with 1 - confidence at most."""
    f = np.full((4000, 1), 2.0)
    f[np.random.default_rng(1).permutation(4000)[: round(share * 4000)]] = 0.5
    rule = MarginExhausted(top=share, confidence=1 - wrong, exact_below=1000)
    stops = 0
    for k in range(TRIALS):
        learner = ActiveLearner(
            Given(), f, strategy=strategy, pool_size=10, stop=rule, random_state=k
        )
        stops += bool(learner.should_stop())
    assert stops <= binom.ppf(1 - ODDS, TRIALS, wrong), f"{stops} of {TRIALS} times it was wrong"


def test_margin_exhausted_stops_when_it_may() -> None:
    """A twentieth of the share that may go unnoticed goes unnoticed in six of seven cases."""
    f = np.full((40_000, 1), -2.0)
    f[np.random.default_rng(1).permutation(40_000)[:20]] = 0.5
    rule = MarginExhausted(top=0.01, confidence=0.95, exact_below=1000)
    stops = sum(
        bool(ActiveLearner(Given(), f, strategy="random", stop=rule, random_state=k).should_stop())
        for k in range(100)
    )
    # (1 - 0.0005)^299 = 0.861
    assert binom.ppf(ODDS, 100, 0.861) <= stops <= binom.ppf(1 - ODDS, 100, 0.861)
    exact = MarginExhausted(top=0.01, confidence=0.95, exact_below=40_000)
    assert not ActiveLearner(Given(), f, strategy="random", stop=exact).should_stop()


# -- imbalanced-learn -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(300, 5, weights=[0.9], class_sep=1.5, random_state=0)
    return X, np.where(y == 1, "rare", "common")


def balanced(sampler: Any, rare: Any) -> float:
    from imblearn.pipeline import make_pipeline

    model = make_pipeline(sampler, OnlineSVC(C=10, random_state=0))
    return float(cross_val_score(model, *rare, cv=3, scoring="balanced_accuracy").mean())


def test_pipelines_of_imbalanced_learn(rare: Any) -> None:
    pytest.importorskip("imblearn")
    from imblearn.over_sampling import SMOTE
    from imblearn.under_sampling import RandomUnderSampler

    assert balanced(SMOTE(random_state=0), rare) > 0.8
    assert balanced(RandomUnderSampler(random_state=0), rare) > 0.8


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_svmsmote_finds_its_borderline_by_our_support_vectors(rare: Any, form: Any) -> None:
    pytest.importorskip("imblearn")
    from imblearn.over_sampling import SVMSMOTE

    estimator = OnlineSVC(C=10, random_state=0)
    sampler = SVMSMOTE(random_state=0, svm_estimator=estimator)
    _, y = sampler.fit_resample(form(rare[0]), rare[1])
    common, more = (int((y == name).sum()) for name in ("common", "rare"))
    assert common == (rare[1] == "common").sum()
    assert more > (rare[1] == "rare").sum(), "no row was made"
    assert not hasattr(estimator, "_engine"), "the estimator given was fitted"
    assert len(sampler.svm_estimator_.support_) > 0
    if form is np.asarray:
        assert balanced(sampler, rare) > 0.8


# -- scikit-activeml ------------------------------------------------------------------------------


def spent(strategy: Any, labels: int, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A loop in the manner of scikit-activeml with our estimator; NaN is what is unlabelled."""
    from skactiveml.classifier import SklearnClassifier

    X, y = pool(100)
    model = SklearnClassifier(OnlineSVC(C=10, gamma=1.0, random_state=0), classes=[0, 1])
    told = np.full(len(X), np.nan)
    told[:2] = y[:2]
    for _ in range(labels):
        rows = strategy.query(X=X, y=told, **options)
        told[rows] = y[rows]
        model.fit(X, told)
    return model, X, y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["RandomSampling", "CoreSet"])
def test_strategies_of_scikit_activeml(name: str) -> None:
    pytest.importorskip("skactiveml")
    from skactiveml import pool as theirs

    model, X, y = spent(getattr(theirs, name)(random_state=0), 20)
    assert balanced_accuracy_score(y, model.predict(X)) > 0.75
    assert model.decision_function(X).shape == (100,)
    before = model.predict(X)
    model.partial_fit(X[:50], y[:50])
    assert len(before) == len(model.predict(X))
    assert model.estimator_.ids_.max() >= 20, "partial_fit did not go on with the model"


def test_a_committee_of_scikit_activeml() -> None:
    pytest.importorskip("skactiveml")
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import QueryByCommittee

    committee = [
        SklearnClassifier(OnlineSVC(C=C, gamma=1.0, random_state=0), classes=[0, 1])
        for C in (0.1, 1, 10)
    ]
    strategy = QueryByCommittee(method="vote_entropy", random_state=0)
    model, X, y = spent(strategy, 10, ensemble=committee, fit_ensemble=True)
    assert balanced_accuracy_score(y, model.predict(X)) > 0.6
