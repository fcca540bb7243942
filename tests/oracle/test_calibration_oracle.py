"""Probabilities beside plain versions of what they are made of, and beside the true ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginwise import (
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
)
from marginwise._engine.foresight import Foresight
from marginwise.calibration import Calibrator, Sigmoid, couple
from tests.support import binary_values, blobs, signs_of

# -- curves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("slope", [-1.0, 0.1, 3.0])
def test_sigmoids_are_the_minimum(slope: float, shifted: bool, seed: int) -> None:
    """Against a minimizer with bounds; slopes that would be negative are at 0."""
    rng = np.random.default_rng([seed, shifted, int(10 * slope) + 50])
    for n in (5, 40, 400):
        f, weight = rng.normal(0.3, 2, size=n), rng.exponential(size=n)
        target = np.where(rng.random(n) < expit(slope * f - 0.5), 0.97, 0.04)

        def loss(w: Any, f: Any = f, target: Any = target, weight: Any = weight) -> float:
            z = np.where(f > 0, w[0], w[1]) * f + np.where(f > 0, w[2], w[-1])
            return float(-weight @ (target * log_expit(z) + (1 - target) * log_expit(-z)))

        found = Sigmoid.fit(f, target, weight, shifted=shifted, may_shift=lambda _: False)
        bounds = [(0, None), (0, None), *([(None, None)] if shifted else [(0, None), (None, 0)])]
        best = minimize(loss, [1.0, 1.0, *[0.0] * (len(bounds) - 2)], bounds=bounds, tol=1e-12)
        ours = loss([found.above, found.below, found.high, found.low])
        # Constants of the parts must gain 8.
        spare = 8.0 if not shifted and found.high == found.low == 0 else 0.0
        assert ours <= best.fun + spare + 1e-5 * (1 + best.fun)
        assert found.high == found.low if shifted else found.agrees


def test_isotonic_curves_are_regressions_of_both_sides() -> None:
    """The regression under the further condition of 1/2 at f = 0 is that of each side, cut off."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=500).astype(np.float32)
    weight = np.where(rng.random(500) < expit(3 * f), 1, -1).astype(np.float32)
    curve: Any = Calibrator.fit("isotonic", [(f, weight)], pairs=False, shifted=False).curves[0]
    expected = np.empty(500)
    for side, bounds in ((f > 0, (0.5, 1.0)), (f <= 0, (0.0, 0.5))):
        free = IsotonicRegression().fit_transform(f[side].astype(float), weight[side] > 0)
        expected[side] = np.clip(free, *bounds)
    mixed = (1 - curve.share) * expected + curve.share * curve.sigmoid(f.astype(float))
    np.testing.assert_allclose(curve(f.astype(float)), mixed, atol=1e-7)


def coupled(r: np.ndarray) -> np.ndarray:
    """Algorithm 2 of Wu, Lin and Weng (2004), for one row."""
    k = len(r)
    Q = np.empty((k, k))
    for t in range(k):
        for j in range(k):
            Q[t, j] = (
                -r[j, t] * r[t, j] if t != j else sum(r[s, t] ** 2 for s in range(k) if s != t)
            )
    p = np.full(k, 1 / k)
    for _ in range(10_000):
        for t in range(k):
            p[t] = (-sum(Q[t, j] * p[j] for j in range(k) if j != t) + p @ Q @ p) / Q[t, t]
            p /= p.sum()
        if np.abs(Q @ p - p @ Q @ p).max() < 1e-10:
            break
    return p


@pytest.mark.parametrize("classes", [3, 4, 7])
def test_coupling_is_that_of_the_paper(classes: int, seed: int) -> None:
    rng = np.random.default_rng([seed, classes])
    pairs = list(itertools.combinations(range(classes), 2))
    second = rng.uniform(0.02, 0.98, size=(20, len(pairs)))
    for row, p in zip(second, couple(second), strict=True):
        r = np.zeros((classes, classes))
        for value, (a, b) in zip(row, pairs, strict=True):
            r[b, a], r[a, b] = value, 1 - value
        np.testing.assert_allclose(p, coupled(r), atol=1e-7)


# -- values that are noted ---------------------------------------------------------------------

