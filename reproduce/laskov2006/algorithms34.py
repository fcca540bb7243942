"""Algorithms 3 and 4: γ by sums of rows in place, and by gathering a matrix first, in C++."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.laskov2006 import scaling
from reproduce.laskov2006.scaling import KERNELS, MAIN
from reproduce.rows import cell

SIZES = (1000, 2000, 3000, 5000, 10_000)
TURNS, SLICE = 5, 0.1  # of each algorithm, seconds each


def cases(quick: bool) -> dict[str, Case]:
    return {
        f"{kernel}, {n:,}": {"kernel": kernel, "rows": n}
        for n in (scaling.QUICK_SIZES if quick else SIZES)
        for kernel in KERNELS
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    archive = np.load(data / "mnist.npz")
    order = np.random.default_rng(seed).permutation(len(archive["y_train"]))[: case["rows"]]
    X = archive["X_train"][order] / 255.0
    y = np.where(archive["y_train"][order] == MAIN, 1.0, -1.0)
    settings = KERNELS[case["kernel"]]
    model, screened = scaling.fit_exact(X, y, settings, screen=True)
    other, watched = scaling.fit_exact(X, y, settings, screen=False)
    free = model.support_[np.abs(model.dual_coef_[0]) < model.C]
    sums, gather = in_turns(kernel_rows(case["kernel"], X[free], X), free)
    agree = model.decision_function(X[:500]) - other.decision_function(X[:500])
    return {
        "support_vectors": len(model.support_),
        "free": len(free),
        "algorithm3": sums,
        "algorithm4": gather,
        "fit": {"screened": screened["fit"], "watched": watched["fit"]},
        "difference": float(np.abs(agree).max()),
    }


def kernel_rows(kernel: str, some: Any, X: Any) -> Any:
    import numpy as np

    from reproduce.laskov2006.naive import kernel_of

    settings = {key: value for key, value in KERNELS[kernel].items() if key != "C"}
    function, norms = kernel_of(**settings), np.einsum("ij,ij->i", X, X)
    return np.array([function(X, norms, x, float(x @ x)) for x in some])


def in_turns(rows: Any, free: Any) -> tuple[float, float]:
    """Time both algorithms in turns; return the median seconds of each."""
    from marginwise._core import sensitivity_seconds

    once = [sensitivity_seconds(rows, free, 1, gather) for gather in (False, True)]
    rounds = [max(1, round(SLICE / seconds)) for seconds in once]
    found: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for gather in (False, True):
            found[gather].append(sensitivity_seconds(rows, free, rounds[gather], gather))
    sums, gathered = (statistics.median(seconds) for seconds in found)
    return sums, gathered


def factor(results: Results, case: str) -> float:
    """Return how many times faster algorithm 3 is."""
    return (results.mean(case, "algorithm4") or 0) / (results.mean(case, "algorithm3") or 1)


def screening(results: Results, case: str) -> float:
    """Return how many times faster a fit that does not watch far rows is."""
    slow, fast = (results.median(case, "fit", one, "wall") for one in ("watched", "screened"))
    return (slow or 0) / (fast or 1)


def tables(results: Results) -> list[Table]:
    rows = []
    for case in results.cases:
        times = [results.mean(case, one) for one in ("algorithm4", "algorithm3")]
        fits = [results.median(case, "fit", one, "wall") for one in ("watched", "screened")]
        rows.append(
            [
                f"{case} rows",
                *(cell(results.mean(case, n), "{:,.0f}") for n in ("support_vectors", "free")),
                *(cell(1e3 * one if one else None, "{:.3f}") for one in times),
                f"{factor(results, case):.1f} ×",
                *(cell(one) for one in fits),
                f"{screening(results, case):.1f} ×",
            ]
        )
    header = ["", "SVs", "free", "γ by algorithm 4, ms", "by algorithm 3, ms", "faster"]
    return [Table([*header, "fit, all rows watched, s", "fit, s", "faster"], rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES, MARKERS

    titles = {"γ alone: algorithm 3 over algorithm 4": factor, "whole fits: screening": screening}
    for axes, (title, value) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for k, kernel in enumerate(KERNELS):
            found = [case for case in results.cases if case.startswith(f"{kernel}, ")]
            at = [int(case.partition(", ")[2].replace(",", "")) for case in found]
            heights = [value(results, case) for case in found]
            axes.plot(at, heights, LINES[k] + MARKERS[k], color=COLOURS[k], ms=4, label=kernel)
        axes.set(title=title, xlabel="rows", ylabel="times faster", ylim=(0, None))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if results:
        figure.axes[0].legend(fontsize=8)


def claims(results: Results) -> list[Claim]:
    found = [factor(results, case) for case in results.cases]
    sizes = {
        kernel: [case for case in results.cases if case.startswith(f"{kernel}, ")]
        for kernel in KERNELS
    }
    ends = {kernel: [factor(results, case) for case in of] for kernel, of in sizes.items()}
    grows = [values[-1] > values[0] for values in ends.values() if len(values) > 1]
    return [
        Claim(
            "Reimplementation in C++ alone does not solve the problem: with sums of kernel rows in "
            "place (algorithm 3), γ takes a fraction of the time that it takes if a matrix is "
            "selected first (algorithm 4).",
            "sections 5 and 5.3.2, algorithms 3 and 4",
            judged(min(found) > 2 if found else None),
            "“does not solve the problem”",
            f"algorithm 3 computes γ {min(found):.1f} to {max(found):.1f} times faster"
            if found
            else "–",
        ),
        Claim(
            "The gain over algorithm 4 in C++ is especially visible on larger sets.",
            "section 5.4",
            judged(all(grows) if grows else None),
            "“especially visible on larger training set sizes”",
            "times faster, by number of rows: "
            + "; ".join(f"{k} {', '.join(f'{one:.1f}' for one in v)}" for k, v in ends.items())
            if grows
            else "–",
            "The paper compares whole fits, here γ alone is compared; with the linear and the RBF "
            "kernel the gain is smaller again at 10,000 rows, probably because neither algorithm "
            "finds its kernel rows in the cache there.",
        ),
    ]


EXPERIMENT = Experiment(
    "laskov2006",
    "Algorithms 3 and 4",
    "The sensitivities γ in C++, digit 8",
    scaling.TEXT + "The final S of a fit is taken, and γ of all rows is computed again and again "
    "by both algorithms in C++: by adding up whole kernel rows, and by gathering K_sr first. "
    "Beside it, whole fits of ExactSVC that watch all rows, as in the paper, and that do not watch "
    "rows far from the margin. The table shows wall seconds.",
    files=("mnist.npz",),
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(9, 3.6),
    claims=claims,
)
