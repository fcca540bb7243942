"""Selection worked by hand on a few points of a line, and whose labels it looks at.

With the linear kernel, x = 1 (+) and x = -1 (-) are learned as they come: lambda = 2/4 gives
alpha = (1/2, -1/2), f(x) = x, b = 0, delta = 0. The rows after them are sampled into pools.
Without REPROCESS (`reprocess=0`) a row that is learned moves one pair and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from marginwise import OnlineSVC
from marginwise._engine.engine import Engine
from marginwise._training import loop as _loop
from marginwise._training.loop import Pools
from marginwise._training.selection import FullSearch
from tests.support import Rows, assert_same_model, blobs, essence, held, rings, signs_of

Flags = list[np.ndarray]
CHOOSING: list[dict[str, Any]] = [
    {"selection": "gradient", "pool_size": 20},
    {"selection": "active", "pool_size": 20},
    {"selection": "autoactive"},
    {"selection": "gradient", "pool_size": None},
    {"selection": "active", "pool_size": None},
]
PAIRED = [
    {**params, "multiclass": "ovo"} for params in CHOOSING if params["selection"] == "gradient"
]
BLIND = [params for params in CHOOSING if params["selection"] != "gradient"]


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> Flags:
    """Whatever pass is begun, its flags: ``flags[-1][c, row]`` is 1 where c learned the row."""
    begun: Flags = []
    begin = Pools.begin

    def recording(self: Pools, engine: Engine, ids: np.ndarray) -> None:
        begin(self, engine, ids)
        begun.append(self._marks)

    monkeypatch.setattr(Pools, "begin", recording)
    return begun


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets are gone through again and again; here, once."""
    monkeypatch.setattr(_loop, "LEAST_CHOSEN", 0)


def line(examples: list[tuple[float, int]], **params: Any) -> OnlineSVC:
    """A model that has looked at these (x, y) in this order."""
    rows = np.array([[x] for x, _ in examples], dtype=np.float64)
    options = {"kernel": "linear", "C": 10.0, "gamma": 1.0, "reprocess": 0, "finish_at_end": False}
    return OnlineSVC(**{**options, "shuffle": False, **params}).fit(rows, [y for _, y in examples])


def chosen(flags: Flags) -> list[int]:
    return np.flatnonzero(flags[-1].any(axis=0)).tolist()


SEEDS = [(1.0, +1), (-1.0, -1)]


# -- the best of a pool ---------------------------------------------------------------------------


@pytest.mark.usefixtures("one_pass")
def test_active_learns_the_nearest_to_the_boundary(flags: Flags) -> None:
    # |f| = 3, 1/5, 9/10: row 3. Its g = -1 + 1/5 = -4/5; i = 0 with g = 0, curvature
    # 1 + 1/25 + 2/5 = 36/25, lambda = (4/5) / (36/25) = 5/9.
    model = line([*SEEDS, (3.0, -1), (-0.2, -1), (0.9, 1)], selection="active", pool_size=3)
    assert chosen(flags) == [0, 1, 3]
    assert held(model) == pytest.approx({0: 1 / 2 + 5 / 9, 1: -1 / 2, 3: -5 / 9}, rel=1e-6)
    assert (model.stats_["sampled"], model.stats_["chosen"]) == (5, 3)


@pytest.mark.usefixtures("one_pass")
def test_gradient_learns_the_most_misclassified(flags: Flags) -> None:
    # y f = -3, 1/5, 9/10: row 2. Its g = -1 - 3 = -4; i = 0, curvature 1 + 9 - 6, lambda = 1.
    model = line([*SEEDS, (3.0, -1), (-0.2, -1), (0.9, 1)], selection="gradient", pool_size=3)
    assert chosen(flags) == [0, 1, 2]
    assert held(model) == {0: 1.5, 1: -0.5, 2: -1.0}


@pytest.mark.usefixtures("one_pass")
@pytest.mark.parametrize("rule", ["active", "gradient"])
def test_the_first_of_equals_is_learned(rule: str, flags: Flags) -> None:
    line([*SEEDS, (0.5, 1), (-0.5, -1), (0.5, 1)], selection=rule, pool_size=3)
    assert chosen(flags) == [0, 1, 2]