STREAMS = [
    OnlineSVC(gamma=0.5),
    OnlineSVC(gamma=0.5, reprocess="gap"),
    OnlineSVC(gamma=0.5, budget=25),
    GapSVC(gamma=0.5, loss="ramp", clean_every=30),
    TrackingSVC(gamma=0.5, random_state=0),
    TrackingSVC(gamma=0.5, average=False, random_state=0),
    ExactRampSVC(gamma=0.5),
    KernelPerceptron(gamma=0.5),
    KernelPerceptron(gamma=0.5, average=True),
    KernelPerceptron(gamma=0.5, budget=20),
    KernelPerceptron(gamma=0.5, update="pa", margin=1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "multiclass"),
    [
        (one, multiclass)
        for one in STREAMS
        for multiclass in ("two", "ovr", "ovo")
        if multiclass != "ovo" or isinstance(one, OnlineSVC)
    ],
    ids=lambda one: f"{one!r:.60}",
)
def test_a_stream_notes_decision_values_before_rows(estimator: Any, multiclass: str) -> None:
    classes = 2 if multiclass == "two" else 3
    X, y = blobs(120, 0, classes)
    signs = signs_of(y, classes, "ovo" if multiclass == "ovo" else "ovr")
    model = clone(estimator).set_params(calibration="sigmoid")
    if multiclass != "two" and isinstance(estimator, OnlineSVC):
        model.set_params(multiclass=multiclass)
    said = []
    for k in range(len(y)):
        if k:
            said.append(binary_values(model, X[k : k + 1])[0])
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=np.arange(classes))
    noted = Foresight.of(model._engine.native)
    for c, (f, weight) in enumerate(noted.columns):
        rows = 1 + np.flatnonzero(signs[1:, c])
        assert noted.seen[c] >= len(rows) - 20, "only the first rows come before a model"
        last = rows[-len(f) :]
        np.testing.assert_allclose(f, np.array(said)[last - 1, c], atol=1e-5)
        assert np.array_equal(weight, signs[last, c])


SOLVED = [
    OnlineSVC(gamma=0.5, C=2.0, multiclass="ovr", tol=1e-4),
    OnlineSVC(gamma=0.5, C=2.0, multiclass="ovo", tol=1e-4),
    OnlineSVC(gamma=0.5, C=2.0, class_weight={0: 1, 1: 2}, epochs="converge", tol=1e-4),
    OnlineSVC(kernel="linear", C=0.1, multiclass="ovr", tol=1e-4, n_jobs=2),
    GapSVC(gamma=0.5, C=2.0, tol=1e-4),
    ExactRampSVC(gamma=0.5, C=2.0, tol=1e-4),
]


@pytest.mark.parametrize("estimator", SOLVED, ids=lambda one: f"{one!r:.60}")
@pytest.mark.parametrize("classes", [2, 3])
def test_solved_models_leave_out_each_row(estimator: Any, classes: int) -> None:
    """The values are those of models fitted to the other rows, up to rows that would return."""
    X, y = blobs(100, 1, classes)
    weights = np.where(np.arange(100) % 5, 1.0, 2.0)
    model = clone(estimator).set_params(calibration="sigmoid").fit(X, y, sample_weight=weights)
    signs = signs_of(y, classes, "ovo" if model._engine.plan.pairs else "ovr")
    expected = np.empty(signs.shape)
    for k in range(100):
        rest = np.arange(100) != k
        twin = clone(estimator).fit(X[rest], y[rest], sample_weight=weights[rest])
        expected[k] = binary_values(twin, X[k : k + 1])
    plain = binary_values(model, X)
    for c, (f, weight) in enumerate(model._foreseen().columns):
        rows = np.flatnonzero(signs[:, c])
        assert np.array_equal(weight, (signs[rows, c] * weights[rows]).astype(np.float32))
        error = np.abs(f - expected[rows, c])
        assert np.median(error) < 0.03
        if isinstance(estimator, GapSVC):  # without a bias, whose interval other rows bound
            assert error.max() < 0.05
        stored = np.isin(rows, model.support_)
        assert np.abs(f - plain[rows, c])[~stored].max() < 1e-5, "rows without weight keep f"
        before = np.abs(plain[rows, c] - expected[rows, c])[stored]
        if isinstance(estimator, GapSVC):
            assert error[stored].mean() < 0.3 * before.mean()
        elif isinstance(estimator, OnlineSVC) and model.kernel == "rbf":
            assert error[stored].mean() < 1.05 * before.mean()


