"""Claims of [laskov2006] that its experiments here do not cover."""

from __future__ import annotations

import json

from reproduce.experiment import NOT_TESTABLE, Claim, judged
from reproduce.store import REPOSITORY

LARGE = REPOSITORY / "benchmarks" / "results" / "exact-large.json"


def memory() -> list[Claim]:
    """Report how many rows fit into memory, by the benchmark of many rows."""
    runs: dict[str, list[dict[str, float]]] = {}
    if LARGE.is_file():
        content = json.loads(LARGE.read_text(encoding="utf-8"))
        runs = content["works"]["large"]["measurements"]
    found = {int(one["rows"]): one["peak_gb"] for (one, *_) in runs.values()}
    shown = "; ".join(f"{rows:,} rows in {peak:.1f} GB" for rows, peak in found.items())
    source = " (`python benchmarks/exact.py --only large`, C = 10, γ = 0.02)"
    return [
        Claim(
            "The C++ implementation learns 28,000 examples of MNIST with the RBF kernel before 3 "
            "GB are full.",
            "section 5.4",
            judged(found[28_000] <= 3 if 28_000 in found else None),
            "28,000 examples, about 3 GB",
            shown + source if found else "–",
        ),
        Claim(
            "Exact incremental learning is unlikely to scale beyond tens of thousands of examples.",
            "section 7",
            NOT_TESTABLE,
            "tens of thousands",
            shown + source if found else "–",
            "MNIST has no more rows; memory grows faster than their number.",
        ),
    ]


CLAIMS = [
    *memory(),
    Claim(
        "The Matlab program of Cauwenberghs and Poggio cannot handle 10,000 examples with the RBF "
        "kernel, and algorithm 1 in Matlab ends at about 15,000.",
        "section 5.4, figures 4 and 5",
        NOT_TESTABLE,
        "aborted at 10,000; about 15,000",
        "–",
        "The Matlab programs are not available here; algorithm 1 in NumPy replaces them.",
    ),
    Claim(
        "The number of minor iterations can be exponential in the worst case.",
        "section 5",
        NOT_TESTABLE,
        "potentially exponential",
        "a few iterations per row on MNIST, see section 4",
        "The paper names no data set on which it happens.",
    ),
    Claim(
        "LASVM's online solution is less accurate than the exact solution, and its finishing step "
        "may improve the error at a high price.",
        "section 7",
        NOT_TESTABLE,
        "depends on the data set",
        "figure 9 of bordes2005, repeated here: finishing lowers the error on noisy sets",
        "The paper quotes it from bordes2005 and has no experiment on it.",
    ),
    Claim(
        "Drug discovery, monitoring of industrial devices and surveillance of network traffic can "
        "use the algorithm.",
        "abstract, section 7",
        NOT_TESTABLE,
        "foreseen",
        "–",
        "The paper has no data on them beyond KDD Cup 99.",
    ),
]
