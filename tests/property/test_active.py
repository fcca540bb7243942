"""Laws of an active learner, tried on generated sequences of answers.

A failure means that a learner is not what its answers make it: a row asked twice, an answer lost
or found, a model that depends on the way to it, or a file that gives back another learner.
"""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.linear_model import SGDClassifier

from marginwise import OnlineSVC
from marginwise.active import (
    STRATEGIES,
    ActiveLearner,
    MarginExhausted,
    MaxLabels,
    PoolExhaustedError,
    SupportVectorPlateau,
)
from marginwise.active.batch import NEAR
from marginwise.active.log import Event
from marginwise.active.pool import Pool
from tests.active_support import Source, assert_same_learner, begun, pool, snapshot
from tests.support import assert_same_model

N, FIRST = 30, 20  # rows of a pool, and those that it has from the beginning
X, Y = pool(N, classes=3)
ESTIMATORS = {"own": OnlineSVC(C=10), "other": SGDClassifier(random_state=0)}


def replayed(events: list[Any], made: Any, n: int) -> ActiveLearner:
    """A new learner that is told the same, each answer once and in its place."""
    learner = made()
    if n > FIRST:
        learner.extend(X[FIRST:n])
    for kind, rows, labels in corrected(events):
        if kind == "finish":
            learner._do(Event("finish", []))
        elif kind == "teach":
            learner.teach(rows, labels)
        else:
            learner.skip(rows)
    return learner


def corrected(events: list[Any]) -> list[Any]:
    """The answers that count, in their order."""
    course: list[Any] = []
    for kind, rows, labels in events:
        if kind == "correct":
            place = max(k for k, event in enumerate(course) if rows[0] in event[1])
            answers = dict(zip(course[place][1], course[place][2] or [None], strict=False))
            answers[rows[0]] = labels[0]
            taught = None not in answers.values()
            course[place] = (
                "teach" if taught else "skip",
                course[place][1],
                list(answers.values()) if taught else [],
            )
        elif kind == "run":
            course += [("teach", rows, labels), ("finish", [], [])]
        else:
            course.append((kind, rows, labels))
    return course


