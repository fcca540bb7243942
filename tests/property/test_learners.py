"""What must hold for any stream and any learner without a bias, whatever its algorithm."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import ExactRampSVC, GapSVC, KernelPerceptron, TrackingSVC, load, save
from marginwise._engine.suspects import SUSPECTS
from tests.support import (
    Rows,
    assert_same_model,
    assert_untouched,
    blobs,
    core_state,
    differences,
    is_open,
    rings,
)

# A few steps per row may end far from the solution; what holds here holds there too.
pytestmark = pytest.mark.filterwarnings(
    "ignore:TrackingSVC has a normalised gap:sklearn.exceptions.ConvergenceWarning"
)

LEARNERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "gap": (GapSVC, {"clean_every": 60, "max_idle": 5}),
    "gap, ramp": (GapSVC, {"loss": "ramp", "clean_every": 60, "max_idle": 5}),
    "gap, filter": (GapSVC, {"loss": "filter", "clean_every": 60, "max_idle": 5}),
    "gap, full": (GapSVC, {"clean_every": None, "record": True}),
    "tracking": (TrackingSVC, {"steps": 5, "record": True}),
    "tracking, algorithm 1": (TrackingSVC, {"steps": 5, "process": False}),
    "tracking, last": (TrackingSVC, {"steps": 5, "average": False}),
    "tracking, support": (TrackingSVC, {"steps": 5, "gradients": "support"}),
    "tracking, support, last": (
        TrackingSVC,
        {"steps": 5, "gradients": "support", "average": False, "record": True},
    ),
    "ramp": (ExactRampSVC, {}),
    "ramp, idle": (ExactRampSVC, {"max_idle": 20}),
    "perceptron": (KernelPerceptron, {}),
    "perceptron, margin": (KernelPerceptron, {"margin": 0.5}),
    "perceptron, averaged": (KernelPerceptron, {"average": True}),
    "perceptron, budget": (KernelPerceptron, {"budget": 25, "margin": 0.2}),
    "pa": (KernelPerceptron, {"update": "pa"}),
    "pa, averaged": (KernelPerceptron, {"update": "pa", "average": True}),
    "pa, budget": (KernelPerceptron, {"update": "pa", "budget": 25}),
}
FEW = ["gap, ramp", "tracking", "tracking, support", "ramp, idle", "perceptron, averaged"]
N = 300  # rows: several blocks, CLEANs and removals


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[2, 3], ids="{} classes".format)
def classes(request: pytest.FixtureRequest) -> int:
    return request.param


def make(learner: str, **more: Any) -> Any:
    kind, params = LEARNERS[learner]
    if kind is GapSVC:  # finishing belongs to fit, and not to a stream
        params = {"finish_at_end": False, **params}
    return kind(**{"C": 3.0, "gamma": 0.7, "random_state": 0, **params, **more})


def stream(classes: int, seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes with wrong labels, two thirds of the features zero."""
    X, y = rings(n, seed, noise=0.15, d=4) if classes == 2 else blobs(n, seed, classes, d=4)
    X[:, 2:] = 0.0
    X[np.random.default_rng(seed).random((n, 4)) < 0.2] = 0.0
    return X, y


def learned(
    model: Any, X: Any, y: np.ndarray, cuts: Any = (), between: Callable[[Any], Any] | None = None
) -> Any:
    """Give a model a stream that is cut into calls, and do something to it in between."""
    for a, b in itertools.pairwise([0, *cuts, len(y)]):
        model.partial_fit(X[a:b], y[a:b], classes=range(int(y.max()) + 1))
        model = between(model) if between else model
    return model


def assert_same(one: Any, other: Any, why: str) -> None:
    """Equal to the bit: members, coefficients, what else an algorithm remembers, and history."""
    assert_same_model(one, other, why)
    a, b = core_state(one), core_state(other)
    assert np.array_equal(a["notes"], b["notes"]), f"{why}: notes differ"
    for name in SUSPECTS.keys() & a.keys():
        assert np.array_equal(a[name], b[name]), f"{why}: {name} differs"
    for name in ("box", "trail"):
        kept = [state[name][is_open(state)] for state in (a, b)]
        assert np.array_equal(*kept), f"{why}: {name} differs"
    X = stream(2, 7, 40)[0][:, : one.n_features_in_]
    assert np.array_equal(one.decision_function(X), other.decision_function(X)), why
    assert np.array_equal(one.dual_coef_, other.dual_coef_), why
    assert one.get_params().get("record") == other.get_params().get("record")
    if one.get_params().get("record"):
        for name in ("gap", "members"):
            assert np.array_equal(one.history_[name], other.history_[name]), f"{why}: {name}"


