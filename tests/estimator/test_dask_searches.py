"""Searches under joblib's Dask backend find what they find without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier

from marginwise import GapSVC, OnlineSVC, OnlineSVCCV
from marginwise._engine.engine import runs_elsewhere, thread_count
from marginwise._tuning import plain, shared

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(240, 8, n_informative=5, n_classes=3, class_sep=0.7, random_state=0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the tasks of `OnlineSVCCV` that were sent to workers."""
    counts: list[int] = []
    for module in (shared, plain):
        each = module.each

        def counted(function: Any, tasks: Any, each: Any = each) -> Any:
            listed = list(tasks)
            counts.append(len(listed))
            return each(function, listed)

        monkeypatch.setattr(module, "each", counted)
    return counts


def both(make: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Fit twice: here, and on the cluster."""
    here = make().fit(X, y)
    with joblib.parallel_config(backend="dask"):
        there = make().fit(X, y)
    return here, there


@pytest.mark.parametrize(
    ("params", "tasks"),
    [
        ({}, [3]),
        ({"multiclass": "ovr", "class_weight": "balanced"}, [3]),
        ({"search": "halving", "scoring": "balanced_accuracy"}, [3]),
        ({"budget": 40}, [15]),  # models that do not share their kernel values
        ({"kernel": "linear"}, []),  # one gamma: nothing to share
    ],
)
def test_tuning(
    client: Any, rows: Any, sent: list[int], params: dict[str, Any], tasks: Any
) -> None:
    here, there = both(lambda: OnlineSVCCV(Cs=3, gammas=3, random_state=0, **params), *rows)
    assert sent[:1] == tasks
    assert (there.C_, there.gamma, there.best_score_) == (here.C_, here.gamma, here.best_score_)
    for name, values in here.cv_results_.items():
        if "test_score" in name:
            assert np.array_equal(there.cv_results_[name], values), name
    assert np.array_equal(there.decision_oof_, here.decision_oof_)
    assert np.array_equal(there.decision_function(rows[0]), here.decision_function(rows[0]))


def test_tuning_of_sparse_rows(client: Any, rows: Any, sent: list[int]) -> None:
    X = sp.csr_array(np.where(np.abs(rows[0]) > 1, rows[0], 0))
    here, there = both(lambda: OnlineSVCCV(Cs=3, gammas=2, random_state=0), X, rows[1])
    assert sent == [2]
    assert np.array_equal(there.decision_oof_, here.decision_oof_)


def test_a_shared_generator_stays_here(client: Any, rows: Any, sent: list[int]) -> None:
    def make() -> OnlineSVCCV:
        return OnlineSVCCV(Cs=2, gammas=2, budget=40, random_state=np.random.RandomState(0))

    here, there = both(make, *rows)
    assert sent == []
    assert np.array_equal(there.decision_oof_, here.decision_oof_)


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV])
@pytest.mark.parametrize("estimator", [OnlineSVC(random_state=0), GapSVC(random_state=0)])
def test_searches_of_scikit_learn(client: Any, rows: Any, search: Any, estimator: Any) -> None:
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.2]}
    given = {"n_iter": 4, "random_state": 0} if search is RandomizedSearchCV else {}
    given |= {"random_state": 0} if search is HalvingGridSearchCV else {}
    here, there = both(lambda: search(estimator, grid, cv=3, **given), *rows)
    assert there.best_params_ == here.best_params_
    for name, values in here.cv_results_.items():
        if "test_score" in name:
            assert np.array_equal(there.cv_results_[name], values), name
    assert np.array_equal(there.decision_function(rows[0]), here.decision_function(rows[0]))


def test_one_versus_rest_and_predictions_of_folds(client: Any, rows: Any) -> None:
    X, y = rows
    here, there = both(lambda: OneVsRestClassifier(OnlineSVC(random_state=0)), X, y)
    assert np.array_equal(there.decision_function(X), here.decision_function(X))
    expected = cross_val_predict(OnlineSVC(random_state=0), X, y)
    with joblib.parallel_config(backend="dask"):
        assert np.array_equal(cross_val_predict(OnlineSVC(random_state=0), X, y), expected)


def test_a_tuning_estimator_in_a_search(client: Any, rows: Any) -> None:
    """Tasks that start tasks do not wait for each other."""
    tuning = OnlineSVCCV(Cs=2, gammas=2, random_state=0)
    here, there = both(lambda: GridSearchCV(tuning, {"tol": [1e-3, 1e-2]}, cv=3), *rows)
    assert here.best_score_ == there.best_score_


def test_threads_are_those_of_this_machine(client: Any) -> None:
    assert not runs_elsewhere()
    with joblib.parallel_config(backend="dask"):
        assert runs_elsewhere()
        assert joblib.effective_n_jobs(None) == 6, "of the cluster"
        assert thread_count(None) == 1
        assert thread_count(2) == 2
        assert thread_count(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert not runs_elsewhere()
        assert thread_count(None) == 2


def test_errors_of_workers_reach_the_caller(client: Any, rows: Any) -> None:
    def kernel(A: Any, B: Any) -> Any:
        raise ZeroDivisionError("of the kernel")

    with (
        joblib.parallel_config(backend="dask"),
        pytest.raises(ZeroDivisionError, match="of the kernel"),
    ):
        OnlineSVCCV(Cs=2, gammas=2, kernel=kernel).fit(*rows)
    with joblib.parallel_config(backend="dask"):  # and the cluster still works
        assert OnlineSVCCV(Cs=2, gammas=2, random_state=0).fit(*rows).score(*rows) > 0.7


def test_an_interrupt_ends_the_search(client: Any, rows: Any) -> None:
    def score(model: Any, X: Any, y: Any) -> float:
        raise KeyboardInterrupt

    model = OnlineSVCCV(Cs=2, gammas=4, scoring=score)
    with joblib.parallel_config(backend="dask"), pytest.raises(KeyboardInterrupt):
        model.fit(*rows)
    assert not hasattr(model, "classes_")
    here, there = both(lambda: OnlineSVCCV(Cs=2, gammas=2, random_state=0), *rows)
    assert np.array_equal(there.decision_oof_, here.decision_oof_)