class Answers(RuleBasedStateMachine):
    """A learner beside the plain list of what it was told."""

    @initialize(
        strategy=st.sampled_from(STRATEGIES),
        own=st.booleans(),
        known=st.booleans(),
        pool_size=st.sampled_from([1, 3, 59, None]),
        seed=st.integers(0, 5),
    )
    def start(self, strategy: str, own: bool, known: bool, pool_size: Any, seed: int) -> None:
        def made() -> ActiveLearner:
            return ActiveLearner(
                ESTIMATORS["own" if own else "other"],
                X[:FIRST],
                strategy=strategy,
                classes=[0, 1, 2] if known else None,
                pool_size=pool_size,
                stop=MarginExhausted() | SupportVectorPlateau(5) if own else MaxLabels(9),
                random_state=seed,
            )

        self.made = made
        self.own = own
        self.n = FIRST
        self.learner = made()
        self.events: list[Any] = []

    @property
    def taught(self) -> dict[int, int]:
        return {
            row: label
            for kind, rows, labels in corrected(self.events)
            if kind == "teach"
            for row, label in zip(rows, labels, strict=True)
        }

    @property
    def skipped(self) -> set[int]:
        rows = {row for kind, rows, _ in corrected(self.events) if kind == "skip" for row in rows}
        return rows - self.taught.keys()

    @property
    def unseen(self) -> set[int]:
        return set(range(self.n)) - self.taught.keys() - self.skipped

    @rule(wrong=st.booleans())
    def teach_asked(self, wrong: bool) -> None:
        if not self.unseen:
            with pytest.raises(PoolExhaustedError, match="rows of the pool were taught or skipped"):
                self.learner.ask()
        else:
            row = self.learner.ask()
            label = (int(Y[row]) + wrong) % 3
            self.learner.teach(row, label)
            self.events.append(("teach", [row], [label]))

    @precondition(lambda self: len(self.taught) < self.n)
    @rule(data=st.data())
    def teach_any(self, data: Any) -> None:
        """Skipped rows may be taught, too."""
        free = sorted(set(range(self.n)) - self.taught.keys())
        rows = data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=4, unique=True))
        self.learner.teach(rows, Y[rows])
        self.events.append(("teach", rows, Y[rows].tolist()))

    @precondition(lambda self: self.unseen)
    @rule(data=st.data())
    def skip(self, data: Any) -> None:
        several = st.lists(
            st.sampled_from(sorted(self.unseen)), min_size=1, max_size=3, unique=True
        )
        rows = data.draw(several)
        self.learner.skip(rows)
        self.events.append(("skip", rows, []))

    @precondition(lambda self: self.taught)
    @rule(data=st.data(), label=st.integers(0, 2))
    def correct(self, data: Any, label: int) -> None:
        row = data.draw(st.sampled_from(sorted(self.taught)))
        self.learner.correct(row, label)
        self.events.append(("correct", [row], [label]))

    @precondition(lambda self: any(len(event[1]) == 1 for event in self.events))
    @rule(data=st.data(), label=st.sampled_from([None, 0, 1]))
    def correct_to_or_from_skipped(self, data: Any, label: Any) -> None:
        """A single answer; part of a batch would be two events in a plain replay."""
        course = corrected(self.events)
        rows = [
            rows[0]
            for k, (_, rows, _) in enumerate(course)
            if len(rows) == 1 and not any(rows[0] in later[1] for later in course[k + 1 :])
        ]
        if rows:
            row = data.draw(st.sampled_from(sorted(rows)))
            self.learner.correct(row, label)
            self.events.append(("correct", [row], [label]))

    @precondition(lambda self: self.n < N)
    @rule(more=st.integers(1, 6))
    def extend(self, more: int) -> None:
        n = min(N, self.n + more)
        self.learner.extend(X[self.n : n])
        self.n = n

    @precondition(lambda self: self.unseen and not self.learner.should_stop())
    @rule()
    def run(self) -> None:
        row = self.learner.ask()
        before = len(self.learner._log)
        self.learner.run(lambda row: int(Y[row]), 1)
        kind = "run" if len(self.learner._log) == before + 2 else "teach"
        self.events.append((kind, [row], [int(Y[row])]))

    @rule()
    def undo(self) -> None:
        rows = self.learner.undo()
        assert rows == (self.events.pop()[1] if self.events else [])

    @rule()
    def replay(self) -> None:
        """Other answers, and then these again: nothing of the others stays."""
        before, log = snapshot(self.learner), self.learner._log
        self.learner.replay([3, 1, 2], [2, None, 0])
        twin = self.made().extend(X[FIRST : self.n]) if self.n > FIRST else self.made()
        twin._scores_asked = self.learner._scores_asked
        twin.teach(3, 2).skip(1).teach(2, 0)
        for one in (self.learner, twin):
            for step in one.history_:
                step["purpose"] = "given"
        found = [snapshot(one)["values"] for one in (self.learner, twin)]
        assert found[0] == found[1]
        self.learner._rebuild(log)
        for name in ("log", "status", "classes", "has_model", "values", "next", "next five"):
            assert snapshot(self.learner)[name] == before[name], name

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner.mwz"
            self.learner.save(path)
            loaded = ActiveLearner.load(
                path, X[: self.n], estimator=None if self.own else ESTIMATORS["other"]
            )
        assert_same_learner(self.learner, loaded, "a learner that was loaded is another")
        assert loaded.should_stop() == self.learner.should_stop()
        self.learner = loaded

    @rule()
    def pickle(self) -> None:
        loaded = pickle.loads(pickle.dumps(self.learner))
        assert_same_learner(self.learner, loaded, "a learner that was pickled is another")
        self.learner = loaded

    @rule(n=st.integers(1, 30), data=st.data())
    def ask_several(self, n: int, data: Any) -> None:
        rows = self.learner.ask(n).tolist()
        assert len(set(rows)) == len(rows) <= n
        assert set(rows) <= self.unseen, "a row is asked about that was taught or skipped"
        assert bool(rows) == bool(self.unseen)
        assert self.learner.ask(n).tolist() == rows, "asking again asks differently"
        others = data.draw(st.lists(st.integers(0, self.n - 1), max_size=self.n))
        rest = self.learner.ask(n, exclude=others).tolist()
        assert set(rest) <= self.unseen - set(others), "an excluded row is asked about"
        assert bool(rest) == bool(self.unseen - set(others))

    @invariant()
    def it_is_what_it_was_told(self) -> None:
        learner = self.learner
        told = [(step["row"], step["label"]) for step in learner.history_]
        assert told == list(self.taught.items())
        assert learner.counts_["taught"] == len(self.taught)
        assert learner.counts_["skipped"] == len(self.skipped)
        assert learner.n_unseen_ == len(self.unseen)
        assert len(learner.support_counts_) == len(learner.history_)
        assert learner.support_counts_[-1:] == [s["support_vectors"] for s in learner.history_[-1:]]
        if learner._given is None:
            assert learner.classes_.tolist() == sorted(set(self.taught.values()))
            assert learner.has_model_ == (len(set(self.taught.values())) > 1)
        assert bool(self.unseen) or learner.should_stop()

    def teardown(self) -> None:
        """What is asked next follows from the answers, the pool and the seed, and nothing else."""
        if not hasattr(self, "learner"):
            return
        twin = replayed(self.events, self.made, self.n)
        states = [snapshot(learner) for learner in (self.learner, twin)]
        for name in ("status", "classes", "has_model", "values", "next", "next five"):
            assert states[0][name] == states[1][name], f"{name} depends on the way to it"
        assert self.learner.support_counts_ == twin.support_counts_


