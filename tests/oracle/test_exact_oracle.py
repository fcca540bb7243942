"""ExactSVC and ExactOneClassSVM against solvers of another kind.

libsvm keeps kernel values in single precision, so that SVC(tol=1e-10) is good to some 1e-7 times
the sum of |alpha|. `refined` takes who is free and who is at a bound from it, solves the linear
system of the free ones in double precision, and tests that the conditions of the optimum hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_moons
from sklearn.svm import SVC, OneClassSVM

from marginwise import ExactOneClassSVM, ExactSVC
from tests.support import blobs, held, kernel_values, rings

DATA = Path(os.environ.get("MARGINWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")
Rows = tuple[Any, np.ndarray]


# -- data -----------------------------------------------------------------------------------------


def digits(n: int, seed: int) -> Rows:
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[rows] / 16, (y[rows] % 2).astype(np.int64)


def moons(n: int, seed: int) -> Rows:
    X, y = make_moons(n, noise=0.3, random_state=seed)
    return X, y.astype(np.int64)


def bananas(n: int, seed: int) -> Rows:
    """Two overlapping arcs."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    angle = rng.uniform(0, np.pi, size=n) + np.pi * y
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=0.35, size=(n, 2))
    X[:, 0] += 0.8 * y
    return X, y


def texts(n: int, seed: int) -> Rows:
    """Sparse rows of counts, weighted and of length one, two topics that share most words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    words = 1.0 / np.arange(1, 401)
    topics = np.stack([words, words[rng.permutation(400)]])
    topics = 0.6 * topics + 0.4 * topics.mean(axis=0)
    counts = np.stack([rng.multinomial(25, topics[k] / topics[k].sum()) for k in y])
    X = np.log1p(counts) * np.log(n / (1 + (counts > 0).sum(axis=0)))
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y


def stored(name: str, n: int, seed: int) -> Rows:
    file = DATA / {"reuters": "reuters_moneyfx_lasvm.npz"}.get(name, f"{name}.npz")
    if not file.is_file():
        pytest.skip(f"the data folder {DATA} lacks {file.name}")
    with np.load(file) as parts:
        if name == "banana":
            X, y = parts["X"], parts["y"]
        else:
            names = ("X_train_data", "X_train_indices", "X_train_indptr")
            X = sp.csr_array(
                tuple(parts[part] for part in names), shape=tuple(parts["X_train_shape"])
            )
            y = parts["y_train"]
        rows = np.random.default_rng(seed).permutation(len(y))[:n]
        if name == "reuters":  # its positive rows are few
            rare = np.flatnonzero(y == y.max())[: n // 4]
            rows = np.unique(np.concatenate([rare, rows[: n - len(rare)]]))
        return X[rows], (y[rows] == y.max()).astype(np.int64)


def laplace(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)))


def matrix(params: dict[str, Any], A: Any, B: Any) -> np.ndarray:
    """Kernel values in plain NumPy, for the parameters of an estimator."""
    if callable(params["kernel"]):
        return laplace(A, B)
    known = {name: params[name] for name in ("gamma", "coef0", "degree") if name in params}
    return kernel_values(params["kernel"], A, B, **known)


# -- the optimum in double precision --------------------------------------------------------------


class Optimum:
    """The solution of a binary problem, its conditions tested."""

    def __init__(self, K: np.ndarray, y: np.ndarray, C: Any) -> None:
        self.K, self.y, self.C = K, y, np.full(len(y), C, dtype=float)
        self.svc = SVC(C=1.0, kernel="precomputed", tol=1e-10, cache_size=100)
        self.svc.fit(K, y, sample_weight=self.C)
        rough = np.zeros(len(y))
        rough[self.svc.support_] = self.svc.dual_coef_[0]
        self.size = float(np.abs(rough).sum())
        near = 1e-6 * self.C
        self.low, self.high = np.abs(rough) <= near, np.abs(rough) >= self.C - near
        self.alpha, self.b = rough, float(self.svc.intercept_[0])
        for _ in range(60):
            self._solve()
            if self._mended():
                return
        raise AssertionError("the refined solution of SVC satisfies no conditions")

    def _solve(self) -> None:
        """Solve the bordered system of those that are free."""
        signs = np.where(self.y == 1, 1.0, -1.0)
        free = ~(self.low | self.high)
        alpha = np.where(self.high, signs * self.C, 0.0)
        m = int(free.sum())
        A = np.ones((m + 1, m + 1))
        A[m, m] = 0.0
        A[:m, :m] = self.K[np.ix_(free, free)]
        right = np.append((signs - self.K @ alpha)[free], -alpha.sum())
        x = np.linalg.lstsq(A, right, rcond=1e-15)[0] if m else np.array([self.b])
        if m:  # to the last digit
            x = x + np.linalg.lstsq(A, right - A @ x, rcond=1e-15)[0]
        alpha[free] = x[:m]
        self.alpha, self.b = alpha, float(x[-1])

    def _mended(self) -> bool:
        """Tell whether the conditions hold; if not, move the one that is most wrong."""
        signs = np.where(self.y == 1, 1.0, -1.0)
        unsigned, margin = signs * self.alpha, signs * (self.K @ self.alpha + self.b) - 1
        near = 1e-9 * max(1.0, float(self.C.max()))
        if (~(self.low | self.high)).any():
            wrong = np.where(self.low, -margin, np.where(self.high, margin, 0.0))
        else:
            wrong = np.zeros(len(signs))
        outside = np.maximum(-unsigned, unsigned - self.C)
        if outside.max() > near:
            k = int(np.argmax(outside))
            self.low[k], self.high[k] = unsigned[k] < 0, unsigned[k] >= 0
            return False
        if wrong.max() > 1e-9 * (1 + self.size):
            k = int(np.argmax(wrong))
            self.low[k] = self.high[k] = False
            return False
        return True

    def decision(self, K_test: np.ndarray) -> np.ndarray:
        return K_test @ self.alpha + self.b


def violation(model: ExactSVC, K: np.ndarray, y: np.ndarray, C: Any, rows: np.ndarray) -> float:
    """How far the conditions are violated among some rows, from what the model shows."""
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    assert not alpha[np.setdiff1d(np.arange(len(y)), rows)].any(), "a row that is not held counts"
    f = K[rows] @ alpha + model.intercept_[0]
    signs = np.where(y[rows] == 1, 1.0, -1.0)
    unsigned, margin = signs * alpha[rows], signs * f - 1
    C = np.broadcast_to(C, len(y))[rows]
    assert (unsigned >= 0).all()
    assert (unsigned <= C).all()
    short, over = np.where(unsigned < C, -margin, 0.0), np.where(unsigned > 0, margin, 0.0)
    return float(max(short.max(), over.max(), abs(alpha.sum()) * np.abs(K).max()))


PROBLEMS: list[tuple[str, Callable[[int, int], Rows], int, dict[str, Any]]] = [
    ("digits", digits, 160, {"kernel": "rbf", "gamma": 0.05, "C": 10.0}),
    ("digits", digits, 120, {"kernel": "linear", "C": 0.1}),
    ("digits", digits, 120, {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2, "C": 1.0}),
    ("digits", digits, 120, {"kernel": "cosine", "C": 10.0}),
    ("digits", digits, 120, {"kernel": "tanimoto", "C": 3.0}),
    ("moons", moons, 160, {"kernel": "rbf", "gamma": 2.0, "C": 100.0}),
    ("moons", moons, 160, {"kernel": "linear", "C": 5.0}),
    ("moons", moons, 100, {"kernel": laplace, "C": 5.0}),
    ("bananas", bananas, 160, {"kernel": "rbf", "gamma": 1.0, "C": 1.0}),
    ("bananas", bananas, 120, {"kernel": "poly", "gamma": 1.0, "coef0": 1.0, "degree": 2, "C": 1}),
    ("texts", texts, 90, {"kernel": "linear", "C": 3.0}),
    ("texts", texts, 90, {"kernel": "cosine", "C": 0.3}),
    ("texts", texts, 90, {"kernel": "tanimoto", "C": 10.0}),
]
STORED: list[tuple[str, int, dict[str, Any]]] = [
    ("banana", 200, {"kernel": "rbf", "gamma": 1.0, "C": 10.0}),
    ("a9a", 120, {"kernel": "rbf", "gamma": 0.05, "C": 1.0}),
    ("a9a", 120, {"kernel": "tanimoto", "C": 1.0}),
    ("reuters", 100, {"kernel": "linear", "C": 1.0}),
]


def assert_optimal(
    model: ExactSVC, K: np.ndarray, y: np.ndarray, K_test: np.ndarray, f: Any
) -> None:
    best = Optimum(K, y, model.C)
    np.testing.assert_allclose(f, best.decision(K_test), rtol=0, atol=1e-6)
    rough = best.svc.decision_function(K_test)
    np.testing.assert_allclose(f, rough, rtol=0, atol=1e-6 * (1 + best.size))


def compare(X: Any, y: np.ndarray, params: dict[str, Any], seed: int) -> None:
    n = X.shape[0]
    model = ExactSVC(**params)
    K = matrix(params, X, X)
    for k in range(n):
        model.partial_fit(X[[k]], y[[k]], classes=[0, 1])
        scale = 1 + float(np.abs(model.dual_coef_).sum()) * np.abs(K).max()
        assert model._engine.native.violation().max() <= 1e-9 * scale, f"after row {k}"
        if k % 40 == 39:
            found = violation(model, K, y, model.C, np.arange(k + 1))
            assert found <= 1e-9 * scale, f"after row {k}"
    assert_optimal(model, K, y, K, model.decision_function(X))
    forgotten = np.random.default_rng(seed).permutation(n)[: n // 2]
    rest = np.setdiff1d(np.arange(n), forgotten)
    at_once = ExactSVC(**params).fit(X, y).forget(forgotten)
    for row in forgotten:
        model.forget([row])
        scale = 1 + float(np.abs(model.dual_coef_).sum()) * np.abs(K).max()
        assert model._engine.native.violation().max() <= 1e-9 * scale, f"after forgetting row {row}"
    assert violation(model, K, y, model.C, rest) <= 1e-9 * scale
    fresh = ExactSVC(**params).fit(X[rest], y[rest]).decision_function(X)
    for forgetful in (model, at_once):
        assert sorted(forgetful.ids_.tolist()) == rest.tolist()
        np.testing.assert_allclose(forgetful.decision_function(X), fresh, rtol=0, atol=1e-6)
    assert_optimal(model, K[np.ix_(rest, rest)], y[rest], K[:, rest], model.decision_function(X))


def named(problem: Any) -> str:
    kernel = problem[-1]["kernel"]
    return f"{problem[0]}-{kernel if isinstance(kernel, str) else 'callable'}"


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, ids=named)
def test_every_arrival_and_removal_is_optimal(problem: Any, seed: int) -> None:
    _, make, n, params = problem
    X, y = make(n, seed)
    compare(X, y, params, seed)


@pytest.mark.slow
@pytest.mark.parametrize("problem", STORED, ids=named)
def test_every_arrival_and_removal_is_optimal_on_stored_data(problem: Any, seed: int) -> None:
    name, n, params = problem
    X, y = stored(name, n, seed)
    compare(X, y, params, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf", "gamma": 1.0, "C": 0.05},
        {"kernel": "rbf", "gamma": 1.0, "C": 1.0},
        {"kernel": "rbf", "gamma": 3.0, "C": 1e3},
        {"kernel": "linear", "C": 1.0},
        {"kernel": "poly", "gamma": 1.0, "coef0": 1.0, "degree": 2, "C": 30.0},
    ],
    ids=lambda params: f"{params['kernel']}-{params['C']}",
)
def test_rows_that_are_not_watched_do_not_go_astray(params: dict[str, Any], seed: int) -> None:
    """So many that those far from the margin are left alone on the way."""
    X, y = moons(700, seed)
    K = matrix(params, X, X)
    model = ExactSVC(**params)
    for start in range(0, 700, 35):
        rows = slice(start, start + 35)
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        scale = 1 + float(np.abs(model.dual_coef_).sum()) * np.abs(K).max()
        found = violation(model, K, y, model.C, np.arange(start + 35))
        assert found <= 1e-9 * scale, f"after row {start + 35}"
    gone = np.random.default_rng(seed).permutation(700)
    for start in range(0, 400, 50):
        for row in gone[start : start + 50]:
            model.forget([row])
        found = violation(model, K, y, model.C, gone[start + 50 :])
        assert found <= 1e-9 * scale, f"after forgetting {start + 50} rows"
    model.set_C(3 * model.C).set_C(model.C / 9)
    assert violation(model, K, y, model.C, gone[400:]) <= 1e-9 * scale
    assert model._engine.resolved == 0


def test_precomputed_is_optimal(seed: int) -> None:
    X, y = moons(200, seed)
    X_test, _ = moons(50, seed + 1000)
    K, K_test = (kernel_values("rbf", A, X, gamma=2.0) for A in (X, X_test))
    model = ExactSVC(kernel="precomputed", C=10.0).fit(K, y)
    assert_optimal(model, K, y, K_test, model.decision_function(K_test))
    by_name = ExactSVC(kernel="rbf", gamma=2.0, C=10.0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(K_test), by_name.decision_function(X_test), rtol=0, atol=1e-9
    )
    rest = np.arange(0, 200, 2)
    model.forget(np.arange(1, 200, 2))
    K_rest = K[np.ix_(rest, rest)]
    assert_optimal(model, K_rest, y[rest], K_test[:, rest], model.decision_function(K_test))


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e3, 1e5])
def test_any_c_is_optimal(C: float, seed: int) -> None:
    X, y = moons(80, seed)
    K = kernel_values("rbf", X, X, gamma=1.0)
    model = ExactSVC(C=C, gamma=1.0).fit(X, y)
    found = violation(model, K, y, C, np.arange(80))
    assert found <= 1e-10 * (1 + np.abs(model.dual_coef_).sum())
    if C >= 0.1:  # below it nobody is free
        assert_optimal(model, K, y, K, model.decision_function(X))


def test_weights_are_optimal(seed: int) -> None:
    X, y = moons(150, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], size=150)
    kept = np.flatnonzero(weights)
    by_class = np.where(y == 1, 4.0, 0.5)
    model = ExactSVC(C=2.0, gamma=1.0, class_weight={0: 0.5, 1: 4.0})
    model.fit(X, y, sample_weight=weights)
    K = kernel_values("rbf", X, X, gamma=1.0)
    bounds = 2.0 * weights * by_class
    assert violation(model, K, y, bounds, kept) <= 1e-11
    best = Optimum(K[np.ix_(kept, kept)], y[kept], bounds[kept])
    f = model.decision_function(X)
    np.testing.assert_allclose(f, best.decision(K[:, kept]), rtol=0, atol=1e-6)


def test_whole_weights_are_rows_repeated(seed: int) -> None:
    X, y = moons(80, seed)
    weights = np.random.default_rng(seed).integers(4, size=80)
    again = np.repeat(np.arange(80), weights)
    weighted = ExactSVC(C=2.0).fit(X, y, sample_weight=weights)
    repeated = ExactSVC(C=2.0).fit(X[again], y[again])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("classes", [3, 10])
def test_several_classes_are_one_vs_rest(classes: int, seed: int) -> None:
    X, y = blobs(200, seed, classes)
    model = ExactSVC(C=2.0, gamma=0.5).fit(X, y)
    K = kernel_values("rbf", X, X, gamma=0.5)
    f = model.decision_function(X)
    for c in range(classes):
        best = Optimum(K, (y == c).astype(int), 2.0)
        np.testing.assert_allclose(f[:, c], best.decision(K), rtol=0, atol=1e-6)
    gone = np.random.default_rng(seed).permutation(200)[:70]
    rest = np.setdiff1d(np.arange(200), gone)
    model.forget(gone)
    fresh = ExactSVC(C=2.0, gamma=0.5).partial_fit(X[rest], y[rest], classes=range(classes))
    np.testing.assert_allclose(
        model.decision_function(X), fresh.decision_function(X), rtol=0, atol=1e-9
    )


# -- leaving one out ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.02, 2.0, 1e3])
def test_leaving_one_out_is_fitting_without_it(
    classes: int, weighted: bool, C: float, seed: int
) -> None:
    X, y = rings(60, seed, noise=0.1) if classes == 2 else blobs(60, seed, classes)
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, size=60) if weighted else np.ones(60)
    model = ExactSVC(C=C, gamma=0.8).fit(X, y, sample_weight=weights)
    before = model.decision_function(X)
    said = model.leave_one_out()
    assert np.array_equal(model.decision_function(X), before)
    expected = np.empty(said.decision.shape)
    wrong = 0
    for place, row in enumerate(said.ids):
        rest = np.setdiff1d(np.arange(60), row)
        fresh = ExactSVC(C=C, gamma=0.8).fit(X[rest], y[rest], sample_weight=weights[rest])
        expected[place] = fresh.decision_function(X[[row]])[0]
        wrong += int(fresh.predict(X[[row]])[0] != y[row])
    np.testing.assert_allclose(said.decision, expected, rtol=0, atol=1e-8)
    assert said.error == pytest.approx(wrong / 60)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_leaving_one_out_of_degenerate_rows(kernel: str, seed: int) -> None:
    """Few distinct points, some of them in both classes."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(3, size=(30, 2)).astype(float), rng.integers(2, size=30)
    params: dict[str, Any] = {"kernel": kernel, "degree": 2, "gamma": 1.0, "coef0": 1.0, "C": 1.0}
    said = ExactSVC(**params).fit(X, y).leave_one_out()
    for value, row in zip(said.decision, said.ids, strict=True):
        rest = np.setdiff1d(np.arange(30), row)
        fresh = ExactSVC(**params).fit(X[rest], y[rest])
        if ((np.abs(fresh.dual_coef_) < 1.0 - 1e-9) & (fresh.dual_coef_ != 0)).any():  # one bias
            assert value == pytest.approx(fresh.decision_function(X[[row]])[0], abs=1e-8)


