"""GapSVC against LASVM-G, -NC, -I and FULL [ertekin2011] in plain NumPy, example by example.

Kernel values are the same numbers here and there: a callable is kept in single precision, and the
dot products of `lattice` are exact in it. So both do the same arithmetic up to the last digits. The
transcription notes how near each of its decisions was to another one. Where one hinges on those
digits (members moved to g = 0 tie, if all others lie to one side of them) either outcome is right:
there the transcription goes on from the model's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pytest

from marginwise import GapSVC
from tests.support import blobs, core_state, is_open, kernel_values

DOUBT = 1e-11  # decisions nearer than this to another one are decided by rounding
SEEDS = 5  # examples of each class that are learned whatever the loss
NEAR = 1e-9  # coefficients agree to this, as a share of C


class Problem(Protocol):
    """What a transcription shows: its members, its output, how near its decisions were."""

    K: np.ndarray
    S: list[int]
    doubt: float

    def learn(self, k: int) -> None: ...
    def output(self) -> np.ndarray: ...


class Gap:
    """One binary problem over a known kernel matrix: signed alpha, box [lo, hi], members S."""

    def __init__(
        self,
        K: np.ndarray,
        y: np.ndarray,
        C: np.ndarray,
        *,
        loss: str = "hinge",
        ramp: float = -1.0,
        clean_every: int | None = 300,
        max_idle: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.K, self.y, self.C, self.loss, self.ramp = K, y, C, loss, ramp
        self.clean_every, self.max_idle, self.tol = clean_every, max_idle, tol
        self.lo, self.hi = np.zeros(len(y)), np.zeros(len(y))
        self.alpha, self.g = np.zeros(len(y)), np.zeros(len(y))
        self.S: list[int] = []
        self.met = {-1.0: 0, 1.0: 0}
        self.seen, self.steps, self.doubt = 0, 0, np.inf

    def output(self) -> np.ndarray:
        return self.alpha

    def adopt(self, members: list[int], alpha: np.ndarray) -> None:
        """Go on from another state."""
        self.S, self.alpha, self.doubt = members, alpha, np.inf
        self.g[members] = self.y[members] - self.K[members] @ alpha

    def apart(self, *differences: float) -> None:
        """Note how far a decision was from another one."""
        self.doubt = min([self.doubt, *map(abs, differences)])

    def learn(self, k: int) -> None:
        z = float(self.y[k] * (self.K[k, self.S] @ self.alpha[self.S]))
        loss = self.loss_for(k)
        self.seen += 1
        if loss == "hinge" or self.admits(loss, z):
            threshold = max(float(self.C[k]), self.target())
            if k not in self.S:
                self.process(k, z, shifted=loss == "ramp" and z < self.ramp)
            while self.exceeds(threshold) and self.reprocess():
                pass
        if self.clean_every is not None and self.seen % self.clean_every == 0:
            self.clean()

    def loss_for(self, k: int) -> str:  # departs: the first few of each class are just learned
        self.met[self.y[k]] += 1
        return "hinge" if self.met[self.y[k]] <= SEEDS else self.loss

    def admits(self, loss: str, z: float) -> bool:  # LASVM-I
        self.apart(z - self.ramp)
        if loss == "ramp":
            return True
        self.apart(z - 1)
        return self.ramp <= z <= 1

    def process(self, k: int, z: float, shifted: bool) -> None:
        top = self.C[k] * self.y[k]
        beta = top if shifted else 0.0  # LASVM-NC
        self.lo[k], self.hi[k] = min(0.0, top) - beta, max(0.0, top) - beta
        self.S.append(k)
        self.alpha[k], self.g[k] = 0.0, self.y[k] - self.y[k] * z  # 1
        self.move([k], [np.clip(self.g[k] / self.K[k, k], self.lo[k], self.hi[k])])  # 2, 3

    def reprocess(self) -> bool:
        S = np.array(self.S)
        up, down = S[self.alpha[S] < self.hi[S]], S[self.alpha[S] > self.lo[S]]
        pair = [self.extreme(members, sign) for members, sign in ((up, 1.0), (down, -1.0))]  # 1
        pair = list(dict.fromkeys(k for k in pair if k is not None))
        worst = max([self.g[k] for k in pair if k in up] + [-self.g[k] for k in pair if k in down])
        self.apart(worst - self.tol)
        if worst <= self.tol:  # 2
            return False
        self.move(pair, self.best_of(pair))  # departs from 3, 4, 5: both, not the worse of them
        self.steps += 1
        return True

    def extreme(self, members: np.ndarray, sign: float) -> int | None:
        if not len(members):
            return None
        g = sign * self.g[members]
        best = int(np.argmax(g))
        self.apart(*(g[best] - np.delete(g, best)))
        return int(members[best])

    def best_of(self, pair: list[int]) -> list[float]:
        """Where the dual is largest over the box of one or two members: no side or some bind."""
        g, K, alpha = self.g[pair], self.K[np.ix_(pair, pair)], self.alpha[pair]
        lo, hi = self.lo[pair] - alpha, self.hi[pair] - alpha
        best, most = np.zeros(len(pair)), 0.0
        for sides in itertools.product([None, lo, hi], repeat=len(pair)):
            free = [n for n, side in enumerate(sides) if side is None]
            step = np.array([0.0 if side is None else side[n] for n, side in enumerate(sides)])
            if np.linalg.det(K[np.ix_(free, free)]) <= 1e-9:
                continue
            step[free] = np.linalg.solve(K[np.ix_(free, free)], (g - K @ step)[free])
            gain = float(g @ step - step @ K @ step / 2)
            if np.all(step >= lo) and np.all(step <= hi) and gain > most:
                best, most = step, gain
        return best.tolist()

    def move(self, members: list[int], steps: list[float]) -> None:
        for k, step in zip(members, steps, strict=True):
            before = self.alpha[k]
            self.alpha[k] = np.clip(before + step, self.lo[k], self.hi[k])
            self.g[self.S] -= (self.alpha[k] - before) * self.K[k, self.S]

    def gap(self) -> float:  # (9), its signs repaired
        S = self.S
        best = np.maximum(self.lo[S] * self.g[S], self.hi[S] * self.g[S])
        return float(np.sum(best - self.alpha[S] * self.g[S]))

    def target(self) -> float:  # (8)
        h = self.C[self.S] * self.y[self.S] * self.g[self.S]
        return float(np.sqrt(max(0.0, h @ h - h.sum() ** 2 / max(len(self.S), 1))))

    def exceeds(self, threshold: float) -> bool:
        gap = self.gap()
        self.apart(gap / threshold - 1)
        return gap > threshold

    def clean(self) -> None:
        far = np.where(self.hi > 0, -self.g, self.g)  # departs: from moving, not from the margin
        idle = sorted((s for s in self.S if self.alpha[s] == 0), key=far.__getitem__)
        kept, dropped = idle[: self.max_idle], idle[self.max_idle :]
        if kept and dropped:
            self.apart(far[kept[-1]] - far[dropped[0]])
        self.S = [s for s in self.S if s not in dropped]


# -- following a model, whatever its algorithm ----------------------------------------------------


def signs_of(y: np.ndarray) -> np.ndarray:
    """Labels as +1 and -1, a row for each problem: one for two classes, else one a class."""
    positives = [1] if y.max() == 1 else range(y.max() + 1)
    return np.where(y == np.asarray(positives)[:, None], 1.0, -1.0)


def compare(model: Any, problems: Sequence[Problem], X: np.ndarray, when: str) -> None:
    """Members, coefficients and decision values of all problems."""
    n = len(problems[0].K)
    members = sorted({s for P in problems for s in P.S})
    assert sorted(model.ids_.tolist()) == members, f"{when}: other members"
    alpha = np.zeros((len(problems), n))
    alpha[:, model.support_] = model.dual_coef_
    expected = np.array([P.output() for P in problems])
    np.testing.assert_allclose(
        alpha, expected, rtol=0, atol=NEAR * max(1.0, model.C), err_msg=f"{when}: alpha"
    )
    assert np.array_equal(alpha != 0, expected != 0), f"{when}: other support vectors"
    f = np.atleast_2d(model.decision_function(X).T)
    scale = 1 + np.abs(expected).sum()
    np.testing.assert_allclose(
        f, expected @ problems[0].K, rtol=0, atol=1e-6 * scale, err_msg=f"{when}: decision values"
    )


def follow(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    problems: Sequence[Problem],
    weights: np.ndarray | None = None,
) -> None:
    """Feed both; compare after each of the first rows, and then after every few."""
    n, doubts = len(y), 0
    edges = [*range(1, min(n, 16)), *range(16, n, 9), n]
    for start, end in zip([0, *edges], edges, strict=False):
        rows = slice(start, end)
        model.partial_fit(
            X[rows],
            y[rows],
            classes=np.unique(y),
            sample_weight=None if weights is None else weights[rows],
        )
        if learn_all(problems, range(start, end)):
            compare(model, problems, X, f"after {end} examples")
        elif all(isinstance(P, Gap) for P in problems):
            adopt_all(model, problems)
            doubts += 1
        else:
            assert start > n // 3, "decisions of the transcription hinge on rounding: other data"
            break
    assert doubts <= 3, "decisions of the transcription hinge on rounding: other data"
    assert all(len(np.flatnonzero(P.output())) > 3 for P in problems), "too easy to compare"


def adopt_all(model: Any, problems: Sequence[Any]) -> None:
    alpha = np.zeros((len(problems), len(problems[0].K)))
    alpha[:, model.support_] = model.dual_coef_
    state = core_state(model)
    for P, row, members in zip(problems, alpha, is_open(state), strict=True):
        P.adopt(state["ids"][members].tolist(), row)


def learn_all(problems: Iterable[Problem], rows: Iterable[int]) -> bool:
    """Tell whether all decisions were clear."""
    for P in problems:
        for k in rows:
            P.learn(k)
    return all(P.doubt > DOUBT for P in problems)


# -- data -----------------------------------------------------------------------------------------


def rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return kernel_values("rbf", A, B, gamma=0.5)


def single(K: np.ndarray) -> np.ndarray:
    return K.astype(np.float32).astype(np.float64)


def cloud(
    seed: int, n: int = 120, classes: int = 2, noise: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, some labels turned over, in numbers that single precision holds."""
    X, y = blobs(n, seed, classes)
    rng = np.random.default_rng(seed + 1)
    y = np.where(rng.random(n) < noise, rng.integers(classes, size=n), y)
    return single(X), y