TestAnswers = pytest.mark.slow(Answers.TestCase)
# Sequences are short enough to be read as they are; making them shorter takes minutes.
TestAnswers.settings = settings(
    max_examples=60, stateful_step_count=15, phases=[Phase.generate], report_multiple_bugs=False
)


# -- models ---------------------------------------------------------------------------------------


@given(st.data())
def test_the_cutting_of_answers_does_not_matter(data: Any) -> None:
    """One batch, single answers or anything between: the same model to the bit."""
    rows = data.draw(st.permutations(range(N)))
    cuts = data.draw(st.lists(st.integers(0, N), max_size=5))
    one = ActiveLearner(OnlineSVC(C=10), X, random_state=0).teach(rows, Y[rows])
    cut = ActiveLearner(OnlineSVC(C=10), X, random_state=0)
    for part in np.split(np.array(rows), sorted(cuts)):
        if len(part):
            cut.teach(part, Y[part])
    assert_same_model(one.estimator_, cut.estimator_, f"cut at {sorted(cuts)}")


def spread(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) > 1.3, values, 0.0)


FORMS: dict[str, Any] = {
    "dense": lambda rows: rows,
    "lists": lambda rows: sp.csr_array(spread(rows)),
    "offset": lambda rows: rows + 50.0,
    "outlier": lambda rows: np.where(np.arange(len(rows))[:, None] == 40, 1e5 * rows, rows),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto"])
def test_scores_of_the_pool_do_not_drift(kernel: str, form: str, seed: int) -> None:
    """They are corrected by what has changed; after many answers they are still the model's."""
    if kernel == "poly" and form in ("outlier", "offset"):
        pytest.skip("values of 1e12 and more have no nine digits to compare")
    rows, labels = pool(120, seed, classes=2 + seed % 2)
    rows = FORMS[form](rows)
    learner = ActiveLearner(
        OnlineSVC(C=10, kernel=kernel), rows, strategy="near_boundary", random_state=seed
    )
    for k in range(100):
        row = k if k < 3 else learner.ask()
        learner.teach(row, labels[row])
        if k % 10 == 9:
            values = learner.estimator_.decision_function(rows)
            scale = max(1.0, np.abs(values).max())
            np.testing.assert_allclose(learner.decision_values(), values, atol=1e-9 * scale)
    assert learner._model._kept.recomputed < 60, "the scores are computed anew each time"


# -- batches --------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from(STRATEGIES), st.booleans())
def test_no_two_rows_of_a_batch_are_near(seed: int, n: int, strategy: str, lists: bool) -> None:
    """Twenty places, ten rows at each: a batch has a place once."""
    rng = np.random.default_rng(seed)
    places = 5 * rng.normal(size=(20, 3))
    place = np.repeat(np.arange(20), 10)
    rows = places[place] + 1e-3 * rng.normal(size=(200, 3))
    labels = (places[:, 0] > np.median(places[:, 0])).astype(int)[place]
    learner = begun(
        sp.csr_array(rows) if lists else rows,
        np.roll(labels, -5),
        2,
        strategy=strategy,
        random_state=seed,
        classes=[0, 1],
    )
    asked = learner.ask(n)
    assert len(set(place[asked])) == len(asked), "two rows of a batch are as one"
    assert len(asked) == n, "there were enough different rows"
    away = np.sqrt(((rows[asked][:, None] - rows[asked]) ** 2).sum(axis=2))
    np.fill_diagonal(away, np.inf)
    assert away.min() > NEAR * 1e-3


def test_a_crowd_at_the_boundary_does_not_fill_a_batch() -> None:
    """Three hundred equal rows come first; the batch is filled by the different ones behind."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.zeros((300, 2)), 3 * rng.normal(size=(100, 2)) + [10, 0]])
    learner = ActiveLearner(
        OnlineSVC(gamma=0.05), rows, strategy=lambda f: -np.abs(f - f[0]), pool_size=None
    ).teach([300, 301], [0, 1])
    assert len(learner.ask(5)) == 5


@given(st.integers(1, 400), st.integers(1, 450), st.floats(0, 1), st.integers(0, 99))
def test_samples_are_of_unseen_rows(n: int, size: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = Pool(np.zeros((n, 1)))
    rows.mark(np.flatnonzero(rng.random(n) < share), 1)
    sample = rows.sample(size, rng)
    assert len(sample) == min(size, rows.n_unseen) == len(set(sample.tolist()))
    assert (rows.status[sample] == 0).all()


def test_samples_are_even() -> None:
    """Each of 3200 rows, 1600 of them unseen, is drawn as often as any other."""
    rows = Pool(np.zeros((3200, 1)))
    rows.mark(np.arange(0, 3200, 2), 1)
    rng = np.random.default_rng(0)
    counts = np.zeros(3200)
    first = np.zeros(3200)
    for _ in range(2000):
        sample = rows.sample(20, rng)
        counts[sample] += 1
        first[sample[0]] += 1
    # 25 draws a row: chi-squared over 1600 rows has mean 1599 and sd 56.6.
    assert abs(((counts[1::2] - 25) ** 2 / 25).sum() - 1599) < 6 * 57
    assert not counts[::2].any()
    halves = first[1::2].reshape(2, -1).sum(axis=1)
    assert abs(halves[0] - 1000) < 6 * 22.4, "small rows come first in a sample"


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, Source, sp.csr_array])
@pytest.mark.parametrize("pool_size", [5, None])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "function"])
def test_a_loaded_learner_asks_the_same(
    strategy: str, pool_size: Any, form: Any, tmp_path: Path
) -> None:
    rows, labels = pool(80, classes=3)
    words = np.array(["a", "b", "c"])[labels]
    function = (lambda f: -np.abs(f).max(axis=-1)) if strategy == "function" else None
    learner = begun(
        form(rows),
        words,
        20,
        strategy=function or strategy,
        pool_size=pool_size,
        classes=["a", "b", "c"],
        y_pool=np.roll(words, 1),
        stop=MarginExhausted(),
    )
    learner.skip(learner.ask()).run(lambda row: words[row], 3)
    learner.ask()
    learner.should_stop()
    learner.save(tmp_path / "learner.mwz")
    loaded = ActiveLearner.load(tmp_path / "learner.mwz", form(rows), strategy=function)
    for _ in range(5):
        assert_same_learner(learner, loaded, "a loaded learner goes another way")
        row = learner.ask()
        learner.teach(row, words[row])
        loaded.teach(row, words[row])
    assert learner.undo() == loaded.undo()
    assert_same_learner(learner, loaded, "after undo a loaded learner is another")
