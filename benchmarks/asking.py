"""Active learning tasks of a worker process: single questions, and labels chosen one by one."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from contestants import CONTESTANTS
from datasets import Split, load
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import normalize
from tasks import Setting, percent, timed, warm_up

# -- one question at a time ----------------------------------------------------------------------

NOISE = 0.3  # standard deviation of the label noise; that of the rule's values is 1
SCRATCHES = 3  # how often all rows are scored from scratch


def ask(
    setting: Setting,
    *,
    pool: tuple[int, int],
    strategy: str,
    taught: int,
    questions: int,
    params: dict[str, Any],
) -> dict[str, Any]:
    """Time single questions about a pool of the given shape; each is answered before the next."""
    from marginwise.active import ActiveLearner

    X, y = linear_rule(pool[0] // 20 if setting.quick else pool[0], pool[1], setting.seed)
    model = CONTESTANTS["OnlineSVC"](params, setting.threads, setting.seed)
    learner = ActiveLearner(model, X, strategy=strategy, stop=None, random_state=setting.seed)
    learner.teach(np.arange(taught), y[:taught])
    first = learner.estimator_.stats_["members"]
    times = questions_and_answers(learner, y, questions // 5 if setting.quick else questions)
    result = {
        **times,
        "members": [first, learner.estimator_.stats_["members"]],
        "support_vectors": int(learner.estimator_.n_support_.sum()),
        "pool": list(X.shape),
    }
    if strategy == "near_boundary":
        result["scratch_ms"] = scratch_ms(learner.estimator_, X)
    return result


def linear_rule(
    rows: int, features: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return Gaussian rows and labels by a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    rule = rng.standard_normal(features, dtype=np.float32)
    rule /= np.linalg.norm(rule)
    noise = rng.standard_normal(rows, dtype=np.float32)
    return X, (X @ rule + NOISE * noise > 0).astype(np.int64)


def questions_and_answers(learner: Any, y: NDArray[np.int64], questions: int) -> dict[str, Any]:
    """Alternate ask and teach, and time both; the first question is reported separately."""
    row, first = timed(learner.ask)
    learner.teach(row, y[row])
    asked, taught = [], []
    for _ in range(questions):
        row, seconds = timed(learner.ask)
        asked.append(1e3 * seconds["wall"])
        _, seconds = timed(partial(learner.teach, row, y[row]))
        taught.append(1e3 * seconds["wall"])
    return {
        "questions": questions,
        "ask_ms": statistics.median(asked),
        "ask_p95_ms": statistics.quantiles(asked, n=20, method="inclusive")[-1],
        "first_ask_ms": 1e3 * first["wall"],
        "teach_ms": statistics.median(taught),
    }


def scratch_ms(model: Any, X: NDArray[np.float32]) -> float:
    """Return the median time of scoring all rows from scratch."""
    score = partial(model.decision_function, X)
    return statistics.median(1e3 * timed(score)[1]["wall"] for _ in range(SCRATCHES))


# -- answers that change -------------------------------------------------------------------------

NONZEROS = 30  # per row of generated texts
CHANGES = 5  # how often an answer is undone and corrected


def change(
    setting: Setting, *, pool: tuple[int, int], taught: int, params: dict[str, Any]
) -> dict[str, Any]:
    """Time answers, undo, correct and replay in a pool of generated texts."""
    from marginwise.active import ActiveLearner

    rows, features = pool
    X, y = made_up_texts(rows // 20 if setting.quick else rows, features, setting.seed)
    taught = taught // 5 if setting.quick else taught
    model = CONTESTANTS["OnlineSVC"](params, setting.threads, setting.seed)
    learner = ActiveLearner(model, X, stop=None, classes=[0, 1], random_state=setting.seed)
    learner.teach(np.arange(20), y[:20])
    times = questions_and_answers(learner, y, taught - 21)
    history = learner.history_
    result: dict[str, Any] = {"pool": list(X.shape), **times}
    again = ActiveLearner(model, X, stop=None, classes=[0, 1], random_state=setting.seed)
    told = [step["row"] for step in history], [step["label"] for step in history]
    result["replay_ms"] = 1e3 * timed(partial(again.replay, *told))[1]["wall"]
    for name, place in (("early", 25), ("late", len(history) - 30)):
        row, label = history[place]["row"], history[place]["label"]
        spent = []
        for k in range(CHANGES):
            other = 1 - label if k % 2 == 0 else label
            spent.append(1e3 * timed(partial(learner.correct, row, other))[1]["wall"])
        result[f"correct_{name}_ms"] = statistics.median(spent)
    undone = [1e3 * timed(learner.undo)[1]["wall"] for _ in range(4 * CHANGES)]
    result["undo_ms"] = statistics.median(undone)
    return result


def made_up_texts(rows: int, features: int, seed: int) -> tuple[Any, NDArray[np.int64]]:
    """Return rows like those of TF-IDF, of unit length, and labels, a ninth of which are 1."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, features + 1) ** 0.9
    words = rng.choice(features, size=(rows, NONZEROS), p=often / often.sum())
    ends = np.arange(0, rows * NONZEROS + 1, NONZEROS)
    X = sp.csr_array((rng.random(words.size), words.ravel(), ends), shape=(rows, features))
    X.sum_duplicates()
    X = normalize(X)
    rule = X @ rng.standard_normal(features)
    noise = 0.1 * rng.standard_normal(rows)
    return X, (rule + noise > np.quantile(rule, 8 / 9)).astype(np.int64)


