"""find_label_errors against scikit-learn's cross_val_predict, and cleanlab's score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC, LinearSVC

from marginwise import OnlineSVC
from marginwise.inspect import find_label_errors
from tests.support import blobs, rings


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(random_state=0)])
def test_decision_values_are_those_of_cross_val_predict(
    estimator: Any, classes: int, seed: int
) -> None:
    X, y = blobs(150, seed, classes=classes)
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    expected = cross_val_predict(estimator, X, y, cv=folds, method="decision_function")
    found = find_label_errors(estimator, X, y, cv=folds, rounds=1)
    np.testing.assert_allclose(found.decision, expected)


def test_average_precision_is_that_of_self_confidence_under_svc(seed: int) -> None:
    """Self-confidence, cleanlab's score: the probability of the label, here by Platt within SVC."""
    X, truth = rings(600, seed)
    wrong = np.random.default_rng(seed).permutation(600)[:60]
    y = truth.copy()
    y[wrong] = 1 - y[wrong]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    f = cross_val_predict(SVC(gamma=1.0), X, y, cv=folds, method="decision_function")
    confidence = LogisticRegression(C=1e6).fit(f[:, None], y).predict_proba(f[:, None])
    theirs = average_precision_score(y != truth, -confidence[np.arange(600), y])
    found = find_label_errors(OnlineSVC(gamma=1.0, random_state=seed), X, y, cv=folds)
    ours = average_precision_score(y != truth, -found.probability)
    assert ours > theirs - 0.005
    assert ours > 0.9
