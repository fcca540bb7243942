"""OnlineSVC with enough epochs against libsvm (scikit-learn's SVC) at tight tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from marginwise import OnlineSVC
from tests.support import blobs, kernel_values, rings

TOL = 1e-6
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "rbf": {"gamma": 0.7},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 3},
    "cosine": {},
    "tanimoto": {},
}


def converged(model: OnlineSVC, X: Any, y: Any, sample_weight: Any = None) -> OnlineSVC:
    """Raise the epochs until nothing changes."""
    before = -np.inf
    for epochs in (2, 4, 8, 16, 32, 64):
        model.set_params(epochs=epochs).fit(X, y, sample_weight=sample_weight)
        now = np.sum(model.dual_objective())
        if abs(now - before) <= 1e-9 * abs(now):
            return model
        before = now
    raise AssertionError(f"the dual objective still changes after 64 epochs: {before}, {now}")


def dual_of(svc: SVC, K: np.ndarray) -> float:
    """W = sum |alpha| - alpha' K alpha / 2 of a binary SVC, in double precision."""
    alpha = np.zeros(len(K))
    alpha[svc.support_] = svc.dual_coef_[0]
    return float(np.abs(alpha).sum() - alpha @ K @ alpha / 2)


def assert_optimal(
    model: OnlineSVC, svc: SVC, K: np.ndarray, X_test: Any, svc_test: Any, why: str
) -> None:
    optimum = dual_of(svc, K)
    reached = model.dual_objective()
    assert reached == pytest.approx(optimum, rel=1e-5), f"{why}: dual objective is off"
    ours, theirs = model.decision_function(X_test), svc.decision_function(svc_test)
    scale = 1.0 + np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * scale, err_msg=f"{why}: decision values")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_native_kernels_reach_the_optimum(kernel: str, C: float, seed: int) -> None:
    X, y = rings(240, seed, noise=0.05, d=3)
    X = X + 0.5
    X_test, _ = rings(50, seed + 1000, d=3)
    options = KERNELS[kernel]
    K = kernel_values(kernel, X, X, **options)
    svc = SVC(C=C, kernel="precomputed", tol=TOL).fit(K, y)
    model = OnlineSVC(C=C, kernel=kernel, tol=1e-5, random_state=seed, **{"gamma": 1.0, **options})
    converged(model, X, y)
    K_test = kernel_values(kernel, X_test, X, **options)
    assert_optimal(model, svc, K, X_test, K_test, f"{kernel}, C={C}")


def test_rbf_equals_the_kernel_of_libsvm(seed: int) -> None:
    """Not only our own NumPy kernels: libsvm computes these values itself."""
    X, y = rings(240, seed, noise=0.05)
    X_test, _ = rings(50, seed + 1000)
    svc = SVC(C=3.0, gamma=0.7, tol=TOL).fit(X, y)
    model = converged(OnlineSVC(C=3.0, gamma=0.7, tol=1e-5, random_state=seed), X, y)
    assert_optimal(model, svc, kernel_values("rbf", X, X, gamma=0.7), X_test, X_test, "rbf")
    assert set(svc.support_) >= set(model.support_[np.abs(model.dual_coef_[0]) > 1e-2 * model.C])


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_named_gammas_mean_what_they_mean_in_svc(gamma: str, seed: int) -> None:
    X, y = rings(200, seed, noise=0.05, d=3)
    X = 3.0 * X + 1.0
    svc = SVC(C=2.0, gamma=gamma, tol=TOL).fit(X, y)
    model = converged(OnlineSVC(C=2.0, gamma=gamma, tol=1e-5, random_state=seed), X, y)
    K = kernel_values("rbf", X, X, gamma=svc._gamma)
    assert_optimal(model, svc, K, X, X, f"gamma={gamma}")


def test_callable_reaches_the_optimum(seed: int) -> None:
    def laplace(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))

    X, y = rings(200, seed, noise=0.05)
    X_test, _ = rings(50, seed + 1000)
    svc = SVC(C=3.0, kernel="precomputed", tol=TOL).fit(laplace(X, X), y)
    model = converged(OnlineSVC(C=3.0, kernel=laplace, tol=1e-5, random_state=seed), X, y)
    assert_optimal(model, svc, laplace(X, X), X_test, laplace(X_test, X), "callable")


def test_precomputed_reaches_the_optimum(seed: int) -> None:
    X, y = rings(200, seed, noise=0.05)
    X_test, _ = rings(50, seed + 1000)
    K, K_test = (kernel_values("rbf", Z, X, gamma=0.7) for Z in (X, X_test))
    svc = SVC(C=3.0, kernel="precomputed", tol=TOL).fit(K, y)
    model = OnlineSVC(C=3.0, kernel="precomputed", tol=1e-5, random_state=seed)
    assert_optimal(converged(model, K, y), svc, K, K_test, K_test, "precomputed")


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 5.0}, "balanced"], ids=str)
def test_class_weights_reach_the_optimum(class_weight: Any, seed: int) -> None:
    X, y = rings(240, seed, noise=0.05)
    rare = np.flatnonzero(y == 1)[60:]
    X, y = np.delete(X, rare, axis=0), np.delete(y, rare)
    svc = SVC(C=1.0, gamma=0.7, class_weight=class_weight, tol=TOL).fit(X, y)
    model = OnlineSVC(C=1.0, gamma=0.7, class_weight=class_weight, tol=1e-5, random_state=seed)
    K = kernel_values("rbf", X, X, gamma=0.7)
    assert_optimal(converged(model, X, y), svc, K, X, X, f"class_weight={class_weight}")
    assert model.duality_gap(X, y) <= 1e-3 * model.dual_objective()


