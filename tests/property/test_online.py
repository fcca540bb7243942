"""What must hold for any stream of examples and any setting of OnlineSVC."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from marginwise import OnlineSVC
from tests.support import (
    assert_same_model,
    assert_untouched,
    blobs,
    core_state,
    differences,
    essence,
    is_open,
    rings,
    signs_of,
)


class Stream(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    classes: list[int]


@st.composite
def streams(draw: st.DrawFn, most: int = 60, spread: bool = False) -> Stream:
    """A few rows of two or three classes: a cloud, a lattice with repeated rows, or one far out."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, classes = draw(st.integers(2, most)), draw(st.integers(1, 5)), draw(st.integers(2, 3))
    kind = draw(st.sampled_from(["cloud", "lattice", "sparse"] + ["far"] * spread))
    X = rng.normal(size=(n, d))
    if kind == "lattice":
        X = rng.integers(-1, 2, size=(n, d)).astype(np.float64)
    elif kind == "sparse":
        X[rng.random((n, d)) < 0.7] = 0.0
    elif kind == "far":
        X[rng.random(n) < 0.1] *= 1e3
    y = rng.integers(classes, size=n)
    if draw(st.booleans()):
        y = np.sort(y)  # one class after the other
    return Stream(X, y, list(range(classes)))


def settings_of(kernels: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "kernel": st.sampled_from(kernels),
            "C": st.sampled_from([0.05, 1.0, 50.0]),
            "gamma": st.sampled_from([0.3, 2.0]),
            "coef0": st.just(0.5),
            "tol": st.sampled_from([1e-3, 1e-4, 0.5]),
            "reprocess": st.sampled_from([0, 1, 2, "gap"]),
            "reprocess_when": st.sampled_from(["processed", "each"]),
            "delta_max": st.sampled_from([None, 0.3]),
            "multiclass": st.sampled_from(["ovr", "ovo"]),
        }
    )


# Equal rows with different labels may cancel: f(x) is then the same for all rows, and rightly so.
may_cancel = pytest.mark.filterwarnings("ignore:.*has a constant decision function")
ALL = ["linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto"]


def started(stream: Stream, params: dict[str, Any], rows: int = 1, **more: Any) -> OnlineSVC:
    """A model that has learned the first rows."""
    model = OnlineSVC(**params, **more)
    return model.partial_fit(stream.X[:rows], stream.y[:rows], classes=stream.classes)


# -- the dual -------------------------------------------------------------------------------------


@given(streams(), settings_of(ALL))
@settings(max_examples=40)
def test_dual_rises_and_constraints_hold(stream: Stream, params: dict[str, Any]) -> None:
    model = started(stream, params)
    before = np.ravel(model.dual_objective())
    for x, y in itertools.chain(zip(stream.X[1:], stream.y[1:], strict=True), [(None, None)]):
        model.finish() if x is None else model.learn_one(x, y)
        now = np.ravel(model.dual_objective())
        assert np.all(now >= before - 1e-7 * (1 + np.abs(before))), f"{before} fell to {now}"
        before = now
        state = core_state(model)
        costs = state["costs"]
        signs = signs_of(state["labels"], len(stream.classes), params["multiclass"])
        assert not (is_open(state) & (signs.T == 0)).any(), "held by a pair of other classes"
        for alpha, sign in zip(state["alpha"], signs.T, strict=True):
            assert np.all(alpha >= np.where(sign < 0, -costs, 0.0)), "below its box"
            assert np.all(alpha <= np.where(sign > 0, costs, 0.0)), "above its box"
            assert abs(alpha.sum()) <= 1e-9 * costs.sum(), "sum of alpha is not 0"
        model._engine.native.check(1e-5 * (1 + costs.sum()))


@given(streams(), settings_of(ALL))
def test_finish_leaves_no_violating_pair(stream: Stream, params: dict[str, Any]) -> None:
    model = started(stream, params, rows=len(stream.y)).finish()
    assert model._engine.delta <= params["tol"]
    model._engine.native.check(1e-5 * (1 + core_state(model)["costs"].sum()))


