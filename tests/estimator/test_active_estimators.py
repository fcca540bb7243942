"""Any classifier can be taught: those without partial_fit, pipelines, and frames of any columns.

A failure means that an estimator of a user is refused, or not what its answers make it.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from marginwise import ActiveLearner, OnlineSVC
from marginwise.active import ErrorAudit, SupportVectorPlateau
from tests.active_support import Source, assert_same_learner, pool

X, Y = pool(80)
FIRST = 60
WORDS = {0: "see you at dinner tonight", 1: "win a cash prize now"}
TEXTS = [f"{WORDS[int(label)]} {k % 7}" for k, label in enumerate(Y)]
FRAME = pd.DataFrame(
    {"width": X[:, 0], "height": X[:, 1], "colour": np.array(["red", "blue"])[Y]},
    index=[f"item {k}" for k in range(len(Y))],
)
COLUMNS = ColumnTransformer(
    [("size", StandardScaler(), ["width", "height"]), ("kind", OneHotEncoder(), ["colour"])]
)
FORESTS = {"n_estimators": 5, "random_state": None}

CLASSIFIERS: dict[str, tuple[Any, Any]] = {
    "forest": (RandomForestClassifier(**FORESTS), X),
    "logistic": (LogisticRegression(), sp.csr_array(X)),
    "SVC": (SVC(), X),
    "bayes": (GaussianNB(), X),
    "gaps": (HistGradientBoostingClassifier(min_samples_leaf=2, max_iter=5), X),
    "own, piped": (make_pipeline(StandardScaler(), OnlineSVC(C=10)), X),
    "SGD, piped": (make_pipeline(StandardScaler(), SGDClassifier()), X),
    "forest, piped": (make_pipeline(StandardScaler(), RandomForestClassifier(**FORESTS)), X),
    "selected": (make_pipeline(SelectKBest(lambda X, y: np.arange(2), k=1), SVC()), X),
    "texts": (make_pipeline(TfidfVectorizer(), OnlineSVC(kernel="linear")), TEXTS),
    "columns": (make_pipeline(COLUMNS, OnlineSVC(C=10)), FRAME),
    "columns, refitted": (make_pipeline(COLUMNS, LogisticRegression()), FRAME),
    "finishing": (OnlineSVC(C=10, finish_every=3), X),
    "last step alone": (Pipeline([("svc", OnlineSVC(C=10))]), X),
}


LINEAR = ("logistic", "SGD, piped", "selected")


def first(rows: Any, n: int) -> Any:
    return rows.iloc[:n] if hasattr(rows, "iloc") else rows[:n]


def rest(rows: Any, n: int) -> Any:
    return rows.iloc[n:] if hasattr(rows, "iloc") else rows[n:]


def taught(name: str, labels: int = 14) -> ActiveLearner:
    estimator, rows = CLASSIFIERS[name]
    learner = ActiveLearner(estimator, first(rows, FIRST), random_state=0)
    learner.teach([0, 1, 2, 3], Y[:4])
    for _ in range(labels - 4):
        row = learner.ask()
        learner.teach(row, Y[row])
    return learner


def values(learner: ActiveLearner) -> list[Any]:
    scores = learner._model.scores(np.arange(learner.n_pool_))  # computed, not corrected
    return [scores.tolist(), learner.ask(), learner.ask(3).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_any_classifier_learns_its_answers(name: str) -> None:
    estimator, rows = CLASSIFIERS[name]
    before = repr(estimator)
    learner = taught(name, 30)
    least = 0.4 if name in LINEAR else 0.75  # the classes are rings
    assert learner.estimator_.score(first(rows, FIRST), Y[:FIRST]) > least
    assert repr(estimator) == before
    assert all(step["score"] is not None for step in learner.history_ if step["asked"])


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_undo_and_correct_are_as_if_it_had_been_so(name: str) -> None:
    learner = taught(name)
    before = values(learner)
    row = learner.history_[5]["row"]
    learner.correct(row, 1 - Y[row])
    rows, labels = zip(*[(s["row"], s["label"]) for s in learner.history_], strict=True)
    plain = taught(name, 4)
    plain.undo()
    plain.teach(list(rows[:4]), list(labels[:4]))
    for k in range(4, len(rows)):
        plain.teach(rows[k], labels[k])
    assert values(plain) == values(learner), "a correction is not as if it had been so"
    assert learner.undo() == [row]
    assert values(learner) == before, "undo does not restore the former answer"


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_added_later(name: str, tmp_path: Path) -> None:
    estimator, rows = CLASSIFIERS[name]
    learner = taught(name).extend(rest(rows, FIRST))
    assert learner.n_pool_ == len(Y)
    assert len(learner.decision_values()) == len(Y)
    learner.teach(70, int(Y[70]))
    path = tmp_path / "learner.mwz"
    learner.save(path)
    for other in (
        ActiveLearner.load(path, rows, estimator=estimator),
        pickle.loads(pickle.dumps(learner)) if name != "selected" else learner,
    ):
        assert values(other) == values(learner)
        assert other.undo() == [70]
        other.teach(70, int(Y[70]))
    plain = taught(name).extend(rest(rows, FIRST)).teach(70, int(Y[70]))
    assert values(plain) == values(learner)


def test_transformers_are_fitted_to_the_first_rows_of_the_pool() -> None:
    learner = taught("own, piped").extend(X[FIRST:] + 100)
    scaler = learner.estimator_.steps[0][1]
    np.testing.assert_allclose(scaler.mean_, X[:FIRST].mean(axis=0))
    learner.undo()
    np.testing.assert_allclose(learner.estimator_.steps[0][1].mean_, X[:FIRST].mean(axis=0))


def test_steps_that_need_labels_are_fitted_to_the_answers() -> None:
    learner = taught("selected")
    rows = [step["row"] for step in learner.history_]
    y = [step["label"] for step in learner.history_]
    plain = clone(CLASSIFIERS["selected"][0]).fit(X[rows], y)
    assert np.array_equal(learner.estimator_.decision_function(X), plain.decision_function(X))


def test_a_fitted_pipeline_continues_to_learn() -> None:
    pipe = make_pipeline(StandardScaler(), OnlineSVC(C=10, random_state=0)).fit(X[:40] + 5, Y[:40])
    learner = ActiveLearner(pipe, X, random_state=0)
    assert learner.has_model_
    np.testing.assert_allclose(learner.decision_values(), pipe.decision_function(X), atol=1e-9)
    learner.teach(50, Y[50])
    np.testing.assert_allclose(learner.estimator_.steps[0][1].mean_, (X[:40] + 5).mean(axis=0))


def test_a_fitted_classifier_that_cannot_continue_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fitted and has no partial_fit.*clone"):
        ActiveLearner(RandomForestClassifier(**FORESTS).fit(X, Y), X)


def test_a_fit_that_fails_leaves_the_learner() -> None:
    class Broken(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            if len(y) > 5:
                raise RuntimeError("too many")
            return super().fit(X, y)

    learner = ActiveLearner(Broken(), X, random_state=0).teach([0, 1, 2, 3], Y[:4])
    before = values(learner)
    with pytest.raises(RuntimeError, match="too many"):
        learner.teach([4, 5], Y[4:6])
    assert learner.counts_["taught"] == 4
    assert values(learner) == before


def test_scores_of_probabilities_are_half_the_lead() -> None:
    learner = taught("bayes")
    chances = learner.estimator_.predict_proba(X[:FIRST])
    np.testing.assert_allclose(learner.decision_values(), (chances[:, 1] - chances[:, 0]) / 2)


def test_models_that_come_and_go_have_no_plateau() -> None:
    learner = taught("SVC")
    learner.stop = SupportVectorPlateau()
    with pytest.raises(ValueError, match="counts its support vectors"):
        learner.should_stop()


def test_gaps_are_left_to_pipelines_that_fill_them() -> None:
    rows = X.copy()
    rows[7, 1] = np.nan
    learner = ActiveLearner(make_pipeline(SimpleImputer(), OnlineSVC()), rows, random_state=0)
    learner.teach([0, 1, 7], Y[[0, 1, 7]])
    assert np.isfinite(learner.decision_values()).all()
    with pytest.raises(ValueError, match="NaN at row 7"):
        ActiveLearner(make_pipeline(StandardScaler(), OnlineSVC()), rows)


def test_a_pipeline_over_a_source() -> None:
    learner = ActiveLearner(make_pipeline(StandardScaler(), OnlineSVC()), Source(X), random_state=0)
    learner.teach([0, 1, 2], Y[:3]).extend(Source(X + 1))
    assert len(learner.decision_values()) == 160
    assert 0 <= learner.ask() < 160


# -- frames ---------------------------------------------------------------------------------------


def test_rows_of_a_frame_keep_their_index() -> None:
    learner = taught("columns")
    rows = learner.ask(3)
    assert learner.pool_rows(rows).index.tolist() == [f"item {row}" for row in rows]
    assert learner.pool_rows(5)["colour"].tolist() == [FRAME["colour"].iloc[5]]
    assert taught("texts").pool_rows([1, 0]).tolist() == [TEXTS[1], TEXTS[0]]
    with pytest.raises(IndexError, match="row 60 is outside the pool"):
        learner.pool_rows([60])


def test_frames_of_other_columns_are_refused() -> None:
    learner = taught("columns")
    before = values(learner)
    for other in (FRAME[["height", "width", "colour"]], FRAME.drop(columns="colour")):
        with pytest.raises(ValueError, match=r"columns"):
            learner.extend(other)
    with pytest.raises(TypeError, match="the pool is a data frame with the columns width, height"):
        learner.extend(np.zeros((2, 3)))
    assert values(learner) == before
    assert learner.n_pool_ == FIRST


def test_polars_frames_ask_what_pandas_frames_ask() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    estimator, _ = CLASSIFIERS["columns"]
    plain = FRAME.reset_index(drop=True)
    found = []
    for frame in (plain, polars.from_dict({name: plain[name].tolist() for name in plain})):
        learner = ActiveLearner(estimator, frame, random_state=0)
        learner.run(lambda row: int(Y[row]), 20)
        found.append([step["row"] for step in learner.history_])
        assert learner.pool_rows([3, 1])["width"].to_list() == [X[3, 0], X[1, 0]]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SVC", "texts", "columns, refitted"])
def test_an_audit_works_with_any_classifier(name: str) -> None:
    estimator, rows = CLASSIFIERS[name]
    many = [k for _ in range(4) for k in range(len(Y))]
    pool_rows = rows.iloc[many] if hasattr(rows, "iloc") else [rows[k] for k in many]
    learner = ActiveLearner(estimator, pool_rows, stop=ErrorAudit(rows=20), random_state=0)
    learner.run(lambda row: int(Y[many[row]]), 150)
    audited = [step for step in learner.history_ if step["purpose"] == "audit"]
    assert len(audited) == 20
    assert all(step["predicted"] in (0, 1) for step in audited)
    again = pickle.loads(pickle.dumps(learner))
    assert again.should_stop() == learner.should_stop()
    assert_same_learner(learner, again, "pickled")
