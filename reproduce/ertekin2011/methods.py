"""The four machines of [ertekin2011], and how they are measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduce.ertekin2011.sets import DataSet
from reproduce.measures import timed

PARAMS: dict[str, dict[str, Any]] = {
    "FULL": {"clean_every": None},
    "G": {},
    "NC": {"loss": "ramp"},
    "I": {"loss": "filter"},
}


def machine(data: DataSet, method: str, seed: int, **more: Any) -> Any:
    from marginwise import GapSVC

    params = {"C": data.C, "gamma": data.gamma, "finish_at_end": False, **PARAMS[method], **more}
    return GapSVC(**params, n_jobs=1, random_state=seed)


def scores(model: Any, split: Any) -> dict[str, Any]:
    """Return the measures of the paper on the test rows, in percent, and the size."""
    from sklearn.metrics import roc_auc_score

    from marginwise.metrics import g_mean_score, prbep_score

    values = model.decision_function(split.X_test)
    predicted = (values > 0).astype(int)
    return {
        "accuracy": 100 * float((predicted == split.y_test).mean()),
        "prbep": 100 * prbep_score(split.y_test, values),
        "auc": 100 * float(roc_auc_score(split.y_test, values)),
        "g_mean": 100 * g_mean_score(split.y_test, predicted),
        "support_vectors": int(model.n_support_.sum()),
    }


def measured(model: Any, split: Any) -> dict[str, Any]:
    """Fit a model on one thread, timed by CPU seconds, and score it."""
    _, seconds = timed(lambda: model.fit(split.X, split.y))
    found = {**scores(model, split), "seconds": seconds["cpu"]}
    if hasattr(model, "stats_"):
        found["kernel_evaluations"] = model.stats_["kernel_evaluations"] / 1e6
        found["reprocess"] = model.stats_["reprocess"]
    return found


def curve(model: Any, split: Any, seed: int, points: int) -> dict[str, list[float]]:
    """Learn rows in random order, with scores at evenly spaced numbers of examples."""
    names = ("learned", "accuracy", "prbep", "support_vectors", "kernel_evaluations")
    found: dict[str, list[float]] = {name: [] for name in names}
    order, done = np.random.default_rng((seed, 6)).permutation(len(split.y)), 0
    for stop in np.linspace(0, len(order), points + 1).round().astype(int)[1:]:
        rows, done = order[done:stop], stop
        model.partial_fit(split.X[rows], split.y[rows], classes=[0, 1])
        now = {**scores(model, split), "learned": int(stop)}
        now["kernel_evaluations"] = model.stats_["kernel_evaluations"] / 1e6
        for name in names:
            found[name].append(now[name])
    return found
