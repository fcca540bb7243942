"""What must hold for selection in `fit` and for `learn_from`, whatever the data and settings."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from marginwise import OnlineSVC, load, save
from marginwise._estimator import streams as _streams
from tests.estimator.test_errors import Failing, refused
from tests.support import (
    Rows,
    assert_same_model,
    assert_untouched,
    blobs,
    core_state,
    essence,
    rings,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "models" / "online-v1.mwz"
RULES = ["gradient", "active", "autoactive"]
CHOOSING = [(rule, size) for rule in RULES for size in (7, None)]


def learner(**params: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 3.0, "gamma": 0.5, "random_state": 0, "pool_size": 20, **params})


def thinned(n: int, seed: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Mostly zeros: kept in one form, without a centre, whether they come dense or as CSR."""
    X, y = blobs(n, seed, classes, 4)
    X[:, 1:][np.random.default_rng(seed).random((n, 3)) < 0.9] = 0.0
    return X, y


# -- one model ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "size"), CHOOSING)
@pytest.mark.parametrize("classes", [2, 3])
def test_fit_gives_one_model(rule: str, size: int | None, classes: int, seed: int) -> None:
    """For any number of threads, any cache and any form of input; another seed gives another."""
    X, y = thinned(200, seed, classes)
    params: dict[str, Any] = {"selection": rule, "pool_size": size}
    model = learner(**params).fit(X, y)
    model._engine.native.check(1e-4)
    same = [{}, {"n_jobs": 2}, {"cache_size": 1e-3}, {"random_state": np.random.RandomState(0)}]
    for more in same:
        assert_same_model(model, learner(**{**params, **more}).fit(X, y), f"{more}")
    assert_same_model(model, learner(**params).fit(sp.csr_array(X), y), "CSR input")
    if size is not None:
        other = learner(**params, random_state=1).fit(X, y)
        assert essence(other)["ids"].tolist() != essence(model)["ids"].tolist(), "seed ignored"


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["random", *RULES])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "more", [{}, {"finish_every": 50}, {"finish_at_end": False, "epochs": 2}], ids=str
)
def test_how_a_source_is_cut_does_not_matter(
    rule: str, classes: int, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    X, y = blobs(130, seed, classes)
    models = []
    for chunk in (4096, 9, 64):
        monkeypatch.setattr(_streams, "READ", chunk)
        source = Rows(X, y)
        models.append(learner(selection=rule, **more).learn_from(source))
        sizes = {len(ids) for ids in source.asked[1:]}
        assert max(sizes) <= chunk, "more rows were asked for than should be in memory"
        assert_same_model(models[0], models[-1], f"chunks of {chunk}")
    models[0]._engine.native.check(1e-4)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gamma", [0.5, "scale"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_learn_from_chooses_as_fit_does(rule: str, gamma: Any, form: Any, seed: int) -> None:
    """Fewer rows than the sample that settles gamma: the same gamma, so the same model."""
    X, y = blobs(250, seed, 3)
    params = {"selection": rule, "gamma": gamma, "shuffle": False}
    fitted = learner(**params).fit(form(X), y)
    assert_same_model(fitted, learner(**params).learn_from(Rows(form(X), y)), "learn_from")


def test_learn_from_shuffles_as_fit_does() -> None:
    """ "A new model learns as `fit` does", and `fit` is learn_from over arrays (DESIGN, 3)."""
    X, y = blobs(250, 0, 3)
    params = {"selection": "active"}
    assert_same_model(learner(**params).fit(X, y), learner(**params).learn_from(Rows(X, y)), "")


def test_learn_from_at_random_opens_with_no_seeds(seed: int) -> None:
    """It cannot know the labels: it agrees with fit where five of each class come first.

    Without REPROCESS, fit does not look ahead, as learn_from never does.
    """
    X, y = blobs(200, seed, 2)
    apart = np.argsort(y, kind="stable")
    seeds = np.r_[np.flatnonzero(y == 0)[:5], np.flatnonzero(y == 1)[:5]]
    for rows in (np.r_[seeds, np.setdiff1d(apart, seeds)], apart):
        fitted = learner(shuffle=False, reprocess=0).fit(X[rows], y[rows])
        source = learner(shuffle=False, reprocess=0).learn_from(Rows(X[rows], y[rows]))
        source._engine.native.check(1e-4)
        same = essence(fitted)["ids"].tolist() == essence(source)["ids"].tolist()
        assert same == (rows is not apart)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(RULES),
    st.sampled_from([1, 3, 50, None]),
    st.fixed_dictionaries(
        {
            "C": st.sampled_from([0.05, 50.0]),
            "tol": st.sampled_from([1e-4, 0.5]),
            "reprocess": st.sampled_from([0, 1, "gap"]),
            "reprocess_when": st.sampled_from(["processed", "each"]),
            "delta_max": st.sampled_from([None, 0.3]),
            "finish_at_end": st.booleans(),
            "finish_every": st.sampled_from([None, 1, 13]),
            "epochs": st.sampled_from([1, 2]),
            "kernel": st.sampled_from(["rbf", "linear", "cosine"]),
        }
    ),
)
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:.*constant decision function")  # a few rows may end so
def test_any_setting_holds_the_invariants(
    seed: int, rule: str, size: int | None, params: dict[str, Any]
) -> None:
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(2, 60)), int(rng.integers(2, 4))
    X = rng.integers(-2, 3, size=(n, 2)) if seed % 2 else rng.normal(size=(n, 2))
    y = np.r_[0, 1, rng.integers(classes, size=n - 2)]
    model = learner(selection=rule, pool_size=size, **params).fit(X, y)
    model._engine.native.check(1e-5 * (1 + core_state(model)["costs"].sum()))
    assert model.stats_["chosen"] <= n * len(model.intercept_)
    assert len(set(model.ids_.tolist())) == len(model.ids_), "a row is held twice"
    if params["finish_at_end"]:
        assert model._engine.delta <= params["tol"]


