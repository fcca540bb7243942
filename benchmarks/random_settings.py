"""Random problems and parameters for OnlineSVC and SVC: `Setting(seed)` is always the same one.

Kernels, C from 0.01 to 1000, gamma around "scale", 2 to 100 classes, 200 to 6,000 rows; some
settings have rare classes, wrong labels, duplicated rows, weights or sparse rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import Split
from numpy.typing import NDArray
from paired import Problem
from sklearn.metrics.pairwise import cosine_similarity

KERNELS = ("rbf", "linear", "poly", "sigmoid", "cosine", "tanimoto")
ROWS = (200, 6000)
TEST_ROWS = 4000
SVC_STEPS = 500_000  # of all pairs of classes together, after which SVC stops
LEAST_STEPS = 20_000  # of each pair of classes
SECONDS = 60.0  # CPU time after which OnlineSVC is given up
SPARSE = 0.4  # share of the values that are not zero in sparse rows


@dataclass(frozen=True)
class Setting:
    """The setting of a seed, and the seed of OnlineSVC."""

    seed: int

    @property
    def key(self) -> str:
        return f"settings/{self.seed}"

    @property
    def seeds(self) -> tuple[int, ...]:
        return (self.seed,)

    def problem(self, folder: str = "") -> Problem:
        rng = np.random.default_rng((self.seed, 300))
        shape = Shape.drawn(rng)
        split = rows(shape, rng)
        params, weights = parameters(split, shape, rng)
        kernel = {"cosine": cosine, "tanimoto": tanimoto}.get(params["kernel"])
        about = f"{described(params)}, {shape}{', sample weights' if weights is not None else ''}"
        pairs = shape.classes * (shape.classes - 1) // 2
        steps = max(SVC_STEPS // pairs, LEAST_STEPS)
        return Problem(split, params, weights, kernel, steps, SECONDS, about)


@dataclass(frozen=True)
class Shape:
    """The properties of the rows of a setting."""

    rows: int
    features: int
    classes: int
    noise: float  # share of wrong labels, in training rows
    rarity: float  # how different the sizes of the classes are
    duplicates: bool
    sparse: bool

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Shape:
        n = log_uniform(rng, *ROWS)
        return cls(
            rows=round(n),
            features=round(log_uniform(rng, 3, 60)),
            classes=min(round(log_uniform(rng, 2, 100)), round(n) // 10),
            noise=float(rng.choice([0.0, 0.0, 0.05, 0.2])),
            rarity=float(rng.choice([0.0, 0.0, 1.5, 4.0])),
            duplicates=bool(rng.random() < 0.2),
            sparse=bool(rng.random() < 0.2),
        )

    def __str__(self) -> str:
        said = f"{self.rows} rows, {self.features} features, {self.classes} classes"
        said += f", {self.noise:.0%} noise" if self.noise else ""
        said += f", rarity {self.rarity:g}" if self.rarity else ""
        return said + ", duplicates" * self.duplicates + ", sparse" * self.sparse


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def described(params: dict[str, Any]) -> str:
    known = {name: f"{v:.3g}" if isinstance(v, float) else v for name, v in params.items()}
    weighted = isinstance(known.get("class_weight"), dict)
    known |= {"class_weight": "dict"} if weighted else {}
    return ", ".join(f"{name}={value}" for name, value in known.items())


# -- rows ----------------------------------------------------------------------------------------


def rows(shape: Shape, rng: np.random.Generator) -> Split:
    """Draw clusters, two for each class, that overlap more or less."""
    total = shape.rows + TEST_ROWS
    shares = np.exp(-shape.rarity * rng.random(shape.classes))
    y = rng.choice(shape.classes, size=total, p=shares / shares.sum())
    y[: shape.classes] = np.arange(shape.classes)
    centres = rng.normal(size=(shape.classes, 2, shape.features))
    spread = log_uniform(rng, 0.1, 1)
    X = centres[y, rng.integers(0, 2, total)] + spread * rng.normal(size=(total, shape.features))
    X *= rng.random(X.shape) < SPARSE if shape.sparse else 1.0
    fit, test = slice(shape.rows), slice(shape.rows, None)
    split = Split(X[fit], y[fit], X[test], y[test])
    if shape.duplicates:
        kept = rng.integers(shape.classes, 2 * shape.classes + shape.rows // 4, shape.rows)
        kept[: shape.classes] = np.arange(shape.classes)
        split.X, split.y = split.X[kept], split.y[kept]
    wrong = rng.random(shape.rows) < shape.noise
    wrong[: shape.classes] = False
    split.y = np.where(wrong, rng.integers(0, shape.classes, shape.rows), split.y)
    return split


def parameters(
    split: Split, shape: Shape, rng: np.random.Generator
) -> tuple[dict[str, Any], NDArray[np.float64] | None]:
    """Draw the parameters and the sample weights, and give the rows the form that they need."""
    kernel = str(rng.choice(KERNELS))
    if kernel == "tanimoto":
        split.X, split.X_test = np.abs(split.X), np.abs(split.X_test)
    params: dict[str, Any] = {"kernel": kernel, "C": log_uniform(rng, 0.01, 1000)}
    if kernel in ("rbf", "poly", "sigmoid"):
        scale = 1 / (shape.features * split.X.var())
        params["gamma"] = float(scale * log_uniform(rng, 0.03, 30))
    if kernel == "poly":
        params |= {"degree": int(rng.integers(2, 4)), "coef0": float(rng.integers(2))}
    weights = None
    match rng.integers(6):
        case 0:
            params["class_weight"] = "balanced"
        case 1:
            params["class_weight"] = {k: log_uniform(rng, 0.2, 5) for k in range(shape.classes)}
        case 2:
            weights = rng.exponential(size=shape.rows)
    if shape.sparse:
        split.X, split.X_test = sp.csr_matrix(split.X), sp.csr_matrix(split.X_test)
    return params, weights


# -- kernels that SVC lacks ----------------------------------------------------------------------


def cosine(A: Any, B: Any) -> Any:
    return cosine_similarity(A, B, dense_output=True)


def tanimoto(A: Any, B: Any) -> Any:
    A, B = (M.toarray() if sp.issparse(M) else M for M in (A, B))
    dots = A @ B.T
    either = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - dots
    return np.divide(dots, either, out=np.ones_like(dots), where=either > 0)