@pytest.mark.usefixtures("one_pass")
def test_a_pool_ends_where_it_is_full(flags: Flags) -> None:
    # Pools (3/4, 1/2) and (2, 1/4, ...): the second is scored by the model that learned 1/2.
    # g = 1/2, j = 0 with g = 0 (first), curvature 1/4: lambda = min(2, alpha_0 = 1/2) = 1/2, then
    # w = 1 - 1/2 + 1/4 = 3/4. Up: g_0 = 1/4, g_1 = -1/4, g_3 = 5/8; down: the last two:
    # b = 3/16. f(2) = 27/16, f(1/4) = 6/16: row 5. Row 6 is a pool of its own.
    rows = [*SEEDS, (0.75, 1), (0.5, 1), (2.0, 1), (0.25, 1), (-7.0, -1)]
    model = line(rows, selection="active", pool_size=2)
    assert chosen(flags) == [0, 1, 3, 5, 6]
    assert model.stats_["chosen"] == 5
    assert 6 not in held(model), "x = -7 is far beyond the margin: learned, it changes nothing"


@pytest.mark.usefixtures("one_pass")
def test_a_pool_that_does_not_fill_is_learned_from_at_the_end(flags: Flags) -> None:
    line([*SEEDS, (3.0, 1), (0.5, 1), (0.75, 1)], selection="active", pool_size=50)
    assert chosen(flags) == [0, 1, 3]


@pytest.mark.usefixtures("one_pass")
def test_rows_are_learned_as_they_come_while_there_is_no_pair(flags: Flags) -> None:
    # Three positives wait; only the negative makes a pair. Of the pool (1/2, 0), by f after
    # lambda = 1/2 with the first: f(x) = x, the latter.
    rows = [(1.0, 1), (2.0, 1), (3.0, 1), (-1.0, -1), (0.5, 1), (0.0, -1)]
    line(rows, selection="active", pool_size=2)
    assert chosen(flags) == [0, 1, 2, 3, 5]


# -- autoactive -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("one_pass")
def test_autoactive_stops_at_five_within_the_margin(flags: Flags) -> None:
    # 1 + delta/2 = 1: of these 5 and -1 (|f| = 1) lie outside. The fifth inside is 0.5, which is
    # the nearest so far; 0.1 comes too late for that pool.
    pool = [(0.9, 1), (5.0, 1), (0.8, 1), (0.7, 1), (-1.0, -1), (0.6, 1), (0.5, 1)]
    line([*SEEDS, *pool, (0.1, 1)], selection="autoactive", pool_size=3)
    assert chosen(flags) == [0, 1, 8, 9], "0.5, then 0.1 in a pool of its own"


@pytest.mark.usefixtures("one_pass")
@pytest.mark.parametrize(("between", "expected"), [(99, [0, 1, 101]), (100, [0, 1, 60, 102])])
def test_autoactive_stops_at_a_hundred(between: int, expected: list[int], flags: Flags) -> None:
    # Nobody is inside; the last row, at 3/2, is the nearest of all. As the hundredth it is chosen;
    # as the hundred and first it comes too late, and row 60, at 2, is the nearest of the pool.
    far = [(2.0 if row == 60 else 4.0, 1) for row in range(2, 2 + between)]
    model = line([*SEEDS, *far, (1.5, 1)], selection="autoactive")
    assert chosen(flags) == expected
    assert held(model) == {0: 0.5, 1: -0.5}, "they were all beyond the margin"


# -- several classes, full search -----------------------------------------------------------------


@pytest.mark.usefixtures("one_pass")
def test_each_problem_has_pools_and_flags_of_its_own(flags: Flags) -> None:
    # K = I. Problems 0 and 1 have a pair after e0 and e1, and sample e2 and e3 (f = b for both, so
    # the first). Problem 2 has one after e2 only, and its pool is e3.
    model = OnlineSVC(kernel="linear", selection="active", pool_size=2, shuffle=False)
    model.fit(np.eye(4), [0, 1, 2, 0])
    assert flags[-1].tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert model.stats_["chosen"] == 10


def test_full_search_stops_when_none_is_left_in_the_margin(flags: Flags) -> None:
    # First -0.2 (see above): w = 5/3, g = (-2/3, 2/3, -2/3), b = 0, delta = 4/3. f(0.9) = 3/2 is
    # within 1 + 2/3, and f(5) = 25/3 is not, then or later.
    rows = [*SEEDS, (5.0, 1), (-0.2, -1), (0.9, 1)]
    for rule in ("active", "autoactive", "gradient"):
        model = line(rows, selection=rule, pool_size=None)
        assert chosen(flags) == [0, 1, 3, 4], rule
        assert model.stats_["chosen"] == 4
        assert 2 not in held(model)


# -- what is looked at ----------------------------------------------------------------------------


