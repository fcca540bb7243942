"""Counts, speed, curves and verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginwise import OnlineSVC
from marginwise.label.answered import Answered
from marginwise.label.events import Event
from marginwise.label.model import EVERY, LabelModel, Taught
from marginwise.label.progress import thinned
from tests.label_support import keys, label_some, open_session, write_csv
from tests.support import rings


def answers_at(*times: float, annotator: str = "ann") -> Answered:
    answered = Answered()
    for seq, time in enumerate(times, 1):
        answered.apply(
            Event(kind="label", item=f"i{seq}", label="a", annotator=annotator, time=time,
                  duration=4.0, purpose="strategy", seq=seq)
        )  # fmt: skip
    return answered


def test_speed_is_that_of_the_time_at_work() -> None:
    # Ten seconds each; the pause of an hour counts as the four seconds that the item was shown.
    answered = answers_at(0, 10, 20, 3620, 3630)
    assert answered.per_hour("ann") == pytest.approx(3600 * 4 / 34)
    assert answered.per_hour("bob") is None
    assert answers_at(0, 10).per_hour("ann") is None
    assert answers_at(5, 5, 5).per_hour("ann") is None


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["label", "skip", "undo", "flag"]),
        st.integers(0, 4),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["strategy", "browse", "overlap"]),
    ),
    max_size=40,
)


@given(ACTIONS)
@settings(deadline=None)
def test_counts_are_those_of_all_answers(actions: list[tuple[str, int, str, str, str]]) -> None:
    answered = Answered()
    for seq, (kind, item, label, annotator, purpose) in enumerate(actions, 1):
        last = answered.answers.undoable(annotator)
        if kind == "undo" and last is None:
            continue
        answered.apply(
            Event(
                kind=kind,
                item=last.item if kind == "undo" and last is not None else f"i{item}",
                annotator=annotator,
                label=label if kind == "label" else None,
                text="on" if kind == "flag" else None,
                undone=last.seq if kind == "undo" and last is not None else None,
                purpose=purpose,
                seq=seq,
            )
        )
        effective = answered.answers.effective()
        assert answered.counting == effective
        for name in ("a", "b"):
            assert answered.counts[name] == sum(event.label == name for event in effective)
        for who in ("ann", "bob"):
            own = answered.answers.effective(who)
            assert answered.given(who) == sum(event.purpose != "browse" for event in own)
        assert answered.flagged == {f"i{k}" for k in range(5) if answered.answers.flagged(f"i{k}")}


@pytest.mark.parametrize("n", [0, 1, 300, 301, 5000])
def test_curves_are_thinned(n: int) -> None:
    places = thinned(n)
    assert len(places) == min(n, 300)
    assert places == sorted(set(places))
    assert n == 0 or (places[0], places[-1]) == (0, n - 1)


def test_curves_have_a_point_per_label(tmp_path: Path) -> None:
    session = open_session(write_csv(tmp_path), tmp_path / "labels.db")
    empty = session.progress()
    assert (empty["answers"], empty["margin"], empty["holdout"]) == ([], None, None)
    label_some(session, 30)
    session.skip(next(keys), session.state()["queue"][0]["id"])
    found = session.progress()
    assert found["answers"] == list(range(1, 31))
    assert len(found["prequential"]) == len(found["support_vectors"]) == 30
    assert found["prequential"][0] is None
    assert 0.5 < found["prequential"][-1] <= 1
    assert found["support_vectors"][-1] > 2
    assert 0 <= found["margin"]["low"] <= found["margin"]["share"] <= found["margin"]["high"]
    assert found["review"] is None
    assert found["stop"]["reason"]


def test_a_search_reports_what_was_found(tmp_path: Path) -> None:
    session = open_session(write_csv(tmp_path), tmp_path / "labels.db", goal="find")
    label_some(session, 50)
    review = session.progress()["review"]
    counted = session.state()["summary"]["counts"]["good"]
    assert (review["seen"], review["found"]) == (50, counted)
    assert review["curve"][-1] == [50, counted]
    assert review["low"] <= review["recall"] <= review["high"]
    assert review["unseen_low"] <= review["unseen"] <= review["unseen_high"] <= 30
    purposes = [event.purpose for event in session.store.events()]
    assert purposes.count("random") >= 5
    assert purposes.count("rank") >= 35


def test_a_changed_answer_after_skips_leaves_the_predictions_of_a_new_model() -> None:
    """Predictions for held-out items are recorded by numbers of labels; skips are none."""
    X, y = rings(200, 0)

    def fresh() -> LabelModel:
        return LabelModel(
            X,
            np.arange(180, 200),
            estimator=OnlineSVC(C=10, gamma=1.0),
            labels=["in", "out"],
            strategy="active",
            seed=0,
            stop=None,
        )

    answers: Taught = [
        (row, None if row % 3 == 0 else ["in", "out"][y[row]], "strategy") for row in range(120)
    ]
    changed = [*answers[:100], (100, "in", "strategy"), *answers[101:]]
    assert changed != answers
    model, expected = fresh(), fresh()
    model.become(answers)
    model.become(changed)
    expected.become(changed)
    assert [labels for labels, _ in expected.foreseen] == list(range(EVERY, 81, EVERY))
    assert model.foreseen == expected.foreseen