@pytest.mark.parametrize(
    "classes",
    [2, 3],
)
@pytest.mark.parametrize("rule", RULES)
def test_going_over_to_double_holds_the_invariants(rule: str, classes: int) -> None:
    """Members taken in before are rounded; the same rows, chosen by another class, are not."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 30)) < 0.3, rng.normal(size=(300, 30)), 0.0)
    X[150] += 1e4
    y = rng.integers(classes, size=300)
    params = {"gamma": 0.05, "C": 0.5, "selection": rule, "pool_size": 3}
    model = learner(**params).fit(X, y)
    assert model.stats_["precision"] == "double"
    model._engine.native.check(1e-4)
    assert_same_model(model, learner(**params, cache_size=1e-3).fit(X, y), "with little cache")


# -- weights, labels, sizes, kernels --------------------------------------------------------------


@pytest.mark.parametrize(("rule", "size"), CHOOSING)
def test_rows_of_weight_zero_are_not_there(rule: str, size: int | None, seed: int) -> None:
    X, y = rings(150, seed, noise=0.1)
    weights = np.where(np.arange(150) % 3 == 1, 1.0, 0.0)  # not the last row
    kept = np.flatnonzero(weights)
    params: dict[str, Any] = {"selection": rule, "pool_size": size}
    weighted = essence(learner(**params).fit(X, y, sample_weight=weights))
    plain = essence(learner(**params).fit(X[kept], y[kept]))
    assert weighted["ids"].tolist() == kept[plain["ids"]].tolist()
    for name in ("alpha", "g", "bias", "features"):
        assert np.array_equal(weighted[name], plain[name]), name


@pytest.mark.parametrize(("rule", "size"), CHOOSING)
def test_labels_may_be_names(rule: str, size: int | None, seed: int) -> None:
    X, y = blobs(150, seed, 3)
    names = np.array(["ape", "bee", "cat"])
    params: dict[str, Any] = {"selection": rule, "pool_size": size}
    named = learner(**params).fit(X, names[y])
    assert_same_model(named, learner(**params).fit(X, y), "names instead of numbers")


@pytest.mark.parametrize(("rule", "size"), CHOOSING)
def test_precomputed_and_callable_kernels_agree(rule: str, size: int | None, seed: int) -> None:
    X, y = blobs(120, seed, 3)
    K = (1.0 + X @ X.T) ** 2
    params: dict[str, Any] = {"selection": rule, "pool_size": size, "C": 0.1}
    given_k = learner(**params, kernel="precomputed").fit(K, y)
    function = learner(**params, kernel=lambda A, B: (1.0 + A @ B.T) ** 2).fit(X, y)
    assert given_k.ids_.tolist() == function.ids_.tolist()
    np.testing.assert_allclose(given_k.dual_coef_, function.dual_coef_, rtol=1e-6)
    if size is not None:
        source = learner(**params, kernel="precomputed", shuffle=False).learn_from(Rows(K, y))
        plain = learner(**params, kernel="precomputed", shuffle=False).fit(K, y)
        assert source.ids_.tolist() == plain.ids_.tolist()


# -- files and copies, going on -------------------------------------------------------------------


@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize(("rule", "size"), CHOOSING)
def test_a_copy_goes_on_as_the_original(
    way: str, rule: str, size: int | None, tmp_path: Path, seed: int
) -> None:
    X, y = blobs(200, seed, 3)
    model = learner(selection=rule, pool_size=size).fit(X[:150], y[:150])
    if way == "file":
        save(model, tmp_path / "model.mwz")
    twin = load(tmp_path / "model.mwz") if way == "file" else pickle.loads(pickle.dumps(model))
    assert twin.get_params() == model.get_params()
    assert twin.stats_["chosen"] == model.stats_["chosen"] > 0
    assert twin.stats_["sampled"] == model.stats_["sampled"] > 0
    for each in (model, twin):
        each.partial_fit(X[150:], y[150:]).finish()
        if size is not None:
            each.learn_from(Rows(X, y))
    assert_same_model(model, twin, f"gone on after {way}")


def test_files_from_before_selection_load_and_go_on() -> None:
    """Their counters end before `sampled` and `chosen`."""
    model = load(GOLDEN)
    assert model.stats_["sampled"] == model.stats_["chosen"] == 0
    assert model.stats_["process"] > 0
    assert (model.selection, model.pool_size) == ("random", 50)
    model.set_params(selection="active", random_state=0)
    rows, labels = np.random.default_rng(0).normal(size=(60, 3)), model.classes_[np.arange(60) % 3]
    assert model.fit(rows, labels).stats_["chosen"] > 0


@pytest.mark.parametrize("rule", ["random", *RULES])
def test_rows_of_a_source_that_is_learned_again_are_new_ones(rule: str, seed: int) -> None:
    X, y = blobs(150, seed, 3)
    model = learner(selection=rule).learn_from(Rows(X, y)).learn_from(Rows(X, y))
    model._engine.native.check(1e-4)
    assert len(set(model.ids_.tolist())) == len(model.ids_)
    assert model.ids_.max() < 300
    model.partial_fit(X[:5] + 9.0, y[:5])
    assert set(model.ids_[model.ids_ >= 300]) <= set(range(300, 305))
    assert model._engine.native.next_id == 305


@pytest.mark.parametrize("rule", ["random", *RULES])
def test_a_source_after_other_rows_counts_as_new(rule: str) -> None:
    """Else its rows stand for members that they are not, and the invariants break."""
    X, y = blobs(300, 0, 3)
    model = learner(selection=rule).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    model.learn_from(Rows(X[100:], y[100:]))
    model._engine.native.check(1e-4)
    assert model._engine.native.next_id == 300
    assert (model.ids_ >= 100).any()


# -- what goes wrong ------------------------------------------------------------------------------

X, Y = rings(40, 0, noise=0.1)


class Faulty(Rows):
    """A source that goes wrong when it has been read so many times."""

    def __init__(self, fault: str, after: int) -> None:
        super().__init__(X, Y)
        self.fault, self.after = fault, after

    def read(self, ids: np.ndarray) -> tuple[Any, np.ndarray]:
        rows, labels = super().read(ids)
        if len(self.asked) <= self.after:
            return rows, labels
        if self.fault == "raises":
            raise ValueError("the disk is gone")
        if self.fault == "Ctrl-C":
            raise KeyboardInterrupt
        if self.fault == "NaN":
            rows[0, 1] = np.nan
        return {
            "NaN": (rows, labels),
            "label": (rows, np.where(np.arange(len(labels)) == 0, 7, labels)),
            "rows": (rows[1:], labels[1:]),
            "labels": (rows, labels[1:]),
            "features": (rows[:, :1], labels),
        }[self.fault]


FAULTS = {
    "raises": ["the disk is gone"],
    "NaN": ["NaN", "row 0, column 1"],
    "label": [r"unknown labels: 7\b", r"\[0, 1\]"],
    "rows": ["source.read returned", "rows for"],
    "labels": ["inconsistent numbers of samples"],
    "features": [r"\b1 feature", r"\b2 features"],
}


def made(state: str, rule: str) -> OnlineSVC:
    model = learner(selection=rule)
    return model if state == "fresh" else model.learn_from(Rows(X[:20], Y[:20]))


@pytest.mark.parametrize("rule", ["random", "active"])
@pytest.mark.parametrize(
    ("state", "after"),
    [("fresh", 1), ("fresh", 3), ("existing", 0), ("existing", 3)],
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_source_leaves_the_estimator_as_it_was(
    fault: str, state: str, after: int, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(state, rule)
    monkeypatch.setattr(_streams, "READ", 8)
    refused(model, lambda: model.learn_from(Faulty(fault, after)), *FAULTS[fault])


@pytest.mark.parametrize("rule", ["random", "active"])
def test_ctrl_c_in_a_source_leaves_a_usable_model(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made("existing", rule)
    monkeypatch.setattr(_streams, "READ", 8)
    with pytest.raises(KeyboardInterrupt):
        model.learn_from(Faulty("Ctrl-C", 3))
    model._engine.native.check(1e-4)
    model.learn_from(Rows(X, Y)).partial_fit(X, Y).finish()
    model._engine.native.check(1e-4)
    assert len(set(model.ids_.tolist())) == len(model.ids_)


@pytest.mark.parametrize(
    ("params", "source", "classes", "words"),
    [
        ({}, Rows(X[:0], Y[:0]), [0, 1], ["source is empty"]),
        ({"pool_size": None}, Rows(X, Y), None, ["pool_size=None", "memory"]),
        ({"class_weight": "balanced"}, Rows(X, Y), None, ["balanced"]),
        ({}, Rows(X, Y), [1], ["classes", "two", r"\[1\]"]),
        ({}, Rows(X, Y), [1, 2], ["unknown labels: 0"]),
        ({"selection": "best"}, Rows(X, Y), None, ["selection", "'best'"]),
    ],
)
def test_bad_calls_of_learn_from(
    params: dict[str, Any], source: Rows, classes: Any, words: list[str]
) -> None:
    model = learner(**{"selection": "active", **params})
    refused(model, lambda: model.learn_from(source, classes=classes), *words)


def test_classes_must_be_known_before_a_source_is_read() -> None:
    source, model = Rows(X, Y), learner(selection="active")
    del source.classes
    refused(model, lambda: model.learn_from(source), "classes")
    model.learn_from(source, classes=[0, 1])
    refused(model, lambda: model.learn_from(source, classes=[0, 2]), r"\[0, 2\]", r"\[0, 1\]")


def test_a_source_of_kernel_rows_that_have_no_column() -> None:
    """As in partial_fit: a ValueError, never the kernel values of other rows."""
    model = learner(kernel="precomputed", selection="active")
    with pytest.raises(ValueError, match="column"):
        model.learn_from(Rows((X @ X.T)[:, :30], Y))


@pytest.mark.parametrize(("rule", "size"), CHOOSING)
@pytest.mark.parametrize("fault", ["raises", "Ctrl-C"])
def test_a_kernel_that_stops_half_way_leaves_the_model_as_it_was(
    rule: str, size: int | None, fault: str
) -> None:
    kernel = Failing(10**9, fault)
    model = learner(kernel=kernel, selection=rule, pool_size=size).fit(X, Y)
    before = model.__getstate__()
    ways = [model.fit] if size is None else [model.fit, lambda a, b: model.learn_from(Rows(a, b))]
    for learn, after in itertools.product(ways, (0, 1, 3)):
        kernel.calls, kernel.after = 0, after
        with pytest.raises(KeyboardInterrupt if fault == "Ctrl-C" else ValueError):
            learn(X, Y)
        kernel.after = 10**9
        assert_untouched(before, model, f"stopped after {after} calls")
        model._engine.native.check(1e-4)