@may_cancel
@given(streams(), settings_of(["rbf"]), st.integers(1, 4))
def test_fit_holds_the_invariants(stream: Stream, params: dict[str, Any], epochs: int) -> None:
    X, y, _ = stream
    y[0], y[-1] = 0, 1
    model = OnlineSVC(**params, epochs=epochs, random_state=0).fit(X, y)
    model._engine.native.check(1e-5 * (1 + core_state(model)["costs"].sum()))
    assert len(set(model.ids_.tolist())) == len(model.ids_), "a row is held twice"
    assert np.isin(model.ids_, np.arange(len(y))).all()


def test_many_epochs_of_many_classes_hold_the_invariants(seed: int) -> None:
    """A member that its last problem evicts and the next problem wants is still one member."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 6))
    y = rng.integers(5, size=300)
    for kernel in ("rbf", "cosine", "linear"):
        model = OnlineSVC(kernel=kernel, gamma=0.3, C=0.5, epochs=6, tol=1e-4, random_state=seed)
        model.fit(X, y)
        model._engine.native.check(1e-4)
        assert len(set(model.ids_.tolist())) == len(model.ids_), f"{kernel}: a row is held twice"


@pytest.mark.parametrize("classes", [2, 4])
def test_an_id_stands_for_one_example(classes: int, seed: int) -> None:
    """A held id given with other features: the ones held count, in all problems."""
    X, y = blobs(120, seed, classes, 3)
    model = OnlineSVC(C=0.5, gamma=0.5).partial_fit(X, y, classes=range(classes))
    moved = X + np.random.default_rng(seed).normal(size=X.shape)
    model.partial_fit(moved, y, ids=np.arange(120))
    model._engine.native.check(1e-5)


def test_going_over_to_double_keeps_the_invariants(seed: int) -> None:
    """Members taken in before are rounded; the same rows, seen again, are not."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((400, 30)) < 0.3, rng.normal(size=(400, 30)), 0.0)
    y = rng.integers(3, size=400)
    X[-1] += 1e4
    params: dict[str, Any] = {"gamma": 0.05, "C": 0.5, "epochs": 6, "random_state": 0}
    model = OnlineSVC(**params).fit(X, y)
    assert model.stats_["precision"] == "double"
    model._engine.native.check(1e-4)
    assert_same_model(model, OnlineSVC(**params, cache_size=1e-3).fit(X, y), "with little cache")


# -- one stream, one model ------------------------------------------------------------------------


@given(streams(spread=True), settings_of(ALL), st.lists(st.integers(0, 60), max_size=5))
@settings(max_examples=40)
def test_how_a_stream_is_cut_does_not_matter(
    stream: Stream, params: dict[str, Any], cuts: list[int]
) -> None:
    X, y, _ = stream
    whole = started(stream, params, rows=len(y))
    edges = sorted({1, *(cut for cut in cuts if 1 < cut < len(y)), len(y)})
    pieces, many, one = (started(stream, params) for _ in range(3))
    for a, b in itertools.pairwise(edges):
        pieces.partial_fit(X[a:b], y[a:b])
        many.learn_many(X[a:b], y[a:b])
    for x, label in zip(X[1:], y[1:], strict=True):
        one.learn_one(x, label)
    assert_same_model(whole, pieces, f"partial_fit cut at {edges}")
    assert_same_model(whole, many, f"learn_many cut at {edges}")
    assert_same_model(whole, one, "learn_one")


