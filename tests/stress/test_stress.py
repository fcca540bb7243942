"""The short form of `make stress`: a few cases of every attack, with fixed seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest

from marginwise.active import ActiveLearner
from tests.stress.harness import Options, run_attack, table
from tests.stress.interrupts import Tracer
from tests.stress.subjects import make, rows

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")

SHORT: dict[str, Sequence[int]] = {
    "threads": (0, 3, 5, 7, 11, 14, 16, 18, 19),
    "interrupts": range(66),
    "kills": (0, 4),
    "labelling": (0,),
    "commands": (0, 1, 2),
    "mutations": range(180),
    "libsvm_files": range(150),
    "text_files": range(400),
    "problems": (*range(0, 300, 12), 233),
    "gap": (0, 5, 8, 25),
    "forgetting": range(20),
    "hostile": (0, 4, 8, 13, 21, 24, 42),
}


@pytest.mark.parametrize("name", SHORT)
def test_invariants_hold_under_attack(name: str) -> None:
    options = Options(thread_seconds=0.2)
    report = run_attack(name, options, SHORT[name])
    assert report.cases == len(SHORT[name])
    assert not report.violations, "\n" + table([report], options)


def test_interrupted_question_is_asked_again() -> None:
    # An interrupt between two stores made the scores of the pool count the last step twice.
    X, y = rows(np.random.default_rng(4), 40)

    def begun() -> ActiveLearner:
        learner = ActiveLearner(make("GapSVC"), X, strategy="near_boundary", random_state=0)
        learner.teach([0, 1], y[:2])
        for _ in range(4):
            row = learner.ask()
            learner.teach(row, y[row])
        return learner

    learner, counter = begun(), Tracer(None)
    with counter:
        expected = learner.ask(3)
    for line in range(1, counter.lines + 1):
        learner, tracer = begun(), Tracer(line)
        try:
            with tracer:
                learner.ask(3)
        except KeyboardInterrupt:
            pass
        np.testing.assert_array_equal(learner.ask(3), expected, err_msg=tracer.where)
