"""What must hold for any stream of arrivals and removals, with any rows: the exact models."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from marginwise import ExactOneClassSVM, ExactSVC, load, save
from tests.support import (
    assert_same_model,
    assert_untouched,
    blobs,
    core_state,
    is_open,
    rings,
    sparse_rows,
)

N = 160
Way = Callable[[Any], Any]


# -- any rows, in any order -----------------------------------------------------------------------

POINTS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.just(1))  # few, and a constant
LEARN = st.tuples(st.just("learn"), POINTS, st.integers(0, 1))
FORGET = st.tuples(st.just("forget"), st.integers(0, 99), st.integers(1, 3))
SET_C = st.tuples(st.just("set_C"), st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]), st.just(0))
STORE = st.tuples(st.just("store"), st.just(0), st.just(0))
PROGRAMS = st.lists(st.one_of(LEARN, LEARN, LEARN, LEARN, FORGET, SET_C, STORE), max_size=40)
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 1.0, "coef0": 1.0},
    "rbf": {"gamma": 0.5},
}
LARGEST = 100.0  # of K(x, x)


def started(model: Any) -> Any:
    """A model of two classes, or of one, that holds nothing yet."""
    if isinstance(model, ExactSVC):
        return model.partial_fit([[0, 0, 1]], [0], classes=[0, 1], ids=[10**6]).forget([10**6])
    return model.partial_fit([[0, 0, 1]], ids=[10**6]).forget([10**6])


def assert_sound(model: Any, C: float, why: str) -> None:
    size = LARGEST * (1 + C)
    assert model._engine.native.violation().max() <= 1e-10 * size, why
    model._engine.native.check(1e-10 * size)
    if not model.is_empty_:
        assert np.isfinite(model.decision_function([[0, 0, 1], [2, 2, 1]])).all(), why


def obey(model: Any, program: list[Any]) -> tuple[Any, dict[int, tuple[Any, int]]]:
    """Do what a program says; return the model and the rows that it should hold, by id."""
    held: dict[int, tuple[Any, int]] = {}
    C = float(model.C or 1.0)
    for k, (verb, what, more) in enumerate(program):
        if verb == "learn" and isinstance(model, ExactSVC):
            model.partial_fit([what], [more], ids=[k])
        elif verb == "learn":
            model.partial_fit([what], ids=[k])
        elif verb == "forget":
            names = sorted(held)
            chosen = {names[(what + j) % len(names)] for j in range(more)} if names else set()
            model.forget(sorted(chosen))
            held = {name: row for name, row in held.items() if name not in chosen}
        elif verb == "set_C" and isinstance(model, ExactSVC):
            model.set_C(what)
            C = what
        elif verb == "store":
            model = pickle.loads(pickle.dumps(model))
        if verb == "learn":
            held[k] = (what, more)
        assert_sound(model, C, f"after step {k}, {verb} {what} {more}")
    return model, held


GIVEN_UP = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@GIVEN_UP
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e4])
@settings(max_examples=10)
@given(program=PROGRAMS)
def test_any_program_ends_at_the_optimum(kernel: str, C: float, program: list[Any]) -> None:
    params = {"kernel": kernel, **KERNELS[kernel]}
    model, held = obey(started(ExactSVC(C=C, **params)), program)
    assert sorted(model.ids_.tolist()) == sorted(held)
    if not held:
        assert model.dual_objective() == 0
        return
    X, y = [x for x, _ in held.values()], [label for _, label in held.values()]
    fresh = ExactSVC(C=model.C, **params).partial_fit(X, y, classes=[0, 1])
    now, anew = model.dual_objective(), fresh.dual_objective()
    assert now == pytest.approx(anew, rel=1e-7, abs=1e-9 * (1 + model.C))


@GIVEN_UP
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bounds", [{"nu": 0.3}, {"nu": 1.0}, {"C": 0.2}, {"C": 5.0}], ids=str)
@settings(max_examples=10)
@given(program=PROGRAMS)
def test_any_program_of_a_sphere_ends_at_the_optimum(
    kernel: str, bounds: dict[str, float], program: list[Any]
) -> None:
    params = {"kernel": kernel, **KERNELS[kernel], **bounds}
    model, held = obey(started(ExactOneClassSVM(**params)), program)
    assert sorted(model.ids_.tolist()) == sorted(held)
    total = bounds["nu"] * len(held) if "nu" in bounds else min(1.0, bounds["C"] * len(held))
    assert model.dual_coef_.sum() == pytest.approx(total, rel=1e-10, abs=1e-12)
    if held:
        fresh = ExactOneClassSVM(**params).partial_fit([x for x, _ in held.values()])
        now, anew = model.dual_objective(), fresh.dual_objective()
        assert now == pytest.approx(anew, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=12, phases=[Phase.generate])
@given(program=PROGRAMS)
def test_no_path_is_given_up(kernel: str, program: list[Any]) -> None:
    params: dict[str, Any] = {"kernel": kernel, **KERNELS[kernel]}
    for model in (ExactSVC(C=1.0, **params), ExactOneClassSVM(nu=0.3, **params)):
        obeyed, _ = obey(started(model), program)
        assert obeyed._engine.resolved == 0


@pytest.mark.parametrize("C", [3.3, 10.0, 12.742749857031335, 74.2, 2246.868847512766])
def test_no_path_is_given_up_at_a_point_of_both_classes(C: float) -> None:
    X, y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), [1, 0, 0, 1]
    model = ExactSVC(C=C, kernel="linear").partial_fit(X, y, classes=[0, 1])
    assert model._engine.resolved == 0


@GIVEN_UP
@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(POINTS, st.integers(0, 1)), min_size=6, max_size=30),
    window=st.integers(2, 6),
    evict=st.sampled_from(["lightest", "oldest"]),
)
def test_any_window_holds_the_optimum_of_what_it_holds(
    rows: list[Any], window: int, evict: Any
) -> None:
    params: dict[str, Any] = {"kernel": "linear", "C": 10.0}
    X, y = np.array([x for x, _ in rows], dtype=float), np.array([label for _, label in rows])
    model = ExactSVC(**params, window=window, evict=evict).partial_fit(X, y, classes=[0, 1])
    assert_sound(model, 10.0, "window")
    kept = np.sort(model.ids_)
    assert len(kept) == min(window, len(rows))
    assert kept[-1] == len(rows) - 1
    if evict == "oldest":
        assert kept.tolist() == list(range(len(rows) - len(kept), len(rows)))
    fresh = ExactSVC(**params).partial_fit(X[kept], y[kept], classes=[0, 1])
    assert model.dual_objective() == pytest.approx(fresh.dual_objective(), rel=1e-8, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "grid"])
def test_thousands_of_arrivals_and_removals_lose_no_digit(C: float, kernel: str, seed: int) -> None:
    """Around a hundred rows: errors neither grow nor make the path be given up."""
    rng = np.random.default_rng(seed)
    X, y = rings(1600, seed, noise=0.1)
    X = np.round(X) if kernel == "grid" else X
    params: dict[str, Any] = {"kernel": "rbf" if kernel == "grid" else kernel, "gamma": 1.0, "C": C}
    model = ExactSVC(**params).partial_fit(X[:100], y[:100], classes=[0, 1])
    held = list(range(100))
    for k in range(100, 1600 if kernel == "rbf" else 500):
        model.learn_one(X[k], y[k])
        held.append(k)
        for _ in range(2 if len(held) > 105 else 1 if len(held) > 95 else 0):
            model.forget([held.pop(int(rng.integers(len(held))))])
        if k % 100 == 0:
            model._engine.native.check(1e-8 * (1 + C / 10))
    assert sorted(model.ids_.tolist()) == sorted(held)
    fresh = ExactSVC(**params).partial_fit(X[held], y[held], classes=[0, 1])
    assert model.dual_objective() == pytest.approx(fresh.dual_objective(), rel=1e-9)
    free = np.abs(np.abs(fresh.dual_coef_) - C) > 1e-9 * C
    if free.any():
        np.testing.assert_allclose(
            model.decision_function(X), fresh.decision_function(X), rtol=0, atol=1e-7 * (1 + C / 10)
        )
    assert model._engine.resolved == 0, "the path was given up"


# -- one stream, one model ------------------------------------------------------------------------

MODELS: dict[str, Callable[..., Any]] = {
    "plain": lambda **more: ExactSVC(**{"C": 3.0, "gamma": 0.7, **more}),
    "large C": lambda **more: ExactSVC(**{"C": 1e4, "gamma": 0.7, **more}),
    "poly": lambda **more: ExactSVC(
        **{"C": 1.0, "kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0, **more}
    ),
    "window": lambda **more: ExactSVC(**{"C": 3.0, "gamma": 0.7, "window": 60, **more}),
    "oldest": lambda **more: ExactSVC(
        **{"C": 3.0, "gamma": 0.7, "window": 60, "evict": "oldest", "record": True, **more}
    ),
    "sphere": lambda **more: ExactOneClassSVM(**{"nu": 0.3, "gamma": 0.7, **more}),
    "sphere, C": lambda **more: ExactOneClassSVM(
        **{"C": 0.05, "gamma": 0.7, "window": 60, "record": True, **more}
    ),
}


SPHERES = [name for name in MODELS if name.startswith("sphere")]
SVCS = [(name, classes) for name in MODELS if name not in SPHERES for classes in (2, 3)]
of_svcs = pytest.mark.parametrize(("kind", "classes"), SVCS)
of_all = pytest.mark.parametrize(("kind", "classes"), SVCS + [(name, 2) for name in SPHERES])


def stream(classes: int, seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes with wrong labels, more than half of the features zero."""
    X, y = rings(n, seed, noise=0.15, d=4) if classes == 2 else blobs(n, seed, classes, d=4)
    X[:, 2:] = 0.0
    X[np.random.default_rng(seed).random((n, 4)) < 0.2] = 0.0
    return X, y


