"""The batch counterpart of Algorithm 1: dual coordinate ascent over all examples."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Values


def ascend(split: Any, C: float, gamma: float, updates: int, points: int, seed: int) -> Values:
    """Update coefficients of examples picked at random (eq. 3), and measure the test error.

    An update computes g of its example alone, from kernel values with the support vectors.
    """
    import numpy as np

    from reproduce.measures import steps

    rng = np.random.default_rng(seed)
    X, y = split.X.astype(np.float32), np.where(split.y > 0, 1.0, -1.0)
    squares = np.einsum("ij,ij->i", X, X)
    alpha = np.zeros(len(y))
    support: list[int] = []
    stops, evaluations = set(steps(updates, points, start=20)), 0
    curve: dict[str, list[Any]] = {"updates": [], "errors": [], "kernel_evaluations": []}
    for done in range(1, updates + 1):
        i = int(rng.integers(len(y)))
        held = np.array(support, dtype=np.int64)
        distances = squares[held] + squares[i] - 2 * (X[held] @ X[i])
        g = 1 - y[i] * float((alpha[held] * y[held]) @ np.exp(-gamma * distances))
        evaluations += len(held)
        if alpha[i] == 0 and g > 0:
            support.append(i)
        alpha[i] = np.clip(alpha[i] + g, 0, C)
        if done in stops:
            curve["updates"].append(done)
            curve["errors"].append(_error(split, X, squares, alpha * y, gamma))
            curve["kernel_evaluations"].append(evaluations)
    return {**curve, "support_vectors": int((alpha > 0).sum()), "error": curve["errors"][-1]}


def _error(split: Any, X: Any, squares: Any, weights: Any, gamma: float) -> float:
    """Return the test error of an expansion, in percent."""
    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel

    held = np.flatnonzero(weights)
    f = rbf_kernel(split.X_test.astype(np.float32), X[held], gamma=gamma) @ weights[held]
    return 100 * float(np.mean((f > 0) != (split.y_test > 0)))
