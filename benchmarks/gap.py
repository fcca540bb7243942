"""Compare GapSVC with the bare product of its kernel values, and with SVC on noisy data.

    python benchmarks/gap.py                    all rows
    python benchmarks/gap.py --only adult       one row
    python benchmarks/gap.py --quick            a smoke test on small parts of the data

The contestants alternate, round by round. Each fit runs in its own process, on one thread.
"""

from __future__ import annotations

from typing import Any

from speed import main
from works import A9A, MNIST8, SVC, Check, Job, Results, Work

LOSSES = ("hinge", "ramp", "filter")


def row(loss: str) -> str:
    return f"GapSVC, {loss}"


def job(loss: str, data: str, form: str, params: dict[str, Any]) -> Job:
    options = {"data": data, "contestant": "GapSVC", "form": form, "extras": ["floor"]}
    return Job(row(loss), "fit", {**options, "params": {**params, "loss": loss}}, 1)


def floor_ratio(loss: str, target: float | None = None) -> Check:
    def measure(results: Results) -> float | None:
        fit = results.median(row(loss), "fit", "wall")
        floor = results.median(row(loss), "floor_seconds")
        return None if fit is None or not floor else fit / floor

    return Check(f"{loss}: fit over bare product", measure, "≤", target, "{:.2f}")


def times_svc(loss: str, target: float) -> Check:
    def measure(results: Results) -> float | None:
        ours, svc = (results.median(key, "fit", "wall") for key in (row(loss), SVC))
        return None if ours is None or svc is None else svc / ours

    return Check(f"{loss}: times faster than SVC", measure, "≥", target, "{:.1f} ×")


def error_off_svc(loss: str, target: float) -> Check:
    def measure(results: Results) -> float | None:
        ours, svc = (results.mean(key, "error") for key in (row(loss), SVC))
        return None if ours is None or svc is None else abs(ours - svc)

    return Check(f"{loss}: error off SVC's, points", measure, "≤", target, "{:.2f}")


def share_of_svc(loss: str, target: float) -> Check:
    def measure(results: Results) -> float | None:
        ours, svc = (results.mean(key, "support_vectors") for key in (row(loss), SVC))
        return None if ours is None or svc is None else ours / svc

    return Check(f"{loss}: support vectors over SVC's", measure, "≤", target, "{:.2f}")


ROBUST = LOSSES[1:]
PAPER_MNIST = {"C": 100, "gamma": 0.001}  # of ertekin2011, table 2

WORKS = [
    Work(
        "mnist8",
        "MNIST, 8 against the rest, as OnlineSVC is timed",
        [job("hinge", "mnist8", "dense32", MNIST8)],
        [floor_ratio("hinge", 1.6)],
        ["mnist8"],
    ),
    Work(
        "mnist8-paper",
        "the same with the parameters of ertekin2011",
        [job(loss, "mnist8", "dense32", PAPER_MNIST) for loss in LOSSES],
        [floor_ratio(loss, 1.6) for loss in LOSSES],
        ["mnist8"],
    ),
    Work(
        "adult",
        "Adult, C = 100",
        [
            *(job(loss, "a9a", "csr64", A9A) for loss in ROBUST),
            Job(SVC, "fit", {"data": "a9a", "contestant": SVC, "form": "csr64", "params": A9A}, 1),
        ],
        [
            check
            for loss in ROBUST
            for check in (times_svc(loss, 30), error_off_svc(loss, 0.2), share_of_svc(loss, 0.5))
        ],
        ["a9a"],
    ),
]


if __name__ == "__main__":
    main(WORKS, __doc__, "gap")