# -- a number of labels, chosen one by one --------------------------------------------------------


@dataclass(frozen=True)
class Labelling:
    """A pool, some rows of which are labelled one after the other."""

    split: Split
    first: NDArray[np.int64]  # rows that are labelled first
    labels: int  # total number of labels
    pool_size: int | None  # rows sampled for each label; None: all
    seed: int


def label(
    setting: Setting,
    *,
    data: str,
    learner: str,
    params: dict[str, Any],
    labels: int,
    pool_size: int | None,
) -> dict[str, Any]:
    """Time learning a number of labels, each of the row nearest the boundary; measure the model.

    All learners begin with the same random rows, drawn until both classes occur.
    """
    split = load(data, setting.folder, form="csr64", seed=setting.seed, quick=setting.quick)
    model = CONTESTANTS[learner](params, setting.threads, setting.seed)
    warm_up(clone(model), split)
    first = rows_of_both(split.y, setting.seed)
    labels = len(first) + 30 if setting.quick else labels
    task = Labelling(split, first, labels, pool_size, setting.seed)
    model, seconds = timed(partial(LABELLING[learner], model, task))
    predicted, predict_seconds = timed(partial(model.predict, split.X_test))
    return {
        "fit": seconds,
        "predict": predict_seconds,
        "error": percent(predicted != split.y_test),
        "support_vectors": len(model.support_),
        "labels": labels,
        "labels_at_random": len(first),
    }


def rows_of_both(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Draw rows one by one until two classes occur."""
    order = np.random.default_rng(seed).permutation(len(y))
    return order[: int(np.argmax(y[order] != y[order[0]])) + 1]


def ask_and_teach(model: Any, task: Labelling) -> Any:
    """Learn one label at a time, then finish."""
    from marginwise.active import ActiveLearner

    y = task.split.y
    learner = ActiveLearner(
        model,
        task.split.X,
        strategy="near_boundary" if task.pool_size is None else "active",
        pool_size=task.pool_size,
        stop=None,
        random_state=task.seed,
    )
    learner.teach(task.first, y[task.first])
    learner.run(lambda row: y[row], task.labels - len(task.first))
    return learner.estimator_


def retrain(model: Any, task: Labelling) -> Any:
    """Fit from scratch after each label."""
    X, y = task.split.X, task.split.y
    rng = np.random.default_rng(task.seed)
    taught, unseen = task.first.tolist(), np.ones(len(y), dtype=bool)
    unseen[task.first] = False
    while True:
        model.fit(X[taught], y[taught])
        if len(taught) >= task.labels:
            return model
        rows = np.flatnonzero(unseen)
        if task.pool_size is not None:
            rows = rng.choice(rows, task.pool_size, replace=False)
        row = int(rows[np.abs(model.decision_function(X[rows])).argmin()])
        taught.append(row)
        unseen[row] = False


LABELLING: dict[str, Callable[[Any, Labelling], Any]] = {"OnlineSVC": ask_and_teach, "SVC": retrain}

TASKS: dict[str, Callable[..., dict[str, Any]]] = {"ask": ask, "change": change, "label": label}
