"""Time the questions of ActiveLearner: how long a person waits for the next row to label.

    python benchmarks/active.py                     all rows
    python benchmarks/active.py --only ask-59       one of them
    python benchmarks/active.py --quick             a smoke test on small pools

Pools are made up, so no data are needed. In the first two rows only ask() counts; each question is
answered by teach() before the next. The third row times all that a person may do to an answer. Each
round has a process and a seed of its own, and one thread.
"""

from __future__ import annotations

from typing import Any

from speed import main
from works import Check, Job, Results, Work

# A rule with noise, of which about two rows in three stay with the model.
MODEL = {"params": {"C": 1, "gamma": 0.005}, "taught": 1400}
TEXTS = {"C": 2, "kernel": "linear"}


def milliseconds(row: str, name: str, what: str, target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        return results.median(row, name)

    return Check(what, measure, "≤", target, "{:.2f} ms")


def members(row: str) -> Check:
    """Show how many examples the model held, on average from the first question to the last."""

    def measure(results: Results) -> float | None:
        held = [sum(both) / 2 for both in results.take(row, "members")]
        return sum(held) / len(held) if held else None

    return Check("examples that the model holds", measure, form="{:,.0f}")


def work(name: str, title: str, job: dict[str, Any], target: float, *more: Check) -> Work:
    checks = [
        milliseconds(name, "ask_ms", "ask(), median", target),
        milliseconds(name, "ask_p95_ms", "ask(), 95 % take at most"),
        *more,
        members(name),
    ]
    return Work(name, title, [Job(name, "ask", {**MODEL, **job})], checks)


WORKS = [
    work(
        "ask-59",
        "the nearest of 59 sampled rows, of 1,000,000 × 100",
        {"pool": (1_000_000, 100), "strategy": "active", "questions": 200},
        5.0,
    ),
    work(
        "ask-all",
        "the nearest of all 100,000 × 100 rows, after each label",
        {"pool": (100_000, 100), "strategy": "near_boundary", "questions": 50},
        50.0,
        milliseconds("ask-all", "first_ask_ms", "the first ask(), which scores all rows"),
        milliseconds("ask-all", "scratch_ms", "decision_function of all rows, for contrast"),
    ),
    Work(
        "change",
        "1,000 answers in a pool of 100,000 × 20,000 TF-IDF values, given and changed",
        [Job("change", "change", {"pool": (100_000, 20_000), "taught": 1000, "params": TEXTS})],
        [
            milliseconds("change", "ask_ms", "ask(), median", 5.0),
            milliseconds("change", "teach_ms", "teach(), median", 5.0),
            milliseconds("change", "undo_ms", "undo(), median", 150.0),
            milliseconds("change", "correct_late_ms", "correct(), 30 answers back", 150.0),
            milliseconds("change", "correct_early_ms", "correct(), 970 answers back", 150.0),
            milliseconds("change", "replay_ms", "replay() of all answers", 1000.0),
        ],
    ),
]


if __name__ == "__main__":
    main(WORKS, __doc__, "active")
