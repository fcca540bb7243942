"""States that no learning has left are refused however they come, and honest ones never are."""

from __future__ import annotations

import copy
import pickle
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.datasets import make_moons

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    load,
    save,
)
from marginwise._files.engine_state import check_machine

# A poly kernel with coef0 below 0 is not positive semi-definite.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* reached a dual objective:sklearn.exceptions.ConvergenceWarning"
)

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 3))
Y = np.digitize(X[:, 0] + 0.5 * RANDOM.standard_normal(120), [-0.5, 0.5])
LISTS = sp.hstack([sp.random(120, 400, density=0.02, random_state=RANDOM), X[:, :1]], format="csr")

MODELS: dict[str, Callable[[], Any]] = {
    "online": lambda: OnlineSVC(random_state=0).fit(X, Y),
    "unfinished": lambda: OnlineSVC(random_state=0, finish_at_end=False).fit(X, Y > 0),
    "linear": lambda: OnlineSVC(kernel="linear", random_state=0).fit(X, Y),
    "poly": lambda: OnlineSVC(kernel="poly", coef0=-1.0, random_state=0).fit(X, Y),
    "sigmoid": lambda: OnlineSVC(kernel="sigmoid", coef0=-1.0, random_state=0).fit(X, Y),
    "lists": lambda: GapSVC(kernel="cosine").fit(LISTS, Y),
    "precomputed": lambda: OnlineSVC(kernel="precomputed", random_state=0).fit(X @ X.T, Y),
    "gap": lambda: GapSVC(loss="ramp", clean_every=50, max_idle=5, random_state=0).fit(X, Y),
    "tracking": lambda: TrackingSVC(random_state=0).fit(X, Y),
    "support": lambda: TrackingSVC(gradients="support", random_state=0).fit(X, Y),
    "exact ramp": lambda: ExactRampSVC(max_idle=20, random_state=0).fit(X, Y),
    "perceptron": lambda: KernelPerceptron(average=True, random_state=0).fit(X, Y),
    "budget": lambda: KernelPerceptron(budget=20, update="pa", random_state=0).fit(X, Y),
    "exact": lambda: ExactSVC(gamma=1.0).fit(X, Y).forget([3, 5]),
    "one class": lambda: ExactOneClassSVM(nu=0.2).fit(X),
}


# -- doctored states -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_that_is_not_that_of_the_coefficients(name: str) -> None:
    model = MODELS[name]()
    state = model.__getstate__()
    for value in (1e300, -1e300, np.inf, np.nan):
        doctored = copy.deepcopy(state)
        doctored["_machine"]["g"][0, np.argmax(state["_machine"]["rank"][0] >= 0)] = value
        with pytest.raises(ValueError, match="g must be"):
            type(model).__new__(type(model)).__setstate__(doctored)
    doctored = copy.deepcopy(state)
    doctored["_machine"]["g"][state["_machine"]["rank"] >= 0] += 3.0
    with pytest.raises(ValueError, match="g must be the gradient of alpha"):
        type(model).__new__(type(model)).__setstate__(doctored)
    type(model).__new__(type(model)).__setstate__(state)


@pytest.mark.parametrize("count", [0.0, 0.5, 5.0, 39.5])
def test_a_perceptron_has_seen_all_examples_that_it_holds(count: float) -> None:
    """Its averages are divided by the number of examples seen."""
    model = MODELS["perceptron"]()
    state = model.__getstate__()
    assert (state["_machine"]["rank"][1] >= 0).sum() > 5
    state["_machine"]["notes"][1, 0] = count
    with pytest.raises(ValueError, match="notes must"):
        KernelPerceptron.__new__(KernelPerceptron).__setstate__(state)


Doctor = Callable[[dict[str, Any]], Any]

DOCTORED: dict[str, tuple[str, Doctor]] = {
    "short alpha": ("alpha must be an array", lambda m: m.update(alpha=m["alpha"][:, :-1])),
    "label beyond the classes": ("labels must be", lambda m: m["labels"].fill(7)),
    "rank": ("ranks must be different", lambda m: m["rank"].fill(1)),
    "many problems": ("problems must fit", lambda m: m["plan"].update(problems=9)),
    "wide": ("center must have", lambda m: m["plan"].update(features=9)),
    "algorithm": ("settings of the algorithm", lambda m: m["plan"].update(algorithm="gap")),
    "endless": ("reprocess must be", lambda m: m["plan"]["settings"].update(reprocess=2**62)),
    "no counters": ("lacks 'counters'", lambda m: m.pop("counters")),
    "extra": ("does not know", lambda m: m.update(more=1)),
}


