"""Selection that puts rows back, and stopping rules inside fit."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from marginwise import ActiveLearner, OnlineSVC, OnlineSVCCV, active, load, save
from marginwise._training.putback import PutBack
from marginwise.active import (
    AllOf,
    ErrorAudit,
    MarginExhausted,
    MaxLabels,
    StoppingRule,
    SupportVectorPlateau,
    TargetRecall,
)
from tests.support import Rows, assert_same_model, blobs, rings

X, Y = rings(1500, 0, noise=0.02)


def learner(**kw: Any) -> OnlineSVC:
    return OnlineSVC(**{"C": 10, "gamma": 1.0, "random_state": 0, "selection": "active", **kw})


@pytest.mark.parametrize("selection", ["random", "gradient", "active", "autoactive"])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_number_of_rows_is_learned_and_no_more(selection: str, form: str) -> None:
    rows: Any = sp.csr_array(X) if form == "csr" else X
    model = learner(selection=selection, stop=160).fit(rows, Y)
    assert 0 < model.stats_["process"] <= 160
    assert model.score(X, Y) > (0.85 if selection == "random" else 0.9)
    assert len(model.ids_) <= 160


@pytest.mark.parametrize("number", [17, np.int64(40)])
def test_any_number_of_rows_is_counted_one_by_one(number: Any) -> None:
    model = learner(selection="gradient", stop=number).fit(X, Y)
    assert model.stats_["process"] == number
    assert learner(stop=1).fit(X, Y).stats_["process"] <= 10, "five of each class come first"


def test_the_rule_sees_what_was_learned() -> None:
    """Counts grow row by row, candidates are the values of the sample, unseen rows shrink."""
    seen: list[tuple[int, int, int]] = []

    class Watching(StoppingRule):
        def check(self, learner: Any) -> bool:
            assert len(learner.support_counts_) == len(learner.history_)
            assert learner.n_unseen_ + len(learner.history_) == learner.n_pool_ == len(Y)
            sample = learner.sample_unseen(20)
            assert len(set(sample.tolist())) == len(sample)
            assert learner.decision_values(sample).shape == (len(sample),)
            seen.append((len(learner.history_), learner.n_unseen_, len(learner.candidate_values())))
            return len(seen) == 6

    learner(stop=Watching()).fit(X, Y)
    assert [learned for learned, _, _ in seen] == sorted({learned for learned, _, _ in seen})
    assert seen[-1][2] == 50


SUPPORTED: list[Any] = [
    MarginExhausted(),
    SupportVectorPlateau(window=30),
    MaxLabels(60),
    MaxLabels(60) | SupportVectorPlateau(window=0.2),
    AllOf((MaxLabels(60), MarginExhausted(exact_below=0))),
]
REFUSED: list[Any] = [
    ErrorAudit(),
    TargetRecall(),
    ErrorAudit() | MaxLabels(60),
    StoppingRule(),
]


def test_every_public_rule_is_tried() -> None:
    public = [getattr(active, name) for name in active.__all__]
    rules = {kind for kind in public if isinstance(kind, type) and issubclass(kind, StoppingRule)}
    assert {type(rule) for rule in SUPPORTED + REFUSED} == rules


@pytest.mark.slow
@pytest.mark.parametrize("rule", SUPPORTED, ids=repr)
@pytest.mark.parametrize("selection", ["random", "gradient", "active", "autoactive"])
@pytest.mark.parametrize("pool_size", [50, None])
@pytest.mark.parametrize("classes", [2, 3])
def test_rules_fit_a_model(rule: Any, selection: str, pool_size: int | None, classes: int) -> None:
    A, b = (X[:300], Y[:300]) if classes == 2 else blobs(300, 1, classes)
    model = learner(stop=rule, selection=selection, pool_size=pool_size).fit(A, b)
    assert model.score(A, b) > 0.7


@pytest.mark.parametrize("rule", REFUSED, ids=repr)
@pytest.mark.parametrize("selection", ["random", "active"])
def test_other_rules_are_refused_by_name(rule: Any, selection: str) -> None:
    name = re.escape(type(rule).__name__)
    with pytest.raises((ValueError, NotImplementedError), match=rf"{name}.*[Uu]se .*"):
        learner(stop=rule, selection=selection).fit(X, Y)
    with pytest.raises((ValueError, NotImplementedError), match=name):
        OnlineSVCCV(Cs=[1, 10], gammas=[1.0], stop=rule, selection=selection).fit(X[:200], Y[:200])
    model = learner().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises((ValueError, NotImplementedError), match=name):
        model.set_params(stop=rule).fit(X[:200], Y[:200])
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("gradient", [(2 - 1) / 2, (-1 - 2) / 2, (0.5 - 0.5) / 2]),
        ("active", [(2 - 1) / 2, (2 - 1) / 2, (0.5 - 0.5) / 2]),
    ],
)
def test_with_several_classes_the_distance_is_half_a_lead(rule: str, expected: list[float]) -> None:
    """Half, because a row within the margin of two problems may lead by two margins."""
    f = np.array([[2.0, 1.0, -1.0], [2.0, 1.0, -1.0], [0.5, 0.5, 0.0]])
    chosen = SimpleNamespace(_rule=rule, _labels=np.array([9, 0, 2, 1]))
    rows = np.array([1, 2, 3])
    np.testing.assert_array_equal(PutBack._distances(chosen, f, rows), expected)  # type: ignore[arg-type]


def test_own_rules_read_the_history() -> None:
    """The keys are those of ActiveLearner, and the labels those of the user."""
    named = np.array(["in", "out"])[Y]

    class Found(StoppingRule):
        def check(self, learner: Any) -> bool:
            asked = ActiveLearner(OnlineSVC(), X[:2]).teach([0, 1], [0, 1]).history_
            for step in learner.history_:
                assert step.keys() == asked[0].keys()
                assert step["label"] == named[step["row"]]
            (first, last) = learner.history_[0], learner.history_[-1]
            assert (first["asked"], first["purpose"], first["score"]) == (False, "given", None)
            assert (last["asked"], last["purpose"], type(last["score"])) == (
                True,
                "strategy",
                float,
            )
            found = sum(step["label"] == learner.classes_[0] for step in learner.history_)
            return self.answer(found >= 40, f"{found} rows were found.")

    model = learner(stop=Found()).fit(X, named)
    assert 40 <= model.stats_["process"] < 200


def test_own_rules_that_need_more_than_fit_has_are_refused() -> None:
    class Drawing(StoppingRule):
        def check(self, learner: Any) -> bool:
            return self.answer(False, "one more row is drawn.")

        def wants_audit(self, learner: Any, pending: int) -> int:
            return 1

    class Comparing(StoppingRule):
        def check(self, learner: Any) -> bool:
            return self.answer(learner.changed_predictions() is None, "there is no older model.")

    with pytest.raises(ValueError, match=r"stop=.*Drawing.* needs the labels of rows drawn at ran"):
        learner(stop=Drawing() & MaxLabels(50)).fit(X, Y)
    model = learner().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"Comparing\(\) compares .* fit stores no earlier"):
        model.set_params(stop=Comparing()).fit(X[:200], Y[:200])
    assert np.array_equal(model.decision_function(X), before)


def test_partial_fit_learns_every_row_whatever_the_rule() -> None:
    streamed = learner(stop=MaxLabels(20)).partial_fit(X[:200], Y[:200])
    assert_same_model(streamed, learner().partial_fit(X[:200], Y[:200]), "stop is for fit")


def test_rules_stop_early_without_losing_accuracy() -> None:
    every = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X, Y)
    for rule in (SupportVectorPlateau(window=64), MarginExhausted(), MaxLabels(200)):
        model = learner(stop=rule).fit(X, Y)
        assert model.stats_["process"] < len(Y) / 2
        assert model.score(X, Y) > every.score(X, Y) - 0.02


def test_margin_exhausted_means_that_no_row_is_left_inside() -> None:
    model = learner(stop=MarginExhausted(), finish_at_end=False).fit(X, Y)
    unlearned = np.setdiff1d(np.arange(len(Y)), model.ids_)
    assert (np.abs(model.decision_function(X[unlearned])) < 0.9).mean() < 0.02


@pytest.mark.parametrize("multiclass", ["ovr", "auto"])
def test_several_classes(multiclass: str) -> None:
    A, b = blobs(900, 1, 4)
    model = learner(stop=200, multiclass=multiclass, selection="gradient").fit(A, b)
    assert model.score(A, b) > 0.75
    assert len(np.unique(model.predict(A))) == 4


def test_the_same_seed_gives_the_same_model() -> None:
    assert_same_model(learner(stop=120).fit(X, Y), learner(stop=120, n_jobs=2).fit(X, Y), "again")


def test_all_rows_may_be_learned() -> None:
    model = learner(stop=10**6).fit(X[:60], Y[:60])
    assert model.score(X[:60], Y[:60]) > 0.9


def test_a_file_leaves_the_rule_out(tmp_path: Any) -> None:
    model = learner(stop=SupportVectorPlateau(window=64)).fit(X, Y)
    save(model, tmp_path / "m.mwz")
    again = load(tmp_path / "m.mwz")
    assert again.stop is None
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert pickle.loads(pickle.dumps(model)).stop == model.stop


def test_bad_values() -> None:
    for stop in (0, -1, 2.5, "soon", SupportVectorPlateau):
        with pytest.raises(ValueError, match="stop"):
            learner(stop=stop).fit(X, Y)
    with pytest.raises(ValueError, match="stop"):
        OnlineSVC(epochs="converge", stop=10).fit(X, Y)
    with pytest.raises(ValueError, match="stop"):
        learner(stop=10).learn_from(Rows(X, Y), classes=[0, 1])
