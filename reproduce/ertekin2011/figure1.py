"""Figure 1: gap between primal and dual of LASVM-G, per training example."""

from __future__ import annotations

import statistics
from typing import Any

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.rows import ABSENT

GAPS = {
    "gap": "over the kernel expansion, as LASVM-G computes it (eq. 9)",
    "gap_seen": "over all examples seen",
}


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS, LINES, MARKERS

    axes = figure.subplots()
    at = results.curve("G", "learned")
    for k, (path, label) in enumerate(GAPS.items()):
        height = results.curve("G", path)
        if height:
            style = {"color": COLOURS[k], "marker": MARKERS[k], "ms": 4, "label": label}
            axes.plot(at, height, LINES[k], **style)
    axes.set(xlabel="examples learned", ylabel="(J − G) / examples", title="Adult")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    found = []
    for path, label in GAPS.items():
        gap = results.curve("G", path)
        quarter = len(gap) // 4
        ends = [statistics.fmean(gap[:quarter]), statistics.fmean(gap[-quarter:])] if gap else []
        falls = ends[1] < ends[0] if ends else None
        found.append(
            Claim(
                f"The gap per training example shrinks as more examples are learned, {label}.",
                "section 4.3, figure 1",
                judged(falls),
                "a figure",
                f"{ends[0]:.3g} in the first quarter of Adult, {ends[1]:.3g} in the last"
                if ends
                else ABSENT,
                "LASVM-G does not see the examples that CLEAN removed, so it cannot reduce their "
                "part of the gap."
                if falls is False
                else "",
            )
        )
    return found


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 1",
    "Gap between primal and dual",
    "The runs are those of figure 2. Each gap is divided by the number of examples seen. The one "
    "over the kernel expansion is averaged over the examples between two points. The paper names "
    "neither its data set nor the examples that J sums over.",
    shares="figure2",
    draw=draw,
    size=(5.5, 3.4),
    claims=claims,
)
