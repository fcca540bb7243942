"""Comparison of exported models with the models that they were made from."""

from __future__ import annotations

from typing import Any

import numpy as np

NEAR = 2e-4  # relative to the largest decision value: how near a tie rounding may decide it


def gaps(scores: np.ndarray) -> np.ndarray:
    """How far the best class of each row is ahead of the next; from 0 where there are two."""
    if scores.ndim == 1:
        return np.abs(scores)
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def clear_rows(model: Any, X: Any) -> np.ndarray:
    """Rows that rounding cannot give another class, or another vote of a pair."""
    decision = model.decision_function(X)
    clear = gaps(decision) > NEAR * np.abs(decision).max()
    last = model[-1] if hasattr(model, "named_steps") else model
    if last._engine.plan.pairs:
        rows = X if last is model or len(model) == 1 else model[:-1].transform(X)
        f = last._score(np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows))
        clear &= (np.abs(f) > NEAR * np.abs(f).max()).all(axis=1)
    if getattr(last, "calibration", None) is not None:
        clear &= gaps(model.predict_proba(X)) > 2e-3
    assert clear.mean() > 0.8, "most rows should show something"
    return clear


def assert_agree(model: Any, X: Any, label: Any, decision: Any, tolerance: float = 1e-4) -> None:
    """Labels and decision values are those of the model, except where rounding may decide."""
    expected = model.decision_function(X)
    found = np.asarray(decision).reshape(expected.shape)
    sphere = not hasattr(model, "classes_")  # whose rows on the sphere are 0 in both
    clear = np.ones(len(expected), dtype=bool) if sphere else clear_rows(model, X)
    assert np.abs(found - expected)[clear].max() <= tolerance * np.abs(expected).max()
    assert np.asarray(label)[clear].tolist() == model.predict(X)[clear].tolist()
