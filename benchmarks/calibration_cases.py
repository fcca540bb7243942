"""The settings of `calibration.py`: `Setting(kind, seed)` is always the same one.

fit      all rows at once
stream   `partial_fit` of one chunk after the other, in several orders, with and without `replay`
known    fits and streams whose probabilities were wrong in earlier versions

C is drawn from 0.01 to 1,000, gamma from 0.01 to 10. There are 500 to 20,000 rows, generated or of
a real set, and two to forty classes, of which the rarest of two has 2 % of the rows or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import SOURCES, Split, load
from numpy.typing import NDArray
from random_settings import described, log_uniform
from sklearn.datasets import make_classification, make_moons

KINDS = ("fit", "stream", "known")
TEST_ROWS, HELD_ROWS = 5000, 2000  # of generated sets
REAL_TEST, REAL_HELD = 2000, 1000
REAL = ("letter", "satimage", "usps0", "banana", "waveform")
ROWS = (500, 5000)
LARGE = (6000, 20_000)  # rows of every EACH_LARGE-th setting
EACH_LARGE = 13
SMALL = 700  # rows of estimators whose time grows with the square of the rows, or faster
HARD = 30.0  # C from which on settings have at most HARD_ROWS rows
HARD_ROWS = 3000
LEAST_ROWS = 12  # rows of each class

QUADRATIC = ("ExactSVC", "ExactRampSVC")
SLOW = (*QUADRATIC, "OnlineSVCCV", "TrackingSVC")  # they get no large set
FITTED = (  # in turn
    *("OnlineSVC", "GapSVC", "OnlineSVC", "ExactSVC", "OnlineSVC", "OnlineSVCCV"),
    *("OnlineSVC", "ExactRampSVC", "OnlineSVC", "TrackingSVC", "OnlineSVC", "KernelPerceptron"),
)
STREAMED = (
    *("OnlineSVC", "OnlineSVC", "GapSVC", "OnlineSVC", "OnlineSVC", "TrackingSVC"),
    *("OnlineSVC", "OnlineSVC", "KernelPerceptron", "OnlineSVC", "ExactSVC", "ExactRampSVC"),
)


@dataclass
class Problem:
    """A model to calibrate, its rows in the order of training, and rows to compare it with."""

    split: Split
    X_held: NDArray[np.float64]  # rows drawn like the test rows
    y_held: NDArray[np.int64]
    estimator: str
    params: dict[str, Any]
    method: str
    order: str = "random"
    chunk: int = 0  # rows per call of partial_fit; 0 for fit
    finished: bool = False  # whether `finish` ends the stream
    seed: int = 0
    source: str = ""

    @property
    def about(self) -> str:
        n, classes = len(self.split.y), np.unique(self.split.y)
        least = min(np.mean(self.split.y == k) for k in classes)
        how = f", {self.order} in chunks of {self.chunk}" if self.chunk else ""
        how += ", finished" if self.finished else ""
        return (
            f"{self.estimator}({described(self.params)}), {self.method}; {n} rows of {self.source}"
            f", {len(classes)} classes, rarest {least:.1%}{how}"
        )


@dataclass(frozen=True)
class Setting:
    """The setting of a seed."""

    kind: str
    seed: int

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.seed}"

    def problem(self, folder: str | Path) -> Problem:
        if self.kind == "known":
            return KNOWN[self.seed](folder)
        rng = np.random.default_rng((self.seed, 38, KINDS.index(self.kind)))
        return drawn(rng, self, folder)

    @property
    def file(self) -> str | None:
        """The file of the data folder that the setting needs."""
        if self.kind == "known":
            return SOURCES["satimage"].file if self.seed in REAL_KNOWN else None
        rng = np.random.default_rng((self.seed, 38, KINDS.index(self.kind)))
        return SOURCES[name].file if (name := Shape.drawn(rng, self).source) in REAL else None


@dataclass
class Shape:
    """The properties of the rows of a setting."""

    source: str
    rows: int
    classes: int
    share: float  # of the positive rows, or of the rarest of several classes relative to others
    estimator: str
    C: float
    gamma: float

    @classmethod
    def drawn(cls, rng: np.random.Generator, setting: Setting) -> Shape:
        names = FITTED if setting.kind == "fit" else STREAMED
        estimator = names[setting.seed % len(names)]
        large = setting.seed % EACH_LARGE == EACH_LARGE - 1
        estimator = "OnlineSVC" if large and estimator in SLOW else estimator
        C, gamma = log_uniform(rng, 0.01, HARD if large else 1000), log_uniform(rng, 0.01, 10)
        rows = round(log_uniform(rng, *(LARGE if large else ROWS)))
        rows = min(rows, SMALL if estimator in QUADRATIC else rows)
        rows = min(rows, HARD_ROWS if C > HARD else rows)
        generated = ("classification", "classification", "moons", "clusters", "overlap", "overlap")
        source = str(rng.choice([*generated, str(rng.choice(REAL)), str(rng.choice(REAL))]))
        several = source in ("classification", "clusters") and rng.random() < 0.45
        classes = round(log_uniform(rng, 3, 40)) if several else 2
        classes = max(min(classes, rows // 40), 2)
        rows = min(rows, LARGE[0]) if classes > 2 else rows  # SVC takes minutes
        return cls(source, rows, classes, log_uniform(rng, 0.02, 0.5), estimator, C, gamma)


def drawn(rng: np.random.Generator, setting: Setting, folder: str | Path) -> Problem:
    shape = Shape.drawn(rng, setting)
    seed = setting.seed
    if shape.source in REAL:
        parts = real(shape, seed, folder)
    else:
        parts = divided(*GENERATED[shape.source](shape, rng), shape.rows)
    method = "isotonic" if rng.random() < 0.4 else "sigmoid"
    params: dict[str, Any] = {"C": shape.C, "gamma": shape.gamma}
    if rng.random() < 0.1:
        params["class_weight"] = "balanced"
    online = shape.estimator in ("OnlineSVC", "OnlineSVCCV")
    if online and shape.classes > 2 and rng.random() < 0.25:
        params["multiclass"] = "ovr"
    problem = Problem(*parts, shape.estimator, params, method, seed=seed, source=shape.source)
    if setting.kind == "stream":
        streamed(problem, rng)
    return problem


def streamed(problem: Problem, rng: np.random.Generator) -> None:
    """Choose the order of the rows and how they are learned."""
    problem.order = str(rng.choice(["random", "sorted", "late"], p=[0.4, 0.4, 0.2]))
    problem.chunk = int(rng.choice([50, 200, 1000]))
    if problem.estimator == "OnlineSVC":
        if rng.random() < 0.5:
            problem.params["replay"] = int(rng.choice([300, 1000]))
        problem.finished = bool(rng.random() < 0.3)
    if "class_weight" in problem.params:  # "balanced" needs all labels at once
        counts = np.bincount(problem.split.y)
        weights = counts.sum() / (len(counts) * counts)
        problem.params["class_weight"] = dict(enumerate(weights.tolist()))
    ordered(problem)


def ordered(problem: Problem) -> None:
    """Sort the rows by class, or move the last class to the end."""
    split, rows = problem.split, np.arange(len(problem.split.y))
    if problem.order == "sorted":
        rows = np.argsort(split.y, kind="stable")
    if problem.order == "late":
        rows = np.argsort(split.y == split.y.max(), kind="stable")
    split.X, split.y = split.X[rows], split.y[rows]


# -- rows ----------------------------------------------------------------------------------------

Rows = tuple[NDArray[Any], NDArray[Any]]
Parts = tuple[Split, NDArray[Any], NDArray[Any]]


def divided(
    X: NDArray[Any], y: NDArray[Any], rows: int, test: int = TEST_ROWS, held: int = HELD_ROWS
) -> Parts:
    """Divide random rows into training, test and held-out rows; no class has too few."""
    y = np.unique(y, return_inverse=True)[1].astype(np.int64)
    first = [np.flatnonzero(y == k)[:LEAST_ROWS] for k in range(y.max() + 1)]
    front = np.concatenate(first)
    rest = np.setdiff1d(np.arange(len(y)), front)
    rows = max(rows, len(front))
    train = np.concatenate([front, rest[: rows - len(front)]])
    train = np.random.default_rng(len(y)).permutation(train)
    rest = rest[rows - len(front) :]
    test_rows, held_rows = rest[:test], rest[test : test + held]
    split = Split(X[train], y[train], X[test_rows], y[test_rows])
    return split, X[held_rows], y[held_rows]


def real(shape: Shape, seed: int, folder: str | Path) -> Parts:
    split = load(shape.source, str(folder), seed=0)
    X, y = np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    order = np.random.default_rng((seed, 1)).permutation(len(y))
    rows = min(shape.rows, len(y) - REAL_TEST - REAL_HELD)
    return divided(X[order], y[order], rows, REAL_TEST, REAL_HELD)


def total(rows: int) -> int:
    return rows + TEST_ROWS + HELD_ROWS


def shares(shape: Shape, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return class frequencies: of two classes, the positive one has its share."""
    if shape.classes == 2:
        return np.array([1 - shape.share, shape.share])
    sizes = np.exp(np.log(2 * shape.share) * rng.random(shape.classes))
    return np.asarray(sizes / sizes.sum())


