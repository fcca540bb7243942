"""Figure 6: test error on MNIST against the number of kernel evaluations."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import cell
from reproduce.usunier2010.figure5 import BATCH, SETUPS, at_end, labels

MUCH = 0.8  # times the error of batch optimization, or less


def shown(results: Results) -> dict[str, str]:
    """Return the setups and their batch counterpart, with labels."""
    return {**labels(results), **({BATCH: "batch"} if BATCH in results else {})}


def tables(results: Results) -> list[Table]:
    rows = [[label, *at_end(results, case)] for case, label in shown(results).items()]
    return [Table(["at the end", "error, %", "support vectors", "kernel evaluations, M"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    axes = figure.subplots()
    curves(axes, results, shown(results), "kernel_evaluations", "errors")
    axes.set(xscale="log", yscale="log", xlabel="kernel evaluations", ylabel="test error, %")
    axes.legend()


def error_at(results: Results, case: str, evaluations: float) -> float | None:
    """Return the error of the last point with at most so many kernel evaluations."""
    spent, errors = results.curve(case, "kernel_evaluations"), results.curve(case, "errors")
    reached = [e for s, e in zip(spent, errors, strict=True) if s <= evaluations]
    return reached[-1] if reached else None


def claims(results: Results) -> list[Claim]:
    spent = [results.curve(case, "kernel_evaluations") for case in shown(results)]
    budget = min((curve[-1] for curve in spent if curve), default=0.0)
    at = {case: error_at(results, case, budget) for case in shown(results)}
    errors = [error for case, error in at.items() if case != BATCH and error is not None]
    batch = at.get(BATCH)
    text = ", ".join(f"{label} {cell(at[case])} %" for case, label in shown(results).items())
    return [
        Claim(
            "Per kernel evaluation, the test error of Algorithm 1 decreases much faster than that "
            "of its batch counterpart, whether examples are selected or not.",
            "section 6.3, figure 6",
            judged(max(errors) < MUCH * batch if len(errors) == len(SETUPS) and batch else None),
            "“much faster”, “independently of the example selection”",
            f"at {budget / 1e6:.1f} M kernel evaluations: {text}",
            "With random selection the errors are about equal, probably because our batch "
            "algorithm computes kernel values with its support vectors only, while the paper's "
            "maintains the gradients of all examples.",
        )
    ]


EXPERIMENT = Experiment(
    "usunier2010",
    "Figure 6",
    "Test error against kernel evaluations on MNIST",
    "The runs of figure 5, and the batch counterpart: coordinate ascent (eq. 3) over examples "
    "picked at random from all 60,000. The batch algorithm computes the gradient of the picked "
    "example only, from kernel values with its support vectors; `TrackingSVC` maintains the "
    "gradients of all examples seen. Kernel values that select examples are not counted, which "
    "favours active selection.",
    shares="figure5",
    tables=tables,
    draw=draw,
    size=(6, 3.8),
    claims=claims,
)