# -- other C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_changing_c_is_fitting_anew(classes: int, seed: int) -> None:
    X, y = rings(120, seed, noise=0.1) if classes == 2 else blobs(120, seed, classes)
    params: dict[str, Any] = {"gamma": 0.8, "class_weight": {0: 2.0, 1: 0.5}}
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, size=120)
    model = ExactSVC(C=1.0, **params).fit(X, y, sample_weight=weights)
    for C in (2.0, 50.0, 1e4, 3.0, 0.1, 1e-3, 0.5, 1.0):
        model.set_C(C)
        model._engine.native.check(1e-9 * (1 + C))
        fresh = ExactSVC(C=C, **params).fit(X, y, sample_weight=weights)
        tolerance = 1e-8 * (1 + C / 100)
        np.testing.assert_allclose(
            model.decision_function(X), fresh.decision_function(X), rtol=0, atol=tolerance
        )
        np.testing.assert_allclose(model.dual_objective(), fresh.dual_objective(), rtol=1e-9)
    model.partial_fit(X[:5], y[:5])
    fresh = ExactSVC(C=1.0, **params).partial_fit(
        X[np.r_[0:120, 0:5]],
        y[np.r_[0:120, 0:5]],
        classes=range(classes),
        sample_weight=np.r_[weights, np.ones(5)],
    )
    np.testing.assert_allclose(
        model.decision_function(X), fresh.decision_function(X), rtol=0, atol=1e-9
    )