@given(streams(), settings_of(["rbf", "linear"]), st.integers(1, 20), st.integers(1, 59))
def test_cutting_does_not_move_the_finishing(
    stream: Stream, params: dict[str, Any], every: int, cut: int
) -> None:
    X, y, _ = stream
    cut = min(cut, len(y) - 1)
    whole = started(stream, params, rows=len(y), finish_every=every)
    pieces = started(stream, params, rows=cut, finish_every=every).partial_fit(X[cut:], y[cut:])
    assert_same_model(whole, pieces, f"finish_every={every}, partial_fit cut at {cut}")
    many = started(stream, params, rows=cut, finish_every=every).learn_many(X[cut:], y[cut:])
    assert_same_model(whole, many, f"finish_every={every}, learn_many from {cut}")


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("form", ["dense", "csr", "wide csr"])
def test_a_long_stream_is_one_model(classes: int, form: str, seed: int) -> None:
    """Long enough for several blocks, tiles, evictions and compactions."""
    rng = np.random.default_rng(seed)
    d = 200 if form == "wide csr" else 4
    X, y = blobs(1500, seed, classes, d)
    if "csr" in form:
        X[:, 2:][rng.random((1500, d - 2)) < 0.97] = 0.0
    shape = sp.csr_array if "csr" in form else np.asarray
    params = {"C": 1.0, "gamma": 0.3 if d < 100 else 0.1, "tol": 1e-2}

    def learned(cuts: list[int], **more: Any) -> OnlineSVC:
        model = OnlineSVC(**params, **more)
        for a, b in itertools.pairwise([0, *cuts, 1500]):
            model.partial_fit(shape(X[a:b]), y[a:b], classes=range(classes))
        return model

    whole = learned([])
    assert whole.stats_["removed"] > 64, "the stream was too easy: nobody left"
    whole._engine.native.check(1e-4)
    assert_same_model(whole, learned([1, 2, 3, 700]), "cut")
    assert_same_model(whole, learned(list(range(37, 1500, 37))), "cut into 37s")
    assert_same_model(whole, learned([1, 255, 256, 257], n_jobs=2), "two threads")
    for cache_size in (1e-6, 0.05, 1.0):
        assert_same_model(whole, learned([600], cache_size=cache_size), f"cache of {cache_size} MB")
    if form == "dense":
        many = OnlineSVC(**params).partial_fit(X[:1], y[:1], classes=range(classes))
        assert_same_model(whole, many.learn_many(X[1:], y[1:]), "learn_many")
    resumed = learned([])
    resumed = OnlineSVC(**params)
    for a, b in itertools.pairwise([0, 400, 800, 1500]):
        resumed.partial_fit(shape(X[a:b]), y[a:b], classes=range(classes))
        resumed = pickle.loads(pickle.dumps(resumed))
    assert_same_model(whole, resumed, "saved and loaded on the way")


@pytest.mark.parametrize("finish_every", [None, 500], ids=["whole", "windows"])
@pytest.mark.parametrize("classes", [2, 4])
def test_fit_gives_one_model(classes: int, finish_every: int | None, seed: int) -> None:
    """For any number of threads, any cache and any form of input; solved as a whole, any order."""
    X, y = blobs(900, seed, classes, 3)
    X[:, 1:][np.random.default_rng(seed).random((900, 2)) < 0.9] = 0.0
    params: dict[str, Any] = {"C": 3.0, "gamma": 0.5, "epochs": 2, "random_state": seed}
    params["finish_every"] = finish_every
    model = OnlineSVC(**params).fit(X, y)
    for more in ({}, {"n_jobs": 2}, {"n_jobs": -1}, {"cache_size": 1e-3}, {"cache_size": 0.2}):
        assert_same_model(model, OnlineSVC(**params, **more).fit(X, y), f"{more}")
    assert_same_model(model, OnlineSVC(**params).fit(sp.csr_array(X), y), "CSR input")
    other = OnlineSVC(**{**params, "random_state": seed + 1}).fit(X, y)
    if finish_every is None:
        assert_same_model(model, other, "another order")
    else:
        assert essence(other)["ids"].tolist() != essence(model)["ids"].tolist(), "a seed is ignored"


def test_finishing_does_not_depend_on_the_cache(seed: int) -> None:
    X, y = rings(600, seed, noise=0.2)
    models = [
        OnlineSVC(C=10.0, gamma=2.0, tol=1e-5, cache_size=size, random_state=seed).fit(X, y)
        for size in (1e-6, 0.1, 500)
    ]
    assert_same_model(models[0], models[2], "least cache against much")
    assert_same_model(models[1], models[2], "little cache against much")


