"""The rows of bordes2005_selection.py: what is run, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import common  # noqa: F401  (makes the modules of the benchmarks known)
from works import A9A, Check, Job, Results, Work, speedup

Figure = Callable[[Results], float | None]


# -- figures ---------------------------------------------------------------------------------------


def mean(key: str, name: str) -> Figure:
    return lambda results: results.mean(key, name)


def above(key: str, other: str, name: str = "error") -> Figure:
    """Return by how much the mean of one contestant exceeds that of another."""

    def measure(results: Results) -> float | None:
        ours, theirs = results.mean(key, name), results.mean(other, name)
        return None if ours is None or theirs is None else ours - theirs

    return measure


def off(figure: Figure) -> Figure:
    """Return the size of a difference."""

    def measure(results: Results) -> float | None:
        value = figure(results)
        return None if value is None else abs(value)

    return measure


def over(key: str, others: tuple[str, ...], name: str) -> Figure:
    """Return by which share the mean of a contestant exceeds that of the first that was run."""

    def measure(results: Results) -> float | None:
        theirs = next((v for other in others if (v := results.mean(other, name))), None)
        ours = results.mean(key, name)
        return None if ours is None or theirs is None else ours / theirs - 1

    return measure


# -- adult: figures 11 and 12 ----------------------------------------------------------------------

RANDOM, SVC = "random", "SVC"
SELECTIONS: dict[str, dict[str, Any]] = {
    RANDOM: {},
    "autoactive, reprocess=3": {"selection": "autoactive", "reprocess": 3},
    "autoactive": {"selection": "autoactive"},  # as in the paper
    "active": {"selection": "active"},
    "gradient": {"selection": "gradient"},
}


def fit(label: str, data: str, form: str, params: dict[str, Any], contestant: str) -> Job:
    options = {"data": data, "form": form, "params": params, "contestant": contestant}
    return Job(label, "fit", options)


def adult_checks(key: str) -> list[Check]:
    """Hold a way to select to what figure 12 shows of AUTOACTIVE."""
    return [
        Check(f"{key}: support vectors", mean(key, "support_vectors"), "≤", 2500, "{:,.0f}"),
        speedup(RANDOM, key, f"{key}: times faster than random", "≥", 15),
        Check(f"{key}: error above SVC's, points", above(key, SVC), "≤", 0.0, "{:+.3f}"),
    ]


def error_shown(key: str) -> Check:
    return Check(f"{key}: error above SVC's, points", above(key, SVC), "≤", form="{:+.3f}")


ADULT = Work(
    "adult",
    "a9a, 32,561 rows, C=100, γ=0.005",
    [
        fit(label, "a9a", "csr64", {**A9A, **more}, "OnlineSVC")
        for label, more in SELECTIONS.items()
    ],
    [
        *adult_checks("autoactive, reprocess=3"),
        *adult_checks("autoactive"),
        *(error_shown(key) for key in ("active", "gradient", RANDOM)),
    ],
    ["a9a"],
    rounds=5,
)


# -- mnist-noise: figures 14 and 15 ----------------------------------------------------------------

MNIST_GAMMA = 0.02
MNIST_EPOCHS = 4
# SVC of clean labels at C=10 is that of C=1000 but for 3 bounded vectors, and much sooner fitted.
MNIST_C = {1: 1, 1000: 10}  # C, and the one at which SVC is fitted


def clean(C: int) -> tuple[str, str]:
    """Name what noisy labels are compared with, SVC or what stands in for it."""
    return f"SVC, clean labels, C={C}", f"OnlineSVC(epochs=2), clean labels, C={C}"


def noisy(C: int) -> list[Job]:
    params = {"C": C, "gamma": MNIST_GAMMA}
    active = {**params, "selection": "active", "epochs": MNIST_EPOCHS}
    jobs = [fit(f"active, C={C}", "mnist8_noise", "dense32", active, "OnlineSVC")]
    if C == 1:  # for contrast; with a large C all the wrong labels are learned by heart, slowly
        jobs.append(fit(f"random, C={C}", "mnist8_noise", "dense32", params, "OnlineSVC"))
    return jobs


def noise_checks(C: int) -> list[Check]:
    active = f"active, C={C}"
    errors, support = (over(active, clean(C), name) for name in ("error", "support_vectors"))
    checks = [
        Check(f"{active}: error off that of clean labels", off(errors), "≤", 0.1, "{:.1%}"),
        Check(f"{active}: support vectors off those", off(support), "≤", 0.1, "{:.1%}"),
    ]
    if C == 1:
        many = over(f"random, C={C}", clean(C), "support_vectors")
        checks.append(Check(f"random, C={C}: support vectors above those", many, form="{:.0%}"))
    return checks


MNIST = Work(
    "mnist-noise",
    "MNIST 8 vs rest, 60,000 rows, a tenth of the labels wrong, γ=0.02; active in 4 epochs",
    [job for C in MNIST_C for job in noisy(C)],
    [check for C in MNIST_C for check in noise_checks(C)],
    ["mnist8_noise"],
    rounds=3,
)


# -- reuters-500: figure 16 ------------------------------------------------------------------------

MONEY_FX = {"C": 1, "gamma": 0.5}
LABELS, SAMPLE = 500, 50
OURS, RETRAIN = f"LASVM, {SAMPLE}", "retrain, all"
OURS_ALL, RETRAIN_SAMPLE = "LASVM, all", f"retrain, {SAMPLE}"
PAPER = {OURS: 9.6, OURS_ALL: 99, RETRAIN: 917}  # seconds


def labelling(label: str, learner: str, pool_size: int | None) -> Job:
    options = {"data": "reuters", "params": MONEY_FX, "labels": LABELS, "pool_size": pool_size}
    return Job(label, "label", {**options, "learner": learner})


def times_retraining(key: str, target: float | None = None) -> Check:
    paper = PAPER[RETRAIN] / PAPER[key]
    what = f"{key}: times faster than {RETRAIN} (paper: {paper:.0f})"
    return speedup(RETRAIN, key, what, "≥", target)


def error_off_retraining(key: str, target: float | None = None) -> Check:
    what = f"{key}: error off that of {RETRAIN}, points"
    return Check(what, off(above(key, RETRAIN)), "≤", target, "{:.2f}")


REUTERS = Work(
    "reuters-500",
    "Reuters money-fx, 7,770 rows, 500 labels, C=1, γ=0.5; the nearest of 50 or of all rows",
    [
        labelling(OURS, "OnlineSVC", SAMPLE),
        labelling(OURS_ALL, "OnlineSVC", None),
        labelling(RETRAIN_SAMPLE, "SVC", SAMPLE),
        labelling(RETRAIN, "SVC", None),
    ],
    [
        times_retraining(OURS, 95),
        error_off_retraining(OURS, 0.2),
        times_retraining(OURS_ALL),
        error_off_retraining(OURS_ALL),
    ],
    ["reuters"],
    rounds=3,
)


WORKS = [ADULT, MNIST, REUTERS]


def references(name: str, *, svc: bool) -> list[Job]:
    """Return what a row is compared with and needs no repetition."""
    if name == ADULT.name and svc:
        return [fit(SVC, "a9a", "csr64", A9A, "SVC")]
    if name != MNIST.name:
        return []
    if svc:
        params = {C: {"C": fitted, "gamma": MNIST_GAMMA} for C, fitted in MNIST_C.items()}
        return [fit(clean(C)[0], "mnist8", "dense64", params[C], "SVC") for C in MNIST_C]
    params = {C: {"C": C, "gamma": MNIST_GAMMA, "epochs": 2} for C in MNIST_C}
    return [fit(clean(C)[1], "mnist8", "dense32", params[C], "OnlineSVC") for C in MNIST_C]
