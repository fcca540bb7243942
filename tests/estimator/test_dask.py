"""Estimators on Dask: scikit-learn's conventions, bad input, lost workers, checkpoints."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client
from sklearn.base import clone

from marginwise import ModelFileError, OnlineSVC, load, save
from marginwise.dask import DaskGapSVC, DaskOnlineSVC, blocks, clients, faults, rounds, tasks
from marginwise.dask.faults import ClusterError
from marginwise.dask.versions import VersionError
from tests.dask_support import cluster, digest, moons

pytestmark = pytest.mark.cluster
ROWS, BLOCK = 9000, 1000  # more rows than are learned without rounds


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster(2) as client:
        yield client


def model(**more: Any) -> DaskOnlineSVC:
    return DaskOnlineSVC(**{"C": 10, "gamma": 1.0, "random_state": 0, "round_rows": 2048, **more})


# -- conventions -------------------------------------------------------------------------------


def test_importing_the_package_does_not_import_dask() -> None:
    code = "import sys, marginwise; assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", [DaskOnlineSVC, DaskGapSVC])
def test_parameters_are_those_of_the_local_estimator_and_its_own(kind: type) -> None:
    own = {"client": None, "sift_rounds": 1, "round_rows": 16384}
    assert kind().get_params() == {**kind._local().get_params(), **own}
    assert kind(C=3, round_rows=7).set_params(C=4).get_params()["C"] == 4
    with pytest.raises(TypeError, match="nonsense"):
        kind(nonsense=1)


def test_a_clone_has_the_same_client(client: Client) -> None:
    first = model(client=client)
    twin = clone(first)
    assert twin is not first
    assert twin.client is client
    assert twin.get_params() == first.get_params()


def test_a_pickled_copy_has_no_client(client: Client) -> None:
    first = model(client=client).fit(*moons(ROWS, BLOCK, 0))
    copy = pickle.loads(pickle.dumps(first))
    assert copy.client is None
    assert first.client is client
    assert digest(copy) == digest(first)


def test_to_local_is_an_independent_copy(client: Client, tmp_path: Path) -> None:
    first = model(client=client).fit(*moons(ROWS, BLOCK, 0))
    before = digest(first)
    local = first.to_local()
    assert type(local) is OnlineSVC
    save(local, tmp_path / "model.mwz")
    assert digest(load(tmp_path / "model.mwz")) == before
    local.partial_fit([[0.0, 0.0]] * 50, [0, 1] * 25)
    assert digest(first) == before != digest(local)
    with pytest.raises(ValueError, match="to_local"):
        save(first, tmp_path / "other.mwz")


def test_predictions_are_lazy_and_have_the_blocks_of_the_rows(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    found = model(client=client, calibration="sigmoid").fit(X, y)
    local, rows = found.to_local(), X.compute()
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        lazy = getattr(found, name)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == X.chunks[0]
        assert np.array_equal(lazy.compute(), getattr(local, name)(rows))
        assert np.array_equal(getattr(found, name)(rows[:9]), getattr(local, name)(rows[:9]))
    assert found.score(X, y) == local.score(rows, y.compute())
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        model(client=client).predict_proba(X)
    with pytest.raises(ValueError, match=r"fitted with 2 features\. Pass the same columns"):
        found.predict(X[:, :1])
    with pytest.raises(ValueError, match="block 4 of X: Input X contains NaN at row 321"):
        found.predict(_nan(X, y)[0]).compute()


def test_predictions_need_no_running_client(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    address = client.scheduler.address
    found = model(client=address).fit(X, y)
    expected = found.to_local().predict(X.compute())
    assert np.array_equal(found.predict(X).compute(), expected)
    with Client(address, set_as_default=False) as other:
        found.set_params(client=other)
    assert np.array_equal(found.predict(X).compute(), expected)


def test_probabilities_are_about_as_good_as_those_of_fit(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    found = model(client=client, calibration="sigmoid").fit(X, y).to_local()
    rows, labels = X.compute(), y.compute()
    alone = OnlineSVC(C=10, gamma=1.0, calibration="sigmoid", random_state=0).fit(rows, labels)
    brier = [np.mean((one.predict_proba(rows)[:, 1] - labels) ** 2) for one in (found, alone)]
    assert brier[0] < 1.05 * brier[1]


def test_data_frames_and_sparse_blocks(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    expected = model(client=client).fit(X, y)
    frame = pd.DataFrame(X.compute(), columns=["a", "b"])
    frame["label"] = np.where(y.compute(), "yes", "no")
    parts = dd.from_pandas(frame, npartitions=9)
    found = model(client=client).fit(parts[["a", "b"]], parts["label"])
    assert digest(found) == digest(expected)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    predicted = found.predict(parts[["a", "b"]]).compute()
    assert np.array_equal(predicted == "yes", expected.predict(X).compute() == 1)
    lists = X.map_blocks(sp.csr_matrix)
    sparse = model(client=client).fit(lists, y)
    assert abs(sparse.to_local().score(X.compute(), y.compute()) - expected.score(X, y)) < 0.01
    assert sparse.predict(lists).compute().shape == (ROWS,)


def test_partial_fit_continues_and_adds_classes(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    found = model(client=client, multiclass="ovr").partial_fit(X[:5000], y[:5000])
    assert found.classes_.tolist() == [0, 1]
    found.partial_fit(X[5000:], y[5000:])
    assert found.ids_.max() >= 5000
    assert found.finish().to_local().score(X.compute(), y.compute()) > 0.93
    found.partial_fit(X[:2000] + 10, da.full(2000, 2, chunks=1000))
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.partial_fit([[0.0, 0.0]], [1]).classes_.tolist() == [0, 1, 2]  # in memory
    before = digest(found)
    fixed = model(client=client).partial_fit(X, y, classes=[0, 1])
    labels = y.compute()
    labels[3011] = 7
    with pytest.raises(ValueError, match=r"block 3 of y has the label 7 at row 11, which is"):
        fixed.partial_fit(X, da.from_array(labels, chunks=BLOCK))
    assert digest(found) == before


def test_class_weights_balance_all_blocks(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    rare = (y == 1) & (X[:, 0] > 1.5)
    found = model(client=client, class_weight="balanced").fit(X, rare.astype(int))
    count = int(rare.sum().compute())
    assert found._balance[1] == pytest.approx(ROWS / (2 * count))
    assert found.class_weight == "balanced"


def test_gamma_scale_is_that_of_all_rows(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    found = model(client=client, gamma="scale").fit(X, y)
    assert found.gamma_ == pytest.approx(1 / (2 * X.compute().var()))
    assert found.gamma == "scale"


# -- bad input ---------------------------------------------------------------------------------


def _nan(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    rows = X.compute()
    rows[4321, 1] = np.nan
    return da.from_array(rows, chunks=(BLOCK, 2)), y


def _width(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    def narrow(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        return block[:, :1] if block_info[0]["chunk-location"][0] == 5 else block

    return X.map_blocks(narrow, dtype=X.dtype, meta=np.empty((0, 2))), y


def _words(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    frame = pd.DataFrame(X.compute(), columns=["a", "b"]).assign(c="x")
    return dd.from_pandas(frame, npartitions=9), y


def _missing(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    labels = y.compute().astype(float)
    labels[2005] = np.nan
    return X, da.from_array(labels, chunks=BLOCK)


def _missing_words(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    labels = pd.Series(np.where(y.compute(), "yes", "no"), dtype="string")
    labels[2005] = pd.NA
    frame = pd.DataFrame(X.compute(), columns=["a", "b"])
    return dd.from_pandas(frame, npartitions=9), dd.from_pandas(labels, npartitions=9)


def _infinite(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    labels = y.compute().astype(float)
    labels[2005] = np.inf
    return X, da.from_array(labels, chunks=BLOCK)


def _huge(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    rows = X.compute()
    rows[4321, 1] = 1e300
    return da.from_array(rows, chunks=(BLOCK, 2)), y


def _mixed(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    labels = y.compute().astype(object)
    labels[3 * BLOCK : 4 * BLOCK] = "x"
    return X, da.from_array(labels, chunks=BLOCK)


def _unknown(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    return X[X[:, 0] > -9], y.rechunk(500)[X.rechunk((500, 2))[:, 0] > -9]


def _uneven(X: da.Array, y: da.Array) -> tuple[Any, Any]:
    return X[X[:, 0] > -9], y[y > 0]


BAD: dict[str, tuple[Callable[..., tuple[Any, Any]], str]] = {
    "a NaN": (_nan, r"block 4 of X and y: Input X contains NaN at row 321, column 1"),
    "a narrow block": (_width, r"block 5 of X has 1 features, but block 0 has 2"),
    "a column of words": (_words, r"column 'c' has dtype .*; features must be numbers"),
    "a missing label": (_missing, r"block 2 of X and y: the label of row 5 is missing"),
    "a missing word": (_missing_words, r"block 2 of X and y: the label of row 5 is missing"),
    "an infinite label": (_infinite, r"block 2 of X and y: the label of row 5 is infinite"),
    "a row that overflows": (_huge, r"block 4 of X and y: the features of row 321 are too large"),
    "a masked value": (
        lambda X, y: (da.ma.masked_greater(X, 1.5), y),
        r"row \d+ of X has a masked value",
    ),
    "labels of two types": (_mixed, r"block 3 of y has labels such as 'x', but block 0 has 0"),
    "another length": (lambda X, y: (X, y[:-1]), r"X has 9000 rows, but y has 8999 labels"),
    "other blocks": (_unknown, r"X has 9 blocks, but y has 18, of unknown lengths\. Divide both"),
    "uneven blocks": (_uneven, r"block 0 of X and y: X has 1000 rows there, but y has \d+ labels"),
    "one class": (lambda X, y: (X, 0 * y), r"y has only one class, 0;"),
    "continuous labels": (lambda X, y: (X, X[:, 0]), r"Unknown label type"),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"X has no rows: all of its \d+ blocks are empty"),
    "no labels": (lambda X, y: (X, None), r"y is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_changes_nothing(client: Client, case: str) -> None:
    found = model(client=client).fit(*moons(600, 200, 0))
    before = digest(found)
    spoil, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        found.fit(*spoil(*moons(ROWS, BLOCK, 0)))
    assert digest(found) == before


@pytest.mark.parametrize(("kernel", "value"), [("rbf", 1e150), ("poly", 1e60)])
def test_rows_beyond_the_range_of_the_kernel_are_named(
    client: Client, kernel: str, value: float
) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    X = da.concatenate([X[:4321], da.from_array([[value, 0.0]]), X[4322:]]).rechunk((BLOCK, 2))
    found = model(client=client, kernel=kernel).fit(*moons(600, 200, 0))
    before = digest(found)
    for learn in (found.fit, found.partial_fit):
        with pytest.raises(ValueError, match=r"^block 4 of X: .*row 321"):
            learn(X, y)
        assert digest(found) == before


def test_a_delayed_object_is_no_collection(client: Client) -> None:
    with pytest.raises(TypeError, match="X must be a Dask array or data frame, got Delayed"):
        model(client=client).fit(dask.delayed(np.zeros((9, 2))), np.arange(9) % 2)


@pytest.mark.parametrize("form", [sp.coo_matrix, sp.bsr_matrix])
def test_sparse_blocks_of_any_format(client: Client, form: Any) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    found = model(client=client).fit(X.map_blocks(form), y)
    assert digest(found) == digest(model(client=client).fit(X.map_blocks(sp.csr_matrix), y))


def test_an_error_of_a_block_names_it(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)

    def fail(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block_info[0]["chunk-location"][0] == 6:
            raise OSError("the disk is gone")
        return block

    broken = X.map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 2)))
    with pytest.raises(OSError, match="the disk is gone") as caught:
        model(client=client).fit(broken, y)
    assert caught.value.__notes__ == ["It was raised by a worker, in a task of block 6 of X and y."]


def test_frames_that_are_divided_differently_are_refused(client: Client) -> None:
    X, y = (some.compute() for some in moons(600, 200, 0))
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=6)
    labels = dd.from_pandas(pd.Series(y), npartitions=3)
    with pytest.raises(ValueError, match=r"but y has 3, of unknown lengths\. Divide both alike\.$"):
        model(client=client).fit(frame, labels)


def test_rows_in_memory_are_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="X must be a Dask array or data frame, got ndarray"):
        model(client=client).fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_unknown_lengths_empty_blocks_and_other_chunks_are_accepted(client: Client) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    expected = digest(model(client=client).fit(X, y))
    everything = X[:, 0] > -9
    assert digest(model(client=client).fit(X[everything], y[everything])) == expected
    assert digest(model(client=client).fit(X, y.rechunk(700))) == expected
    assert digest(model(client=client).fit(X, y.compute())) == expected
    assert digest(model(client=client).fit(X.rechunk((BLOCK, 1)), y)) == expected
    emptied = da.concatenate([X, X[:BLOCK][X[:BLOCK, 0] > 99]])
    labels = da.concatenate([y, y[:BLOCK][X[:BLOCK, 0] > 99]])
    assert digest(model(client=client).fit(emptied, labels)) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 2}, "needs epochs=1, got epochs=2: sift_rounds is the number of passes"),
        ({"replay": 10}, "needs replay=0, got replay=10"),
        ({"kernel": "precomputed"}, "needs one of marginwise's own kernels"),
        ({"selection": "active", "pool_size": None}, "pool_size=None compares all rows"),
        ({"round_rows": 0}, "round_rows must be an integer of at least 1, got 0"),
        ({"sift_rounds": 0}, "sift_rounds must be an integer of at least 1, got 0"),
    ],
)
def test_bad_parameters(client: Client, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(client=client, **parameters).fit(*moons(ROWS, BLOCK, 0))
    with pytest.raises(ValueError, match="sift must be a number of at least 0, below 1"):
        model(client=client).fit(*moons(ROWS, BLOCK, 0), sift=1.0)


# -- the connection ----------------------------------------------------------------------------


def test_without_a_client_a_cluster_is_started_and_said_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def threads(**settings: Any) -> Any:
        return clients_cluster(**settings, processes=False)

    clients_cluster = clients.LocalCluster
    monkeypatch.setattr(clients, "LocalCluster", threads)
    monkeypatch.setattr(clients, "get_client", _no_client)
    found = model().fit(*moons(ROWS, BLOCK, 0))
    assert "no Dask client: started a LocalCluster of" in caplog.text
    assert found.client is None


def _no_client() -> Any:
    raise ValueError("No global client found and no address provided")


def test_a_closed_client_is_refused(client: Client) -> None:
    with cluster(1) as other:
        pass
    with pytest.raises(ClusterError, match="the client is closed, not running"):
        model(client=other).fit(*moons(ROWS, BLOCK, 0))
    with pytest.raises(TypeError, match=r"must be a distributed\.Client.* or None, got int"):
        model(client=8786).fit(*moons(ROWS, BLOCK, 0))


def test_other_versions_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "installed_version", lambda: "9.9")
    with pytest.raises(
        VersionError, match=r"has marginwise 0.*, but the driver has marginwise 9\.9"
    ):
        model(client=client).fit(*moons(ROWS, BLOCK, 0))


# -- lost and silent workers -------------------------------------------------------------------


def test_a_killed_worker_does_not_change_the_model() -> None:
    X, y = moons(30000, 1000, 0)
    with cluster(2, processes=True) as client:
        expected = digest(model(client=client, round_rows=4096).fit(X, y))
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
        timer.start()
        found = model(client=client, round_rows=4096).fit(X, y)
        timer.join()
        assert digest(found) == expected


@contextmanager
def workers_with_and_without_nanny() -> Iterator[Client]:
    """Start two workers, the second without a nanny to restart it."""
    with cluster(1, processes=True) as client:
        command = [sys.executable, "-m", "dask", "worker", client.scheduler.address]
        alone = subprocess.Popen(
            [*command, "--no-nanny", "--nthreads", "1", "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client.wait_for_workers(2, timeout=60)
            yield client
        finally:
            alone.kill()
            alone.wait()


@pytest.mark.parametrize("has_nanny", [True, False])
def test_a_stopped_worker_does_not_change_the_model(
    monkeypatch: pytest.MonkeyPatch, has_nanny: bool
) -> None:
    X, y = moons(30000, 1000, 0)
    learn, learned = rounds.learn_round, []
    with cluster(2, processes=True) if has_nanny else workers_with_and_without_nanny() as client:
        expected = digest(model(client=client, round_rows=4096).fit(X, y))
        workers = client.scheduler_info(n_workers=-1)["workers"]
        of_kind = [one for one, found in workers.items() if bool(found["nanny"]) == has_nanny]
        victim = client.run(os.getpid, workers=of_kind[:1])[of_kind[0]]

        def stop(*arguments: Any) -> None:
            learned.append(1)
            if len(learned) == 2:
                os.kill(victim, signal.SIGSTOP)
            learn(*arguments)

        monkeypatch.setattr(rounds, "learn_round", stop)
        for name, seconds in (("LEAST_PATIENCE", 2.0), ("PATIENCE", 2.0), ("SILENT", 3.0)):
            monkeypatch.setattr(faults, name, seconds)
        found = model(client=client, round_rows=4096).fit(X, y)
        assert len(learned) > 2
        assert digest(found) == expected
        assert victim not in client.run(os.getpid).values()


def test_a_failure_to_restart_workers_does_not_end_the_call(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(client: Client) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(faults, "_restart_silent", fail)
    faults.restart_silent(client)
    assert "could not restart silent Dask workers: OSError('no answer')" in caplog.text


SILENT, CALLS = threading.Event(), []  # of workers that are threads of this process


def hang(*arguments: Any) -> Any:
    CALLS.append(1)
    if len(CALLS) == 5:
        SILENT.wait(20)
    return tasks.sift(*arguments)


def test_a_task_that_is_never_answered_is_submitted_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    expected = digest(model(client=client).fit(X, y))
    monkeypatch.setattr(rounds, "sift", hang)
    monkeypatch.setattr(faults, "LEAST_PATIENCE", 0.5)
    monkeypatch.setattr(faults, "PATIENCE", 1.0)
    CALLS.clear()
    began = time.monotonic()
    found = model(client=client).fit(X, y)
    seconds = time.monotonic() - began
    SILENT.set()
    assert seconds < 15
    assert digest(found) == expected


def test_a_lost_snapshot_is_published_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    expected = digest(model(client=client).fit(X, y))
    publish, lost = faults.Published.__call__, []

    def lose(self: faults.Published) -> Any:
        future = publish(self)
        if len(lost) < 3:
            lost.append(1)
            client.cancel([future], force=True)
        return future

    monkeypatch.setattr(faults.Published, "__call__", lose)
    assert digest(model(client=client).fit(X, y)) == expected
    assert len(lost) == 3


def test_a_block_that_kills_its_workers_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhaust(piece: Any, *arguments: Any) -> Any:
        raise faults.KilledWorker("sift", _Worker(), 3)

    monkeypatch.setattr(rounds, "sift", exhaust)
    found = model(client=client).fit(*moons(1500, 500, 1))
    before = digest(found)
    with pytest.raises(ClusterError, match=r"block \d of X \(rows \d+ to \d+\): the workers that"):
        found.fit(*moons(ROWS, BLOCK, 0))
    assert digest(found) == before


class _Worker:
    address = "tcp://127.0.0.1:1"


def test_an_interrupt_leaves_the_model_as_it_was(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = model(client=client).fit(*moons(ROWS, BLOCK, 0))
    before, learn, learned = digest(found), rounds.learn_round, []

    def interrupt(*arguments: Any, **more: Any) -> None:
        learned.append(1)
        if len(learned) == 3:
            raise KeyboardInterrupt
        learn(*arguments, **more)

    monkeypatch.setattr(rounds, "learn_round", interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.fit(*moons(ROWS, BLOCK, 1))
    assert digest(found) == before
    learned.clear()
    with pytest.raises(KeyboardInterrupt):
        found.partial_fit(*moons(ROWS, BLOCK, 1))
    assert digest(found) == before
    monkeypatch.setattr(rounds, "learn_round", learn)
    assert digest(found.fit(*moons(ROWS, BLOCK, 0))) == before


# -- checkpoints -------------------------------------------------------------------------------


@pytest.mark.parametrize(("stop", "sift"), [(1, 0.0), (2, 0.0), (4, 0.05)])
def test_a_resumed_run_ends_with_the_same_model(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stop: int, sift: float
) -> None:
    monkeypatch.setattr(rounds, "WORTH_A_SKETCH", 200)
    X, y = moons(ROWS, BLOCK, 0)
    expected = digest(model(client=client).fit(X, y, sift=sift))
    file, learn, learned = tmp_path / "run.mwz", rounds.learn_round, []

    def fail(*arguments: Any, **more: Any) -> None:
        learned.append(1)
        if len(learned) == stop:
            raise ClusterError("the connection to the scheduler was lost")
        learn(*arguments, **more)

    monkeypatch.setattr(rounds, "learn_round", fail)
    run = {"sift": sift, "checkpoint": file, "checkpoint_minutes": 0}
    with pytest.raises(ClusterError, match="connection"):
        model(client=client).fit(X, y, **run)
    monkeypatch.setattr(rounds, "learn_round", learn)
    with cluster(1) as other:  # the scheduler was started again
        found = model(client=other).fit(X, y, **run)
        assert digest(found) == expected
        assert len(found.rounds_) > 0
        again = model(client=other).fit(X, y, **run)  # the run is over
    assert digest(again) == expected
    assert again.rounds_ == []


def test_a_checkpoint_of_another_run_is_refused(client: Client, tmp_path: Path) -> None:
    X, y = moons(ROWS, BLOCK, 0)
    file = tmp_path / "run.mwz"
    model(client=client).fit(X, y, checkpoint=file)
    for other, rows, message in (
        (model(client=client, C=3), X, "it was made with C=10, and this run has 3"),
        (model(client=client, round_rows=999), X, "with round_rows=2048, and this run has 999"),
        (model(client=client), X + 1, "other rows, labels or blocks"),
        (DaskGapSVC(client=client), X, "made by a DaskOnlineSVC, and this is a DaskGapSVC"),
    ):
        with pytest.raises(ModelFileError, match=message):
            other.fit(rows, y, checkpoint=file)
    backwards = y.map_blocks(lambda block: block[::-1], dtype=y.dtype)
    for rows, labels in ((X[:, ::-1], y), (X, backwards)):  # of the same moments and counts
        with pytest.raises(ModelFileError, match="other rows, labels or blocks"):
            model(client=client).fit(rows, labels, checkpoint=file)
    with pytest.raises(ModelFileError, match=r"made with sift=0\.0, and this run has 0\.5"):
        model(client=client).fit(X, y, checkpoint=file, sift=0.5)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelFileError):
        model(client=client).fit(X, y, checkpoint=file)


def test_the_driver_that_loses_the_scheduler_names_the_way_to_continue(client: Client) -> None:
    with cluster(1) as other:
        collector = faults.Collector(other)
        batch = collector.begin([faults.Task("x", lambda _: other.submit(time.sleep, 1))])
    with pytest.raises(ClusterError, match="with a checkpoint, training then continues"):
        collector.collect(batch)
