"""What several tests need: looking into a model, comparing models, kernels in plain NumPy."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from click.testing import CliRunner

from marginwise import OnlineSVC


def core_state(model: OnlineSVC) -> dict[str, Any]:
    """The arrays of the learner: alpha, g, open (problems x members), ids, labels, costs, ..."""
    return model.__getstate__()["_machine"]


def is_open(state: dict[str, Any]) -> np.ndarray:
    """Whether each problem holds each member."""
    return state["open"].astype(bool) if "open" in state else state["rank"] >= 0


def held(model: OnlineSVC, field: str = "alpha", problem: int = 0) -> dict[int, float]:
    """Field `alpha` or `g` of the members that a problem holds, by id."""
    state = core_state(model)
    members = is_open(state)[problem]
    ids, values = state["ids"][members], state[field][problem][members]
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def essence(model: OnlineSVC) -> dict[str, Any]:
    """All that makes the model: the members held and, in each problem, their coefficients."""
    state = core_state(model)
    held_by = is_open(state)
    kept = held_by.any(axis=0)
    held_by = held_by[:, kept]
    features = model._engine.features_of(state)[kept]
    return {
        "ids": state["ids"][kept],
        "labels": state["labels"][kept],
        "costs": state["costs"][kept],
        "open": held_by,
        "alpha": np.where(held_by, state["alpha"][:, kept], 0.0),
        "g": np.where(held_by, state["g"][:, kept], 0.0),
        "features": features.toarray() if sp.issparse(features) else features,
        "bias": model._engine.native.bias(),
    }


def binary_values(model: Any, X: Any) -> np.ndarray:
    """f(x) of each binary problem, a column each, where `decision_function` may count votes."""
    return model._score(X)


def signs_of(labels: np.ndarray, classes: int, multiclass: str = "ovr") -> np.ndarray:
    """Classes, by number, as +1 and -1, a column for each problem; 0 where they have no part."""
    if classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[:, None]
    if multiclass == "ovr":
        return np.column_stack([np.where(labels == c, 1.0, -1.0) for c in range(classes)])
    pairs = itertools.combinations(range(classes), 2)
    return np.column_stack([1.0 * (labels == b) - 1.0 * (labels == a) for a, b in pairs])


def assert_same_model(one: OnlineSVC, other: OnlineSVC, why: str) -> None:
    """Equal to the bit."""
    a, b = essence(one), essence(other)
    for name in a:
        assert np.array_equal(a[name], b[name]), f"{why}: {name} differs\n{a[name]}\n{b[name]}"


def differences(before: Any, after: Any, where: str = "state") -> list[str]:
    """Where two states (nested dicts, lists and arrays) differ, values and types."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = [f"{where}: keys {sorted(map(str, before.keys() ^ after.keys()))}"]
        found = found if before.keys() != after.keys() else []
        for key in before.keys() & after.keys():
            found += differences(before[key], after[key], f"{where}[{key!r}]")
        return found
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        same = before.dtype == after.dtype and np.array_equal(before, after)
    else:
        both_nan = before != before and after != after
        same = type(before) is type(after) and (both_nan or before == after)
    return [] if same else [f"{where}: {before!r} became {after!r}"]


def assert_untouched(before: dict[str, Any], model: OnlineSVC, why: str) -> None:
    """The model is exactly as it was when `before = model.__getstate__()` was taken."""
    found = differences(before, model.__getstate__())
    assert not found, f"{why}: " + "; ".join(found)


def kernel_values(
    name: str, A: Any, B: Any, gamma: float = 1.0, coef0: float = 0.0, degree: int = 3
) -> np.ndarray:
    """K(A, B) in double precision, straight from the definition."""
    A, B = (np.asarray(M.toarray() if sp.issparse(M) else M, dtype=np.float64) for M in (A, B))
    dots = A @ B.T
    squares_a, squares_b = (A * A).sum(axis=1)[:, None], (B * B).sum(axis=1)[None, :]
    if name == "linear":
        return dots
    if name == "rbf":
        return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
    if name == "poly":
        return (gamma * dots + coef0) ** degree
    if name == "sigmoid":
        return np.tanh(gamma * dots + coef0)
    if name == "cosine":
        norms = np.sqrt(squares_a * squares_b)
        return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    if name == "tanimoto":
        either = squares_a + squares_b - dots
        return np.divide(dots, either, out=np.ones_like(dots), where=either > 0)
    raise ValueError(f"unknown kernel {name!r}")


def rings(n: int, seed: int, noise: float = 0.0, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Points of a round cloud, labelled 1 inside its median radius and 0 outside.

    `noise` is the share of labels turned over.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    radius = (X**2).sum(axis=1)
    y = (radius < np.median(radius)).astype(np.int64)
    turned = rng.random(n) < noise
    return X, np.where(turned, 1 - y, y)


def blobs(n: int, seed: int, classes: int = 3, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping round clouds around points of a circle, one a class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    y[:classes] = np.arange(classes)
    angle = 2 * np.pi * y / classes
    X = rng.normal(size=(n, d))
    X[:, 0] += 2 * np.cos(angle)
    X[:, 1] += 2 * np.sin(angle)
    return X, y


class Rows:
    """Arrays as a source, in stages where asked, and the ids that were read, call by call."""

    def __init__(self, X: Any, y: Any, stages: Any = None, classes: Any = None) -> None:
        self.X, self.y = X, y
        self.classes = np.unique(y) if classes is None else classes
        if stages is not None:
            self.stages = stages
        self.asked: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self.y)

    def read(self, ids: np.ndarray) -> tuple[Any, Any]:
        self.asked.append(ids)
        return self.X[ids], self.y[ids]


def sparse_rows(n: int, d: int, density: float, rng: np.random.Generator) -> sp.csr_array:
    """Sparse rows with uniform values; SciPy's own `random_array` is newer than our minimum."""
    places = rng.choice(n * d, size=round(density * n * d), replace=False)
    return sp.csr_array((rng.random(len(places)), (places // d, places % d)), shape=(n, d))


def cycle(n: int, rare: float, seed: int) -> tuple[Any, Any]:
    """Draw rows of ten smooth problems, one per phase, with a fraction `rare` of positives."""
    rng = np.random.RandomState(seed)
    phase, Z = rng.randint(10, size=n), rng.uniform(-1, 1, (n, 6))
    direction = np.random.RandomState(0).standard_normal((10, 6))[phase]
    score = np.sin(2 * (Z * direction).sum(axis=1)) + Z[:, 0] * Z[:, 1]
    return np.hstack([np.eye(10)[phase], Z]), (score > np.quantile(score, 1 - rare)).astype(int)


def missed_loss(model: Any, X: Any, y: Any) -> list[float]:
    """Return the mean hinge loss, in each class, of rows that are not support vectors."""
    margins = (2 * y - 1) * model.decision_function(X)
    margins[model.support_] = 1
    loss = np.maximum(0, 1 - margins)
    loss[loss < 0.05] = 0  # a rough look passes over these rows
    return [loss[y == label].mean() for label in (0, 1)]


def runner() -> CliRunner:
    """Return a runner of commands that separates standard error; click 8.2 always does."""
    mixes = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(mix_stderr=False) if mixes else CliRunner()
