"""Pools of every kind give the same questions; what is wrong with a row is said of that row.

A failure means that the form in which rows come matters, or that a bad row is found too late.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import marginwise.active.pool
from marginwise import OnlineSVC
from marginwise.active import STRATEGIES, ActiveLearner, MarginExhausted
from tests.active_support import Source, begun, pool

X, Y = pool()


def mapped(path: Path, rows: Any = X) -> np.ndarray:
    np.save(path / "rows.npy", rows)
    return np.load(path / "rows.npy", mmap_mode="r")


FORMS: dict[str, Any] = {
    "array": lambda path: X,
    "list": lambda path: X.tolist(),
    "fortran": lambda path: np.asfortranarray(X),
    "strided": lambda path: np.repeat(X, 2, axis=0)[::2],
    "big endian": lambda path: X.astype(">f8"),
    "frame": lambda path: pd.DataFrame(X, columns=["width", "height"]),
    "csr array": lambda path: sp.csr_array(X),
    "csr matrix": lambda path: sp.csr_matrix(X),
    "csc": lambda path: sp.csc_array(X),
    "memory map": mapped,
    "source": lambda path: Source(X),
    "source with labels": lambda path: Source(X, Y),
    "source of lists": lambda path: Source(sp.csr_array(X)),
}


def questions(rows: Any, **options: Any) -> list[int]:
    learner = begun(rows, Y, 25, **{"estimator": OnlineSVC(kernel="linear", C=10), **options})
    return [step["row"] for step in learner.history_] + learner.ask(3).tolist()


@functools.cache
def expected(strategy: str) -> list[int]:
    return questions(X, strategy=strategy)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_pool_does_not_matter(
    form: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it whether the rows are checked at once or, in a large array, when they are read."""
    if large:
        monkeypatch.setattr(marginwise.active.pool, "LARGE", 0)
    for strategy in STRATEGIES:
        rows = FORMS[form](tmp_path)
        assert questions(rows, strategy=strategy) == expected(strategy), strategy


@pytest.mark.parametrize("form", ["frame", "memory map", "source", "list"])
def test_forms_for_estimators_of_others(form: str, tmp_path: Path) -> None:
    estimator = SGDClassifier(random_state=0)
    asked = questions(X, estimator=estimator, strategy="near_boundary")
    rows = FORMS[form](tmp_path)
    assert questions(rows, estimator=estimator, strategy="near_boundary") == asked


@pytest.mark.parametrize("kind", ["new", "fitted", "fitted, of others"])
def test_names_of_columns_go_along(kind: str) -> None:
    """A warning is an error here: that names are missing, or are there for the first time."""
    frame = pd.DataFrame(X, columns=["width", "height"])
    estimator = SGDClassifier(random_state=0) if "others" in kind else OnlineSVC()
    learner = begun(frame, Y, 12, estimator=estimator if kind == "new" else estimator.fit(frame, Y))
    assert learner.estimator_.feature_names_in_.tolist() == ["width", "height"]
    assert len(learner.estimator_.predict(frame)) == 60


def test_single_precision_is_kept() -> None:
    rows = X.astype(np.float32)
    learner = begun(rows, Y)
    assert learner._pool.take(np.array([3])).dtype == np.float32
    assert np.array_equal(learner._pool.take(np.array([3])), rows[[3]])


@pytest.mark.parametrize("form", ["array", "csr array", "frame", "fortran"])
def test_the_pool_is_not_modified(form: str, tmp_path: Path) -> None:
    rows = FORMS[form](tmp_path)
    before = rows.copy()
    learner = begun(rows, Y, 20, strategy="near_boundary", stop=MarginExhausted())
    learner.should_stop()
    learner.undo()
    if form == "csr array":
        for name in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(before, name), getattr(rows, name)), name
    else:
        assert np.array_equal(np.asarray(before), np.asarray(rows))


