"""Helpers for runs: data sets, timing, errors, and points of curves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Split
from benchmarks.datasets import load as load_split

POINTS = 100  # maximum number of stored points of a curve


def load(name: str, folder: Path, *, seed: int = 0, quick: bool = False, form: str = "dense64"):
    """Load a data set of benchmarks/datasets.py; `quick` keeps 2,000 training and 500 test rows."""
    return load_split(name, str(folder), form=form, seed=seed, quick=quick)


def redrawn(split: Split, seed: int) -> Split:
    """Pool training and test rows, and divide them again into parts of the same sizes."""
    import scipy.sparse as sp

    stack = sp.vstack if sp.issparse(split.X) else np.concatenate
    X, y = stack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    X = X.tocsr() if sp.issparse(X) else X
    order = np.random.default_rng((seed, 2)).permutation(len(y))
    train, test = order[: len(split.y)], order[len(split.y) :]
    return Split(X[train], y[train], X[test], y[test])


def noisy(y: Any, share: float, seed: int) -> Any:
    """Flip a fraction of binary labels."""
    classes = np.unique(y)
    turned = np.random.default_rng((seed, 1)).permutation(len(y))[: round(share * len(y))]
    changed = y.copy()
    changed[turned] = np.where(y[turned] == classes[0], classes[1], classes[0])
    return changed


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Call a function; return its value, and wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = function()
    return value, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def error(model: Any, X: Any, y: Any) -> float:
    """Return the percentage of wrong predictions."""
    return 100 * float(np.mean(model.predict(X) != y))


def steps(total: int, points: int = POINTS, start: int = 1) -> list[int]:
    """Return logarithmically spaced numbers of examples at which a curve is measured."""
    spaced = np.geomspace(start, total, points)
    return sorted({round(float(value)) for value in spaced})


def thin(values: Any, points: int = POINTS) -> list[Any]:
    """Return evenly spaced items of a long list, including the last."""
    values = list(values)
    if len(values) <= points:
        return values
    return [values[int(at)] for at in np.linspace(0, len(values) - 1, points)]
