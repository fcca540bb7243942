"""The model is a function of the data, its blocks and the seed, whatever the cluster is like."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
from distributed import Client
from sklearn.datasets import make_moons

import marginwise
from marginwise import GapSVC, OnlineSVC
from marginwise._arrays import spread_rows
from marginwise.dask import DaskGapSVC, DaskOnlineSVC, plan, rounds, tasks
from marginwise.dask.plan import Layout, block_rounds, round_sizes
from marginwise.dask.snapshot import take_snapshot
from tests.dask_support import cluster, digest, labelled_digits, moons
from tests.support import cycle, missed_loss

pytestmark = pytest.mark.cluster
ROWS, BLOCK = 9000, 1000


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster(2) as client:
        yield client


def model(kind: type = DaskOnlineSVC, **more: Any) -> Any:
    return kind(**{"C": 10, "gamma": 1.0, "random_state": 0, "round_rows": 2048, **more})


# -- the number of workers ---------------------------------------------------------------------


def test_the_number_of_workers_does_not_matter(client: Client, seed: int) -> None:
    X, y = moons(ROWS, BLOCK, seed)
    found = {digest(model(client=client).fit(X, y))}
    for workers in (1, 3):
        with cluster(workers) as other:
            found.add(digest(model(client=other).fit(X, y)))
    assert len(found) == 1


DELAYS: list[float] = []  # of workers that are threads of this process


def slowly(*arguments: Any) -> Any:
    time.sleep(DELAYS.pop())
    return tasks.sift(*arguments)


def test_answers_may_come_in_any_order(
    client: Client, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons(ROWS, BLOCK, seed)
    expected = digest(model(client=client).fit(X, y))
    DELAYS[:] = np.random.default_rng(seed).uniform(0, 0.1, 1000).tolist()
    monkeypatch.setattr(rounds, "sift", slowly)
    assert digest(model(client=client).fit(X, y)) == expected
    assert len(DELAYS) < 1000


@pytest.mark.parametrize("kind", [DaskOnlineSVC, DaskGapSVC])
def test_it_is_as_good_as_the_local_estimator(client: Client, seed: int, kind: type) -> None:
    X, y = moons(ROWS, BLOCK, seed)
    X_test, y_test = make_moons(3000, noise=0.25, random_state=seed + 1)
    found = model(kind, client=client).fit(X, y).to_local()
    local = {DaskOnlineSVC: OnlineSVC, DaskGapSVC: GapSVC}[kind]
    alone = local(C=10, gamma=1.0, random_state=0).fit(X.compute(), y.compute())
    assert type(found) is local
    assert abs(found.score(X_test, y_test) - alone.score(X_test, y_test)) < 0.01
    if kind is DaskOnlineSVC:
        assert found.dual_objective() == pytest.approx(alone.dual_objective(), rel=0.01)


# A share of all rows once decided whether another pass follows, which the rows of a rare class
# hardly change.
@pytest.mark.parametrize("rare", [0.02, 0.1])
def test_passes_follow_while_rows_of_a_class_are_missed(
    client: Client, seed: int, rare: float
) -> None:
    X, y = cycle(12_000, rare, seed)
    blocks = da.from_array(X, chunks=(1500, X.shape[1])), da.from_array(y, chunks=1500)
    found = model(client=client, C=32, gamma=2.0, round_rows=4096).fit(*blocks).to_local()
    assert max(missed_loss(found, X, y)) < 0.0075


AUDITED: list[float] = []  # the loss per row that an audit finds, pass by pass


def found_loss(*_: Any) -> Any:
    return np.array([[10.0, 10.0], [10 * AUDITED[0], 10 * AUDITED.pop(0)]])


def test_a_pass_follows_from_a_third_of_the_loss_that_is_worth_a_look_locally(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers evaluate the rows, so that a pass costs the driver little."""
    monkeypatch.setattr(rounds, "audit", found_loss)
    monkeypatch.setattr(rounds, "AUDITED_BLOCKS", 1)
    monkeypatch.setattr(rounds, "worth_a_look", lambda rows, members: 1.0)
    X, y = moons(ROWS, BLOCK, 0)
    AUDITED[:] = [1.0, 0.34, 0.33, 5.0]
    found = model(client=client).fit(X, y)
    assert AUDITED == [5.0]
    assert {cost["epoch"] for cost in found.rounds_} == {0, 1, 2}


