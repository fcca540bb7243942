"""Figure 6: PRBEP of AL and RS on Adult as positives become rarer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.ertekin2007 import figure5
from reproduce.ertekin2007.figure2 import last, tables
from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged
from reproduce.rows import ABSENT

RATIOS = (3.15, 10, 20, 30)
LABELS = 4000


def cases(quick: bool) -> dict[str, Case]:
    from reproduce.ertekin2007.sets import MORE

    files = (MORE["adult"].file,)
    return {
        f"{ratio}, {way}": {"labels": 150 if quick else LABELS, "files": files}
        for ratio in (RATIOS[-1:] if quick else RATIOS)
        for way in figure5.WAYS
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    return figure5.run(case, seed, data, quick, "adult")


def draw(results: Results, figure: Any) -> None:
    figure5.draw(results, figure, "prbep", "PRBEP, %")


def claims(results: Results) -> list[Claim]:
    said, above = [], []
    for ratio in RATIOS:
        peak = max(results.curve(f"{ratio}, AL", "prbep"), default=None)
        end = last(results, f"{ratio}, RS", "prbep")
        if peak is not None and end is not None:
            above.append(peak - end)
            said.append(f"{peak:.1f} against {end:.1f} at {ratio:.0f}")
    return [
        Claim(
            "With high imbalance, AL peaks early above what RS reaches with all training data.",
            "section 6, figure 6",
            judged(above[-1] > 0 and above[-1] > above[0] if len(above) == len(RATIOS) else None),
            "read from the figure",
            f"highest PRBEP of AL within {LABELS:,} labels against RS with all: {', '.join(said)}"
            if said
            else ABSENT,
        )
    ]


EXPERIMENT = Experiment(
    "ertekin2007",
    "Figure 6",
    "PRBEP on Adult with rare positives",
    "Random positives are removed from the training rows until there are 10 to 30 negatives per "
    "positive; “3” is the whole set. C = 100 and γ = 0.005 are those of bordes2005, as this paper "
    f"gives none. AL learns {LABELS:,} labels, RS all rows. One seed.",
    cases=cases,
    run=run,
    tables=tables,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