def test_lists_out_of_order_are_put_in_order_in_a_copy() -> None:
    data, indices = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 1, 1])
    rows = sp.csr_array((data, indices, np.array([0, 2, 4])), shape=(2, 3))
    learner = ActiveLearner(OnlineSVC(kernel="linear"), rows).teach([0, 1], ["a", "b"])
    assert learner._pool.take(np.arange(2)).toarray().tolist() == [[2, 1, 0], [0, 7, 0]]
    assert rows.indices.tolist() == [1, 0, 1, 1], "the matrix given was changed"


# -- what is no pool ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (X[:0], "0 sample|empty"),
        (X[:, :0], "0 feature"),
        (X[0], "2D array"),
        (None, "2D array"),
        ([["a", "b"]], "convert"),
        (Source(X[:0]), "X_pool is empty"),
        (sp.csr_array((0, 3)), "0 sample|empty"),
    ],
)
def test_what_is_no_pool(rows: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ActiveLearner(OnlineSVC(), rows)


def with_hole(row: int, value: float = np.nan) -> np.ndarray:
    rows = X.copy()
    rows[row, 1] = value
    return rows


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.tolist])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_holes_in_a_pool_at_hand(form: Any, value: float, kind: str) -> None:
    with pytest.raises(ValueError, match=f"contains {kind} at row 33, column 1"):
        ActiveLearner(OnlineSVC(), form(with_hole(33, value)))