def test_random_state_may_be_a_generator(seed: int) -> None:
    X, y = rings(200, seed)
    one = OnlineSVC(random_state=np.random.RandomState(seed)).fit(X, y)
    other = OnlineSVC(random_state=np.random.RandomState(seed)).fit(X, y)
    assert_same_model(one, other, "the same random state twice")


@given(streams(), settings_of(ALL), st.integers(1, 59), st.sampled_from(["pickle", "deepcopy"]))
def test_a_copy_goes_on_as_the_original(
    stream: Stream, params: dict[str, Any], cut: int, way: str
) -> None:
    X, y, _ = stream
    cut = min(cut, len(y) - 1)
    model = started(stream, params, rows=cut)
    twin = pickle.loads(pickle.dumps(model)) if way == "pickle" else copy.deepcopy(model)
    assert_same_model(model, twin, f"after {way}")
    original, copied = model.__getstate__(), twin.__getstate__()
    for state in (original, copied):
        state["_machine"].pop("rank", None)  # places may be closed up; their order is in the model
    found = differences(original, copied)
    assert not found, f"{way} lost something: {found}"
    assert np.array_equal(model.decision_function(X), twin.decision_function(X))
    for each in (model, twin):
        each.partial_fit(X[cut:], y[cut:]).finish()
    assert_same_model(model, twin, f"continued after {way}")


# -- what must not change -------------------------------------------------------------------------


@may_cancel
@given(streams(), settings_of(ALL))
@example(
    Stream(np.array([[1.0], [2.0], [3.0]]), np.array([0, 0, 1]), [0, 1]),
    {"kernel": "rbf", "gamma": "scale", "class_weight": {0: 2.0}, "finish_every": 1},
)
def test_learning_changes_no_hyperparameter(stream: Stream, params: dict[str, Any]) -> None:
    X, y, classes = stream
    y = np.where(np.arange(len(y)) < 2, [0, 1] + [0] * (len(y) - 2), y)
    model = OnlineSVC(**params)
    before = copy.deepcopy(model.get_params())
    model.fit(X, y)
    assert model.get_params() == before, "fit changed a parameter"
    model.partial_fit(X, y, classes=classes if len(model.classes_) == len(classes) else None)
    model.learn_many(X, y)
    model.finish()
    assert model.get_params() == before


@given(streams(), settings_of(ALL))
def test_asking_changes_nothing(stream: Stream, params: dict[str, Any]) -> None:
    X, y, _ = stream
    model = started(stream, params, rows=len(y))
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    model.predict(X)
    model.decision_function(sp.csr_array(X))
    model.score(X, y)
    model.duality_gap(X, y)
    model.dual_objective()
    for name in ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "ids_"):
        answer = getattr(model, name)
        if isinstance(answer, np.ndarray) and answer.flags.writeable:
            answer[...] = 7  # what is given out is a copy
    _ = model.stats_, repr(model)
    assert_untouched(before, model, "predicting and looking")


@pytest.mark.parametrize("form", ["dense", "csr", "float32"])
def test_inputs_are_not_aliased(form: str, seed: int) -> None:
    X, y = rings(100, seed, noise=0.1)
    X = {"dense": X, "csr": sp.csr_array(X), "float32": X.astype(np.float32)}[form]
    weights, ids, classes = np.ones(100), np.arange(100), np.array([0, 1])
    model = OnlineSVC(C=5.0, gamma=1.0)
    model.partial_fit(X, y, classes=classes, sample_weight=weights, ids=ids)
    before = pickle.loads(pickle.dumps(model.__getstate__()))
    (X.data if form == "csr" else X)[...] = np.nan
    for array in (y, ids, classes):
        array[...] = 99
    weights[...] = -1.0
    assert_untouched(before, model, "changing the arrays after partial_fit")
    assert np.isfinite(model.decision_function(np.zeros((1, 2)))).all()


