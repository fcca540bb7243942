"""A budget of members: never exceeded, and independent of cuts, threads and cache."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from marginwise import GapSVC, OnlineSVC, load, save
from tests.support import assert_same_model, blobs, rings

X, Y = rings(3000, 0, noise=0.1)
FAMILIES = {
    "OnlineSVC": lambda **kw: OnlineSVC(C=5, gamma=1.0, random_state=0, **kw),
    "GapSVC": lambda **kw: GapSVC(C=5, gamma=1.0, random_state=0, **kw),
}


def live(model: Any) -> int:
    return len(model.ids_)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("budget", [2, 3, 17, 64, 200])
def test_the_budget_is_kept_after_every_row(name: str, budget: int) -> None:
    """However the rows come, no call leaves more members than allowed."""
    model = FAMILIES[name](budget=budget)
    for first in range(0, 600, 7):
        model.partial_fit(X[first : first + 7], Y[first : first + 7], classes=[0, 1])
        assert live(model) <= budget
        assert model.stats_["members"] <= budget
    assert live(FAMILIES[name](budget=budget).fit(X, Y)) <= budget


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_state_keeps_its_invariants(name: str, form: str, classes: int, kernel: str) -> None:
    """Gradients, boxes and kernel rows are those of the coefficients, also after projections."""
    A, b = blobs(1500, 1, classes)
    model = FAMILIES[name](budget=40).set_params(kernel=kernel, gamma=0.3)
    model.fit(sp.csr_array(A) if form == "csr" else A, b)
    assert model.stats_["projections"] > 0 or live(model) < 40
    scale = 1 + np.abs(model.dual_coef_).sum()
    model._engine.native.check(1e-4 * scale)


def test_a_projection_is_the_nearest_function_of_the_others() -> None:
    """What leaves is replaced by the solution of K x = b, up to its stated precision.

    Rows that are far apart have nothing to do with each other: the projection of one onto the
    others is nothing. A copy of a row bears all of it.
    """
    far = np.arange(40.0)[:, None] * 100
    labels = np.arange(40) % 2
    model = OnlineSVC(C=1, gamma=1.0, budget=40, random_state=0)
    model.partial_fit(far, labels, classes=[0, 1])
    before = dict(zip(model.support_, model.dual_coef_[0], strict=True))
    assert model.stats_["projected"] > 0
    assert live(model) == 40 - model.stats_["projected"]
    inherited = model._engine.state()["inherited"]
    assert np.abs(inherited).max() < 1e-12
    assert all(abs(value) > 0 for value in before.values())


def test_each_moment_of_a_stream_is_a_valid_state() -> None:
    """Row by row: boxes are as wide as costs, and costs shrink as members leave."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 2))
    b = (A[:, 0] * A[:, 1] > 0).astype(int)
    model = OnlineSVC(C=10, gamma=0.5, budget=30).partial_fit(A[:1], b[:1], classes=[0, 1])
    for row in range(1, 300):
        model.partial_fit(A[row : row + 1], b[row : row + 1])
        state = model._engine.state()
        own = np.abs(state["alpha"] - state["inherited"])[0]
        assert (own <= state["costs"] * (1 + 1e-9) + 1e-9).all()
        model._engine.native.check(1e-5 * (1 + np.abs(state["alpha"]).sum()))
    assert model.stats_["projections"] > 10
    newest = state["costs"][np.argmax(state["ids"])]
    assert newest < 10, "a row that comes late may contribute less"


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_does_not_depend_on_cuts_threads_or_cache(name: str) -> None:
    """The same stream gives the same model to the bit."""
    whole = FAMILIES[name](budget=50).partial_fit(X[:900], Y[:900], classes=[0, 1])
    rng = np.random.default_rng(3)
    for kw in ({"n_jobs": 2}, {"cache_size": 0.001}, {}):
        other = FAMILIES[name](budget=50, **kw)
        ends = [*np.sort(rng.choice(np.arange(1, 900), 12, replace=False)).tolist(), 900]
        for first, end in zip([0, *ends[:-1]], ends, strict=True):
            other.partial_fit(X[first:end], Y[first:end], classes=[0, 1])
        assert_same_model(whole, other, f"{kw}")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_file_continues_to_the_bit(name: str, classes: int, tmp_path: Any) -> None:
    """Inherited coefficients and the count of those that left are part of the state."""
    A, b = blobs(900, 2, classes)
    straight = FAMILIES[name](budget=30).partial_fit(A, b, classes=range(classes))
    half = FAMILIES[name](budget=30).partial_fit(A[:500], b[:500], classes=range(classes))
    assert half.stats_["projected"] > 0
    save(half, tmp_path / "half.mwz")
    for again in (load(tmp_path / "half.mwz"), pickle.loads(pickle.dumps(half))):
        assert_same_model(straight, again.partial_fit(A[500:], b[500:]), "stored half-way")