def classification(shape: Shape, rng: np.random.Generator) -> Rows:
    features = round(log_uniform(rng, 4, 30))
    informative = int(rng.integers(3, max(features // 2, 3) + 2))
    informative = min(max(informative, int(np.ceil(np.log2(2 * shape.classes)))), 20)
    X, y = make_classification(
        total(shape.rows),
        max(features, informative),
        n_informative=informative,
        n_redundant=0,
        n_classes=shape.classes,
        n_clusters_per_class=2,
        weights=list(shares(shape, rng)),
        flip_y=float(rng.choice([0.0, 0.02, 0.1])),
        class_sep=log_uniform(rng, 0.4, 2),
        random_state=int(rng.integers(2**31)),
    )
    return X / X.std(axis=0), y


def moons(shape: Shape, rng: np.random.Generator) -> Rows:
    n = total(shape.rows)
    counts = (n - round(n * shape.share), round(n * shape.share))
    noise, seed = float(rng.uniform(0.1, 0.6)), int(rng.integers(2**31))
    X, y = make_moons(counts, noise=noise, random_state=seed)
    return X, y


def clusters(shape: Shape, rng: np.random.Generator) -> Rows:
    """Draw two clusters for each class, which overlap more or less."""
    n, features = total(shape.rows), round(log_uniform(rng, 2, 40))
    y = rng.choice(shape.classes, size=n, p=shares(shape, rng))
    centres = rng.normal(size=(shape.classes, 2, features))
    spread = log_uniform(rng, 0.2, 1.5)
    return centres[y, rng.integers(0, 2, n)] + spread * rng.normal(size=(n, features)), y


def overlap(shape: Shape, rng: np.random.Generator) -> Rows:
    """Draw two normal distributions whose means are close to each other."""
    n, features = total(shape.rows), round(log_uniform(rng, 2, 20))
    y = (rng.random(n) < shape.share).astype(np.int64)
    apart = log_uniform(rng, 0.3, 2.5) / features**0.5
    X = rng.normal(size=(n, features)) * np.where(y[:, None] == 1, rng.uniform(0.6, 1.4), 1.0)
    return X + apart * y[:, None], y


GENERATED: dict[str, Callable[[Shape, np.random.Generator], Rows]] = {
    "classification": classification,
    "moons": moons,
    "clusters": clusters,
    "overlap": overlap,
}


# -- settings in which earlier versions were wrong -----------------------------------------------


def moons_sorted(folder: str | Path, *, method: str) -> Problem:
    X, y = make_moons(total(3000), noise=0.3, random_state=0)
    params = {"C": 1.0, "gamma": 2.0, "replay": 500}
    return stream(Problem(*divided(X, y, 3000), "OnlineSVC", params, method, source="moons"))


def satimage_sorted(folder: str | Path, *, method: str) -> Problem:
    split = load("satimage", str(folder))
    held = np.random.default_rng(0).permutation(len(split.y))[:REAL_HELD]
    rest = np.setdiff1d(np.arange(len(split.y)), held)
    X_held, y_held = split.X[held], split.y[held]
    split.X, split.y = split.X[rest], split.y[rest]
    params = {"C": 10.0, "gamma": 0.05, "replay": 1000}
    parts = (split, X_held, y_held)
    return stream(Problem(*parts, "OnlineSVC", params, method, source="satimage"))


def third_class_late(folder: str | Path) -> Problem:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, total(3000))
    X = rng.normal(size=(len(y), 2)) + 1.5 * np.eye(3, 2)[y]
    params = {"C": 1.0, "gamma": 0.5}
    problem = Problem(*divided(X, y, 3000), "OnlineSVC", params, "sigmoid", source="normal rows")
    return stream(problem, "late")


def stream(problem: Problem, order: str = "sorted") -> Problem:
    problem.order, problem.chunk = order, 200
    ordered(problem)
    return problem


def near_identity(folder: str | Path, *, rows: int, C: float, gamma: float) -> Problem:
    X, y = make_classification(15_000, 20, n_informative=6, weights=[0.6], random_state=1)
    parts = Split(X[:rows], y[:rows], X[-5000:], y[-5000:]), X[-8000:-5000], y[-8000:-5000]
    params = {"C": C, "gamma": gamma}
    return Problem(*parts, "OnlineSVC", params, "sigmoid", source="classification")


def rare(folder: str | Path, *, seed: int) -> Problem:
    """Draw 2.3 % of the rows from eight clusters, and learn them with a small gamma."""
    rng, fixed = np.random.default_rng((seed, 23)), np.random.default_rng(23)
    centres = 1.2 * fixed.normal(size=(2, 8, 10))
    y = (rng.random(total(7800)) < 0.023).astype(np.int64)
    X = centres[y, rng.integers(0, 8, len(y))] + rng.normal(size=(len(y), 10))
    parts, params = divided(X, y, 7800), {"C": 8.0, "gamma": 0.04}
    return Problem(*parts, "OnlineSVC", params, "sigmoid", seed=seed, source="rare clusters")


def many(folder: str | Path, *, classes: int, estimator: str, params: dict[str, Any]) -> Problem:
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, total(60 * classes))
    X = 1.1 * rng.normal(size=(classes, 12))[y] + rng.normal(size=(len(y), 12))
    return Problem(
        *divided(X, y, 60 * classes), estimator, params, "sigmoid", source="normal clusters"
    )


FORTY = {"C": 0.011, "gamma": 0.05, "multiclass": "ovr"}
KNOWN: tuple[Callable[[str | Path], Problem], ...] = (
    partial(moons_sorted, method="sigmoid"),
    partial(moons_sorted, method="isotonic"),
    partial(satimage_sorted, method="sigmoid"),
    partial(satimage_sorted, method="isotonic"),
    third_class_late,
    partial(near_identity, rows=4000, C=1.0, gamma=1.0),
    partial(near_identity, rows=2000, C=0.1, gamma=0.3),
    partial(many, classes=40, estimator="OnlineSVC", params=FORTY),
    partial(many, classes=8, estimator="GapSVC", params={"C": 0.05, "gamma": 0.5}),
    *(partial(rare, seed=seed) for seed in range(9)),
)
REAL_KNOWN = (2, 3)


def settings(counts: dict[str, int], folder: Path) -> Iterator[Setting]:
    """Yield the settings of each kind whose data are present, interleaved."""
    due = [
        (seed / max(count, 1), kind, seed)
        for kind, count in counts.items()
        for seed in range(min(count, len(KNOWN)) if kind == "known" else count)
    ]
    for _, kind, seed in sorted(due):
        setting = Setting(kind, seed)
        if setting.file is None or (folder / setting.file).is_file():
            yield setting