def test_inputs_are_not_written_to(seed: int) -> None:
    X, y = rings(100, seed, noise=0.1)
    unsorted = sp.csr_matrix((np.ones(4), [3, 1, 2, 0], [0, 2, 4]), shape=(2, 4))
    arrays = {"X": X, "y": y, "weights": np.ones(100), "indices": unsorted.indices}
    before = {name: array.copy() for name, array in arrays.items()}
    for array in (X, y, arrays["weights"]):
        array.flags.writeable = False
    model = OnlineSVC(C=5.0, gamma=1.0).fit(X, y, sample_weight=arrays["weights"])
    model.partial_fit(X, y, sample_weight=arrays["weights"])
    model.learn_many(X, y)
    OnlineSVC(gamma=1.0).fit(unsorted, [0, 1]).predict(unsorted)
    for name, array in arrays.items():
        assert np.array_equal(array, before[name]), f"{name} was changed"


# -- ids ------------------------------------------------------------------------------------------

LARGE = [2**24 + 1, 2**31 + 1, 2**53 + 1, 2**62 + 3, -(2**53) - 1, -1, 2**63 - 1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_large_ids_survive(n_classes: int) -> None:
    X = np.eye(7)
    y = np.arange(7) % n_classes
    model = OnlineSVC(kernel="linear", C=10.0)
    model.partial_fit(X, y, classes=range(n_classes), ids=LARGE)
    assert model.ids_.tolist() == LARGE
    assert model.finish().support_.dtype == np.int64
    assert set(model.support_.tolist()) <= set(LARGE)
    assert pickle.loads(pickle.dumps(model)).ids_.tolist() == model.ids_.tolist()
    before = len(model.ids_)
    model.partial_fit(X, y, ids=LARGE)
    assert len(set(model.ids_.tolist())) == len(model.ids_) >= before - 7, "an id was held twice"


def test_neighbouring_large_ids_are_told_apart() -> None:
    """Ids that would be one number in floating point."""
    ids = [2**53, 2**53 + 1, 2**60, 2**60 + 1]
    model = OnlineSVC(kernel="linear", C=10.0)
    model.partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1], ids=ids)
    assert model.ids_.tolist() == ids


def test_the_running_count_goes_on_after_any_way_of_learning() -> None:
    model = OnlineSVC(kernel="linear", C=10.0, reprocess=0)
    E = np.eye(8)
    model.partial_fit(E[:2], [0, 1], classes=[0, 1])
    model.learn_one(E[2], 0)
    model.learn_many(E[3:5], [1, 0])
    model.partial_fit(E[5:7], [1, 0], sample_weight=[0.0, 1.0])  # id 5 is passed over
    model.learn_one(E[7], 1)
    assert model.ids_.tolist() == [0, 1, 2, 3, 4, 6, 7]


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{"kernel": "linear"}, {"gamma": 0.02}, {"gamma": 0.2, "finish_every": 250}],
    ids=str,
)
def test_members_plateau_on_a_clean_stream(params: dict[str, Any], seed: int) -> None:
    """Two separate clouds that never change: what is held after a while is enough for good."""
    rng = np.random.default_rng(seed)
    n = 6000
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 2)) + np.where(y, 4.0, -4.0)[:, None]
    model = OnlineSVC(C=10.0, **params).partial_fit(X[:1000], y[:1000], classes=[0, 1])
    after_warm_up = len(model.ids_)
    for k in range(1000, n, 500):
        model.partial_fit(X[k : k + 500], y[k : k + 500])
        held = len(model.ids_)
        assert held <= 3 * after_warm_up + 32, f"{after_warm_up} examples grew to {held}"
        assert model.stats_["members"] <= 8 / 7 * held + 64, "those evicted were not given back"
        assert model.stats_["member_bytes"] < 100_000


def test_evicted_members_are_given_back(seed: int) -> None:
    """Where examples come and go, those that have gone make less than a quarter of the memory."""
    X, y = rings(4000, seed)
    model = OnlineSVC(C=100.0, gamma=1.0, reprocess=3).partial_fit(X, y, classes=[0, 1])
    assert model.stats_["removed"] > 200, "the stream was too easy: nobody left"
    assert model.stats_["members"] <= len(model.ids_) * 8 / 7 + 64
    model.finish()
    assert model.stats_["members"] == len(model.ids_)


