"""Replay: a uniform reservoir of a stream, learned again, that no cut or file can change."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import OnlineSVC, load, save
from marginwise._training.reservoir import PIECE, Reservoir
from tests.support import Rows, assert_same_model, blobs, rings

X, Y = rings(2500, 0, noise=0.1)
X_TEST, Y_TEST = rings(2000, 1, noise=0.1)


def learner(**kw: Any) -> OnlineSVC:
    return OnlineSVC(C=5, gamma=1.0, random_state=0, **{"replay": 200, **kw})


def test_the_reservoir_is_a_uniform_sample() -> None:
    """Each of 400 rows is kept equally often over many seeds, early or late."""
    counts = np.zeros(400)
    for seed in range(600):
        reservoir = Reservoir(40, seed)
        for first in range(0, 400, 50):
            ids = np.arange(first, first + 50)
            reservoir.offer(ids[:, None] * 1.0, np.zeros(50, np.int32), np.ones(50), ids)
        assert len(set(reservoir.ids.tolist())) == 40
        counts[reservoir.ids] += 1
    expected, spread = 60.0, np.sqrt(60 * 0.9)
    assert abs(counts - expected).max() < 5 * spread
    for part in np.split(counts, 4):
        assert abs(part.mean() - expected) < 4 * spread / 10


def test_rows_are_learned_again_after_every_64_rows_of_the_stream() -> None:
    """The 64 rows are learned in order, then as many stored rows, here the same ones."""
    model, processed = learner(), []
    for row in range(130):
        model.partial_fit(X[row : row + 1], Y[row : row + 1], classes=[0, 1])
        processed.append(model.stats_["process"])
    again = [row for row in range(1, 130) if processed[row] > processed[row - 1] + 1]
    assert again == [63, 127]


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_what_is_kept_does_not_depend_on_cuts(form: str) -> None:
    rows: Any = sp.csr_array(X) if form == "csr" else X
    whole, cut = Reservoir(50, 7), Reservoir(50, 7)
    labels, ids = Y.astype(np.int32), np.arange(len(Y))
    whole.offer(rows, labels, np.ones(len(Y)), ids)
    for first in range(0, len(Y), 33):
        part = slice(first, first + 33)
        cut.offer(rows[part], labels[part], np.ones(len(Y))[part], ids[part])
    for one, other in zip(whole.rows(), cut.rows(), strict=True):
        one, other = (a.toarray() if sp.issparse(a) else a for a in (one, other))
        assert np.array_equal(one, other)
    kept = whole.rows()
    features = kept[0].toarray() if form == "csr" else kept[0]
    assert np.array_equal(features, X[kept[3]]), "rows belong to their ids"


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_model_does_not_depend_on_cuts_or_threads(form: str) -> None:
    rows: Any = sp.csr_array(X[:700]) if form == "csr" else X[:700]
    whole = learner().partial_fit(rows, Y[:700], classes=[0, 1])
    for cuts, jobs in (([1, 2, 63, 64, 65, 300], 2), ([128, 500], 1)):
        other = learner(n_jobs=jobs)
        ends = [*cuts, 700]
        for first, end in zip([0, *cuts], ends, strict=True):
            other.partial_fit(rows[first:end], Y[first:end], classes=[0, 1])
        assert_same_model(whole, other, f"cut at {cuts}")


def test_a_sorted_stream_is_learned_nearly_as_well_as_a_shuffled_one() -> None:
    """Without replay, 200 rows of a class, then the other, then the rest lose the boundary."""
    one, other = np.flatnonzero(Y == 1), np.flatnonzero(Y == 0)
    order = np.concatenate([one[:200], other, one[200:]])

    def error(replay: int, rows: np.ndarray) -> float:
        model = learner(replay=replay).partial_fit(X[rows], Y[rows], classes=[0, 1])
        return 1 - model.finish().score(X_TEST, Y_TEST)

    assert error(0, order) > 0.15
    assert error(800, order) < error(800, np.arange(len(Y))) + 0.03


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_files_and_pickles_hold_the_reservoir(form: str, tmp_path: Any) -> None:
    rows: Any = sp.csr_array(X) if form == "csr" else X
    half = learner().partial_fit(rows[:900], Y[:900], classes=[0, 1])
    straight = learner().partial_fit(rows[:900], Y[:900], classes=[0, 1])
    straight.partial_fit(rows[900:1300], Y[900:1300]).finish()
    save(half, tmp_path / "half.mwz")
    for again in (load(tmp_path / "half.mwz"), pickle.loads(pickle.dumps(half))):
        again.partial_fit(rows[900:1300], Y[900:1300]).finish()
        assert_same_model(straight, again, "stored half-way")
        assert again._reservoir.seen == 1300
        assert np.array_equal(again._reservoir.ids, straight._reservoir.ids)


def test_fit_and_sources_fill_it() -> None:
    assert learner().fit(X, Y)._reservoir.seen == len(Y)
    assert learner(shuffle=False).learn_from(Rows(X, Y), classes=[0, 1])._reservoir.seen == len(Y)
    refitted = learner().fit(X, Y).fit(X[:100], Y[:100])
    assert refitted._reservoir.seen == 100


def test_a_failed_call_leaves_it_as_it_was() -> None:
    model = learner().partial_fit(X[:500], Y[:500], classes=[0, 1])
    before = pickle.dumps(model.__getstate__())
    bad = X[500:700].copy()
    bad[150, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(bad, Y[500:700])
    assert pickle.dumps(model.__getstate__()) == before


def test_single_rows_take_the_same_way() -> None:
    one = learner().partial_fit(X[:10], Y[:10], classes=[0, 1])
    many = learner().partial_fit(X[:10], Y[:10], classes=[0, 1])
    for row in range(10, 10 + 2 * PIECE):
        one.learn_one(X[row], Y[row])
    many.learn_many(X[10 : 10 + 2 * PIECE], Y[10 : 10 + 2 * PIECE])
    assert_same_model(one, many, "learn_one and learn_many")


def test_bad_values_and_forged_reservoirs() -> None:
    for replay in (-1, 1.5, "all", None):
        with pytest.raises(ValueError, match="replay"):
            learner(replay=replay).fit(X[:50], Y[:50])
    model = learner().fit(X, Y)
    honest = model.__getstate__()
    forged = {
        "ids": np.zeros((200, 2), dtype=np.int64),
        "labels": np.full(200, 2, dtype=np.int32),
        "costs": np.full(200, -1.0),
        "X": np.full((200, 2), np.nan),
        "seen": 3,
        "seed": -1,
        "size": 10,
    }
    for name, value in forged.items():
        state = {**honest, "_reservoir": {**honest["_reservoir"], name: value}}
        with pytest.raises(ValueError, match="_reservoir"):
            OnlineSVC._check_state(state)
    OnlineSVC._check_state(honest)


def test_several_classes_and_weights() -> None:
    """Sorted by class, four classes are told apart nearly as well as in random order."""
    A, b = blobs(1500, 3, 4)
    weights = np.random.default_rng(0).random(1500)
    weights[0] = 0
    scores = []
    for order in (np.argsort(b, kind="stable"), np.arange(1500)):
        model = learner(replay=400).partial_fit(
            A[order], b[order], classes=range(4), sample_weight=weights
        )
        assert model._reservoir.seen == 1499, "rows of weight zero are not kept"
        scores.append(model.finish().score(A, b))
    assert scores[0] > scores[1] - 0.03


def test_the_reservoir_keeps_its_size_when_the_parameter_changes() -> None:
    """A parameter that shapes a model applies from the next `fit`, in copies too."""
    model = learner(replay=50).partial_fit(X[:200], Y[:200], classes=[0, 1])
    model.set_params(replay=5)
    twin = pickle.loads(pickle.dumps(model))
    for each in (model, twin):
        each.partial_fit(X[200:500], Y[200:500]).finish()
        assert len(each._reservoir.ids) == 50
    assert_same_model(model, twin, "copied after set_params")
