"""Problems: random classification problems beside scikit-learn's `SVC`.

C goes from 1e-6 to 1e12, the scale of the features from 1e-12 to 1e12, over all kernels and all
estimators.

Invariant: the estimator agrees with the reference, or it warns, or it refuses the problem with a
ValueError. It is never silently wrong. The reference is the better of two solutions of the same
dual problem: `SVC` (or `OneClassSVM`) with the kernel matrix in double precision, scaled to an
average diagonal of 1, and, for estimators without a bias, coordinate ascent. Both are compared by
the dual objective, which no feasible solution can exceed, and by training accuracy. TrackingSVC,
which makes a fixed number of steps per row, the ramp loss and the perceptron are judged by accuracy
alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, OneClassSVM

from tests.stress.harness import Options, Outcome
from tests.stress.subjects import ESTIMATORS, make
from tests.support import kernel_values

TOTAL = 300
BATCH = 25
LIMIT = 60.0
KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto")
BIASED = ("OnlineSVC", "ExactSVC")

# How much of the reference's dual objective may be missing, and how much of its accuracy.
TOLERANCES = {
    "OnlineSVC": (0.02, 0.03),
    "GapSVC": (0.02, 0.03),
    "TrackingSVC": (None, 0.1),
    "ExactSVC": (1e-5, 0.011),
    "ExactRampSVC": (None, 0.1),
    "KernelPerceptron": (None, 0.35),
}


@dataclass
class Problem:
    """Rows, labels of -1 and 1, and the parameters that go with them."""

    name: str
    kernel: str
    C: float
    scale: float
    X: Any
    y: Any
    parameters: dict[str, Any]

    def __str__(self) -> str:
        n, d = self.X.shape
        return f"{self.name} {self.kernel} C={self.C:.2g} scale={self.scale:.2g} n={n} d={d}"


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    problem = _problem(case, rng)
    if problem.name == "ExactOneClassSVM":
        return _one_class(problem, rng)
    K = _matrix(problem)
    outcome = Outcome()
    if not np.isfinite(K).all():
        return outcome.count("kernel overflows in double")
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = _make(problem).fit(problem.X, problem.y)
            f = model.decision_function(problem.X)
    except ValueError:
        return outcome.count("refused")
    complaint = _complaint(problem, K, model, f)
    if complaint is None:
        return outcome.count("agreed with a warning" if _warnings(said) else "agreed")
    if _warnings(said):
        return outcome.count("warned")
    return outcome.violate(f"{problem}: {complaint}")


def _warnings(said: Any) -> list[str]:
    return [str(w.message) for w in said if issubclass(w.category, UserWarning)]


# -- problems ----------------------------------------------------------------------------------


def _problem(case: int, rng: np.random.Generator) -> Problem:
    n, d = int(rng.integers(10, 90)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    shape = rng.integers(5)
    if shape == 0:  # only a few different rows
        X = np.round(X)
    elif shape == 1:  # one binary feature and noise
        X[:, 0] = rng.integers(2, size=n)
    elif shape == 2:  # heavy tails
        X = rng.standard_t(1.5, size=(n, d))
    noise = rng.choice([0.0, 0.0, 0.1, 0.3])
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) * (shape == 3) > np.median(X[:, 0]), 1, -1)
    y[rng.random(n) < noise] *= -1
    y[:2] = 1, -1
    kernel = str(rng.choice(KERNELS))
    tame = rng.random() < 0.3
    scale = 1.0 if tame else float(10 ** rng.uniform(-12, 12))
    C = float(10 ** (rng.uniform(-3, 3) if tame else rng.uniform(-6, 12)))
    X = (np.abs(X) if kernel == "tanimoto" else X) * scale
    parameters: dict[str, Any] = {"degree": int(rng.integers(2, 4)), "coef0": 0.0}
    if kernel == "poly":
        parameters["coef0"] = float(rng.integers(2))
    return Problem(ESTIMATORS[case % len(ESTIMATORS)], kernel, C, scale, X, y, parameters)


def _make(problem: Problem) -> Any:
    given = {**problem.parameters, "C": problem.C, "kernel": problem.kernel}
    return make(problem.name, gamma=_gamma(problem), epochs=30, average=False, **given)


def _gamma(problem: Problem) -> float:
    """What gamma="scale" comes to, so that the reference has the same."""
    variance = float(problem.X.var())
    return 1.0 / (problem.X.shape[1] * variance) if variance > 0 else 1.0


def _matrix(problem: Problem) -> Any:
    with np.errstate(all="ignore"):
        return kernel_values(
            problem.kernel,
            problem.X,
            problem.X,
            _gamma(problem),
            problem.parameters["coef0"],
            problem.parameters["degree"],
        )


# -- references --------------------------------------------------------------------------------


def _complaint(problem: Problem, K: Any, model: Any, f: Any) -> str | None:
    """Say how far a model is from the reference, if it is too far."""
    if not np.isfinite(f).all():
        return "decision values are not finite"
    if problem.kernel == "sigmoid":  # not positive semi-definite: many solutions
        return None
    size = float(np.mean(np.abs(np.diag(K)))) or 1.0
    K, C = K / size, problem.C * size
    beta, accuracy = _reference(problem, K, C)
    least, missing = TOLERANCES[problem.name]
    reached = float(np.mean(np.where(f > 0, 1, -1) == problem.y))
    if reached < accuracy - max(missing, 1.01 / len(f)):  # a row on the boundary may go either way
        return f"accuracy {reached:.3f}, reference {accuracy:.3f}"
    if least is None:
        return None
    own = np.zeros(len(f))
    own[model.support_] = model.dual_coef_[0] * size
    best, dual = _dual(K, problem.y, beta), _dual(K, problem.y, own)
    if dual < best - least * abs(best):
        return f"dual {dual:.6g}, reference {best:.6g}"
    return None


def _dual(K: Any, y: Any, beta: Any) -> float:
    """W of signed coefficients."""
    return float(beta @ y - 0.5 * beta @ K @ beta)


def _reference(problem: Problem, K: Any, C: float) -> tuple[Any, float]:
    """Return signed coefficients and training accuracy of the reference."""
    if problem.name in BIASED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc = SVC(kernel="precomputed", C=C, tol=1e-6, max_iter=200_000).fit(K, problem.y)
        beta = np.zeros(len(K))
        beta[svc.support_] = svc.dual_coef_[0]
        return beta, float(svc.score(K, problem.y))
    beta = _ascent(K, problem.y, C)
    return beta, float(np.mean(np.where(K @ beta > 0, 1, -1) == problem.y))


def _ascent(K: Any, y: Any, C: float, sweeps: int = 400) -> Any:
    """Maximise the dual without a bias, one coefficient at a time."""
    lo, hi = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    beta, g = np.zeros(len(y)), y.astype(float)
    for _ in range(sweeps):
        moved = 0.0
        for k in np.flatnonzero(np.diag(K) > 0):
            step = np.clip(beta[k] + g[k] / K[k, k], lo[k], hi[k]) - beta[k]
            if step:
                beta[k] += step
                g -= step * K[:, k]
                moved = max(moved, abs(step * K[k, k]))
        if moved < 1e-6:
            break
    return beta


# -- one class ---------------------------------------------------------------------------------


def _one_class(problem: Problem, rng: np.random.Generator) -> Outcome:
    """Compare with `OneClassSVM` where all K(x, x) are 1."""
    problem.kernel = str(rng.choice(["rbf", "cosine", "tanimoto"]))
    nu = float(rng.uniform(0.05, 0.9))
    if problem.kernel == "tanimoto":
        problem.X = np.abs(problem.X)
    X = problem.X[np.abs(problem.X).max(axis=1) > 0]
    problem.X = X
    K = _matrix(problem)
    outcome = Outcome()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = make(problem.name, nu=nu, gamma=_gamma(problem), kernel=problem.kernel).fit(X)
            f = model.decision_function(X)
    except ValueError:
        return outcome.count("refused")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-9, max_iter=1_000_000).fit(K)
    expected = svm.decision_function(K)
    total = nu * len(X)  # of the coefficients; the centre may be 0, and all values with it
    spread = max(float(np.ptp(expected)), 1e-6 * total)
    # Where no example is on the sphere its radius lies within bounds, and any is right.
    apart = float(np.abs((f - f.mean()) - (expected - expected.mean())).max())
    shift = abs(float(f.mean() - expected.mean()))
    inside = float(np.mean(f < -1e-9 * spread)) <= nu + 1e-9
    near = 1e-4 * spread + 1e-6 * total  # the reference has kernel values in single precision
    if np.isfinite(f).all() and apart <= near and (shift <= 1e-3 * spread or inside):
        return outcome.count("agreed")
    if _warnings(said):
        return outcome.count("warned")
    message = f"{problem} nu={nu:.3f}: off by {apart / spread:.2g} of the spread"
    return outcome.violate(f"{message}, shifted by {shift / spread:.2g}")