# -- one stream, one model ------------------------------------------------------------------------


@pytest.mark.slow
def test_how_a_stream_is_cut_does_not_matter(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    whole = learned(make(learner), X, y)
    whole._engine.native.check(1e-4)
    assert len(whole.support_) > 10, "too easy to compare anything"
    for cuts in ([1, 2, 3, 170], range(37, N, 37), [64, 128, 256]):
        assert_same(whole, learned(make(learner), X, y, cuts), f"cut at {list(cuts)}")
    many, one = (make(learner).partial_fit(X[:1], y[:1], classes=range(classes)) for _ in range(2))
    assert_same(whole, many.learn_many(X[1:], y[1:]), "learn_many")
    for x, label in zip(X[1:], y[1:], strict=True):
        one.learn_one(x, label)
    assert_same(whole, one, "learn_one")


@pytest.mark.slow
def test_threads_and_cache_do_not_matter(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    whole = learned(make(learner), X, y)
    fitted = make(learner, epochs=2).fit(X, y)
    fitted._engine.native.check(1e-4)
    for more in ({"n_jobs": 2}, {"cache_size": 1e-6}):
        assert_same(whole, learned(make(learner, **more), X, y, [100]), f"{more}")
        assert_same(fitted, make(learner, epochs=2, **more).fit(X, y), f"fit, {more}")


def test_dense_and_sparse_rows_are_one(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    dense = learned(make(learner), X, y)
    assert_same(dense, learned(make(learner), sp.csr_array(X), y, [90]), "CSR")
    assert_same(dense, learned(make(learner), X.astype(np.float64, order="F"), y), "by columns")


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "cosine", "tanimoto"])
@pytest.mark.parametrize("learner", FEW)
def test_kernels(learner: str, kernel: str, seed: int) -> None:
    """With each kernel the laws hold that hold with one."""
    rng = np.random.default_rng(seed)
    X, y = np.abs(rng.normal(size=(150, 3))), rng.integers(2, size=150)
    X -= 0.0 if kernel in ("cosine", "tanimoto") else X.mean(axis=0)
    params: dict[str, Any] = {"kernel": kernel, "gamma": 0.5, "coef0": 0.1, "degree": 2, "C": 0.5}
    whole = learned(make(learner, **params), X, y)
    whole._engine.native.check(1e-3)
    assert_same(whole, learned(make(learner, **params), X, y, [1, 40, 41]), "cut")
    assert_same(whole, learned(make(learner, **params, n_jobs=2), X, y), "two threads")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["gap", "gap, filter", "tracking", "ramp, idle", "pa, budget"])
def test_a_long_stream_is_one_model(learner: str, classes: int, seed: int) -> None:
    """Long enough for many blocks and compactions."""
    X, y = stream(classes, seed, 1500)
    model = learned(make(learner), X, y)
    assert_same(model, learned(make(learner, n_jobs=2), X, y, [1, 255, 256, 257]), "two threads")
    assert_same(model, learned(make(learner, cache_size=1e-6), X, y, [600]), "no cache")
    resumed = learned(make(learner), X, y, [400, 800], lambda m: pickle.loads(pickle.dumps(m)))
    assert_same(model, resumed, "stored on the way")
    model._engine.native.check(1e-3)


def test_fit_in_order_is_a_stream(learner: str, classes: int, seed: int) -> None:
    """Rows are learned in the order given, from the first one on."""
    X, y = stream(classes, seed)
    y[:10] = 0  # nothing but one class for a while
    fitted = make(learner, shuffle=False).fit(X, y)
    assert_same(fitted, learned(make(learner), X, y), "fit against partial_fit")


def test_epochs_are_passes_over_the_same_rows(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed, 120)
    fitted = make(learner, shuffle=False, epochs=3).fit(X, y)
    model = make(learner)
    for _ in range(3):
        model.partial_fit(X, y, classes=range(classes), ids=np.arange(120))
    assert_same(fitted, model, "three epochs against three calls")
    assert len(set(fitted.ids_.tolist())) == len(fitted.ids_), "a row is held twice"
    fitted._engine.native.check(1e-4)


@pytest.mark.parametrize("learner", FEW)
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_source_is_learned_as_arrays_are(
    learner: str, classes: int, shuffle: bool, seed: int
) -> None:
    X, y = stream(classes, seed)
    fitted = make(learner, shuffle=shuffle).fit(X, y)
    source = make(learner, shuffle=shuffle).learn_from(Rows(X, y))
    assert_same(fitted, source, "learn_from against fit")