@pytest.mark.parametrize(("kind", "log_loss_of"), [("sigmoid", 1.02), ("isotonic", 1.1)])
@pytest.mark.parametrize(
    ("C", "gamma", "share"), [(0.1, 0.3, 0.4), (1, 0.05, 0.1), (100, 0.02, 0.1)]
)
def test_as_good_as_five_models(
    kind: Any, log_loss_of: float, C: float, gamma: float, share: float
) -> None:
    """Probabilities of imbalanced classes that overlap, with a small and a large C."""
    X, y = make_classification(
        5000, 20, n_informative=6, weights=[1 - share], flip_y=0.02, random_state=1
    )
    train, test = slice(0, 1200), slice(1200, None)
    model = OnlineSVC(C=C, gamma=gamma, calibration=kind, random_state=0).fit(X[train], y[train])
    peer = CalibratedClassifierCV(SVC(C=C, gamma=gamma), method=kind, ensemble=False)
    peer.fit(X[train], y[train])
    ours, theirs = (log_loss(y[test], one.predict_proba(X[test])) for one in (model, peer))
    assert ours <= log_loss_of * theirs
    plain = clone(model).set_params(calibration=None).fit(X[train], y[train])
    assert model.score(X[test], y[test]) >= plain.score(X[test], y[test]) - 0.002


def test_a_search_calibrates_its_final_model() -> None:
    """Out-of-fold values have the biases of the folds, which may differ by more than the values."""
    X, y = blobs(120, 3, 2)
    weights = np.where(np.arange(120) % 6, 1.0, 0.0)
    model = OnlineSVCCV(Cs=[0.1, 1.0], gammas=[0.5], cv=3, calibration="sigmoid", random_state=0)
    model.fit(X, y, sample_weight=weights)
    plain = OnlineSVC(C=model.C_, gamma=model.gamma_, calibration="sigmoid", random_state=0)
    expected = plain.fit(X, y, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_exact_models_calibrate_on_models_without_each_row() -> None:
    X, y = blobs(40, 4, 3)
    model = ExactSVC(gamma=0.5, C=2.0, calibration="sigmoid").fit(X, y)
    columns = []
    for c in range(3):
        f = [
            binary_values(clone(model).fit(np.delete(X, k, 0), np.delete(y, k)), X[k : k + 1])[0, c]
            for k in range(40)
        ]
        columns.append((np.array(f), np.where(y == c, 1.0, -1.0)))
    expected = Calibrator.fit("sigmoid", columns, pairs=False, shifted=False)
    p = expected.probabilities(binary_values(model, X))
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-5)


# -- quality -----------------------------------------------------------------------------------


def true_probabilities(X: np.ndarray, classes: int) -> np.ndarray:
    """Those of `blobs`: normal clouds around points of a circle."""
    angle = 2 * np.pi * np.arange(classes) / classes
    centres = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    log_density = -((X[:, np.newaxis] - centres) ** 2).sum(axis=2) / 2
    p = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n", [500, 3000, 6000])
@pytest.mark.parametrize("classes", [2, 3])
def test_close_to_the_true_probabilities(classes: int, n: int, kind: str) -> None:
    X, y = blobs(n + 4000, 5, classes)
    new, labels = X[n:], y[n:]
    best = log_loss(labels, true_probabilities(new, classes))
    model = OnlineSVC(gamma=0.05, calibration=kind, random_state=0).fit(X[:n], y[:n])
    most = 1.1 if kind == "sigmoid" else 1.25
    assert log_loss(labels, model.predict_proba(new)) < most * best


@pytest.mark.parametrize("estimator", STREAMS[:9], ids=lambda one: f"{one!r:.60}")
def test_streams_are_calibrated(estimator: Any) -> None:
    """Of rows that are given a probability, that share is of the class."""
    rough = isinstance(estimator, KernelPerceptron)  # whose boundary is not where p = 1/2
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6000, 2))
    true = expit(3 * X[:, 0] - 2 * X[:, 1])
    y = (rng.random(6000) < true).astype(int)
    model = clone(estimator).set_params(calibration="sigmoid", gamma=0.1)
    model.partial_fit(X[:2000], y[:2000], classes=[0, 1])
    p = model.predict_proba(X[2000:])[:, 1]
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (p >= low) & (p < low + 0.25)
        if not rough:
            assert true[2000:][inside].mean() == pytest.approx(p[inside].mean(), abs=0.1)
    most = 1.25 if rough else 1.1
    assert log_loss(y[2000:], p) < most * log_loss(y[2000:], true[2000:])


SETS = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_as_good_as_calibrated_classifiers(name: str) -> None:
    """Of scikit-learn, with five models where ours is one."""
    X, y = SETS[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = theirs = 0.0
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        model = OnlineSVC(C=1.0, calibration="sigmoid", random_state=0)
        peer = CalibratedClassifierCV(SVC(), ensemble=False)
        ours += log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]))
        theirs += log_loss(y[test], peer.fit(X[train], y[train]).predict_proba(X[test]))
    assert ours < 1.05 * theirs