@pytest.fixture(params=["large", "source"])
def unread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pools whose rows are not read before they are needed."""
    monkeypatch.setattr(marginwise.active.pool, "LARGE", 0)
    return np.asarray if request.param == "large" else Source


@pytest.mark.parametrize("estimator", [OnlineSVC(gamma=1.0), SGDClassifier(random_state=0)])
def test_a_hole_is_found_when_its_row_is_taught(unread: Any, estimator: Any) -> None:
    """Not when the next row is: the first label of all, too, must not be taken for such a row."""
    learner = ActiveLearner(estimator, unread(with_hole(33)), random_state=0)
    with pytest.raises(ValueError, match="NaN at row 33"):
        learner.teach(33, "a")
    assert learner.counts_["taught"] == len(learner._log) == 0
    assert learner.n_unseen_ == 60


@pytest.mark.parametrize("label", ["a", "c"])
def test_a_hole_in_a_taught_row_leaves_the_model(unread: Any, label: str) -> None:
    words = np.array(["a", "b"])[Y]
    learner = ActiveLearner(
        SGDClassifier(random_state=0), unread(with_hole(33)), strategy="random", random_state=0
    ).teach([0, 1, 2], words[:3])
    values = learner.estimator_.decision_function(X)
    with pytest.raises(ValueError, match="NaN at row 33"):
        learner.teach(33, label)
    assert learner.classes_.tolist() == ["a", "b"]
    assert np.array_equal(learner.estimator_.decision_function(X), values)
    assert learner.counts_["taught"] == 3


def test_a_hole_in_a_row_that_is_looked_at_is_named(unread: Any) -> None:
    """By its number in the pool, so that it can be skipped; then the learner goes on."""
    learner = ActiveLearner(
        SGDClassifier(random_state=0), unread(with_hole(33)), pool_size=9, random_state=0
    ).teach([0, 1], Y[:2])
    asked, found = [], 0
    while learner.n_unseen_ > 30:
        try:
            asked.append(learner.ask())
        except ValueError as error:
            found += 1
            asked.append(int(re.search(r"NaN at row (\d+), column 1", str(error))[1]))
        learner.skip(asked[-1])
    assert found == 1
    assert 33 in asked


def test_a_hole_is_named_when_the_whole_pool_is_searched(unread: Any) -> None:
    learner = ActiveLearner(
        SGDClassifier(random_state=0), unread(with_hole(33)), strategy="near_boundary"
    ).teach([0, 1], Y[:2])
    with pytest.raises(ValueError, match="NaN at row 33, column 1"):
        learner.ask()


# -- sources --------------------------------------------------------------------------------------


class Short(Source):
    def read(self, rows: np.ndarray) -> Any:
        return super().read(rows)[:-1] if len(rows) > 1 else super().read(rows)


def test_a_source_that_returns_too_few_rows() -> None:
    learner = ActiveLearner(SGDClassifier(random_state=0), Short(X), random_state=0)
    with pytest.raises(ValueError, match="read returned 2 rows for 3 row numbers"):
        learner.teach([0, 1, 2], Y[:3])
    assert learner.counts_["taught"] == 0


def test_a_source_is_never_read_as_a_whole() -> None:
    """It may be larger than memory: searching it goes part by part."""
    rows = np.random.default_rng(0).normal(size=(30_000, 2))
    source = Source(rows)
    learner = ActiveLearner(OnlineSVC(gamma=1.0), source, strategy="near_boundary", random_state=0)
    learner.teach([0, 1], [0, 1])
    nearest = learner.ask()
    assert len(learner.decision_values()) == 30_000
    assert source.most <= 10_000, f"{source.most} rows were read at once"
    values = np.abs(learner.estimator_.decision_function(rows))
    assert values[nearest] == values[2:].min()


# -- labels that are noted already ----------------------------------------------------------------


@pytest.mark.parametrize(
    "noted",
    [
        Y,
        Y.tolist(),
        pd.Series(Y),
        np.where(np.arange(60) % 2, Y, np.nan),
        [int(label) if k % 2 else None for k, label in enumerate(Y)],
    ],
    ids=["array", "list", "series", "NaN", "None"],
)
def test_gradient_asks_for_the_most_contradicted_label(noted: Any, tmp_path: Path) -> None:
    learner = begun(X, Y, 15, strategy="gradient", y_pool=noted, pool_size=None)
    f = learner.estimator_.decision_function(X)
    known = np.array([label is not None and label == label for label in noted])
    value = np.where(known, np.where(Y == 1, f, -f), np.abs(f))
    value[learner._pool.status != 0] = np.inf
    assert learner.ask() == value.argmin()
    learner.save(tmp_path / "learner.mwz")
    assert ActiveLearner.load(tmp_path / "learner.mwz", X).ask() == value.argmin()


def test_gradient_without_notes_is_active() -> None:
    active = questions(X, strategy="active", pool_size=None)
    assert questions(X, strategy="gradient", pool_size=None) == active
    unknown = ["new"] * 60
    assert questions(X, strategy="gradient", pool_size=None, y_pool=unknown) == active


def test_a_learner_with_many_noted_labels_can_be_saved(tmp_path: Path) -> None:
    rows = np.linspace(0, 1, 200_000, dtype=np.float32)[:, None]
    noted = np.where(rows[:, 0] > 0.5, "positive", "negative")
    learner = ActiveLearner(OnlineSVC(gamma=1.0), rows, strategy="gradient", y_pool=noted)
    learner.teach([0, 199_999], ["negative", "positive"]).save(tmp_path / "learner.mwz")
    assert ActiveLearner.load(tmp_path / "learner.mwz", rows).ask() == learner.ask()


def test_gradient_of_a_fitted_estimator_with_some_of_its_classes() -> None:
    """The place of a label is that among the estimator's classes, which has the columns."""
    three = pool(classes=3)[1]
    fitted = OnlineSVC(random_state=0).fit(X, three)
    options: dict[str, Any] = {"strategy": "gradient", "pool_size": None, "random_state": 0}
    wrong = np.full(60, 2)
    asked = ActiveLearner(fitted, X, classes=[1, 2], y_pool=wrong, **options).ask()
    assert asked == ActiveLearner(fitted, X, y_pool=wrong, **options).ask()


# -- rows of a kernel matrix ----------------------------------------------------------------------


def test_a_pool_of_kernel_values() -> None:
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    matrix = begun(K, Y, 25, estimator=OnlineSVC(kernel="precomputed", C=10))
    rows = begun(X, Y, 25, estimator=OnlineSVC(kernel=lambda A, B: matrix_of(A, B), C=10))
    assert [s["row"] for s in matrix.history_] == [s["row"] for s in rows.history_]
    np.testing.assert_allclose(matrix.decision_values(), rows.decision_values(), atol=1e-9)