def lattice(
    seed: int, n: int = 120, d: int = 6, classes: int = 2, cells: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Features that are multiples of 1 / cells, so that x.y is exact in single precision."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, d))
    X[np.arange(n), y] += 1.0
    X = np.clip(np.round(cells * X) / cells, -4, 4)
    return X[(X != 0).any(axis=1)], y[(X != 0).any(axis=1)]


LEARNERS: dict[str, dict[str, Any]] = {
    "G": {"loss": "hinge"},
    "NC": {"loss": "ramp"},
    "NC, s = 0": {"loss": "ramp", "ramp": 0.0},
    "NC, s = -0.25": {"loss": "ramp", "ramp": -0.25},
    "I": {"loss": "filter"},
    "I, s = -0.5": {"loss": "filter", "ramp": -0.5},
    "FULL": {"clean_every": None},
    "FULL NC": {"loss": "ramp", "clean_every": None},
}


def problems_of(
    K: np.ndarray, y: np.ndarray, C: np.ndarray | float, params: dict[str, Any]
) -> list[Gap]:
    own = {name: params[name] for name in params if name not in ("C", "kernel", "gamma", "coef0")}
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return [Gap(K, signs, costs, **own) for signs in signs_of(y)]


# -- tests ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("C", [2.0, 10.0])
def test_every_example(learner: str, C: float, seed: int) -> None:
    X, y = cloud(seed)
    params: dict[str, Any] = {"clean_every": 40, "max_idle": 5, **LEARNERS[learner]}
    problems = problems_of(single(rbf(X, X)), y, C, params)
    follow(GapSVC(kernel=rbf, C=C, **params), X, y, problems)
    assert problems[0].steps > 3 or learner not in ("G", "FULL"), "REPROCESS had nothing to do"


@pytest.mark.parametrize("learner", ["G", "NC", "I", "FULL"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_every_example_with_native_kernels(learner: str, kernel: str, seed: int) -> None:
    """Kernel values are exact in single precision, so the model may differ no more than above."""
    X, y = lattice(seed, cells=4)
    options: dict[str, Any] = {"gamma": 1.0, "coef0": 1.0, "degree": 2} if kernel == "poly" else {}
    K = kernel_values(kernel, X, X, **options)
    assert np.array_equal(K, single(K))
    params: dict[str, Any] = {"clean_every": 30, "max_idle": 4, **LEARNERS[learner]}
    C = 0.25 if kernel == "linear" else 1 / 64
    follow(GapSVC(kernel=kernel, C=C, **options, **params), X, y, problems_of(K, y, C, params))


@pytest.mark.parametrize("learner", ["G", "NC", "I", "FULL"])
def test_every_example_of_a_precomputed_kernel(learner: str, seed: int) -> None:
    X, y = cloud(seed)
    K = single(rbf(X, X))
    params: dict[str, Any] = {"clean_every": 30, "max_idle": 4, **LEARNERS[learner]}
    follow(GapSVC(kernel="precomputed", C=2.0, **params), K, y, problems_of(K, y, 2.0, params))


@pytest.mark.parametrize("learner", ["G", "NC", "I", "FULL"])
def test_every_example_of_three_classes(learner: str, seed: int) -> None:
    """Each class against the rest is a problem of its own, whatever the others hold."""
    X, y = cloud(seed, n=90, classes=3)
    params: dict[str, Any] = {"clean_every": 25, "max_idle": 3, **LEARNERS[learner]}
    problems = problems_of(single(rbf(X, X)), y, 2.0, params)
    follow(GapSVC(kernel=rbf, C=2.0, **params), X, y, problems)


@pytest.mark.parametrize("learner", ["G", "NC", "I"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_example_with_weights(learner: str, classes: int, seed: int) -> None:
    """C of a row is C times its weight times that of its class: in its box, h and threshold."""
    X, y = cloud(seed, n=90, classes=classes)
    weights = np.random.default_rng(seed).choice([0.25, 1.0, 3.0], size=len(y))
    class_weight = dict(enumerate([0.5, 2.0, 1.5][:classes]))
    costs = 1.5 * weights * np.array([class_weight[label] for label in y.tolist()])
    params: dict[str, Any] = {"clean_every": 25, "max_idle": 3, **LEARNERS[learner]}
    problems = problems_of(single(rbf(X, X)), y, costs, params)
    model = GapSVC(kernel=rbf, C=1.5, class_weight=class_weight, **params)
    follow(model, X, y, problems, weights)


@pytest.mark.parametrize(("every", "idle"), [(1, 0), (1, 2), (7, 0), (40, 1000), (120, 1)])
def test_every_example_around_clean(every: int, idle: int, seed: int) -> None:
    """CLEAN comes after the examples number `every`, 2 `every`, ..., skipped ones included."""
    X, y = cloud(seed)
    K = single(rbf(X, X))
    for loss in ("hinge", "filter"):
        params: dict[str, Any] = {"loss": loss, "clean_every": every, "max_idle": idle}
        follow(GapSVC(kernel=rbf, C=2.0, **params), X, y, problems_of(K, y, 2.0, params))


@pytest.mark.parametrize("tol", [0.3, 1e-6])
def test_reprocess_stops_at_tol(tol: float, seed: int) -> None:
    X, y = cloud(seed)
    problems = problems_of(single(rbf(X, X)), y, 0.02, {"tol": tol})
    follow(GapSVC(kernel=rbf, C=0.02, tol=tol), X, y, problems)


@pytest.mark.parametrize("learner", ["G", "NC", "FULL"])
def test_a_second_epoch(learner: str, seed: int) -> None:
    """Members are not inserted twice, those cleaned away come in again, and the count goes on."""
    X, y = cloud(seed, n=90)
    params: dict[str, Any] = {"clean_every": 25, "max_idle": 2, **LEARNERS[learner]}
    problems = problems_of(single(rbf(X, X)), y, 2.0, params)
    model = GapSVC(kernel=rbf, C=2.0, epochs=2, shuffle=False, finish_at_end=False, **params).fit(
        X, y
    )
    assert learn_all(problems, [*range(len(y)), *range(len(y))])
    compare(model, problems, X, "after two epochs")


@pytest.mark.parametrize("learner", ["G", "NC", "I"])
@pytest.mark.parametrize("classes", [2, 3])
def test_finishing_leaves_nobody_to_move(learner: str, classes: int, seed: int) -> None:
    """REPROCESS until it bails out: the maximum of the dual over the members, to within tol."""
    X, y = cloud(seed, n=60, classes=classes)
    params: dict[str, Any] = {"clean_every": 25, "max_idle": 2, "tol": 1e-6, **LEARNERS[learner]}
    problems = problems_of(single(rbf(X, X)), y, 0.5, params)
    model = GapSVC(kernel=rbf, C=0.5, shuffle=False, **params).fit(X, y)
    assert learn_all(problems, range(len(y)))
    for P in problems:
        while P.reprocess():
            pass
    assert sorted(model.ids_.tolist()) == sorted({s for P in problems for s in P.S})
    duals = [P.alpha @ P.y - P.alpha @ P.K @ P.alpha / 2 for P in problems]
    np.testing.assert_allclose(np.ravel(model.dual_objective()), duals, rtol=1e-6)
    f = np.atleast_2d(model.decision_function(X).T)
    np.testing.assert_allclose(f, [P.K @ P.alpha for P in problems], rtol=0, atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_history_is_that_of_the_paper(classes: int, seed: int) -> None:
    X, y = cloud(seed, n=100, classes=classes)
    params: dict[str, Any] = {"clean_every": 30, "max_idle": 3}
    problems = problems_of(single(rbf(X, X)), y, 2.0, params)
    gaps, members = [], []
    for k in range(len(y)):
        assert learn_all(problems, [k])
        gaps.append([P.gap() for P in problems])
        members.append([len(P.S) for P in problems])
    model = GapSVC(
        kernel=rbf, C=2.0, record=True, shuffle=False, finish_at_end=False, **params
    ).fit(X, y)
    shape = (len(y),) if classes == 2 else (len(y), classes)
    np.testing.assert_array_equal(model.history_["members"], np.reshape(members, shape))
    np.testing.assert_allclose(model.history_["gap"], np.reshape(gaps, shape), rtol=0, atol=1e-8)


def test_dual_objective_and_duality_gap(seed: int) -> None:
    X, y = cloud(seed, n=100)
    K = single(rbf(X, X))
    (P,) = problems_of(K, y, 2.0, {"clean_every": None})
    assert learn_all([P], range(len(y)))
    model = GapSVC(kernel=rbf, C=2.0, clean_every=None, shuffle=False, finish_at_end=False).fit(
        X, y
    )
    w2, f = P.alpha @ K @ P.alpha, K @ P.alpha
    dual = P.alpha @ P.y - w2 / 2
    primal = w2 / 2 + 2.0 * np.maximum(0, 1 - P.y * f).sum()
    assert model.dual_objective() == pytest.approx(dual, rel=1e-9)
    assert model.duality_gap(X, y) == pytest.approx(primal - dual, rel=1e-6)
    assert P.gap() == pytest.approx(primal - dual, rel=1e-9), "all are members: the same gap"