# -- the window -----------------------------------------------------------------------------------


def windowed(X: np.ndarray, y: np.ndarray, window: int, evict: str, params: Any) -> list[int]:
    """Ids that are left when each row is learned anew with what the window holds."""
    rows: list[int] = []
    for k in range(len(y)):
        if len(rows) == window:
            light = [0.0] * window
            if evict == "lightest":
                fresh = ExactSVC(**params).partial_fit(X[rows], y[rows], classes=[0, 1])
                light = [abs(alpha) for _, alpha in sorted(held(fresh).items())]
            rows.pop(int(np.argmin(np.round(light, 9))))
        rows.append(k)
    return rows


@pytest.mark.parametrize("evict", ["lightest", "oldest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_each_problem_has_a_window_of_its_own(classes: int, evict: Any, seed: int) -> None:
    X, y = rings(90, seed, noise=0.1) if classes == 2 else blobs(90, seed, classes)
    params: dict[str, Any] = {"C": 2.0, "gamma": 0.8}
    model = ExactSVC(**params, window=25, evict=evict).partial_fit(X, y, classes=range(classes))
    said = model.decision_function(X).reshape(90, -1)
    everyone = set()
    for c in range(1 if classes == 2 else classes):
        labels = y if classes == 2 else (y == c).astype(np.int64)
        rows = windowed(X, labels, 25, evict, params)
        assert sorted(held(model, problem=c)) == sorted(rows), f"problem {c}"
        fresh = ExactSVC(**params).partial_fit(X[rows], labels[rows], classes=[0, 1])
        np.testing.assert_allclose(said[:, c], fresh.decision_function(X), rtol=0, atol=1e-9)
        everyone |= set(rows)
    assert set(model.ids_.tolist()) == everyone
    model._engine.native.check(1e-9)


# -- one class ------------------------------------------------------------------------------------


def smallest_sphere(K: np.ndarray, bounds: np.ndarray, total: float) -> np.ndarray:
    """Minimise alpha' K alpha - total sum alpha_i K_ii by pairs, in double precision."""
    alpha = np.zeros(len(K))
    left = total
    for k in range(len(K)):
        alpha[k] = min(left, bounds[k])
        left -= alpha[k]
    g = total * np.diag(K) / 2 - K @ alpha
    for _ in range(200_000):
        up, down = alpha < bounds, alpha > 0
        i = int(np.argmax(np.where(up, g, -np.inf)))
        j = int(np.argmin(np.where(down, g, np.inf)))
        if not (up.any() and down.any()) or g[i] - g[j] <= 1e-11 * np.abs(K).max():
            return alpha
        step = (g[i] - g[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        step = min(step, bounds[i] - alpha[i], alpha[j])
        alpha[i] += step
        alpha[j] -= step
        g -= step * (K[:, i] - K[:, j])
    raise AssertionError("the plain solver does not end")


def cloud(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2)) * [1.0, 0.6] + [0.5, 0.0]


@pytest.mark.parametrize("nu", [0.01, 0.107, 0.37, 0.77])  # nu * 120 is not whole: some are free
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_with_rbf_it_is_one_class_svm(nu: float, gamma: float, seed: int) -> None:
    X, X_test = cloud(120, seed), cloud(60, seed + 1000) * 2
    theirs = OneClassSVM(nu=nu, gamma=gamma, tol=1e-10).fit(X)
    ours = ExactOneClassSVM(nu=nu, gamma=gamma).fit(X)
    near = 1e-5 * (1 + nu * 120)
    for rows in (X, X_test):
        f = theirs.decision_function(rows)
        np.testing.assert_allclose(ours.decision_function(rows), f, rtol=0, atol=near)
        scores = theirs.score_samples(rows)
        np.testing.assert_allclose(ours.score_samples(rows), scores, rtol=0, atol=near)
        away = np.abs(f) > 10 * near
        assert np.array_equal(ours.predict(rows)[away], theirs.predict(rows)[away])
    assert ours.offset_ == pytest.approx(theirs.offset_[0], abs=near)
    assert ours.dual_coef_.sum() == pytest.approx(nu * 120, rel=1e-12)
    assert np.mean(ours.decision_function(X) < -1e-9) <= nu <= len(ours.support_) / 120


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2},
        {"kernel": "rbf", "gamma": 1.0},
    ],
    ids=lambda params: params["kernel"],
)
@pytest.mark.parametrize("bounds", [{"nu": 0.1}, {"nu": 0.6}, {"C": 0.05}, {"C": 2.0}], ids=str)
def test_it_is_the_smallest_sphere(params: Any, bounds: dict[str, Any], seed: int) -> None:
    X, X_test = cloud(50, seed), cloud(30, seed + 1000)
    model = ExactOneClassSVM(**params, **bounds)
    K = matrix(params, X, X)
    for k in range(50):
        model.partial_fit(X[[k]])
        assert model._engine.native.violation().max() <= 1e-10 * np.abs(K).max() * (
            1 + model._engine.total
        )
    model._engine.native.check(1e-10 * np.abs(K).max() * (1 + model._engine.total))
    upper = np.full(50, bounds.get("C", 1.0))
    total = bounds["nu"] * 50 if "nu" in bounds else 1.0
    alpha = smallest_sphere(K, upper, total)
    square = np.array([matrix(params, x[None], x[None])[0, 0] for x in X_test])
    score = matrix(params, X_test, X) @ alpha - total / 2 * square
    on = K @ alpha - total / 2 * np.diag(K)
    least = on[alpha < upper * (1 - 1e-7)].min(initial=np.inf)
    most = on[alpha > 1e-7 * upper].max(initial=-np.inf)
    f = score - (least + most) / 2
    scale = np.abs(K).max() * total
    np.testing.assert_allclose(model.decision_function(X_test), f, rtol=0, atol=1e-7 * scale)
    assert model.score_samples(X_test) == pytest.approx(score + total / 2, abs=1e-7 * scale)