# -- the same data in other words -----------------------------------------------------------------


def assert_same_predictions(one: OnlineSVC, X: Any, other: OnlineSVC, Z: Any, why: str) -> None:
    same = np.mean(one.predict(X) == other.predict(Z))
    assert same >= 0.999, f"{why}: predictions agree on {same:.2%} of the rows only"


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_order_of_features_does_not_matter(kernel: str, seed: int) -> None:
    X, y = rings(500, seed, noise=0.05, d=6)
    X_test, _ = rings(2000, seed + 1000, d=6)
    order = np.random.default_rng(seed).permutation(6)
    params: dict[str, Any] = {"kernel": kernel, "gamma": 0.2, "coef0": 1.0, "C": 2.0}
    models = [
        OnlineSVC(**params, tol=1e-5, epochs=10, random_state=seed).fit(Z, y)
        for Z in (X, X[:, order])
    ]
    assert models[1].dual_objective() == pytest.approx(models[0].dual_objective(), rel=1e-4)
    assert_same_predictions(
        models[0], X_test, models[1], X_test[:, order], f"{kernel}, features in another order"
    )


SCALES = [1e-3, 1.0, 1e3, 1e6]


def plain_and_changed(
    kernel: str, seed: int, way: str, change: Any, gamma_factor: float = 1.0
) -> tuple[OnlineSVC, np.ndarray, OnlineSVC, np.ndarray]:
    X, y = rings(500, seed, noise=0.05, d=3)
    X_test, _ = rings(4000, seed + 1000, d=3)
    gamma = 0.5 if kernel == "rbf" else 0.2

    def learned(Z: np.ndarray, gamma: float) -> OnlineSVC:
        model = OnlineSVC(
            kernel=kernel, gamma=gamma, coef0=1.0, C=1.0, tol=1e-5, epochs=20, random_state=0
        )
        if way == "fit":
            return model.fit(Z, y)
        for _ in range(20):
            model.partial_fit(Z, y, classes=[0, 1], ids=np.arange(500))
        return model.finish()

    return learned(X, gamma), X_test, learned(change(X), gamma * gamma_factor), change(X_test)


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("scale", SCALES)
def test_scale_does_not_matter(kernel: str, scale: float, way: str, seed: int) -> None:
    plain, X, scaled, Z = plain_and_changed(kernel, seed, way, lambda M: M * scale, scale**-2)
    assert_same_predictions(plain, X, scaled, Z, f"{kernel}, features times {scale:g}")


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_a_common_offset_does_not_matter_to_rbf(offset: float, way: str, seed: int) -> None:
    plain, X, moved, Z = plain_and_changed("rbf", seed, way, lambda M: M + offset)
    assert_same_predictions(plain, X, moved, Z, f"features plus {offset:g}")


def test_a_common_offset_does_not_matter_to_rbf_in_csr(seed: int) -> None:
    """CSR rows are not centred, so the precision has to make up for it."""
    plain, X, moved, Z = plain_and_changed("rbf", seed, "fit", lambda M: sp.csr_array(M + 1e4))
    del plain
    dense = plain_and_changed("rbf", seed, "fit", lambda M: M)[0]
    assert moved.stats_["precision"] == "double"
    assert_same_predictions(dense, X.toarray() - 1e4 if sp.issparse(X) else X, moved, Z, "offset")


