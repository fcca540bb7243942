"""The learners of [wang2009], and what is measured of a model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from reproduce.experiment import Values
from reproduce.wang2009.sets import DataSet

HINGE, PA, RAMP, ASVM, OFFLINE = "LibSVM", "PA", "OnlineSVM^R", "OnlineASVM^R", "offline"
IDSVM = "IDSVM"
SLACK = 0.01  # by which |f| of a support vector may exceed 1 and count as inside the ramp

Learned = tuple[Any, int]  # a model, and the number of rows whose label it has seen


def libsvm(data: DataSet, split: Any) -> Learned:
    from sklearn.svm import SVC

    model = SVC(**data.hinge.params(split.X.shape[1]), cache_size=500)
    return model.fit(split.X, split.y), len(split.y)


def passive_aggressive(data: DataSet, split: Any) -> Learned:
    from marginwise import KernelPerceptron

    model = KernelPerceptron(**data.pa.params(split.X.shape[1]), update="pa", shuffle=False)
    return model.fit(split.X, split.y), len(split.y)


def new_ramp(data: DataSet, split: Any, **more: Any) -> Any:
    """Return the model of OnlineSVM^R."""
    from marginwise import ExactRampSVC

    return ExactRampSVC(**data.ramp.params(split.X.shape[1]), shuffle=False, **more)


def online(data: DataSet, split: Any) -> Learned:
    return new_ramp(data, split).fit(split.X, split.y), len(split.y)


def online_active(data: DataSet, split: Any) -> Learned:
    """Ask for the label of each row in turn if |f| ≤ 1."""
    model, asked = new_ramp(data, split), 0
    for row in range(len(split.y)):
        one = slice(row, row + 1)
        if row == 0 or model.wants(split.X[one])[0]:
            classes = np.unique(split.y) if row == 0 else None
            model.partial_fit(split.X[one], split.y[one], classes=classes, ids=[row])
            asked += 1
    return model, asked


def offline(data: DataSet, split: Any) -> Learned:
    from reproduce.wang2009.offline import OfflineRamp

    model = OfflineRamp(**data.ramp.params(split.X.shape[1]))
    return model.fit(split.X, split.y), len(split.y)


def incremental(data: DataSet, split: Any) -> Learned:
    from marginwise import ExactSVC

    model = ExactSVC(**data.hinge.params(split.X.shape[1]))
    return model.fit(split.X, split.y), len(split.y)


LEARN: dict[str, Callable[[DataSet, Any], Learned]] = {
    HINGE: libsvm,
    PA: passive_aggressive,
    RAMP: online,
    ASVM: online_active,
    OFFLINE: offline,
    IDSVM: incremental,
}


def measure(learner: str, data: DataSet, split: Any) -> Values:
    """Learn, and measure the model: accuracy in percent, shares from 0 to 1."""
    start = time.perf_counter()
    model, labels = LEARN[learner](data, split)
    seconds = time.perf_counter() - start
    support = np.asarray(model.support_)
    margins = (2 * split.y[support] - 1) * model.decision_function(split.X[support])
    found: Values = {
        "accuracy": accuracy(model, split),
        "support_vectors": len(support),
        "labels": labels,
        "rows": len(split.y),
        "seconds": seconds,
        "inside": float(np.mean(np.abs(margins) <= 1 + SLACK)),
        "wrong": float(np.mean(margins < -1 - SLACK)),
    }
    if hasattr(model, "stats_"):
        found["kernel_evaluations"] = int(model.stats_["kernel_evaluations"])
    if hasattr(model, "ramp_objective"):
        found["objective"] = float(model.ramp_objective())
    return found


def accuracy(model: Any, split: Any) -> float:
    """Return the test accuracy in percent."""
    return 100 * float(np.mean(model.predict(split.X_test) == split.y_test))