@pytest.mark.parametrize("C", [0.02, 0.1, 3.0])
def test_c_is_nu_rescaled(C: float, seed: int) -> None:
    X = cloud(80, seed)
    nu = 1 / (C * 80)
    by_c = ExactOneClassSVM(C=C, gamma=1.0).fit(X)
    if nu > 1 / 80:
        by_nu = ExactOneClassSVM(nu=nu, gamma=1.0).fit(X)
        np.testing.assert_allclose(
            by_nu.decision_function(X) * C, by_c.decision_function(X), rtol=0, atol=1e-10
        )
    assert by_c.dual_coef_.sum() == pytest.approx(1.0, rel=1e-12)


def every(model: Any, X: np.ndarray) -> Iterator[np.ndarray]:
    yield model.decision_function(X)
    yield model.score_samples(X)
    yield np.array([model.offset_])


@pytest.mark.parametrize("bounds", [{"nu": 0.1}, {"nu": 0.5}, {"C": 0.03}, {"C": 0.5}], ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_sphere_forgets(bounds: dict[str, float], kernel: str, seed: int) -> None:
    X = cloud(100, seed)
    params: dict[str, Any] = {"kernel": kernel, "gamma": 1.0, **bounds}
    gone = np.random.default_rng(seed).permutation(100)[:50]
    rest = np.setdiff1d(np.arange(100), gone)
    fresh = ExactOneClassSVM(**params).fit(X[rest])
    at_once = ExactOneClassSVM(**params).fit(X).forget(gone)
    one_by_one = ExactOneClassSVM(**params).fit(X)
    for row in gone:
        one_by_one.forget([row])
        one_by_one._engine.native.check(1e-9)
    for model in (at_once, one_by_one):
        for ours, wanted in zip(every(model, X), every(fresh, X), strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("evict", ["lightest", "oldest"])
@pytest.mark.parametrize("bounds", [{"nu": 0.2}, {"C": 0.1}], ids=str)
def test_the_window_of_a_sphere(evict: Any, bounds: dict[str, float], seed: int) -> None:
    X = cloud(80, seed)
    params: dict[str, Any] = {"gamma": 1.0, **bounds}
    model = ExactOneClassSVM(**params, window=25, evict=evict).partial_fit(X)
    rows: list[int] = []
    for k in range(80):
        if len(rows) == 25:
            light = held(ExactOneClassSVM(**params).fit(X[rows]))
            weights = [light[place] for place in range(25)]
            rows.pop(int(np.argmin(np.round(weights, 9))) if evict == "lightest" else 0)
        rows.append(k)
    assert sorted(model.ids_.tolist()) == sorted(rows)
    fresh = ExactOneClassSVM(**params).fit(X[rows])
    np.testing.assert_allclose(
        model.decision_function(X), fresh.decision_function(X), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("bounds", [{"nu": 0.2}, {"C": 0.01}, {"C": 0.1}], ids=str)
def test_whole_weights_of_a_sphere_are_rows_repeated(bounds: Any, seed: int) -> None:
    X = cloud(60, seed)
    weights = np.random.default_rng(seed).integers(4, size=60)
    again = np.repeat(np.arange(60), weights)
    weighted = ExactOneClassSVM(gamma=1.0, **bounds).fit(X, sample_weight=weights)
    repeated = ExactOneClassSVM(gamma=1.0, **bounds).fit(X[again])
    for ours, wanted in zip(every(weighted, X), every(repeated, X), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-9)
    assert not np.isin(np.flatnonzero(weights == 0), weighted.ids_).any()


def test_a_precomputed_sphere(seed: int) -> None:
    X, X_test = cloud(60, seed), cloud(20, seed + 1000)
    K, K_test = (kernel_values("rbf", A, X, gamma=1.0) for A in (X, X_test))
    by_values = ExactOneClassSVM(kernel="precomputed", nu=0.2).fit(K)
    by_name = ExactOneClassSVM(gamma=1.0, nu=0.2).fit(X)
    np.testing.assert_allclose(
        by_values.decision_function(K_test), by_name.decision_function(X_test), rtol=0, atol=1e-9
    )