def test_few_rows_are_learned_as_by_fit(client: Client, seed: int) -> None:
    X, y = moons(1500, 400, seed)
    found = model(client=client).fit(X, y)
    alone = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X.compute(), y.compute())
    assert digest(found) == digest(alone)


def test_many_classes_are_learned_without_a_warning(client: Client, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(30), 20)
    X = 3 * rng.normal(size=(30, 5))[y] + rng.normal(size=(len(y), 5))
    blocks = da.from_array(X, chunks=(200, 5)), da.from_array(y, chunks=200)
    found = model(client=client, gamma=0.05).fit(*blocks).to_local()  # warnings are errors
    assert len(found.intercept_) == 435


def test_only_rows_worth_learning_travel(client: Client, seed: int) -> None:
    X, y = moons(ROWS, BLOCK, seed)
    costs = model(client=client).fit(X, y).rounds_
    assert sum(cost["rows"] for cost in costs if cost["epoch"] == 0) == ROWS
    later = [cost for cost in costs if cost["bytes"]]  # judged by a model
    assert sum(cost["returned"] for cost in later) < 0.6 * sum(cost["rows"] for cost in later)


@pytest.mark.parametrize("selection", ["active", "autoactive"])
def test_workers_choose_by_the_rules_of_selection(
    client: Client, seed: int, selection: str
) -> None:
    X, y = moons(ROWS, BLOCK, seed)
    found = model(client=client, selection=selection).fit(X, y)
    every = model(client=client).fit(X, y)
    assert len(found.support_) < len(every.support_)
    assert found.to_local().score(X.compute(), y.compute()) > 0.92


def test_sorted_classes_are_met_in_the_first_rounds(client: Client, seed: int) -> None:
    X, y = labelled_digits(seed)
    order = np.argsort(y, kind="stable")
    blocks = da.from_array(X[order], chunks=(200, 64)), da.from_array(y[order], chunks=200)
    found = model(client=client, gamma=0.5, round_rows=1024).fit(*blocks)
    assert found.to_local().score(X, y) > 0.99
    assert found.rounds_[-1]["returned"] < found.rounds_[-1]["rows"]


def test_a_sketch_judges_rows_where_sifting_may_lose_some(
    client: Client, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "WORTH_A_SKETCH", 200)
    X, y = moons(ROWS, BLOCK, seed)
    found = model(client=client).fit(X, y, sift=0.05)
    counts = [cost["tally"] for cost in found.rounds_]
    assert sum(count["asked"] for count in counts) < 0.95 * sum(count["pairs"] for count in counts)
    assert sum(count["audited"] for count in counts) > 0
    assert found.to_local().score(X.compute(), y.compute()) > 0.93
    assert digest(model(client=client).fit(X, y, sift=0.05)) == digest(found)


