"""Measure the probabilities of one setting, and those of the same model calibrated otherwise."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from calibration_cases import Problem, Setting
from contestants import CONTESTANTS
from numpy.typing import NDArray
from paired import Problem as Fit
from paired import at_most
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

import marginwise

SECONDS = 100.0  # CPU time after which our estimators are given up
ROUNDS = 3  # measurements of which the best counts
SHORT, LONG = 0.1, 3.0  # seconds: shorter fits are repeated in a round, longer ones in no other
SVC_STEPS = 1_000_000  # of each pair of classes, after which SVC stops
RARE = 0.1
WITH_BIAS = ("OnlineSVC", "OnlineSVCCV", "ExactSVC")  # they solve the problem of SVC
EACH_ENSEMBLE = 4  # settings, of which one is also compared with ensemble=True, if it is small
ENSEMBLE_ROWS = 5000

Scores = dict[str, float]


def measure(case: Setting, folder: str, known: dict[str, Any] | None) -> dict[str, Any]:
    """Measure a setting; other results of SVC are stored as long as its problem is the same."""
    problem = case.problem(folder)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            with at_most(SECONDS):
                ours, chosen = fit_ours(problem)
        except (ValueError, TimeoutError) as error:
            ours, chosen = {"failed": str(error)}, problem.params
    ours["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in issued})
    if problem.chunk:
        return {"about": problem.about, "ours": ours}
    peers = known.get("peers") if known else None
    ensemble = case.seed % EACH_ENSEMBLE == 0 and len(problem.split.y) <= ENSEMBLE_ROWS
    if peers is None or peers["digest"] != digest(problem, chosen, ensemble):
        peers = fit_peers(problem, chosen, ensemble)
    return {"about": problem.about, "ours": ours, "peers": peers}


# -- our estimators ------------------------------------------------------------------------------


def estimator(problem: Problem, calibration: str | None) -> Any:
    params = {**problem.params, "calibration": calibration, "n_jobs": 1}
    if problem.estimator == "OnlineSVCCV":
        C, gamma = params.pop("C"), params.pop("gamma")
        params |= {"Cs": [C / 4, C, 4 * C], "gammas": [gamma], "cv": 3}
    if problem.estimator != "ExactSVC":
        params["random_state"] = problem.seed
    return getattr(marginwise, problem.estimator)(**params)


def trained(problem: Problem, calibration: str | None) -> Any:
    split, model = problem.split, estimator(problem, calibration)
    if not problem.chunk:
        return model.fit(split.X, split.y)
    classes = np.unique(split.y)
    for start in range(0, len(split.y), problem.chunk):
        rows = slice(start, start + problem.chunk)
        model.partial_fit(split.X[rows], split.y[rows], classes=classes)
    if problem.finished:
        model.finish()
    return model


def timed_pair(problem: Problem) -> tuple[Any, Any, dict[str, float]]:
    """Return models without and with calibration, and the CPU seconds of their training."""
    kinds = (None, problem.method)
    models = [trained(problem, kind) for kind in kinds]  # the first fits import modules
    began = time.perf_counter()
    trained(problem, None)
    seconds = time.perf_counter() - began
    repeats = max(1, round(SHORT / max(seconds, SHORT / 100)))
    best = [np.inf, np.inf]
    for _ in range(ROUNDS if seconds < LONG else 1):
        for k, kind in enumerate(kinds):
            best[k] = min(best[k], seconds_of(again, problem, kind, repeats) / repeats)
    copies = [copy.deepcopy(models[1]) for _ in range(ROUNDS)]
    first = min(seconds_of(one.predict_proba, problem.split.X_test[:1]) for one in copies)
    return *models, {"fit": best[0], "fit_calibrated": best[1], "first": first}


def again(problem: Problem, calibration: str | None, repeats: int) -> None:
    for _ in range(repeats):
        trained(problem, calibration)


def fit_ours(problem: Problem) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return measurements of our estimator, and the parameters that a search has chosen."""
    plain, model, times = timed_pair(problem)
    X, y = problem.split.X_test, problem.split.y_test
    found: dict[str, Any] = {**times, "prior": prior(problem), **scores(model, X, y)}
    found |= changes(plain, model, problem)
    found["moved"] = float(np.abs(plain.decision_function(X) - model.decision_function(X)).max())
    report = model.calibration_
    found["report"] = {
        "log_loss": report.log_loss,
        "prior": report.prior_log_loss,
        "rows": int(report.n_values.sum()),
        "fallback": report.fallback,
    }
    found["held_out"] = held_out(plain, problem)
    if not problem.chunk and problem.estimator not in WITH_BIAS:
        found["folds"] = in_folds(problem)
    return found, problem.params | searched(model)


