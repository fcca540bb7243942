"""Selection against [bordes2005, section 4] written down in plain NumPy, row by row.

PROCESS and REPROCESS are those of `test_lasvm_oracle`, which follows every choice that the paper
leaves open; here is what selection adds. Also: the solution that full search ends at, and the
decision values that it keeps up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from marginwise import OnlineSVC
from marginwise._engine.engine import Engine
from marginwise._engine.scores import Scores
from marginwise._training.loop import Pools
from tests.oracle.test_lasvm_oracle import Lasvm, data, error_of
from tests.oracle.test_svc_oracle import dual_of
from tests.support import binary_values, blobs, kernel_values, rings, signs_of


class Selection:
    """LASVM with example selection and randomized search, over a known kernel matrix."""

    def __init__(self, model: OnlineSVC, K: np.ndarray, signs: np.ndarray, near: float) -> None:
        self.model, self.near = model, near
        self.problems = [Lasvm(K, y, model.C, model.tol) for y in signs.T]
        self.seen = np.zeros(signs.T.shape, dtype=bool)
        self.pools: list[list[int]] = [[] for _ in self.problems]

    def f(self, c: int, rows: Any) -> np.ndarray:
        L = self.problems[c]
        return L.K[np.ix_(rows, L.S)] @ L.alpha[L.S] + L.b

    def best(self, c: int, rows: Any) -> int:
        f = self.f(c, rows)
        y = self.problems[c].y[rows] if self.model.selection == "gradient" else np.sign(f)
        return int(np.asarray(rows)[np.argmin(y * f)])  # (12), (13)

    def is_full(self, c: int) -> bool:
        pool = self.pools[c]
        if self.model.selection != "autoactive":
            return len(pool) == self.model.pool_size
        inside = np.abs(self.f(c, pool)) < 1 + self.problems[c].delta / 2
        return inside.sum() == 5 or len(pool) == 100

    def look(self, k: int) -> None:
        """Sample example k in each problem that has not learned it."""
        for c, L in enumerate(self.problems):
            if self.seen[c, k]:
                continue
            if L.y[k] == 0:  # a pair of other classes
                self.seen[c, k] = True
                continue
            if not (L.up() and L.down()):
                self.learn(c, k)
                continue
            self.pools[c].append(k)
            if self.is_full(c):
                self.learn_best(c)

    def learn_best(self, c: int) -> None:
        pool, self.pools[c] = self.pools[c], []
        self.learn(c, self.best(c, pool))

    def learn(self, c: int, k: int) -> None:
        """PROCESS(k), REPROCESS; OnlineSVC must be where one of the ways of doing so leads."""
        self.seen[c, k] = True
        allowed = list(self.problems[c].learn(k))
        errors = [error_of(L, self.model, c) for L in allowed]
        self.problems[c] = allowed[int(np.argmin(errors))]
        assert min(errors) <= self.near, (
            f"after row {k} problem {c} is in none of the {len(allowed)} states that the paper "
            f"allows (nearest: {min(errors):.3g}): another row was learned, or learned otherwise"
        )

    def end(self) -> None:
        for c in range(len(self.problems)):
            if self.pools[c]:
                self.learn_best(c)


Follow = Callable[[OnlineSVC, np.ndarray, np.ndarray, Selection], None]


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Fit a model with the paper beside it: after each row that is looked at, both are compared."""

    def run(model: OnlineSVC, X: np.ndarray, y: np.ndarray, paper: Selection) -> None:
        begin, select, end = Pools.begin, Pools.learn, Pools.end
        flags: list[np.ndarray] = []

        def watched_begin(self: Pools, engine: Engine, ids: np.ndarray) -> None:
            assert np.array_equal(paper.seen, self.seen), "a pass begins with the flags of the last"
            flags.append(self.seen)
            begin(self, engine, ids)
            paper.model = model._copy()
            paper.model.__dict__.update(_engine=engine, classes_=np.unique(y))

        def watched_select(self: Pools, engine: Engine, batch: Any, order: np.ndarray) -> int:
            for k in order:
                if model.pool_size is None and all(L.up() and L.down() for L in paper.problems):
                    assert k == paper.best(0, np.flatnonzero(~paper.seen[0])), "not the best of all"
                assert select(self, engine, batch, np.array([k])) == 1
                if model.pool_size is None:
                    paper.learn(0, int(k))
                else:
                    paper.look(int(k))
            return len(order)

        def watched_end(self: Pools, engine: Engine) -> None:
            end(self, engine)
            paper.end()

        monkeypatch.setattr(Pools, "begin", watched_begin)
        monkeypatch.setattr(Pools, "learn", watched_select)
        monkeypatch.setattr(Pools, "end", watched_end)
        model.fit(X, y)
        assert np.array_equal(paper.seen, flags[-1]), "other rows were chosen"
        has_part = np.array([L.y != 0 for L in paper.problems])
        assert model.stats_["chosen"] == (paper.seen & has_part).sum()
        values = binary_values(model, X)
        for c in range(values.shape[1]):
            np.testing.assert_allclose(
                values[:, c], paper.f(c, range(len(y))), atol=1e3 * paper.near
            )
        assert all(len(L.S) > 2 for L in paper.problems), "too easy to compare anything"

    return run


def rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return kernel_values("rbf", A, B, gamma=0.5)


RULES: list[dict[str, Any]] = [
    {"selection": "gradient", "pool_size": 7},
    {"selection": "active", "pool_size": 7},
    {"selection": "active", "pool_size": 50},
    {"selection": "autoactive"},
]


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*RULES, {**RULES[0], "multiclass": "ovo"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_row_in_double_precision(
    rule: dict[str, Any], classes: int, follow: Follow, seed: int
) -> None:
    """A callable is computed in double and kept in single precision, here as there."""
    X, y = data(seed, n=60, classes=classes, d=2)
    model = OnlineSVC(kernel=rbf, C=2.0, shuffle=False, finish_at_end=False, **rule)
    K = rbf(X, X).astype(np.float32).astype(np.float64)
    signs = signs_of(y, classes, rule.get("multiclass", "ovr"))
    follow(model, X, y, Selection(model, K, signs, near=1e-9))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_row_with_a_native_kernel(rule: dict[str, Any], follow: Follow, seed: int) -> None:
    """Kernel values agree to single precision only, and steps divide by small curvatures."""
    X, y = data(seed, n=60, d=4)
    model = OnlineSVC(gamma=0.5, C=2.0, shuffle=False, finish_at_end=False, **rule)
    K = rbf(X, X).astype(np.float32).astype(np.float64)
    follow(model, X, y, Selection(model, K, signs_of(y, 2), near=1e-4))


@pytest.mark.parametrize("rule", ["gradient", "active"])
def test_full_search_row_by_row(rule: str, follow: Follow, seed: int) -> None:
    X, y = data(seed, n=80, d=2)
    model = OnlineSVC(
        kernel=rbf, C=2.0, finish_at_end=False, selection=rule, pool_size=None, random_state=0
    )
    K = rbf(X, X).astype(np.float32).astype(np.float64)
    paper = Selection(model, K, signs_of(y, 2), near=1e-9)
    follow(model, X, y, paper)
    left = np.flatnonzero(~paper.seen[0])
    score = (
        np.abs(paper.f(0, left)) if rule == "active" else paper.f(0, left) * signs_of(y, 2)[left, 0]
    )
    assert np.all(score >= 1 + paper.problems[0].delta / 2), "a row that would matter was left"


# -- where full search ends -----------------------------------------------------------------------


def searched(C: float, noise: float, seed: int) -> tuple[OnlineSVC, float, np.ndarray]:
    """A gradient search, its dual objective over that of the SVM, and y f of rows not held."""
    X, y = rings(240, seed, noise=noise)
    K = kernel_values("rbf", X, X, gamma=0.7)
    svc = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    params = {"C": C, "gamma": 0.7, "tol": 1e-5, "shuffle": False}
    model = OnlineSVC(selection="gradient", pool_size=None, **params).fit(X, y)
    margins = signs_of(y, 2)[:, 0] * model.decision_function(X)
    return model, model.dual_objective() / dual_of(svc, K), np.delete(margins, model.ids_)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_gradient_search_ends_near_the_svm_solution(C: float, noise: float, seed: int) -> None:
    """There unless a row violates that was learned and evicted: it is not looked at again."""
    model, share, margins = searched(C, noise, seed)
    assert 0.98 <= share <= 1 + 1e-5
    if margins.min() > 1 - 1e-4:
        assert share == pytest.approx(1, abs=1e-4), "no row violates, but a solution it is not"
    assert model.stats_["chosen"] < 240 or C == 10.0


def test_gradient_search_ends_at_the_svm_solution() -> None:
    _, share, margins = searched(C=1.0, noise=0.05, seed=0)
    assert share == pytest.approx(1, abs=1e-6)
    assert margins.min() > 1 - 1e-4


@pytest.mark.parametrize("rule", ["active", "gradient"])
def test_full_search_of_sorted_labels_is_as_good(rule: str) -> None:
    """Rows of the first class must not all be used up before the second is met."""
    X, y = rings(600, 0, noise=0.05)
    apart = np.argsort(y, kind="stable")
    params: dict[str, Any] = {"gamma": 0.7, "selection": rule, "pool_size": None}
    mixed = OnlineSVC(**params, random_state=0).fit(X, y)
    model = OnlineSVC(**params, random_state=0).fit(X[apart], y[apart])
    X_test, y_test = rings(500, 1)
    assert model.score(X_test, y_test) > mixed.score(X_test, y_test) - 0.02
    assert model.stats_["chosen"] < 1.5 * mixed.stats_["chosen"]


# -- decision values that are kept up to date -----------------------------------------------------


def pools(form: str, classes: int, seed: int) -> tuple[Any, np.ndarray]:
    """Rows as dense arrays, as CSR that is kept dense, or as CSR that is kept as lists."""
    X, y = blobs(700, seed, classes, 60 if form == "lists" else 4)
    if form != "dense":
        X[:, 2:][np.random.default_rng(seed).random((700, X.shape[1] - 2)) < 0.98] = 0.0
    return (X if form == "dense" else sp.csr_array(X)), y


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dense", "csr", "lists"])
@pytest.mark.parametrize(("classes", "multiclass"), [(2, "auto"), (4, "ovr"), (4, "ovo")])
def test_scores_are_decision_values(form: str, classes: int, multiclass: str, seed: int) -> None:
    """If they drift, full search and the active learner rank rows by a model of the past."""
    X, y = pools(form, classes, seed)
    model = OnlineSVC(C=10.0, gamma=0.3, delta_max=0.5, multiclass=multiclass)
    model.partial_fit(X[:20], y[:20], classes=range(classes))
    scores = Scores(model._engine, model._engine.batch(X), lambda ids: X[ids])
    sizes = []
    for start in range(20, 700, 11):
        model.partial_fit(X[start : start + 11], y[start : start + 11])
        expected = binary_values(model, X)
        np.testing.assert_allclose(scores.values(), expected, rtol=0, atol=1e-9)
        sizes.append(len(model.ids_))
    assert model.stats_["removed"] > 64, "nobody left: the stream was too easy"
    assert scores.recomputed < len(sizes), "all was computed anew each time"
    np.testing.assert_array_equal(scores.values(), scores.values())
    model.finish()
    expected = binary_values(model, X)
    np.testing.assert_allclose(scores.values(), expected, rtol=0, atol=1e-9)


def test_scores_of_one_example_at_a_time_are_not_computed_anew(seed: int) -> None:
    """If they were, each row of full search would cost as much as predicting the whole pool."""
    X, y = rings(400, seed, noise=0.1)
    model = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X[:150], y[:150], classes=[0, 1])
    scores = Scores(model._engine, model._engine.batch(X), lambda ids: X[ids])
    for k in range(150, 400):
        model.learn_one(X[k], y[k])
        scores.values()
    np.testing.assert_allclose(scores.values()[:, 0], model.decision_function(X), atol=1e-9)
    assert scores.recomputed == 1


def test_scores_without_features_are_computed_anew(seed: int) -> None:
    X, y = rings(120, seed, noise=0.1)
    model = OnlineSVC(kernel=rbf, C=5.0).partial_fit(X[:10], y[:10], classes=[0, 1])
    scores = Scores(model._engine, model._engine.batch(X), lambda _: None)
    for k in range(10, 120, 10):
        model.partial_fit(X[k : k + 10], y[k : k + 10])
        np.testing.assert_allclose(scores.values()[:, 0], model.decision_function(X), atol=1e-12)


def test_scores_go_on_from_a_state(seed: int) -> None:
    X, y = rings(200, seed, noise=0.1)
    model = OnlineSVC(C=5.0, gamma=1.0).partial_fit(X[:50], y[:50], classes=[0, 1])
    scores, other = (
        Scores(model._engine, model._engine.batch(X), lambda ids: X[ids]) for _ in range(2)
    )
    assert scores.state() is None
    for k in range(50, 200, 10):
        model.partial_fit(X[k : k + 10], y[k : k + 10])
        before = scores.values()
        if k == 100:
            other.restore(scores.state())  # type: ignore[arg-type]
        if k > 100:
            np.testing.assert_array_equal(other.values(), before)
