"""Table 1: where examples of Adult are on the ramp when admitted, and which are removed."""

from __future__ import annotations

from pathlib import Path

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import ABSENT, cell

COLUMNS = {
    "support_vectors": "SV",
    "idle": "non-SV",
    "left": "admitted L",
    "right": "admitted R",
    "left_removed": "cleaned L",
    "right_removed": "cleaned R",
}
# The paper prints one number for both flat parts of FULL: 32,562 admitted, 0 cleaned.
PAPER = {
    "FULL": ("11,831", "20,731", ABSENT, ABSENT, "0", "0"),
    "G": ("11,265", "0", "1,340", "20,252", "1", "19,562"),
}
BLOCK = 20


def cases(quick: bool) -> dict[str, Case]:
    return {method: {"block": BLOCK} for method in PAPER}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    from reproduce.ertekin2011.methods import machine
    from reproduce.ertekin2011.sets import SETS

    one = SETS["adult"]
    split, model = one.load(data, seed, quick=quick), machine(one, case["name"], seed)
    order = np.random.default_rng((seed, 6)).permutation(len(split.y))
    X, y = split.X[order], split.y[order]
    z = np.zeros(len(y))  # before any model, f is 0
    for start in range(0, len(y), BLOCK):
        rows = slice(start, start + BLOCK)
        if start:
            z[rows] = np.where(y[rows] == 1, 1, -1) * model.decision_function(X[rows])
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    stays = np.zeros(len(y), dtype=bool)
    stays[model.ids_] = True
    left, right = z < -1, z > 1
    vectors = int(model.n_support_.sum())
    return {
        "support_vectors": vectors,
        "idle": int(stays.sum()) - vectors,
        "left": int(left.sum()),
        "right": int(right.sum()),
        "left_removed": int((left & ~stays).sum()),
        "right_removed": int((right & ~stays).sum()),
    }


def tables(results: Results) -> list[Table]:
    rows = []
    for method, theirs in PAPER.items():
        ours = [cell(results.mean(method, name), "{:,.0f}") for name in COLUMNS]
        rows += [[method, *ours], [f"{method}, paper", *theirs]]
    return [Table(["", *COLUMNS.values()], rows)]


def claims(results: Results) -> list[Claim]:
    left, gone = results.mean("G", "left"), results.mean("G", "left_removed")
    right, cleaned = results.mean("G", "right"), results.mean("G", "right_removed")
    known = None not in (left, gone, right, cleaned) and bool(left) and bool(right)
    return [
        Claim(
            "Almost all outliers (z < −1) that LASVM-G admits become support vectors and are never "
            "removed: at most 1 % are.",
            "section 6, table 1",
            judged(gone <= 0.01 * left if known else None),
            "1 of 1,340 removed",
            f"{gone:,.0f} of {left:,.0f} removed" if known else ABSENT,
        ),
        Claim(
            "Most examples admitted with z > 1 are removed later: at least 90 %.",
            "section 6, table 1",
            judged(cleaned >= 0.9 * right if known else None),
            "19,562 of 20,252 removed",
            f"{cleaned:,.0f} of {right:,.0f} removed" if known else ABSENT,
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Table 1",
    "Examples of Adult on the flat parts of the ramp",
    "z = y f(x) just before an example is admitted: L is z < −1, R is z > 1. To save time, z is "
    f"computed for {BLOCK} examples at once, with the model before the first of them. One seed. "
    "In the paper, G has no non-SVs at the end, probably because CLEAN runs a last time. FULL "
    "removes nothing; the paper counts all its 32,562 examples as admitted.",
    files=("a9a.npz",),
    cases=cases,
    run=run,
    tables=tables,
    claims=claims,
)