# -- snapshots ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "offset"), [("rbf", 0), ("rbf", 1000), ("linear", 0), ("linear", 1000), ("poly", 0)]
)
def test_a_snapshot_judges_as_its_model_does(seed: int, kernel: str, offset: float) -> None:
    X, y = labelled_digits(seed)
    X = X + offset
    alone = OnlineSVC(C=1, kernel=kernel, gamma=0.1, coef0=1.0, random_state=0).fit(X, y)
    snapshot = take_snapshot(alone._engine, None)
    batch = snapshot.judge.engine.batch(X[:200])
    values = snapshot.judge.values(batch, np.arange(200, dtype=np.int64))
    expected = alone._score(X[:200])
    assert np.abs(values - expected).max() < 1e-2 * max(1.0, np.abs(expected).max())
    asked = np.random.default_rng(seed).random(values.shape) < 0.3
    some = snapshot.judge.values_where(batch, asked)
    assert np.isinf(some[~asked]).all()
    assert np.abs(some - values)[asked].max() < 1e-2 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(
    ("kernel", "offset"), [("rbf", 0), ("rbf", 1000), ("linear", 0), ("poly", 0)]
)
def test_a_snapshot_has_the_support_vectors_themselves(kernel: str, offset: float) -> None:
    X, y = labelled_digits(0, copies=1)
    X = X + offset
    alone = OnlineSVC(C=1, kernel=kernel, gamma=0.1, coef0=1.0, random_state=0).fit(X, y)
    snapshot = take_snapshot(alone._engine, None)
    assert len(snapshot.ids) > 100
    np.testing.assert_allclose(snapshot.judge.vectors, X[snapshot.ids], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", ["random", "active"])
def test_workers_offer_no_row_to_a_problem_that_has_it(rule: str) -> None:
    X, y = labelled_digits(0, copies=1)
    alone = OnlineSVC(C=0.1, gamma=0.1, multiclass="ovr", random_state=0).fit(X[:900], y[:900])
    snapshot = take_snapshot(alone._engine, None)
    rules = tasks.Rules(
        classes=np.arange(10),
        features=64,
        problems=10,
        pairs=False,
        rule=rule,
        pool_size=5,
        loss=0.0,
        seed=0,
        sampled=1,  # every row comes back
        version=marginwise.__version__,
    )
    piece = plan.Piece(0, len(y), 0, 0, len(y), None)
    picks = tasks.sift(piece, rules, snapshot, X, y)
    held = np.zeros(picks.wanted.shape, dtype=bool)
    held[snapshot.ids] = (snapshot.coefficients != 0).T
    assert picks.ids.tolist() == list(range(len(y)))
    assert held.sum() > 1000
    assert not picks.wanted[held].any()
    assert picks.wanted[900:].any(), "other rows are offered"


# -- the plan ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(5,), (0, 3, 0, 7), (5000, 1, 300), (100,) * 50])
@pytest.mark.parametrize("round_rows", [1, 10, 700, 16384])
@pytest.mark.parametrize("warm", [True, False])
def test_every_row_is_judged_once(lengths: tuple[int, ...], round_rows: int, warm: bool) -> None:
    layout = Layout(lengths, tuple(frozenset({0, 1}) if n else frozenset() for n in lengths), 7)
    for seeds in ([3, 0], None):
        groups = block_rounds(layout, round_rows, seeds, warm=warm, per_class=0)
        assert all(groups)
        rows = [
            piece.first + row
            for group in groups
            for piece in group
            for row in piece.order()[piece.start : piece.stop].tolist()
        ]
        assert sorted(rows) == list(range(7, 7 + sum(lengths)))


def test_rounds_of_a_new_model_grow() -> None:
    sizes = round_sizes(16384, warm=True)
    assert [next(sizes) for _ in range(6)] == [2048, 2048, 4096, 8192, 16384, 16384]


def test_the_first_rounds_have_a_block_of_each_class() -> None:
    lengths = (100,) * 40
    classes = tuple(frozenset({0, 1} if k else {2}) for k in range(40))
    first = block_rounds(Layout(lengths, classes), 2048, [0, 0], warm=True, per_class=5)[0]
    assert 0 in {piece.block for piece in first}
    assert len(first) <= plan.WARM_BLOCKS + 1


# -- sources -----------------------------------------------------------------------------------


class Rows:
    """A source of rows in memory, in two stages."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y
        self.classes = np.unique(y)
        self.stages = [len(y) // 3, len(y)]

    def __len__(self) -> int:
        return len(self.y)

    def read(self, ids: Any) -> tuple[Any, Any]:
        return self.X[ids], self.y[ids]


def test_a_source_is_read_where_it_is_judged(client: Client, seed: int) -> None:
    X, y = make_moons(ROWS, noise=0.25, random_state=seed)
    source = Rows(X, y)
    found = model(client=client).fit_source(source)
    alone = OnlineSVC(C=10, gamma=1.0, random_state=0).learn_from(source)
    assert abs(found.to_local().score(X, y) - alone.score(X, y)) < 0.01
    with cluster(1) as other:
        assert digest(model(client=other).fit_source(source)) == digest(found)


def test_a_source_with_a_bad_row_is_refused_by_its_number(client: Client, seed: int) -> None:
    X, y = make_moons(ROWS, noise=0.25, random_state=seed)
    some = int(np.setdiff1d(np.arange(ROWS), spread_rows(ROWS, 2000))[1234])
    bad = X.copy()
    bad[some, 1] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row {some}, column 1"):
        model(client=client).fit_source(Rows(bad, y))
    with pytest.raises(ValueError, match=r"has the label 1, which is unknown; .* \[0, 2\]"):
        model(client=client).fit_source(Rows(X, y), classes=[0, 2])