@pytest.mark.parametrize("params", BLIND, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_play_no_part_before_they_are_asked_for(
    params: dict[str, Any], classes: int, flags: Flags, seed: int
) -> None:
    """If the models differ, selection looked at labels of rows that it did not choose."""
    X, y = blobs(400, seed, classes)
    params = {"gamma": 0.1, "C": 10.0, "random_state": seed, **params}  # few in the margin
    model = OnlineSVC(**params).fit(X, y)
    never = ~flags[-1].any(axis=0)
    assert never.sum() > 20, "too few rows were left alone to show anything"
    other = np.where(never, (y + 1) % classes, y)
    assert_same_model(model, OnlineSVC(**params).fit(X, other), f"{never.sum()} labels changed")


@pytest.mark.parametrize("pool_size", [20, None])
def test_gradient_looks_at_labels(pool_size: int | None, flags: Flags, seed: int) -> None:
    """A row that was too well classified to be chosen is chosen once its label is wrong."""
    X, y = blobs(400, seed, 2)
    params: dict[str, Any] = {"selection": "gradient", "pool_size": pool_size}
    model = OnlineSVC(gamma=0.5, random_state=seed, **params).fit(X, y)
    never = ~flags[-1].any(axis=0)
    turned = OnlineSVC(gamma=0.5, random_state=seed, **params).fit(X, np.where(never, 1 - y, y))
    assert essence(turned)["ids"].tolist() != essence(model)["ids"].tolist()


@pytest.mark.parametrize("params", [*CHOOSING, *PAIRED], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_nothing_is_learned_twice(
    params: dict[str, Any], classes: int, flags: Flags, seed: int
) -> None:
    """If more rows were learned than flags are set, a problem learned a row that it had seen."""
    X, y = blobs(150, seed, classes)
    model = OnlineSVC(gamma=0.5, C=3.0, epochs=3, random_state=seed, **params).fit(X, y)
    has_part = signs_of(y, classes, params.get("multiclass", "ovr")).T != 0
    learned = (flags[-1] == 1) & has_part  # rows of other classes are passed over once and for all
    assert model.stats_["chosen"] == learned.sum() <= has_part.sum()
    assert np.isin(model.ids_, np.flatnonzero(learned.any(axis=0))).all(), "held, never learned"


def test_a_set_is_gone_through_until_nothing_changes(flags: Flags, seed: int) -> None:
    """A pass that stops early leaves rows in the margin, one that goes on too long learns all."""
    X, y = rings(300, seed)
    model = OnlineSVC(C=5.0, gamma=1.0, selection="active", pool_size=20, random_state=seed)
    model.fit(X, y)
    assert len(flags) > 2, "15 rows are learned in a pass: too few"
    assert flags[-1].sum() < 300
    left = flags[-1][0] == 0
    inside = np.abs(model.decision_function(X)) < 1 - model.tol
    assert (inside & left).sum() <= 5


def test_an_epoch_looks_at_each_row_that_is_left(
    flags: Flags, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(_loop, "LEAST_CHOSEN", 0)
    X, y = rings(400, seed, noise=0.1)
    sampled, expected = 0, 0
    for epochs in (1, 2, 3):
        left = 400 - int(flags[-1].sum()) if flags else 400
        model = OnlineSVC(selection="active", pool_size=20, epochs=epochs, random_state=seed)
        sampled, expected = model.fit(X, y).stats_["sampled"], expected + left
        assert sampled == expected


# -- as few rows as there can be ------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["gradient", "active", "autoactive"])
@pytest.mark.parametrize("pool_size", [1, 50, None])
@pytest.mark.parametrize("y", [[0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 2]], ids=str)
def test_two_or_three_rows_are_learned(rule: str, pool_size: int | None, y: list[int]) -> None:
    X = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])[: len(y)]
    model = OnlineSVC(selection=rule, pool_size=pool_size, C=3.0, gamma=0.5, random_state=0)
    model.fit(X, y)._engine.native.check(1e-5)
    assert model.predict(X).tolist() == y
    if pool_size is not None:
        source = clone(model).learn_from(Rows(X, np.array(y)))
        assert source.predict(X).tolist() == y


@pytest.mark.parametrize(("slack", "learned"), [(0.0, [2, 0]), (0.1, [2])])
def test_full_search_learns_rows_within_the_margin_and_half_of_delta(
    slack: float, learned: list[int]
) -> None:
    """δ is 0.5, so that the margin ends at 1.25: |f| = 1.2 lies within it, 1.3 does not."""
    f = np.array([[-1.2], [1.3], [0.5]])
    search = FullSearch("active", np.ones((3, 1)), np.arange(3), slack)
    assert list(search.rows(lambda: f, lambda: np.array([0.5]))) == learned