def learned(model: Any, X: Any, y: np.ndarray, cuts: Any = (), between: Way | None = None) -> Any:
    """Give a model a stream that is cut into calls, rows forgotten after each third of it."""
    n = X.shape[0]
    thirds = [n // 3, 2 * n // 3]
    for a, b in itertools.pairwise(sorted({0, *thirds, *cuts, n})):
        if isinstance(model, ExactSVC):
            model.partial_fit(X[a:b], y[a:b], classes=range(int(y.max()) + 1))
        else:
            model.partial_fit(X[a:b])
        model = between(model) if between else model
        if b in thirds:
            ids = np.sort(model.ids_)
            model.forget(ids[::3]).forget(ids[1:8:3])
            model = between(model) if between else model
            if isinstance(model, ExactSVC) and b == thirds[1]:
                model.set_C(model.C * 2)
    return model


def assert_same(one: Any, other: Any, why: str) -> None:
    assert_same_model(one, other, why)
    a, b = core_state(one), core_state(other)
    assert np.array_equal(a["notes"], b["notes"]), f"{why}: notes differ"
    for name in ("slots", "factor"):
        assert np.array_equal(a[name], b[name]), f"{why}: {name} differs"
    inside = [np.where(s["margin"] >= 0, s["ids"][s["margin"]], -1) for s in (a, b)]
    assert np.array_equal(inside[0], inside[1]), f"{why}: S differs"
    assert np.array_equal(a["box"][is_open(a)], b["box"][is_open(b)]), f"{why}: box differs"
    X = stream(2, 7, 40)[0]
    assert np.array_equal(one.decision_function(X), other.decision_function(X)), why
    assert np.array_equal(one.dual_coef_, other.dual_coef_), why
    if one.record:
        assert np.array_equal(one.path_, other.path_), f"{why}: path_ differs"


@of_all
def test_how_a_stream_is_cut_does_not_matter(kind: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    whole = learned(MODELS[kind](), X, y)
    whole._engine.native.check(1e-7)
    assert len(whole.support_) > 10, "too easy to compare anything"
    for cuts in ([1, 2, 3, 117], range(7, N, 7)):
        assert_same(whole, learned(MODELS[kind](), X, y, cuts), f"cut at {list(cuts)}")


@of_all
@pytest.mark.parametrize("more", [{"n_jobs": 2}, {"cache_size": 0.01}], ids=str)
def test_threads_and_cache_do_not_matter(kind: str, classes: int, more: Any, seed: int) -> None:
    X, y = stream(classes, seed)
    whole = learned(MODELS[kind](), X, y)
    assert_same(whole, learned(MODELS[kind](**more), X, y, [100]), f"{more}")


def test_rows_that_the_cache_has_no_room_for_are_computed_anew(seed: int) -> None:
    X, y = stream(2, seed, 420)
    whole = learned(ExactSVC(C=3.0, gamma=0.7), X, y)
    assert len(whole.support_) > 100
    for megabytes, jobs in ((1e-6, 1), (0.05, 2), (0.2, 1)):
        model = learned(ExactSVC(C=3.0, gamma=0.7, cache_size=megabytes, n_jobs=jobs), X, y)
        model._engine.native.check(1e-8)
        assert_same(whole, model, f"{megabytes} MB, {jobs} threads")


@of_svcs
def test_rows_by_themselves_are_the_stream(kind: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed, 90)
    whole, many, one = (
        MODELS[kind]().partial_fit(X[:1], y[:1], classes=range(classes)) for _ in range(3)
    )
    whole.partial_fit(X[1:], y[1:])
    assert_same(whole, many.learn_many(X[1:], y[1:]), "learn_many")
    for x, label in zip(X[1:], y[1:], strict=True):
        one.learn_one(x, label)
    assert_same(whole, one, "learn_one")
    assert_same(whole, MODELS[kind]().fit(X, y), "fit")


@of_all
def test_dense_and_sparse_rows_are_one(kind: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    dense = learned(MODELS[kind](), X, y)
    assert_same(dense, learned(MODELS[kind](), sp.csr_array(X), y, [90]), "CSR")
    assert_same(dense, learned(MODELS[kind](), np.asfortranarray(X), y), "by columns")


def test_lists_and_dense_rows_are_one(seed: int) -> None:
    """Rows so sparse that lists of nonzeros are kept."""
    rng = np.random.default_rng(seed)
    X, y = (
        sparse_rows(150, 300, 0.02, rng),
        rng.integers(2, size=150),
    )
    for kernel in ("linear", "rbf", "cosine"):
        lists = learned(ExactSVC(C=3.0, kernel=kernel, gamma=0.7), X, y)
        dense = learned(ExactSVC(C=3.0, kernel=kernel, gamma=0.7), X.toarray(), y)
        assert lists._engine.plan.sparse
        assert not dense._engine.plan.sparse
        assert_same_model(lists, dense, kernel)


@pytest.mark.slow
@of_all
def test_goes_on_as_if_never_stopped(kind: str, classes: int, tmp_path: Path, seed: int) -> None:
    def by_file(model: Any) -> Any:
        save(model, tmp_path / "m.mwz")
        return load(tmp_path / "m.mwz")

    X, y = stream(classes, seed)
    whole = learned(MODELS[kind](), X, y)
    cuts = [1, 30, 110]
    assert_same(whole, learned(MODELS[kind](), X, y, cuts, by_file), "by file")
    pickled = learned(MODELS[kind](), X, y, cuts, lambda m: pickle.loads(pickle.dumps(m)))
    assert_same(whole, pickled, "by pickle")


@of_all
def test_asking_changes_nothing(kind: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    model = learned(MODELS[kind](), X, y)
    names = ["support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "ids_"]
    names += ["path_"] if model.record else []
    if isinstance(model, ExactSVC):
        model.leave_one_out()  # it may count what it does
        model.score(X, y)
        model.duality_gap(X, y)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    model.predict(X)
    model.decision_function(sp.csr_array(X))
    model.dual_objective()
    for name in names:
        answer = getattr(model, name)
        if answer.flags.writeable:
            answer[...] = 0  # what is given out is a copy
    _ = model.stats_, repr(model)
    model._engine.native.check(1e-6)
    assert_untouched(before, model, "predicting and looking")


@of_svcs
def test_leaving_one_out_changes_nothing(kind: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    model, other = (learned(MODELS[kind](), X, y) for _ in range(2))
    first, second = model.leave_one_out(), model.leave_one_out()
    assert np.array_equal(first.decision, second.decision)
    assert_same(model, other, "after leave_one_out")
    for one in (model, other):
        one.partial_fit(X[:20], y[:20])
    assert_same(model, other, "continued after leave_one_out")
    again = learned(MODELS[kind](n_jobs=2), X, y).leave_one_out()
    assert np.array_equal(first.decision, again.decision)
    assert np.array_equal(first.ids, again.ids)


@pytest.mark.parametrize("kind", MODELS)
def test_inputs_are_not_aliased(kind: str, seed: int) -> None:
    X, y = stream(2, seed)
    weights, ids = np.ones(N), np.arange(N)
    if kind.startswith("sphere"):
        model = MODELS[kind]().partial_fit(X, sample_weight=weights, ids=ids)
    else:
        model = MODELS[kind]().partial_fit(X, y, classes=[0, 1], sample_weight=weights, ids=ids)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    X[...], y[...], weights[...], ids[...] = np.nan, 9, -1.0, -1
    assert_untouched(before, model, "the caller's arrays changed")


# -- the path -------------------------------------------------------------------------------------


def replayed(path: np.ndarray, problem: int) -> dict[int, str]:
    """The set of each example after all migrations; each starts where the last one ended."""
    sets: dict[int, str] = {}
    for step in path[path["problem"] == problem]:
        name, source, target = int(step["id"]), str(step["source"]), str(step["target"])
        assert sets.get(name, "idle") in (source, "gone"), f"{step} starts in {sets.get(name)}"
        assert source != target
        sets[name] = target
    return {name: where for name, where in sets.items() if where not in ("idle", "gone")}


def sets_of(model: Any, problem: int) -> dict[int, str]:
    state = core_state(model)
    alpha = np.abs(state["alpha"][problem])
    return {
        int(name): "free" if value < cost else "bounded"
        for name, value, cost in zip(state["ids"], alpha, state["costs"], strict=True)
        if value != 0
    }


VERBS = ["learn", "forget", "store"]


@pytest.mark.parametrize(
    ("kind", "verb"),
    [*itertools.product(["plain", "window", "sphere"], VERBS), ("plain", "set_C")],
)
def test_the_path_leads_to_where_the_examples_are(kind: str, verb: str, seed: int) -> None:
    X, y = stream(2, seed, 90)
    model = MODELS[kind](record=True)
    if kind == "sphere":
        model.partial_fit(X)
    else:
        model.partial_fit(X, y, classes=[0, 1])
    if verb == "forget":
        model.forget(np.sort(model.ids_)[::2])
    if verb == "set_C":
        model.set_C(30.0).set_C(0.5)
    if verb == "store":
        model = pickle.loads(pickle.dumps(model))
    path = model.path_
    assert replayed(path, 0) == sets_of(model, 0)
    gone = set(path["id"][path["target"] == "gone"].tolist())
    assert gone == set(range(90)) - set(model.ids_.tolist())
    model.partial_fit(X[:5], **({} if kind == "sphere" else {"y": y[:5]}))
    assert np.array_equal(model.path_[: len(path)], path), "the path is only added to"


def test_the_path_of_several_classes(seed: int) -> None:
    X, y = stream(3, seed, 90)
    model = ExactSVC(C=2.0, gamma=0.7, record=True).fit(X, y)
    for problem in range(3):
        assert replayed(model.path_, problem) == sets_of(model, problem)


def test_a_new_fit_has_a_path_of_its_own(seed: int) -> None:
    X, y = stream(2, seed, 60)
    model = ExactSVC(C=2.0, gamma=0.7, record=True).fit(X, y)
    path = model.path_
    assert np.array_equal(model.fit(X, y).path_, path)
    sphere = ExactOneClassSVM(gamma=0.7, record=True).fit(X)
    path = sphere.path_
    assert np.array_equal(sphere.fit(X).path_, path)
