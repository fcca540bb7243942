"""Figure 9: what the finishing step changes."""

from __future__ import annotations

from reproduce.experiment import Claim, Experiment, Results, Table, judged
from reproduce.rows import cell, ratio

# Relative changes of error, support vectors and time, in percent.
PAPER = {
    "Waveform": (0, 0, 4),
    "Banana": (-79, -74, 185),
    "Reuters": (0, 0, 3),
    "USPS": (0, -2, 0),
    "USPS+N": (-67, -33, 7),
    "Adult": (-13, -19, 80),
    "Forest": (-1, -24, 248),
}
PATHS = (("error",), ("support_vectors",), ("fit", "cpu"))


def changes(results: Results, name: str) -> list[float | None]:
    """Return the relative changes by the finishing step, in percent."""
    case, found = f"{name}, LASVM", []
    for path in PATHS:
        share = ratio(results.mean(case, *path), results.mean(case, "before", *path))
        found.append(None if share is None else 100 * (share - 1))
    return found


def tables(results: Results) -> list[Table]:
    rows = []
    for name, theirs in PAPER.items():
        pairs = zip(theirs, changes(results, name), strict=True)
        rows.append([name, *(cell(v, "{:+.0f} %") for pair in pairs for v in pair)])
    header = ["", "error: paper", "here", "support vectors: paper", "here", "time: paper", "here"]
    return [Table(header, rows)]


def claims(results: Results) -> list[Claim]:
    found = {name: changes(results, name)[0] for name in ("Banana", "Adult", "USPS+N")}
    known = {name: value for name, value in found.items() if value is not None}
    ours = ", ".join(f"{name} {value:+.0f} %" for name, value in known.items())
    return [
        Claim(
            "The finishing step significantly improves the accuracy on noisy data sets.",
            "section 3.4, figure 9",
            judged(all(value < -5 for value in known.values()) if known else None),
            "error: Banana -79 %, Adult -13 %, USPS+N -67 %",
            ours or "–",
        )
    ]


EXPERIMENT = Experiment(
    "bordes2005",
    "Figure 9",
    "Before and after the finishing step",
    "Relative changes of test error, support vectors and CPU time by the finishing step, in the "
    "runs of figure 8.",
    shares="figure08",
    tables=tables,
    claims=claims,
)