def test_wrong_labels_do_not_ruin_the_model() -> None:
    """With 15 % of the labels flipped, a small budget stays within a few points of SVC."""
    A, clean = rings(6000, 5)
    rng = np.random.default_rng(0)
    b = np.where(rng.random(6000) < 0.15, 1 - clean, clean)
    T, t = rings(2000, 6)
    full = SVC(C=5, gamma=1.0).fit(A, b).score(T, t)
    budgeted = OnlineSVC(C=5, gamma=1.0, budget=100, random_state=0).fit(A, b)
    assert budgeted.score(T, t) > full - 0.04


def test_bad_budgets() -> None:
    """They are refused before any work, by name."""
    for budget in (1, 0, -3, 2.5, "many", 20_000):
        for kind in (OnlineSVC, GapSVC):
            with pytest.raises(ValueError, match="budget"):
                kind(budget=budget).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="converge"):
        OnlineSVC(budget=10, epochs="converge").fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="clean_every"):
        GapSVC(budget=10, clean_every=None).fit(X[:50], Y[:50])


def test_a_model_that_outgrows_memory_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the remedy; a model with a budget needs none."""
    monkeypatch.setattr("marginwise._engine.memory.WATCHED", 1000)
    monkeypatch.setattr("marginwise._engine.memory.available", lambda: 2000)
    model = OnlineSVC(C=5, gamma=1.0)
    with pytest.warns(UserWarning, match="budget"):
        model.partial_fit(X[:500], Y[:500], classes=[0, 1])
    model.partial_fit(X[500:900], Y[500:900])  # warnings are errors
    OnlineSVC(C=5, gamma=1.0, budget=50).partial_fit(X[:500], Y[:500], classes=[0, 1])


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("equal", [False, True])
def test_finishing_keeps_gradients_where_rows_are_equal(multiclass: str, equal: bool) -> None:
    """Boxes that moved need not hold 0: duplicates must not be pooled as if they did."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        b = rng.integers(0, 3, 60)
        A = np.zeros((60, 2)) if equal else np.round(rng.normal(size=(60, 2)))
        model = OnlineSVC(C=100 if equal else 1, gamma=0.01, budget=40, multiclass=multiclass)
        model.partial_fit(A, b, classes=[0, 1, 2]).finish()
        model._engine.native.check(1e-3 * (1 + np.abs(model.dual_coef_).sum()))
        pickle.loads(pickle.dumps(model))


def test_a_copy_continues_to_the_bit_where_members_come_back() -> None:
    """With replay, a member that left may return before the next projection."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(400, 2))
        b = (A[:, 0] * A[:, 1] + 0.5 * rng.normal(size=400) > 0).astype(int)
        model = OnlineSVC(C=1, gamma=0.3, budget=40, replay=30, random_state=0)
        model.partial_fit(A[:200], b[:200], classes=[0, 1])
        twin = pickle.loads(pickle.dumps(model))
        for each in (model, twin):
            each.partial_fit(A[200:], b[200:]).finish()
        assert_same_model(model, twin, f"seed {seed}")
