"""Figures 1 and 2: LASVM and LASVM-G on Adult, and the gap of LASVM-G along the training."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Values, judged
from reproduce.rows import ABSENT

MACHINES = {"G": "LASVM-G", "LASVM": "LASVM"}
POINTS = 20


def cases(quick: bool) -> dict[str, Case]:
    return {name: {"points": POINTS} for name in MACHINES}


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    import numpy as np

    from marginwise import OnlineSVC
    from reproduce.ertekin2011.methods import machine
    from reproduce.ertekin2011.sets import SETS

    one = SETS["adult"]
    split, is_gap = one.load(data, seed, quick=quick), case["name"] == "G"
    model: Any = (
        machine(one, "G", seed, record=True)
        if is_gap
        else OnlineSVC(C=one.C, gamma=one.gamma, reprocess_when="each", random_state=seed)
    )
    names = ("learned", "error", "support_vectors", *(("gap", "gap_seen") if is_gap else ()))
    found: dict[str, list[float]] = {name: [] for name in names}
    order = np.random.default_rng((seed, 6)).permutation(len(split.y))

    def note(start: int, stop: int) -> None:
        found["learned"].append(stop)
        found["error"].append(100 * float(np.mean(model.predict(split.X_test) != split.y_test)))
        found["support_vectors"].append(int(model.n_support_.sum()))
        if is_gap:
            seen, gaps = order[:stop], np.ravel(model.history_["gap"])[start:stop]
            found["gap"].append(float(np.mean(gaps / np.arange(start + 1, stop + 1))))
            found["gap_seen"].append(model.duality_gap(split.X[seen], split.y[seen]) / stop)

    stops = np.linspace(0, len(order), POINTS + 1).round().astype(int).tolist()
    for start, stop in pairwise(stops):
        rows = order[start:stop]
        model.partial_fit(split.X[rows], split.y[rows], classes=[0, 1])
        note(start, stop)
    if not is_gap:
        model.finish()
        note(len(order), len(order))
    return found


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import curves

    what = {"error": "test error, %", "support_vectors": "support vectors"}
    for axes, (path, label) in zip(figure.subplots(1, 2), what.items(), strict=True):
        curves(axes, results, MACHINES, "learned", path)
        axes.set(xlabel="examples learned", ylabel=label)
    figure.axes[0].legend(fontsize=7)


def claims(results: Results) -> list[Claim]:
    (g, la), (few, many) = (
        [results.curve(name, what) for name in MACHINES] for what in ("error", "support_vectors")
    )
    known = bool(g and la)
    better = sum(a < b for a, b in zip(g, la, strict=False))
    fewer = sum(a < b for a, b in zip(few, many, strict=False))
    same = abs(g[-1] - la[-1]) <= 0.2 if known else None
    place = "section 4.3, figure 2"
    return [
        Claim(
            "During training, LASVM-G has a lower test error than LASVM.",
            place,
            judged(better >= 0.9 * len(g) if known else None),
            "“a better classification accuracy at an earlier point”",
            f"at {better} of {len(g)} points" if known else ABSENT,
        ),
        Claim(
            "At the end, LASVM-G and finished LASVM have the same test error, within 0.2 points.",
            place,
            judged(same),
            "“the same generalization performance in the end of training”",
            f"{g[-1]:.2f} % and {la[-1]:.2f} %" if known else ABSENT,
            "Probably because LASVM-G is not finished: it reduces its gap only to a target, which "
            "grows with the data."
            if same is False
            else "",
        ),
        Claim(
            "During training, LASVM-G has fewer support vectors than LASVM.",
            place,
            judged(fewer >= 0.9 * len(g) if known else None),
            "“fewer number of support vectors in the intermediate training steps”",
            f"at {fewer} of {len(g)} points" if known else ABSENT,
        ),
        Claim(
            "Finishing makes the test error and the support vectors of LASVM drop.",
            place,
            judged(la[-1] < la[-2] and many[-1] < many[-2] if known else None),
            "“the drop of the Test Error and the number of support vectors in the end”",
            f"error {la[-2]:.2f} to {la[-1]:.2f} %, {many[-2]:,.0f} to {many[-1]:,.0f} support "
            "vectors"
            if known
            else ABSENT,
        ),
    ]


EXPERIMENT = Experiment(
    "ertekin2011",
    "Figure 2",
    "LASVM and LASVM-G on Adult",
    f"Adult, C = 100, γ = 0.005, one pass in random order, {POINTS} points, three seeds. LASVM is "
    '`OnlineSVC` with one REPROCESS per example (`reprocess_when="each"`), finished at the end.',
    files=("a9a.npz",),
    cases=cases,
    run=run,
    seeds=3,
    draw=draw,
    size=(9, 3.4),
    claims=claims,
)
