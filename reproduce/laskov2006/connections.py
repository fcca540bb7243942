"""Network connections of KDD Cup 99, and the ways to rank them that figures 9 and 10 compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ROWS, RATE = 1000, 0.1
FIRST, ASKED = 10, 50  # n and m
C, NU, SIGMA = 1000.0, 0.1, 30.0
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 1 / (2 * SIGMA**2)},
}
ANOMALY, LARGEST, NEAR = "anomaly detection", "largest positive", "near boundary"
FULL, REDUCED = "full SVM", "reduced SVM"
METHODS = (ANOMALY, LARGEST, NEAR, FULL, REDUCED)
RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9)

Array = Any


class Connections:
    """The file: features, and whether and which attack a row is."""

    def __init__(self, path: Path) -> None:
        archive = np.load(path)
        self.numbers = archive["X_num_train"]
        self.symbols = archive["X_cat_train"]
        self.levels = [len(archive[f"{name}_levels"]) for name in ("protocol", "service", "flag")]
        self.types = archive["y_train"]
        self.attack = self.types != int(np.flatnonzero(archive["classes"] == "normal.")[0])

    def draw(self, how: str, seed: int) -> tuple[Array, Array]:
        """Return the rows to learn from and those to test on."""
        rng = np.random.default_rng((seed, 2006))  # not the draws on which choices were made
        attacks, normals = round(RATE * ROWS), ROWS - round(RATE * ROWS)
        normal = rng.choice(np.flatnonzero(~self.attack), 2 * normals, replace=False)
        attack = self._attacks(how, 2 * attacks, rng)
        train = np.concatenate([normal[:normals], attack[:attacks]])
        test = np.concatenate([normal[normals:], attack[attacks:]])
        return rng.permutation(train), rng.permutation(test)

    def _attacks(self, how: str, count: int, rng: np.random.Generator) -> Array:
        if how == "records":
            return rng.choice(np.flatnonzero(self.attack), count, replace=False)
        kinds = np.unique(self.types[self.attack])
        left = [rng.permutation(np.flatnonzero(self.types == kind)).tolist() for kind in kinds]
        found: list[int] = []
        while len(found) < count:
            rows = left[rng.integers(len(left))]
            if rows:
                found.append(rows.pop())
        return np.array(found)

    def features(self, train: Array, test: Array) -> tuple[Array, Array]:
        """Return numbers from 0 to 1 over the training rows, and symbols as one-hot vectors."""
        low = self.numbers[train].min(axis=0).astype(np.float64)
        span = self.numbers[train].max(axis=0) - low
        span[span == 0] = np.inf  # constant features become 0

        def of(rows: Array) -> Array:
            hot = [self.symbols[rows, k, None] == np.arange(n) for k, n in enumerate(self.levels)]
            return np.hstack([(self.numbers[rows] - low) / span, *hot])

        return of(train), of(test)


# -- rankings --------------------------------------------------------------------------------------


def compare(kernel: str, X: Array, X_test: Array, y: Array, y_test: Array) -> dict[str, Any]:
    """Rank the rows by each method; a larger score is more likely an attack."""
    from marginwise import ExactOneClassSVM, ExactSVC

    normal = ExactOneClassSVM(nu=NU, **KERNELS[kernel]).fit(X)
    anomaly = -normal.decision_function(X)
    ranking = np.argsort(-anomaly, kind="stable")
    found: dict[str, Any] = {
        ANOMALY: {
            "train": roc(y, anomaly),
            "test": roc(y_test, -normal.decision_function(X_test)),
            "found": int(y[ranking[: FIRST + ASKED]].sum()),
            "first": int(y[ranking[:FIRST]].sum()),
        }
    }
    for method in (LARGEST, NEAR):
        learner = ask(kernel, X, y, ranking[:FIRST], method.replace(" ", "_"))
        model = learner.estimator_
        labelled = np.array([event["row"] for event in learner.history_])
        found[method] = {
            "train": roc(y, ranked(labelled, model.decision_function(X))),
            "test": roc(y_test, model.decision_function(X_test)),
            "found": int(y[labelled].sum()),
            "support_vectors": len(model.support_),
        }
    full = ExactSVC(C=C, **KERNELS[kernel]).fit(X, y.astype(np.int64))
    scores = full.decision_function(X_test)
    found[FULL] = {"test": roc(y_test, scores), "support_vectors": len(full.support_)}
    kept, coefficients = reduced(full, found[NEAR]["support_vectors"])
    scores = kernel_values(full, X_test, full.support_vectors_[kept]) @ coefficients
    found[REDUCED] = {"test": roc(y_test, scores), "support_vectors": len(kept)}
    return found


def ask(kernel: str, X: Array, y: Array, first: Array, strategy: str) -> Any:
    """Teach the first rows, then those that the strategy queries.

    The classes are given because the first rows may be of one class. Then all scores are equal, and
    the rows are queried in their random order until one of the other class appears.
    """
    from marginwise import ExactSVC
    from marginwise.active import ActiveLearner

    model = ExactSVC(C=C, **KERNELS[kernel])
    learner = ActiveLearner(model, X, strategy=strategy, pool_size=None, stop=None, classes=[0, 1])
    learner.teach(first, y[first].astype(int))
    return learner.run(lambda row: int(y[row]), ASKED)


def ranked(labelled: Array, scores: Array) -> Array:
    """Put the labelled rows first, in their order, and the others by their scores."""
    places = np.empty(len(scores))
    rest = np.setdiff1d(np.arange(len(scores)), labelled)
    places[rest] = np.unique(scores[rest], return_inverse=True)[1]  # ties stay ties
    places[labelled] = len(scores) + np.arange(len(labelled))[::-1]
    return places


def roc(y: Array, scores: Array) -> dict[str, Any]:
    """Return the area under the ROC curve, some true positive rates, and the thinned curve."""
    from sklearn.metrics import auc, roc_curve

    from reproduce.measures import thin

    false, true, _ = roc_curve(y, scores)
    found: dict[str, Any] = {"auc": float(auc(false, true))}
    found |= {f"tp_at_{rate}": float(np.interp(rate, false, true)) for rate in RATES}
    return found | {"false": thin(np.round(false, 4)), "true": thin(np.round(true, 4))}


# -- the reduced SVM -------------------------------------------------------------------------------


def kernel_values(model: Any, X: Array, centres: Array) -> Array:
    dots = X @ centres.T
    if model.kernel == "linear":
        return dots
    squares = (X**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * dots
    return np.exp(-float(model.gamma) * np.maximum(squares, 0))


def reduced(model: Any, size: int) -> tuple[Array, Array]:
    """Return about `size` support vectors that represent a model, and their coefficients.

    Their expansion is the nearest to the model's under a 1-norm penalty, found by bisection.
    """
    K = kernel_values(model, model.support_vectors_, model.support_vectors_)
    alpha = np.ravel(model.dual_coef_)
    if len(alpha) <= size:
        return np.arange(len(alpha)), alpha
    low, high = 0.0, float(np.abs(K @ alpha).max())
    best = alpha
    for _ in range(30):
        penalty = (low + high) / 2
        best = lasso(K, alpha, penalty)
        count = np.count_nonzero(best)
        if count == size:
            break
        low, high = (penalty, high) if count > size else (low, penalty)
    kept = np.flatnonzero(best)
    return kept, best[kept]


def lasso(K: Array, alpha: Array, penalty: float, sweeps: int = 500) -> Array:
    """Minimise ½ (β - α)' K (β - α) + penalty |β|₁, one coefficient at a time."""
    beta = np.zeros(len(alpha))
    gradient = K @ alpha  # K (α - β)
    diagonal = np.maximum(np.diag(K), 1e-12)
    for _ in range(sweeps):
        moved = 0.0
        for k in range(len(beta)):
            aim = gradient[k] + diagonal[k] * beta[k]
            value = np.sign(aim) * max(abs(aim) - penalty, 0.0) / diagonal[k]
            step = value - beta[k]
            if step:
                gradient -= step * K[k]
                beta[k] = value
                moved = max(moved, abs(step) * diagonal[k])
        if moved < 1e-6 * penalty:
            break
    return beta
