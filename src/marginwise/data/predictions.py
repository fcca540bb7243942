"""Predictions of a model as CSV: labels, decision values and probabilities."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_names(estimator: Any, scores: bool, proba: bool) -> list[str]:
    """Return the names of the columns other than the label, such as `score`, `score_a` or `p_a`.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator.
    scores, proba : bool
        Whether there are columns of decision values and of probabilities.
    """
    classes = estimator.classes_.tolist() if hasattr(estimator, "classes_") else []
    names = ["score"] if len(classes) <= 2 else [f"score_{name}" for name in classes]
    return (names if scores else []) + ([f"p_{name}" for name in classes] if proba else [])


def predicted(
    estimator: Any, X: Any, scores: bool, proba: bool
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the predicted labels, and the values of the other columns."""
    labels = estimator.predict(X)
    parts = [estimator.decision_function(X)] if scores else []
    parts += [estimator.predict_proba(X)] if proba else []
    return labels, np.column_stack(parts) if parts else np.empty((len(labels), 0))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def csv_rows(labels: NDArray[Any], numbers: NDArray[np.float64]) -> str:
    """Return CSV text with labels and numbers, which have nine significant digits."""
    rows = zip(labels.tolist(), numbers.tolist(), strict=True)
    return csv_text([label, *(f"{value:.9g}" for value in row)] for label, row in rows)
