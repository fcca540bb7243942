"""Figure 5: CPU time against the number of rows, RBF kernel, ten digits."""

from __future__ import annotations

import statistics

from reproduce.experiment import Claim, Experiment, Results, judged
from reproduce.laskov2006 import figure4, scaling
from reproduce.laskov2006.scaling import DIGITS, NAIVE, name_of, sizes_of

KERNEL = "rbf"


def claims(results: Results) -> list[Claim]:
    common = [n for n in sizes_of(results, KERNEL, 0) if name_of("linear", 0, n) in results]
    n = max(common, default=0)
    cases = {
        kernel: [name_of(kernel, digit, n) for digit in DIGITS] for kernel in ("linear", KERNEL)
    }
    share, times = {}, {}
    for kernel, names in cases.items():
        vectors = [results.mean(case, "exact", "support_vectors") for case in names]
        seconds = [results.mean(case, NAIVE, "fit", "cpu") for case in names]
        if n and None not in vectors and None not in seconds:
            share[kernel] = 100 * statistics.fmean(vectors) / n  # type: ignore[type-var]
            times[kernel] = statistics.fmean(seconds)  # type: ignore[type-var]
    known = len(share) == 2
    reason = (
        "The paper prints neither C nor the scale of the pixels, and the share of support vectors "
        "depends on both."
    )
    return [
        Claim(
            "Models with the RBF kernel have a larger share of support vectors than linear ones.",
            "section 5.4",
            judged(share[KERNEL] > 1.5 * share["linear"] if known else None),
            "15 % against 5 %, 10,000 rows",
            f"{share[KERNEL]:.0f} % against {share['linear']:.0f} %, {n:,} rows" if known else "–",
            reason,
        ),
        Claim(
            "The RBF kernel takes longer to train than the linear kernel.",
            "section 5.4, figures 4 and 5",
            judged(times[KERNEL] > 1.1 * times["linear"] if known else None),
            "more difficult",
            f"{times[KERNEL] / times['linear']:.2f} times the CPU time of the naive version, mean "
            f"of the digits, {n:,} rows"
            if known
            else "–",
            reason,
        ),
    ]


EXPERIMENT = Experiment(
    "laskov2006",
    "Figure 5",
    "Time against the number of rows, RBF kernel",
    scaling.TEXT + "As figure 4.",
    shares="figure4",
    tables=lambda results: figure4.tables_of(results, KERNEL),
    draw=lambda results, figure: figure4.draw_digits(results, figure, KERNEL),
    size=(10, 5),
    claims=claims,
)
