"""The five methods of [ertekin2007], all with OnlineSVC: Batch, US, SMOTE, DC and AL."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.datasets import Split
from reproduce.ertekin2007.sets import DataSet
from reproduce.measures import timed

POOL_SIZE = 59
# AL stops when the number of support vectors stays within 2 % while a twentieth of the rows is
# labelled. The paper does not say when it considers the number as stable. Chosen on training rows:
# with a window of 300 labels, three of ten seeds of letter-A stop while 36 to 43 unseen A's are
# still classified as negative; with a twentieth of the rows, none does. AL then learns 0.6 to 2.3
# times as many rows as in the paper, and 3.6 times on abalone.
PLATEAU = {"window": 0.05, "tolerance": 0.02}


def classifier(data: DataSet, seed: int, **more: Any) -> Any:
    from marginwise import OnlineSVC

    return OnlineSVC(C=data.C, gamma=data.gamma, random_state=seed, **more)


def learner_for(
    split: Split, data: DataSet, seed: int, strategy: str, *, stops: bool = True
) -> Any:
    from marginwise.active import ActiveLearner, SupportVectorPlateau

    return ActiveLearner(
        classifier(data, seed),
        split.X,
        strategy=strategy,
        pool_size=POOL_SIZE,
        stop=SupportVectorPlateau(**PLATEAU) if stops else None,
        random_state=seed,
    )


def active(split: Split, data: DataSet, seed: int, strategy: str = "active") -> tuple[Any, int]:
    """Return the model of active learning, stopped early, and how many rows it has learned."""
    learner = learner_for(split, data, seed, strategy).run(lambda row: split.y[row])
    return learner.estimator_, len(learner.history_)


def resampled(
    split: Split, method: str, seed: int, ratio: float | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the rows that a method learns, and parameters for its classifier.

    `ratio` is the number of negatives per positive after undersampling: the paper takes that of
    the support vectors of AL. SMOTE makes as many positives as there are negatives; the paper does
    not say how many it makes.
    """
    negatives, positives = np.bincount(split.y)
    if method == "US":
        from imblearn.under_sampling import RandomUnderSampler

        assert ratio is not None
        kept = {0: min(negatives, round(ratio * positives)), 1: positives}
        sampler = RandomUnderSampler(sampling_strategy=kept, random_state=seed)
        return *sampler.fit_resample(split.X, split.y), {}
    if method == "SMOTE":
        from imblearn.over_sampling import SMOTE

        return *SMOTE(random_state=seed).fit_resample(split.X, split.y), {}
    weights = {0: 1.0, 1: negatives / positives}
    return split.X, split.y, {"class_weight": weights} if method == "DC" else {}


def learned(
    split: Split, data: DataSet, seed: int, method: str, ratio: float | None
) -> tuple[Any, int]:
    """Return the model of a method, and how many rows it has learned."""
    if method == "AL":
        return active(split, data, seed)
    X, y, more = resampled(split, method, seed, ratio)
    return classifier(data, seed, **more).fit(X, y), len(y)


def scores(model: Any, split: Split) -> dict[str, float]:
    """Return the measures of the paper on the test rows, in percent."""
    from sklearn.metrics import roc_auc_score

    from marginwise.metrics import g_mean_score, prbep_score

    values = model.decision_function(split.X_test)
    return {
        "prbep": 100 * prbep_score(split.y_test, values),
        "g_mean": 100 * g_mean_score(split.y_test, model.predict(split.X_test)),
        "auc": 100 * float(roc_auc_score(split.y_test, values)),
    }


def measured(split: Split, learn: Any) -> dict[str, Any]:
    """Learn by calling `learn`, which returns a model and a number of rows, and score the model."""
    from marginwise.metrics import support_vector_ratio

    (model, rows), seconds = timed(learn)
    negatives, positives = np.bincount(split.y)
    return {
        **scores(model, split),
        "imbalance": float(negatives / positives),
        "ratio": float(support_vector_ratio(model)),
        "support_vectors": model.n_support_.tolist(),
        "learned": int(rows),
        "efficiency": 100 * rows / len(split.y),
        "seconds": seconds["wall"],
    }