@pytest.mark.parametrize("way", ["pickle", "skops"])
@pytest.mark.parametrize("name", DOCTORED)
def test_pickles_and_skops_files_are_checked(name: str, way: str, monkeypatch: Any) -> None:
    message, doctor = DOCTORED[name]
    model = MODELS["online"]()
    honest = model._engine.state
    with monkeypatch.context() as patch:

        def doctored() -> dict[str, Any]:
            state = copy.deepcopy(honest())
            doctor(state)
            return state

        patch.setattr(model._engine, "state", doctored)
        data = pickle.dumps(model) if way == "pickle" else skops.io.dumps(model)
    trusted = ["marginwise.online.OnlineSVC"]
    with pytest.raises(ValueError, match=message):
        pickle.loads(data) if way == "pickle" else skops.io.loads(data, trusted=trusted)


# -- honest states ---------------------------------------------------------------------------------


class Child(OnlineSVC):
    pass


def product(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T


HONEST: dict[str, Callable[[], Any]] = {
    **MODELS,
    "function": lambda: OnlineSVC(kernel=product).fit(X, Y),
    "another kernel since": lambda: MODELS["online"]().set_params(kernel="precomputed"),
    "another function since": lambda: OnlineSVC(kernel=product).fit(X, Y).set_params(C=-1),
    "bad parameters since": lambda: MODELS["online"]().set_params(C="high", degree=-3),
    "subclass": lambda: Child(random_state=0).fit(X, Y),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_states_are_taken(name: str) -> None:
    model = HONEST[name]()
    model.note = "of the user's own"
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.note == model.note
        state, expected = again._engine.state(), model._engine.state()
        for part in set(expected) - {"rank", "counters"}:  # ranks are numbered from 0 again
            np.testing.assert_equal(state[part], expected[part], err_msg=part)


def test_large_models_are_copied_quickly() -> None:
    """The check looks at some of the members, not at all pairs."""
    rows, labels = make_moons(6000, noise=0.4, random_state=0)
    model = OnlineSVC(finish_at_end=False, random_state=0).fit(rows, labels)
    assert model._engine.native.size > 1500
    started = time.perf_counter()
    copy.deepcopy(model)
    assert time.perf_counter() - started < 0.5


# -- what can be learned can be saved --------------------------------------------------------------


def test_limits_at_the_door() -> None:
    for model, name in (
        (TrackingSVC(steps=10**6 + 1), "steps must be an integer from 1 to 1000000"),
        (TrackingSVC(steps=2**40), "steps must be an integer from 1 to 1000000"),
        (OnlineSVC(reprocess=2**62), "reprocess must be an integer from 0 to 1000000000"),
        (OnlineSVC(degree=2**31), "degree must be an integer from 1 to 1000"),
        (OnlineSVC(cache_size=1e300), "cache_size must be 'auto' or a number above 0, at most"),
        (OnlineSVC(cache_size=10**400), "cache_size must be 'auto' or a number above 0, at most"),
        (OnlineSVC(C=10**400), "C must be a number above 0"),
        (OnlineSVC(pool_size=2**70), r"pool_size must be .*at most 2\^62"),
        (ExactSVC(window=2**70), r"window must be .*at most 2\^62"),
        (KernelPerceptron(budget=2**63), r"budget must be .*at most 2\^62"),
        (GapSVC(max_idle=2**63), r"max_idle must be .*at most 2\^62"),
        (OnlineSVC(n_jobs=-(2**70)), r"n_jobs must be .*at most 2\^62"),
    ):
        with pytest.raises(ValueError, match=name):
            model.fit(X, Y)


SCALES = [0, 0, 8, 12, 18, 25, 30, 140, -12, -30, -150]
EXTREMES: dict[str, list[Any]] = {
    "gamma": ["scale", "auto", 1.0, 1e-300, 1e300, 1e-20, 1e20],
    "C": [1, 1e-300, 1e-12, np.float32(0.1)],
    "degree": [1, 2, 5, 50, 1000],
    "coef0": [1, -1, 1e300, 1e-300, -1e10, 10**25],
    "n_jobs": [None, -1, 2, -(10**6)],
    "cache_size": [1e-300, 1, 2**10],
    "max_idle": [0, 2**40, 2**62],
    "window": [2, 2**40, 2**62],
    "budget": [1, 2**62],
    "clean_every": [1, 2**62],
    "finish_every": [1, 2**62],
    "pool_size": [1, 2**31, 2**62],
    "margin": [0, 1e300, 10**30],
    "ramp": [-1e300, 0, -(10**30)],
    "tol": [1e-3, 1e300, 10**30],
    "random_state": [0, 2**32 - 1, np.int64(3)],
    "finish_at_end": [np.True_, False],
}
KINDS = [
    OnlineSVC,
    GapSVC,
    TrackingSVC,
    ExactRampSVC,
    KernelPerceptron,
    ExactSVC,
    ExactOneClassSVM,
]


def extreme_model(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return an estimator with odd parameters that learned odd rows, and the rows."""
    kind: Any = KINDS[rng.integers(len(KINDS))]
    n = int(rng.integers(4, 30))
    rows: Any = rng.standard_normal((n, int(rng.integers(1, 5))))
    rows = rows * 10.0 ** rng.choice(SCALES) + 10.0 ** rng.choice([-9, 0, 5, 20, 25])
    if rng.random() < 0.3:
        rows[rng.integers(n)] *= 10.0 ** rng.choice([3, 10, 25, -25])
    if rng.random() < 0.3 and np.abs(rows).max() < 3e38:
        rows = rows.astype(np.float32)
    if rng.random() < 0.2:
        rows = sp.csr_array(rows * (rng.random(rows.shape) < 0.2))
    kernels = ["linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto"]
    params = {"kernel": kernels[rng.integers(len(kernels))]}
    for name in kind().get_params():
        if name in EXTREMES and rng.random() < 0.25:
            params[name] = EXTREMES[name][rng.integers(len(EXTREMES[name]))]
    if kind is KernelPerceptron:
        params["C"] = [1, 10**30, 2**70, 1e300][rng.integers(4)]
    starts = [0, 2**62, -(2**63), 2**63 - n]
    ids = np.arange(n, dtype=np.int64) + np.int64(starts[rng.integers(4)])
    more = () if kind is ExactOneClassSVM else (rng.integers(0, 3, n), [0, 1, 2])
    return kind(**params).partial_fit(rows, *more, ids=ids), rows


def test_what_can_be_learned_can_be_saved(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    learned = 0
    for _ in range(120):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model, rows = extreme_model(rng)
            except (ValueError, MemoryError):
                continue
            learned += 1
            save(model, tmp_path / "m.mwz")
            again = load(tmp_path / "m.mwz")
            expected = model.decision_function(rows)
            np.testing.assert_array_equal(again.decision_function(rows), expected)
            assert again.support_.tolist() == model.support_.tolist()
    assert learned > 40


def test_large_features_can_be_saved(tmp_path: Path) -> None:
    """Features of 1e25 once made models that `save` refused."""
    for kernel in ("rbf", "sigmoid", "cosine", "tanimoto"):
        model = OnlineSVC(kernel=kernel, random_state=0).fit(1e25 * X, Y)
        assert np.isfinite(model.decision_function(1e25 * X)).all()
        save(model, tmp_path / "m.mwz")
        again = load(tmp_path / "m.mwz")
        np.testing.assert_array_equal(
            again.decision_function(1e25 * X), model.decision_function(1e25 * X)
        )


@pytest.mark.parametrize(
    ("multiclass", "classes", "problems"), [("ovr", 50_000, 50_000), ("ovo", 317, 50_086)]
)
def test_classes_without_members_cannot_ask_for_memory(
    multiclass: str, classes: int, problems: int
) -> None:
    """A problem takes some kilobytes in memory, and a few bytes in a file."""
    model = OnlineSVC(gamma=0.5, multiclass=multiclass)
    state = model.partial_fit(np.ones((1, 2)), [0], classes=[0, 1, 2])._engine.state()
    check_machine(state, 3)
    by_problem = {name: v for name, v in state.items() if np.ndim(v) == 2 and len(v) == 3}
    assert by_problem.keys() >= {"alpha", "g", "rank", "box", "trail", "notes"}
    state.update({name: np.repeat(v[:1], problems, axis=0) for name, v in by_problem.items()})
    state["plan"] = {**state["plan"], "problems": problems}
    with pytest.raises(ValueError, match=f"{problems} (classes|problems) are too many"):
        check_machine(state, classes)
