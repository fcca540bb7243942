"""Figure 1: where the naive implementation spends its time, digit 8."""

from __future__ import annotations

from typing import Any

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.laskov2006 import scaling
from reproduce.laskov2006.scaling import KERNELS, MAIN, NAIVE, shares, sizes_of
from reproduce.laskov2006.storage import AUGMENT, COPYING, GAMMA, GATHER, KERNEL, OTHER
from reproduce.laskov2006.wording import because


def tables_of(results: Results, way: str) -> list[Table]:
    rows = []
    for kernel in KERNELS:
        for n in sizes_of(results, kernel, MAIN):
            found = shares(results, kernel, n, way)
            rows.append([f"{kernel}, {n:,} rows", *(f"{value:.1f}" for value in found.values())])
    if not rows:
        return []
    names = shares(results, *first(results), way)
    return [Table(["", *names], rows, "CPU time, %, by operation (line of algorithm 1)")]


def first(results: Results) -> tuple[str, int]:
    """Return a kernel and a number of rows that were measured."""
    return next((kernel, n) for kernel in KERNELS for n in sizes_of(results, kernel, MAIN))


def draw_shares(results: Results, figure: Any, way: str) -> None:
    """Draw stacked bars, one per number of rows."""
    from reproduce.drawing import COLOURS

    colours = [*COLOURS, "#F0E442", "#D9D9D9"]
    panels = figure.subplots(1, len(KERNELS), sharey=True)
    for axes, kernel in zip(panels, KERNELS, strict=True):
        sizes = sizes_of(results, kernel, MAIN)
        found = [shares(results, kernel, n, way) for n in sizes]
        bottom = [0.0] * len(sizes)
        for k, name in enumerate(found[0] if found else ()):
            heights = [one[name] for one in found]
            axes.bar(range(len(sizes)), heights, 0.7, bottom, color=colours[k], label=name)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes])
        axes.set(title=kernel, xlabel="rows")
    panels[0].set(ylabel="CPU time, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")


def claims(results: Results) -> list[Claim]:
    found = {
        (kernel, n): shares(results, kernel, n, NAIVE)
        for kernel in KERNELS
        for n in sizes_of(results, kernel, MAIN)
    }
    moved = [sum(one[name] for name in COPYING) for one in found.values()]
    named = [100 - one[OTHER] for one in found.values()]
    lines = [100 - one[OTHER] - one[AUGMENT] for one in found.values()]
    gamma = [one[GATHER] + one[GAMMA] for one in found.values()]
    rest = [max(v for k, v in one.items() if k not in (GATHER, GAMMA)) for one in found.values()]
    costly = all(a > b for a, b in zip(gamma, rest, strict=True))
    kernels = {
        kernel: [found[key][KERNEL] for key in found if key[0] == kernel] for kernel in KERNELS
    }
    falls = [values[-1] < values[0] for values in kernels.values() if len(values) > 1]
    return [
        Claim(
            "Memory access operations dominate the run time of the naive implementation.",
            "section 5.2, figure 1",
            judged(min(moved) > 50 if moved else None),
            "they “dominate”",
            f"{min(moved):.0f} to {max(moved):.0f} % of the time" if moved else "–",
        ),
        Claim(
            "Lines 1, 3 and 17 of algorithm 1 are the main bottlenecks, and computing γ in line 3 "
            "is especially costly.",
            "section 5.1",
            judged(min(lines) > 50 and costly if found else None),
            "“main performance bottlenecks”, “especially costly”",
            f"{min(lines):.0f} to {max(lines):.0f} % of the time, of which γ and its selection "
            f"{min(gamma):.0f} to {max(gamma):.0f} %"
            if found
            else "–",
        ),
        Claim(
            "The share of kernel computation falls as the number of rows grows, for all kernels.",
            "section 5.2, figure 1",
            judged(all(falls) if falls else None),
            "“scales down”",
            ", ".join(f"{k}: {v[0]:.0f} to {v[-1]:.0f} %" for k, v in kernels.items() if v)
            if falls
            else "–",
            because(
                all(falls) if falls else None,
                "NumPy's products of rows with a vector are limited by memory as the copies are.",
            ),
        ),
        Claim(
            "Eight operations take most of the run time.",
            "section 5.2",
            judged(min(named) >= 75 if named else None),
            "75 to 95 %, depending on the digit",
            f"{min(named):.0f} to {max(named):.0f} % for the digit {MAIN}" if named else "–",
        ),
    ]


EXPERIMENT = Experiment(
    "laskov2006",
    "Figure 1",
    "Profile of the naive implementation, digit 8",
    scaling.TEXT + "Algorithm 1 with algorithm 4 in NumPy: a selection copies a submatrix, and a "
    "matrix grows by being copied as a whole. Operations that only move memory are: selecting "
    "rows of X, gathering K_sr, and augmenting K. The paper profiles a Matlab program and goes "
    "up to 10,000 rows; its shares are not printed in numbers.",
    shares="figure4",
    tables=lambda results: tables_of(results, NAIVE),
    draw=lambda results, figure: draw_shares(results, figure, NAIVE),
    size=(10, 4),
    claims=claims,
)