def test_gamma_scale_sees_through_a_large_offset(seed: int) -> None:
    X, y = rings(400, seed, d=3)
    gammas = [OnlineSVC().fit(Z, y)._engine.plan.gamma for Z in (X, X + 1e4, X + 1e6)]
    np.testing.assert_allclose(gammas[1:], gammas[0], rtol=1e-6)


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_far_spread_features_are_computed_in_double(way: str, form: str, seed: int) -> None:
    """Islands of fine structure far from each other: |x|^2 in single precision would drown it."""
    rng = np.random.default_rng(seed)
    X, y = rings(400, seed, d=2)
    X += 1e5 * rng.integers(-1, 2, size=400)[:, None]
    svc = SVC(C=10.0, gamma=1.0, tol=1e-5).fit(X, y)
    shape = sp.csr_array if form == "csr" else np.asarray
    model = OnlineSVC(C=10.0, gamma=1.0, tol=1e-5, epochs=20, random_state=0)
    if way == "fit":
        model.fit(shape(X), y)
    else:
        for _ in range(20):
            model.partial_fit(shape(X), y, classes=[0, 1], ids=np.arange(400))
        model.finish()
    assert model.stats_["precision"] == "double"
    assert np.mean(model.predict(shape(X)) == svc.predict(X)) >= 0.995
    np.testing.assert_allclose(
        model.decision_function(shape(X)), svc.decision_function(X), atol=0.02
    )


def test_single_precision_while_it_is_enough(seed: int) -> None:
    X, y = rings(300, seed)
    assert OnlineSVC(gamma=1.0).fit(X, y).stats_["precision"] == "single"
    assert OnlineSVC(gamma=1.0).fit(X + 1e4, y).stats_["precision"] == "single", (
        "centring is enough"
    )


def test_a_linear_kernel_sees_small_variation_on_a_large_offset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.arange(400) % 2
    X = 1e4 + rng.normal(size=(400, 2)) * 0.3 + y[:, None]
    model = OnlineSVC(kernel="linear", C=1.0, tol=1e-4, epochs=5, random_state=0).fit(X, y)
    assert model.stats_["centred"], "the linear kernel with a bias does not mind where it starts"
    plain = X - X.mean(axis=0)  # SVC itself does not come to an end on the offset rows
    assert model.score(X, y) >= SVC(kernel="linear", C=1.0).fit(plain, y).score(plain, y) - 0.01


# -- streams that start with one class ------------------------------------------------------------


@given(streams(), settings_of(ALL), st.integers(1, 30))
def test_a_stream_may_start_with_one_class(
    stream: Stream, params: dict[str, Any], first: int
) -> None:
    X, y, classes = stream
    n = min(first, len(y))
    only = classes[-1]
    model = OnlineSVC(**params)
    for k in range(n):
        model.partial_fit(X[k : k + 1], [only], classes=classes)
        assert model.predict(X).tolist() == [only] * len(y), "only one class is known so far"
        assert len(model.ids_) == k + 1, "while one class only is known all examples wait"
    model.finish()
    assert model.dual_objective() is not None
    has_part = signs_of(np.full(n, len(classes) - 1), len(classes), params["multiclass"]).T != 0
    np.testing.assert_array_equal(
        is_open(core_state(model)), has_part, "finishing must not drop those who wait"
    )
    model.partial_fit(X, y)
    model._engine.native.check(1e-5 * (1 + core_state(model)["costs"].sum()))
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("params", [{"epochs": 2}, {"finish_every": 200}, {"finish_every": 900}])
def test_several_classes_stay_whole_when_finished_often(
    params: dict[str, Any], multiclass: str, seed: int
) -> None:
    """Kernel rows kept for a window may lose their memory before it is learned."""
    X = np.random.default_rng(seed).normal(size=(2700, 3))
    y = np.floor(np.abs(2 * X.sum(axis=1))).astype(int) % 3
    for C, gamma in ((1.0, 0.5), (0.17, 0.075)):
        model = OnlineSVC(C=C, gamma=gamma, multiclass=multiclass, random_state=seed, **params)
        model.fit(X, y)._engine.native.check(1e-4)


def test_precomputed_kernels_are_not_solved_as_a_whole(seed: int) -> None:
    """Their members are rows of the matrix, which would be copied again and again."""
    X, y = blobs(300, seed, 2)
    for kernel, whole in (("precomputed", False), ("linear", True)):
        model = OnlineSVC(kernel=kernel).fit(X @ X.T, y)
        assert model._trainer.is_solved_whole(y.astype(np.int32), (400, 400)) is whole
