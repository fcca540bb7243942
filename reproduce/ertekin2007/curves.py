"""Learning curves of [ertekin2007]: scores on the test rows as more examples are learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.datasets import Split
from reproduce.ertekin2007.methods import PLATEAU, learner_for, scores
from reproduce.ertekin2007.sets import DataSet

POINTS = 24
NAMES = ("learned", "prbep", "g_mean", "auc", "support_vectors", "ratio")


def points(total: int, number: int = POINTS) -> list[int]:
    """Return numbers of examples, denser at the beginning."""
    return sorted({round(float(value)) for value in np.geomspace(min(100, total), total, number)})


def _note(curve: dict[str, list[float]], model: Any, split: Split, count: int) -> None:
    from marginwise.metrics import support_vector_ratio

    found = scores(model, split)
    found |= {
        "learned": count,
        "support_vectors": int(model.n_support_.sum()),
        "ratio": float(support_vector_ratio(model)),
    }
    for name in NAMES:
        curve[name].append(found[name])


def random_curve(model: Any, X: Any, y: Any, split: Split, seed: int, total: int = 0) -> Any:
    """Learn rows one by one in random order (RS), with scores along the way."""
    curve: dict[str, list[float]] = {name: [] for name in NAMES}
    order, done = np.random.default_rng((seed, 4)).permutation(len(y)), 0
    for stop in points(min(total or len(y), len(y))):
        rows, done = order[done:stop], stop
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        if model.n_support_.all():
            _note(curve, model, split, stop)
    return curve


def active_curve(split: Split, data: DataSet, seed: int, strategy: str, total: int = 0) -> Any:
    """Let active learning continue beyond its early stopping point, which is noted."""
    from marginwise.active import SupportVectorPlateau

    curve: dict[str, Any] = {name: [] for name in NAMES}
    learner = learner_for(split, data, seed, strategy, stops=False)
    rule, stopped = SupportVectorPlateau(**PLATEAU), None
    total = min(total or len(split.y), len(split.y))
    due = set(points(total))
    for count in range(1, total + 1):
        row = learner.ask()
        learner.teach(row, split.y[row])
        if stopped is None and rule.check(learner):
            stopped = count
        if count in due and learner.has_model_:
            _note(curve, learner.estimator_, split, count)
    return {**curve, "stopped": stopped}


def until_plateau(split: Split, data: DataSet, seed: int) -> tuple[Any, int]:
    """Return active learning's model at its early stopping point, without finishing."""
    learner = learner_for(split, data, seed, "active")
    while not learner.should_stop():
        row = learner.ask()
        learner.teach(row, split.y[row])
    return learner.estimator_, len(learner.history_)