@pytest.mark.parametrize("learner", FEW)
def test_rows_of_weight_zero_are_left_out(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], size=N)
    kept = np.flatnonzero(weights)
    model = make(learner).partial_fit(X, y, classes=range(classes), sample_weight=weights)
    other = make(learner).partial_fit(
        X[kept], y[kept], classes=range(classes), sample_weight=weights[kept], ids=kept
    )
    assert_same(model, other, "rows of weight zero")


def test_the_seed_decides(learner: str, seed: int) -> None:
    X, y = stream(2, seed)
    one, same, other = (make(learner, random_state=state).fit(X, y) for state in (1, 1, 2))
    assert_same(one, same, "the same seed twice")
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("learner", ["gap", "gap, ramp", "gap, filter", "gap, full"])
def test_finishing_is_one_model(learner: str, classes: int, seed: int) -> None:
    """It may come at any time: what is learned after it does not depend on anything else either."""
    X, y = stream(classes, seed)
    finish = lambda model: model.finish()  # noqa: E731
    model = learned(make(learner), X, y, [100], finish)
    assert_same(model, learned(make(learner, n_jobs=2), X, y, [100], finish), "two threads")
    assert_same(model, learned(make(learner, cache_size=1e-6), X, y, [100], finish), "no cache")
    stored = learned(make(learner), X, y, [100], lambda m: pickle.loads(pickle.dumps(m)).finish())
    assert_same(model, stored, "stored before finishing")
    once = model.stats_["reprocess"]
    assert model.finish().stats_["reprocess"] == once, "there was more to finish"
    model._engine.native.check(1e-4)


# -- stored in the middle -------------------------------------------------------------------------


def by_file(model: Any, folder: Path) -> Any:
    save(model, folder / "m.mwz")
    return load(folder / "m.mwz")