def searched(model: Any) -> dict[str, float]:
    cv = isinstance(model, marginwise.OnlineSVCCV)
    return {"C": float(model.C_), "gamma": float(model.gamma_)} if cv else {}


def seconds_of(call: Callable[..., Any], *arguments: Any) -> float:
    began = time.thread_time()  # the clock of the process is coarse while `at_most` runs
    call(*arguments)
    return time.thread_time() - began


def held_out(model: Any, problem: Problem) -> Scores:
    """Calibrate the model on rows that are drawn like the test rows, with scikit-learn."""
    if len(np.unique(problem.y_held)) < len(model.classes_):
        return {}
    frozen = CalibratedClassifierCV(FrozenEstimator(model), method=problem.method)
    frozen.fit(problem.X_held, problem.y_held)
    return scores(frozen, problem.split.X_test, problem.split.y_test)


def in_folds(problem: Problem) -> Scores:
    """Calibrate our estimator as scikit-learn does."""
    split, model = problem.split, estimator(problem, None)
    peer = CalibratedClassifierCV(model, method=problem.method, cv=5, ensemble=False)
    return scores(peer.fit(split.X, split.y), split.X_test, split.y_test)


# -- SVC -----------------------------------------------------------------------------------------


def fit_peers(problem: Problem, params: dict[str, Any], ensemble: bool) -> dict[str, Any]:
    """Calibrate SVC with the same parameters by cross-validation."""
    split = problem.split
    steps = {"max_iter": SVC_STEPS, "cache_size": 500}
    svc = CONTESTANTS["SVC"]({**svc_params(params), **steps}, 1, 0)
    found: dict[str, Any] = {"digest": digest(problem, params, ensemble), "converged": True}
    for together in (False, True)[: 1 + ensemble]:
        model = CalibratedClassifierCV(clone(svc), method=problem.method, cv=5, ensemble=together)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            seconds = seconds_of(model.fit, split.X, split.y)
        if any(issubclass(w.category, ConvergenceWarning) for w in issued):
            found["converged"] = False
        result = scores(model, split.X_test, split.y_test)
        found["ensemble" if together else "single"] = {"fit": seconds, **result}
    return found


def svc_params(params: dict[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in ("C", "gamma", "class_weight") if name in params}


def digest(problem: Problem, params: dict[str, Any], ensemble: bool) -> str:
    """Hash everything that the results of SVC depend on."""
    known = {**svc_params(params), "method": problem.method, "ensemble": ensemble}
    return Fit(problem.split, {**known, "max_iter": SVC_STEPS}).digest()


# -- scores --------------------------------------------------------------------------------------


def scores(model: Any, X: NDArray[Any], y: NDArray[Any]) -> Scores:
    p = model.predict_proba(X)
    truth = (y[:, None] == model.classes_).astype(float)
    return {
        "log_loss": float(log_loss(y, p, labels=model.classes_)),
        "brier": float(((p - truth) ** 2).sum(axis=1).mean()),
        "accuracy": float(np.mean(model.predict(X) == y)),
    }


def prior(problem: Problem) -> float:
    """Return the log loss of the class frequencies of the training rows."""
    share = np.bincount(problem.split.y) / len(problem.split.y)
    return float(-np.log(share[problem.split.y_test]).mean())


def changes(plain: Any, model: Any, problem: Problem) -> dict[str, Any]:
    """Return what calibration adds to accuracy and recall, with the paired standard errors."""
    X, y = problem.split.X_test, problem.split.y_test
    right = [(one.predict(X) == y).astype(float) for one in (plain, model)]
    found: dict[str, Any] = {"plain_accuracy": float(right[0].mean())}
    found["accuracy_change"] = change(*right)
    counts = np.bincount(problem.split.y)
    rows = y == counts.argmin()
    if counts.min() < RARE * counts.sum() and rows.any():
        found["recall"], found["plain_recall"] = (float(one[rows].mean()) for one in right[::-1])
        found["recall_change"] = change(*(one[rows] for one in right))
    return found


def change(before: NDArray[np.float64], after: NDArray[np.float64]) -> list[float]:
    """Return the mean difference and its standard error."""
    apart = after - before
    return [float(apart.mean()), float(apart.std() / len(apart) ** 0.5)]