def matrix_of(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def test_a_matrix_that_is_not_square_is_refused() -> None:
    K = matrix_of(X, X)
    with pytest.raises(ValueError, match=r"square|columns"):
        ActiveLearner(OnlineSVC(kernel="precomputed"), K[:, :40]).teach([50, 51], [0, 1])
    fitted = OnlineSVC(kernel="precomputed").fit(K[:40, :40], Y[:40])
    with pytest.raises(ValueError, match=r"square|columns"):
        ActiveLearner(fitted, K[:, :40]).teach(50, 1)


# -- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 5, 30, 1000, -100])
def test_ids_of_a_fitted_estimator_are_no_rows_of_the_pool(first: int) -> None:
    """Whatever its examples were called: the pool's rows are new examples, and scored rightly."""
    rows, labels = pool(90)
    fitted, plain = (OnlineSVC(C=10, gamma=1.0) for _ in range(2))
    ids = np.arange(first, first + 30)
    fitted.partial_fit(rows[:30], labels[:30], classes=[0, 1], ids=ids)
    plain.partial_fit(rows[:30], labels[:30], classes=[0, 1], ids=np.arange(30) + 10**6)
    learner = ActiveLearner(fitted, rows[30:], strategy="near_boundary", random_state=0)
    for k in range(15):
        row = learner.ask()
        learner.teach(row, labels[30 + row])
        plain.partial_fit(rows[[30 + row]], labels[[30 + row]], ids=[2 * 10**6 + k])
        values = plain.decision_function(rows[30:])
        assert np.array_equal(learner.estimator_.decision_function(rows[30:]), values)
        np.testing.assert_allclose(learner.decision_values(), values, atol=1e-9)


def test_a_pipeline_keeps_to_the_first_rows_of_a_source_that_is_extended() -> None:
    def taught(early: bool) -> ActiveLearner:
        pipeline = make_pipeline(StandardScaler(), OnlineSVC(C=10))
        learner = ActiveLearner(pipeline, Source(X[:40]), random_state=0)
        if early:
            learner.extend(Source(100 * X[40:]))
        learner.teach([0, 1, 2, 3], Y[:4])
        if not early:
            learner.extend(Source(100 * X[40:]))
        return learner

    one, other = (taught(early).decision_values() for early in (True, False))
    assert np.array_equal(one, other)


def test_a_pipeline_without_transformers_reads_a_source() -> None:
    bare = ActiveLearner(OnlineSVC(C=10), Source(X), random_state=0).teach([0, 1], Y[:2])
    piped = ActiveLearner(make_pipeline(OnlineSVC(C=10)), Source(X), random_state=0)
    piped.teach([0, 1], Y[:2])
    assert np.array_equal(piped.decision_values(), bare.decision_values())


TEXTS = ["win cash", "dinner tonight", "cash prize", "see you tonight"]


@pytest.mark.parametrize(
    ("estimator", "rows", "bad"),
    [
        (make_pipeline(TfidfVectorizer(), OnlineSVC(kernel="linear")), TEXTS, ["a prize", None]),
        (make_pipeline(StandardScaler(), OnlineSVC()), X, [[0.0, 1.0], [np.nan, 0.0]]),
        (OnlineSVC(), X, [[0.0, 1e300]]),
    ],
    ids=["missing text", "missing value", "too large"],
)
def test_rows_that_cannot_be_read_are_not_added(estimator: Any, rows: Any, bad: Any) -> None:
    learner = ActiveLearner(estimator, rows, random_state=0).teach([0, 1], [0, 1])
    values, row, n = learner.decision_values(), learner.ask(), learner.n_pool_
    with pytest.raises((AttributeError, ValueError)):
        learner.extend(bad)
    assert learner.n_pool_ == n
    assert learner.ask() == row
    assert np.array_equal(learner.decision_values(), values)
    learner.extend(rows[:2])
    assert learner.teach(n, 0).n_pool_ == n + 2


@pytest.mark.parametrize("rows", [np.ones(len(X), dtype=bool), [0.7], "first", [[0, 1]]])
def test_only_row_numbers_name_rows(rows: Any) -> None:
    learner = begun(X, Y)
    for method in (learner.decision_values, learner.pool_rows):
        with pytest.raises(TypeError, match="rows must be an integer or a sequence of integers"):
            method(rows)