STORED: dict[str, Callable[[Any, Path], Any]] = {
    "file": by_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", STORED)
def test_goes_on_as_if_never_stopped(
    learner: str, classes: int, way: str, tmp_path: Path, seed: int
) -> None:
    X, y = stream(classes, seed)
    whole = learned(make(learner), X, y)
    stored = learned(make(learner), X, y, [1, 50, 171], lambda m: STORED[way](m, tmp_path))
    assert_same(whole, stored, f"by {way}")


@pytest.mark.parametrize("learner", FEW)
@pytest.mark.parametrize("way", STORED)
def test_what_is_stored_is_the_model(
    learner: str, classes: int, way: str, tmp_path: Path, seed: int
) -> None:
    X, y = stream(classes, seed)
    model = learned(make(learner), X, y)
    again = STORED[way](model, tmp_path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict(X), model.predict(X))
    assert_same(model, again, f"by {way}")
    for name in ("support_", "ids_", "n_support_", "intercept_"):
        assert np.array_equal(getattr(again, name), getattr(model, name)), name


# -- what must not change -------------------------------------------------------------------------


def standing(model: Any) -> dict[str, Any]:
    """All of a model's state; of places their order alone, for a copy closes them up."""
    state = pickle.loads(pickle.dumps(model.__getstate__()))
    rank = state["_machine"]["rank"]
    order = np.argsort(np.argsort(rank, axis=1, kind="stable"), axis=1)
    state["_machine"]["rank"] = np.where(rank >= 0, order, -1)
    return state


def refused(model: Any, call: Callable[[], Any], words: str) -> None:
    before = standing(model)
    with pytest.raises(ValueError, match=words):
        call()
    found = differences(before, standing(model))
    assert not found, f"after the error ({words}): {found}"
    model._engine.native.check(1e-4)


def test_a_failing_call_leaves_the_model_as_it_was(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    model = learned(make(learner), X[:200], y[:200])
    bad_rows, bad_labels = X[200:].copy(), y[200:].copy()
    bad_rows[60, 1], bad_labels[70] = np.nan, 9
    refused(model, lambda: model.partial_fit(bad_rows, y[200:]), "row 60")
    refused(model, lambda: model.partial_fit(X[200:], bad_labels), "9")
    refused(model, lambda: model.learn_many(X[200:], bad_labels), "9")
    refused(model, lambda: model.fit(bad_rows, y[200:]), "row 60")
    refused(model, lambda: model.learn_from(Rows(bad_rows, y[200:])), "NaN")
    refused(model, lambda: model.learn_from(Rows(X[200:], bad_labels), range(classes)), "9")
    model.partial_fit(X[200:], y[200:])
    assert_same(model, learned(make(learner), X, y, [200]), "continued after errors")


def dot(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B.T


@pytest.mark.parametrize("learner", FEW)
@pytest.mark.parametrize("kernel", ["linear", "poly", "callable"])
def test_a_row_without_a_length_leaves_the_model_as_it_was(
    learner: str, kernel: str, seed: int
) -> None:
    """K(x, x) = 0: no step along it has a size."""
    X, y = rings(100, seed, noise=0.1)
    params: dict[str, Any] = {
        "kernel": dot if kernel == "callable" else kernel,
        "gamma": 1.0,
        "degree": 2,
        "C": 0.1,
    }
    model = make(learner, **params).partial_fit(X[:50], y[:50], classes=[0, 1])
    bad = X[50:].copy()
    bad[30] = 0.0
    refused(model, lambda: model.partial_fit(bad, y[50:]), "row 30")
    refused(model, lambda: model.fit(bad, y[50:]), "row 30")
    refused(model, lambda: model.learn_from(Rows(bad, y[50:])), "row")
    model.partial_fit(X[50:], y[50:])
    whole = make(learner, **params).partial_fit(X, y, classes=[0, 1])
    assert_same(model, whole, "continued after errors")


@pytest.mark.parametrize("learner", FEW)
def test_learning_changes_no_hyperparameter(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    model = make(learner, epochs=2)
    before = copy.deepcopy(model.get_params())
    model.fit(X, y).partial_fit(X, y).learn_many(X, y)
    assert model.get_params() == before


def test_asking_changes_nothing(learner: str, classes: int, seed: int) -> None:
    X, y = stream(classes, seed)
    model = learned(make(learner), X, y)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    model.predict(X)
    model.decision_function(sp.csr_array(X))
    model.score(X, y)
    model.duality_gap(X, y)
    model.dual_objective()
    names = ["support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "ids_"]
    more = ("bound_", "normalised_gap_", "history_", "suspects_")
    names += [name for name in more if hasattr(model, name)]
    for name in names:
        answer = getattr(model, name)
        for given in answer.values() if isinstance(answer, dict) else [answer]:
            if isinstance(given, np.ndarray) and given.flags.writeable:
                given[...] = 7  # what is given out is a copy
    if isinstance(model, ExactRampSVC):
        model.wants(X)
        model.ramp_objective()
    _ = model.stats_, repr(model)
    assert_untouched(before, model, "predicting and looking")


@pytest.mark.parametrize("learner", FEW)
def test_inputs_are_not_aliased(learner: str, seed: int) -> None:
    X, y = stream(2, seed)
    weights, ids = np.ones(N), np.arange(N)
    model = make(learner).partial_fit(X, y, classes=[0, 1], sample_weight=weights, ids=ids)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    X[...], y[...], weights[...], ids[...] = np.nan, 9, -1.0, -1
    assert not differences(before, model.__getstate__())


# -- decision values ------------------------------------------------------------------------------


def test_decision_values_are_those_of_the_coefficients(
    learner: str, classes: int, seed: int
) -> None:
    X, y = stream(classes, seed)
    model = learned(make(learner), X, y)
    vectors = model.support_vectors_
    K = np.exp(-0.7 * ((X[:, None] - vectors) ** 2).sum(axis=2))
    expected = K @ model.dual_coef_.T
    given = model.decision_function(X).reshape(N, -1)
    scale = 1 + np.abs(model.dual_coef_).sum()
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-6 * scale)
    assert np.all(model.intercept_ == 0)
    assert model.n_support_.sum() == len(model.support_)


@pytest.mark.parametrize("learner", FEW)
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_centred_features_may_lie_anywhere(learner: str, kernel: str, seed: int) -> None:
    """With center=True, moving all features moves nothing else."""
    X, y = rings(200, seed, noise=0.1)
    X = np.round(64 * X) / 64
    X -= X.mean(axis=0)
    params: dict[str, Any] = {"kernel": kernel, "degree": 2, "gamma": 0.5, "coef0": 1.0, "C": 0.1}
    here = make(learner, center=True, **params).fit(X, y).decision_function(X)
    there = make(learner, center=True, **params).fit(X + 64.0, y).decision_function(X + 64.0)
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-3 * np.abs(here).max())


@pytest.mark.parametrize("learner", ["gap", "tracking", "ramp", "perceptron"])
@pytest.mark.filterwarnings("ignore:.*constant decision function")  # tanh of large numbers is 1
def test_features_off_their_centre_are_warned_of(learner: str, seed: int) -> None:
    X, y = rings(100, seed)
    for kernel in ("linear", "poly", "sigmoid"):
        model = make(learner, kernel=kernel, gamma=0.1, coef0=1.0, C=0.1)
        with pytest.warns(UserWarning, match="center=True"):
            model.fit(X + 10.0, y)
    make(learner).fit(X + 10.0, y)
    make(learner, kernel="linear", C=0.1, center=True).fit(X + 10.0, y)
