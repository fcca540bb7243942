"""ExactSVC as an estimator: the ways to learn and forget, files, classes, active learning."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from marginwise import ExactSVC, LeaveOneOut, load, save
from marginwise.active import ActiveLearner
from tests.active_support import pool
from tests.support import Rows, assert_same_model, blobs, rings, sparse_rows

X, Y = rings(60, 0, noise=0.1)
X.flags.writeable = Y.flags.writeable = False


def fitted(**params: Any) -> ExactSVC:
    return ExactSVC(**{"gamma": 1.0, "C": 3.0, **params}).fit(X, Y)


# -- learning -------------------------------------------------------------------------------------


def test_all_ways_to_learn_lead_to_one_model() -> None:
    whole = fitted()
    by_parts = ExactSVC(gamma=1.0, C=3.0).partial_fit(X[:20], Y[:20], classes=[0, 1])
    by_parts.learn_many(X[20:40], Y[20:40])
    for x, y in zip(X[40:], Y[40:], strict=True):
        by_parts.learn_one(x, y)
    said = whole.decision_function(X)  # measured from another centre, so but for rounding
    np.testing.assert_allclose(by_parts.decision_function(X), said, atol=1e-12)
    read = ExactSVC(gamma=1.0, C=3.0).learn_from(Rows(X, Y))
    assert_same_model(whole, read, "learn_from")
    read.forget(range(30)).learn_from(Rows(X[:30], Y[:30]))
    assert read.ids_.max() == 89
    np.testing.assert_allclose(read.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(60)
    one, other = fitted(), ExactSVC(gamma=1.0, C=3.0).fit(X[order], Y[order])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-9)
    assert sorted(one.support_.tolist()) == sorted(order[other.support_].tolist())


def test_rows_of_weight_zero_are_left_out() -> None:
    weights = np.ones(60)
    weights[::7] = 0.0
    model = ExactSVC(gamma=1.0).fit(X, Y, sample_weight=weights)
    assert model.ids_.tolist() == np.flatnonzero(weights).tolist()
    kept = np.flatnonzero(weights)
    other = ExactSVC(gamma=1.0).partial_fit(X[kept], Y[kept], classes=[0, 1], ids=kept)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-12)
    with pytest.raises(KeyError, match=r"\b0\b"):
        model.forget([0])


@pytest.mark.parametrize("classes", [3, 10])
def test_several_classes(classes: int) -> None:
    A, y = blobs(150, 0, classes)
    names = np.array([f"class {k}" for k in range(classes)])
    model = ExactSVC(gamma=0.5).fit(A, names[y])
    assert model.classes_.tolist() == names.tolist()
    assert model.decision_function(A).shape == (150, classes)
    assert model.dual_coef_.shape == (classes, len(model.support_))
    assert np.shape(model.intercept_) == np.shape(model.dual_objective()) == (classes,)
    assert model.n_support_.sum() == len(model.support_)
    said = model.leave_one_out()
    assert said.decision.shape == (150, classes)
    assert model.score(A, names[y]) > 1.5 / classes
    model.forget(np.flatnonzero(y == 1))
    assert (model.decision_function(A)[:, 1] < 0).all(), "nothing is left of the class"
    model._engine.native.check(1e-9)


def test_a_class_that_is_never_seen() -> None:
    A, y = blobs(60, 0, 3)
    model = ExactSVC(gamma=0.5).partial_fit(A[y < 2], y[y < 2], classes=[0, 1, 2])
    np.testing.assert_allclose(model.decision_function(A)[:, 2], -1.0)
    assert set(model.predict(A)) <= {0, 1}
    model.partial_fit(A[y == 2], y[y == 2])
    assert (model.predict(A[y == 2]) == 2).mean() > 0.5


def test_one_class_so_far_is_predicted() -> None:
    model = ExactSVC(gamma=1.0).partial_fit(X[:5], np.ones(5, dtype=int), classes=[0, 1])
    assert model.predict(X).tolist() == [1] * 60
    assert model.support_.size == 0
    assert model.support_vectors_.shape == (0, 2)
    assert model.dual_coef_.shape == (1, 0)


def test_feature_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["height", "width"])
    model = ExactSVC(gamma=1.0).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["height", "width"]
    again = pickle.loads(pickle.dumps(model)).forget([3])
    assert again.feature_names_in_.tolist() == ["height", "width"]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["width", "height"]], Y)


def test_sparse_rows() -> None:
    A = sparse_rows(80, 200, 0.05, np.random.default_rng(0))
    y = np.arange(80) % 2
    model = ExactSVC(kernel="linear", C=10.0).fit(A, y)
    dense = ExactSVC(kernel="linear", C=10.0).fit(A.toarray(), y)
    assert sp.issparse(model.support_vectors_)
    np.testing.assert_array_equal(model.decision_function(A), dense.decision_function(A))
    np.testing.assert_array_equal(model.decision_function(A.toarray()), dense.decision_function(A))
    model.forget(range(40))
    dense.forget(range(40))
    np.testing.assert_array_equal(model.decision_function(A), dense.decision_function(A))


def test_searching_parameters() -> None:
    search = GridSearchCV(ExactSVC(), {"C": [0.1, 10.0], "gamma": ["scale", 1.0]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.5
    assert cross_val_score(ExactSVC(window=30), X, Y, cv=3).mean() > 0.4


# -- forgetting -----------------------------------------------------------------------------------


def test_forgetting_returns_the_model_and_keeps_the_others() -> None:
    model = fitted()
    assert model.forget([4, 9, 9]) is model
    assert model.ids_.tolist() == [k for k in range(60) if k not in (4, 9)]
    assert model.forget(np.uint8(7)) is model
    assert 7 not in model.ids_
    assert len(model.forget(range(10, 20)).ids_) == 47


def test_forgetting_nothing_changes_nothing() -> None:
    model, other = fitted(), fitted()
    nothing: list[Any] = [[], (), range(0), np.empty(0, dtype=np.int64)]
    for none in nothing:
        assert_same_model(model.forget(none), other, "forget nothing")


def test_what_was_forgotten_may_be_learned_again() -> None:
    model = fitted()
    said = model.decision_function(X)
    rows = [3, 4, 50]
    for _ in range(3):
        model.forget(rows)
        model.partial_fit(X[rows], Y[rows], ids=rows)
        np.testing.assert_allclose(model.decision_function(X), said, atol=1e-9)
        model._engine.native.check(1e-10)
    assert sorted(model.ids_.tolist()) == list(range(60))


def test_evicted_rows_may_be_learned_again() -> None:
    model = ExactSVC(gamma=1.0, window=20, evict="oldest").fit(X, Y)
    for _ in range(4):
        for row in range(60):
            if row not in model.ids_:
                model.partial_fit(X[[row]], Y[[row]], ids=[row])
    assert len(model.ids_) == 20
    model._engine.native.check(1e-10)


@pytest.mark.parametrize("C", [1e-3, 0.3, 10.0, 1e4])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_forgetting_a_class_and_then_all(C: float, one_by_one: bool) -> None:
    """The path to a single class is a path like others: nothing is warned of."""
    model = fitted(C=C)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for label, left in ((0, 1.0), (1, 0.0)):
            rows = np.flatnonzero(label == Y)
            for part in rows[:, None] if one_by_one else [rows]:
                model.forget(part)
            assert model._engine.decision(X) == pytest.approx(np.full((60, 1), left), abs=1e-9)
            model._engine.native.check(1e-9)
    assert model.ids_.size == model.support_.size == 0
    assert model.dual_objective() == 0
    for ask in (model.predict, model.decision_function, lambda _: model.leave_one_out()):
        with pytest.raises(NotFittedError, match=r"all rows were forgotten\. Call fit or"):
            ask(X)
    model.partial_fit(X, Y, ids=np.arange(60))
    np.testing.assert_allclose(
        model.decision_function(X), fitted(C=C).decision_function(X), atol=1e-8
    )
    assert not caught, [str(one.message) for one in caught]


@pytest.mark.parametrize("points", [(0.0, 1.0), (0.0, 1.0, 2.0), (0.0, 0.3), (0.0, 0.3, 0.7)])
def test_forgetting_the_only_one_of_its_class(points: tuple[float, ...]) -> None:
    model = ExactSVC(C=10.0, kernel="linear")
    A = np.array(points)[:, None]
    model.partial_fit(A, [0] + [1] * (len(points) - 1), classes=[0, 1])
    model.forget([0])
    assert model.decision_function(A).tolist() == [1.0] * len(points)
    assert model._engine.resolved == 0


def test_a_window_may_lose_a_class() -> None:
    model = ExactSVC(C=10.0, kernel="linear", window=2, evict="oldest")
    for k, label in enumerate([0, 1, 1, 0, 0, 1]):
        model.partial_fit([[float(k)]], [label], classes=[0, 1])
    assert model.ids_.tolist() == [4, 5]
    np.testing.assert_allclose(model.decision_function([[4.0], [5.0]]), [-1.0, 1.0])


# -- C, and leaving one out -----------------------------------------------------------------------


def test_changing_c_changes_the_parameter() -> None:
    model = fitted().set_C(7.0)
    assert model.C == 7.0
    assert clone(model).C == 7.0
    np.testing.assert_allclose(
        model.decision_function(X), fitted(C=7.0).decision_function(X), atol=1e-9
    )
    model.partial_fit(X[:3], Y[:3])
    bounds = model._engine.state()["costs"]
    np.testing.assert_allclose(bounds, 7.0)


def test_leave_one_out_tells_ids_and_error() -> None:
    model = ExactSVC(gamma=1.0).partial_fit(X, Y, classes=[0, 1], ids=np.arange(60) * 3 - 30)
    said = model.leave_one_out()
    assert isinstance(said, LeaveOneOut)
    rows = (said.ids + 30) // 3
    assert sorted(rows.tolist()) == list(range(60))
    wrong = np.mean((said.decision > 0).astype(int) != Y[rows])
    assert said.error == wrong
    with pytest.raises(AttributeError):
        said.error = 0.0  # type: ignore[misc]


def test_leave_one_out_of_windows() -> None:
    """A problem says of rows that it does not hold what it says anyhow."""
    A, y = blobs(90, 0, 3)
    model = ExactSVC(gamma=0.5, window=30).fit(A, y)
    said = model.leave_one_out()
    assert set(said.ids.tolist()) == set(model.ids_.tolist())
    held = model._engine.state()["rank"] >= 0
    held = held[:, held.any(axis=0)].T
    f = model.decision_function(A[said.ids])
    np.testing.assert_allclose(said.decision[~held], f[~held], atol=1e-9)


def test_leave_one_out_of_a_precomputed_kernel() -> None:
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    by_values = ExactSVC(kernel="precomputed", C=3.0).fit(K, Y).leave_one_out()
    by_name = fitted().leave_one_out()
    np.testing.assert_allclose(by_values.decision, by_name.decision, atol=1e-9)


# -- kernels that are not positive semi-definite --------------------------------------------------

INDEFINITE: dict[str, dict[str, Any]] = {
    "sigmoid": {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": lambda A, B: A @ np.diag([1.0, -1.0]) @ B.T},
}


@pytest.mark.parametrize(
    ("name", "C"),
    [
        ("sigmoid", 10.0),
        ("sigmoid", 1e3),
        ("precomputed", 0.1),
        ("precomputed", 1e3),
        ("callable", 0.1),
    ],
)
def test_an_indefinite_kernel_is_warned_of_and_ends(name: str, C: float) -> None:
    rows = X
    if name == "precomputed":
        A = np.random.default_rng(0).normal(size=(60, 60))
        rows = A + A.T
    model = ExactSVC(C=C, **INDEFINITE[name])
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model.fit(rows, Y)
    assert np.isfinite(model.decision_function(rows)).all()
    assert set(model.predict(rows)) <= {0, 1}
    alpha = np.abs(model.dual_coef_)
    assert (alpha <= C).all()
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9 * C * 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.forget(range(20)).set_C(C * 2)
        model.leave_one_out()
        model.forget(model.ids_[:-5])
    assert len(model.ids_) == 5
    assert np.isfinite(model.decision_function(rows)).all()


def test_every_fit_warns() -> None:
    model = ExactSVC(C=10.0, **INDEFINITE["sigmoid"])
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
            model.fit(X, Y)


def test_a_warning_that_is_an_error_leaves_the_model_as_it_was() -> None:
    model = ExactSVC(C=10.0, **INDEFINITE["sigmoid"]).partial_fit(X[:2], Y[:2], classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.partial_fit(X[2:], Y[2:])
    assert model._engine.native.next_id == len(model.ids_), "rows were learned that do not count"


# -- the path -------------------------------------------------------------------------------------


def test_the_path_is_kept_where_asked_for_only() -> None:
    with pytest.raises(AttributeError, match="record=True"):
        _ = fitted().path_
    assert not hasattr(fitted(), "path_")
    model = fitted(record=True)
    path = model.path_
    assert path.dtype.names == ("cause", "id", "problem", "source", "target")
    assert set(path["problem"]) == {0}
    assert set(path["source"]) | set(path["target"]) <= {"idle", "free", "bounded", "gone"}
    assert set(path["cause"]) <= set(range(60))
    path["id"] = -7
    assert (model.path_["id"] >= 0).all(), "what is given out is a copy"


def test_recording_changes_nothing_else() -> None:
    assert_same_model(fitted(record=True), fitted(), "record=True")


def test_leaving_one_out_leaves_no_trace_on_the_path() -> None:
    model = fitted(record=True)
    before = model.path_
    model.leave_one_out()
    model.partial_fit(X[:1], Y[:1])
    other = fitted(record=True).partial_fit(X[:1], Y[:1])
    assert np.array_equal(model.path_[: len(before)], before)
    assert np.array_equal(model.path_, other.path_)


# -- copies and files -----------------------------------------------------------------------------


def by_file(model: Any, folder: Path) -> Any:
    save(model, folder / "m.mwz")
    return load(folder / "m.mwz")


@pytest.mark.parametrize("params", [{}, {"window": 25, "record": True}, {"C": 1e3}], ids=str)
@pytest.mark.parametrize("way", ["pickle", "file", "deepcopy"])
def test_copies_go_on_alike(params: dict[str, Any], way: str, tmp_path: Path) -> None:
    model = fitted(**params)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        again = by_file(model, tmp_path) if way == "file" else copy.deepcopy(model)
    assert again.get_params() == model.get_params()
    for one in (model, again):
        one.forget(np.sort(one.ids_)[:10]).partial_fit(X[:10], Y[:10]).set_C(5.0)
    assert_same_model(model, again, way)
    assert np.array_equal(model.leave_one_out().decision, again.leave_one_out().decision)
    assert again._engine.resolved == model._engine.resolved


def test_models_of_all_shapes_have_files(tmp_path: Path) -> None:
    A, y = blobs(60, 0, 3)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    lists = sparse_rows(60, 300, 0.02, np.random.default_rng(0))
    emptied = fitted().forget(range(60))
    cases = [
        (ExactSVC(gamma=0.5).fit(A, y), A),
        (ExactSVC(kernel="precomputed").fit(K, Y), K),
        (ExactSVC(kernel="linear").fit(lists, Y), lists),
        (emptied, X),
    ]
    for model, rows in cases:
        again = by_file(model, tmp_path)
        assert again.is_empty_ == model.is_empty_ == (model is emptied)
        if model is not emptied:
            assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
        again._engine.native.check(1e-9)
    assert by_file(ExactSVC(C=2.0), tmp_path).C == 2.0


def test_clones_know_nothing() -> None:
    copied = clone(fitted(window=9, evict="oldest"))
    assert copied.get_params() == ExactSVC(gamma=1.0, C=3.0, window=9, evict="oldest").get_params()
    assert not hasattr(copied, "classes_")


# -- active learning ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["active", "largest_positive"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_an_active_learner_asks_and_takes_back(strategy: Any, kernel: str) -> None:
    A, y = pool()
    estimator = ExactSVC(C=10.0, kernel=kernel, gamma=1.0)
    learner = ActiveLearner(estimator, A, strategy=strategy, random_state=0)
    other = ActiveLearner(estimator, A, strategy=strategy, random_state=0)
    for row in range(2):
        learner.teach(row, y[row])
        other.teach(row, y[row])
    for step in range(12):
        row = int(learner.ask())
        assert other.ask() == row
        learner.teach(row, y[row])
        if step % 3 == 0:
            learner.undo()
            assert row not in learner.estimator_.ids_
            learner.teach(row, y[row])
        other.teach(row, y[row])
    assert_same_model(learner.estimator_, other.estimator_, "undo")
    taught = np.sort(learner.estimator_.ids_)
    fresh = ExactSVC(C=10.0, kernel=kernel, gamma=1.0).partial_fit(
        A[taught], y[taught], classes=[0, 1]
    )
    np.testing.assert_allclose(
        learner.estimator_.decision_function(A), fresh.decision_function(A), atol=1e-8
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("together", [False, True])
def test_nothing_of_a_forgotten_row_is_left(form: Any, together: bool) -> None:
    rows = np.zeros((60, 200))
    rows[np.arange(60), 3 * np.arange(60)] = np.arange(1, 61)  # each has a number of its own
    model = ExactSVC(kernel="linear", C=1e-3).fit(form(rows), np.arange(60) % 2)
    gone = [0, 1, 2, 3, 30, 4]
    for ids in [gone] if together else [[row] for row in gone]:
        model.forget(ids)
    state = model._engine.state()
    left = set(np.unique(state["data"] if "data" in state else state["X"]).tolist())
    assert not left & {row + 1.0 for row in gone}
    assert not set(state["ids"].tolist()) & set(gone)
    assert left - {0.0} == {row + 1.0 for row in range(60) if row not in gone}
