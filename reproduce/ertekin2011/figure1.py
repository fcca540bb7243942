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
        ends = quarters(gap) if gap else ()
        seeds = [quarters(one) for one in results.values("G", path)]
        fallen = sum(last < first for first, last in seeds)
        falls = fallen == len(seeds) if seeds else None
        found.append(
            Claim(
                f"The gap per training example shrinks as more examples are learned, {label}.",
                "section 4.3, figure 1",
                judged(falls),
                "“as the learner sees more training examples, the primal/dual gap gets smaller”",
                f"{ends[0]:.3g} in the first quarter of Adult, {ends[1]:.3g} in the last; it falls "
                f"with {fallen} of {len(seeds)} seeds"
                if ends
                else ABSENT,
                "LASVM-G no longer has the examples that CLEAN removed, so it cannot reduce their "
                "part of the gap."
                if falls is False
                else "",
            )
        )
    return found


def quarters(gap: list[float]) -> tuple[float, float]:
    """Return the mean gap of the first and of the last quarter of the points."""
    count = max(1, len(gap) // 4)
    return statistics.fmean(gap[:count]), statistics.fmean(gap[-count:])


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