def test_sample_weights_reach_the_optimum(seed: int) -> None:
    X, y = rings(240, seed, noise=0.05)
    weights = np.random.default_rng(seed).uniform(0.0, 3.0, size=len(y))
    weights[::10] = 0.0
    taken = np.flatnonzero(weights)
    svc = SVC(C=1.0, gamma=0.7, tol=TOL).fit(X[taken], y[taken], sample_weight=weights[taken])
    model = OnlineSVC(C=1.0, gamma=0.7, tol=1e-5, random_state=seed)
    converged(model, X, y, sample_weight=weights)
    K = kernel_values("rbf", X[taken], X[taken], gamma=0.7)
    assert_optimal(model, svc, K, X, X, "sample_weight")
    assert not np.isin(model.ids_, np.arange(0, 240, 10)).any(), "rows of weight zero take no part"


def test_weighted_gamma_scale_equals_repeated_rows(seed: int) -> None:
    """gamma="scale" counts a row of weight two twice."""
    X, y = rings(80, seed, d=3)
    weights = np.random.default_rng(seed).integers(0, 3, size=80)
    repeated = np.repeat(np.arange(80), weights)
    weighted = OnlineSVC(tol=1e-5, random_state=0)
    converged(weighted, X, y, sample_weight=weights)
    plain = converged(OnlineSVC(tol=1e-5, random_state=0), X[repeated], y[repeated])
    assert weighted._engine.plan.gamma == pytest.approx(plain._engine.plan.gamma, rel=1e-12)
    assert weighted.dual_objective() == pytest.approx(plain.dual_objective(), rel=1e-5)


def test_several_classes_are_one_vs_rest(seed: int) -> None:
    X, y = blobs(240, seed, classes=4)
    X_test, _ = blobs(60, seed + 1000, classes=4)
    names = np.array(["east", "north", "south", "west"])
    rest = OneVsRestClassifier(SVC(C=2.0, gamma=0.5, tol=TOL)).fit(X, names[y])
    params = {"C": 2.0, "gamma": 0.5, "tol": 1e-5, "random_state": seed}
    model = converged(OnlineSVC(multiclass="ovr", **params), X, names[y])
    assert model.classes_.tolist() == rest.classes_.tolist()
    np.testing.assert_allclose(
        model.decision_function(X_test), rest.decision_function(X_test), atol=1e-2
    )
    assert np.mean(model.predict(X_test) == rest.predict(X_test)) >= 0.98
    K = kernel_values("rbf", X, X, gamma=0.5)
    optima = [dual_of(svc, K) for svc in rest.estimators_]
    np.testing.assert_allclose(model.dual_objective(), optima, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_duality_gap_closes_at_the_optimum(kernel: str, seed: int) -> None:
    X, y = rings(200, seed, noise=0.1)
    model = OnlineSVC(C=2.0, kernel=kernel, gamma=0.7, tol=1e-5, random_state=seed)
    converged(model, X, y)
    assert abs(model.duality_gap(X, y)) <= 1e-3 * model.dual_objective()


@pytest.mark.parametrize("finish", [False, True])
def test_duality_gap_bounds_what_is_missing(finish: bool, seed: int) -> None:
    """For any model, primal - dual over the training rows is at least optimum - dual."""
    X, y = rings(300, seed, noise=0.1)
    svc = SVC(C=2.0, gamma=0.7, tol=TOL).fit(X, y)
    optimum = dual_of(svc, kernel_values("rbf", X, X, gamma=0.7))
    model = OnlineSVC(C=2.0, gamma=0.7, finish_at_end=finish, random_state=seed).fit(X, y)
    missing = optimum - model.dual_objective()
    assert missing >= -1e-4 * optimum, "no model can be better than the optimum"
    assert model.duality_gap(X, y) >= missing - 1e-4 * optimum


@pytest.mark.parametrize(("multiclass", "problems"), [("ovr", 4), ("ovo", 6)])
def test_duality_gap_of_several_classes(multiclass: str, problems: int, seed: int) -> None:
    """A pair has no losses by rows of other classes: with them, its gap would not close."""
    X, y = blobs(200, seed, classes=4)
    params = {"C": 2.0, "gamma": 0.5, "tol": 1e-5, "random_state": seed}
    model = converged(OnlineSVC(multiclass=multiclass, **params), X, y)
    gaps = model.duality_gap(X, y)
    assert gaps.shape == (problems,)
    assert np.all(np.abs(gaps) <= 2e-3 * model.dual_objective())


def test_one_pass_is_nearly_optimal(seed: int) -> None:
    X, y = rings(1000, seed, noise=0.05)
    X_test, y_test = rings(1000, seed + 1000)
    svc = SVC(C=10.0, gamma=1.0, tol=TOL).fit(X, y)
    model = OnlineSVC(C=10.0, gamma=1.0, random_state=seed).fit(X, y)
    optimum = dual_of(svc, kernel_values("rbf", X, X, gamma=1.0))
    assert model.dual_objective() >= 0.97 * optimum
    assert model.score(X_test, y_test) >= svc.score(X_test, y_test) - 0.02


def test_partial_fit_over_and_over_converges_too(seed: int) -> None:
    X, y = rings(200, seed, noise=0.05)
    ids = np.arange(200)
    svc = SVC(C=3.0, gamma=0.7, tol=TOL).fit(X, y)
    model = OnlineSVC(C=3.0, gamma=0.7, tol=1e-5)
    for _ in range(30):
        model.partial_fit(X, y, classes=[0, 1], ids=ids)
    model.finish()
    optimum = dual_of(svc, kernel_values("rbf", X, X, gamma=0.7))
    assert model.dual_objective() == pytest.approx(optimum, rel=1e-5)
