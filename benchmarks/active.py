"""Time ActiveLearner: how long users wait for the next row to label.

    python benchmarks/active.py                     all rows
    python benchmarks/active.py --only ask-59       one of them
    python benchmarks/active.py --quick             a smoke test on small pools

The pools are generated, so no data files are needed. The first two rows time only ask(), although
each question is answered by teach() before the next one. The third row times everything that users
can do with an answer. Each round runs in its own process, with its own seed, on one thread.
"""

from __future__ import annotations

from typing import Any

from speed import main
from works import Check, Job, Results, Work

# Labels follow a noisy linear rule; the model keeps about two thirds of the rows.
MODEL = {"params": {"C": 1, "gamma": 0.005}, "taught": 1400}
TEXTS = {"C": 2, "kernel": "linear"}


def milliseconds(row: str, name: str, what: str, target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        return results.median(row, name)

    return Check(what, measure, "≤", target, "{:.2f} ms")


def members(row: str) -> Check:
    """Report the mean of the numbers of examples in the model before and after the questions."""

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
