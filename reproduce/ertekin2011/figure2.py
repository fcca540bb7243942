"""Figures 1 and 2: LASVM and LASVM-G on Adult, and the gap of LASVM-G along the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged

MACHINES = {"G": "LASVM-G", "LASVM": "LASVM"}
POINTS = 12


def cases(quick: bool) -> dict[str, Case]:
    return {name: {} for name in MACHINES}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    from marginwise import OnlineSVC
    from reproduce.ertekin2011.methods import machine
    from reproduce.ertekin2011.sets import SETS

    one = SETS["adult"]
    split, is_gap = one.load(data, seed, quick=quick), case["name"] == "G"
    model = (
        machine(one, "G", seed)
        if is_gap
        else OnlineSVC(C=one.C, gamma=one.gamma, reprocess_when="each", random_state=seed)
    )
    found: dict[str, list[float]] = {
        name: [] for name in ("learned", "error", "support_vectors", "gap")
    }
    order, done = np.random.default_rng((seed, 6)).permutation(len(split.y)), 0

    def note(count: int) -> None:
        found["learned"].append(count)
        found["error"].append(100 * float(np.mean(model.predict(split.X_test) != split.y_test)))
        found["support_vectors"].append(int(model.n_support_.sum()))
        seen = order[:count]
        gap = model.duality_gap(split.X[seen], split.y[seen]) / count if is_gap else 0.0
        found["gap"].append(float(gap))

    for stop in np.linspace(0, len(order), POINTS + 1).round().astype(int)[1:]:
        rows, done = order[done:stop], stop
        model.partial_fit(split.X[rows], split.y[rows], classes=[0, 1])
        note(int(stop))
    if not is_gap:
        model.finish()
        note(len(order))
    return found


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    what = {"error": "test error, %", "support_vectors": "support vectors"}
    for axes, (path, label) in zip(figure.subplots(1, 2), what.items(), strict=True):
        curves(axes, results, MACHINES, "learned", path)
        axes.set(xlabel="examples learned", ylabel=label)
    figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    g, la = (results.curve(name, "error") for name in MACHINES)
    vectors = [results.curve(name, "support_vectors") for name in MACHINES]
    if not g or not la:
        return []
    better = sum(a < b for a, b in zip(g, la[:-1], strict=True))
    fewer = sum(a < b for a, b in zip(vectors[0], vectors[1][:-1], strict=True))
    return [
        Claim(
            "LASVM-G has a lower test error than LASVM along the training.",
            "section 4.3, figure 2",
            judged(better >= 0.9 * len(g)),
            "read from the figure; equal at the end",
            f"at {better} of {len(g)} points; at the end {g[-1]:.2f} % and {la[-1]:.2f} %",
        ),
        Claim(
            "LASVM-G has fewer support vectors than LASVM along the training.",
            "section 4.3, figure 2",
            judged(fewer >= 0.9 * len(g)),
            "read from the figure",
            f"at {fewer} of {len(g)} points; at the end {vectors[0][-1]:,.0f}, LASVM "
            f"{vectors[1][-2]:,.0f} before and {vectors[1][-1]:,.0f} after finishing",
            "" if fewer >= 0.9 * len(g) else "Not investigated.",
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 2",
    "LASVM and LASVM-G on Adult",
    f"Adult, C = 100, γ = 0.005, one pass in random order, {POINTS} points, one seed. LASVM is "
    '`OnlineSVC` with one REPROCESS per example (`reprocess_when="each"`), finished at the end.',
    files=("a9a.npz",),
    cases=cases,
    run=run,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
