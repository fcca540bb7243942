"""Table 1: accuracy and support vectors of the learners on nine sets."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import cell, mean_cell, ratio
from reproduce.wang2009.learners import ASVM, HINGE, OFFLINE, PA, RAMP
from reproduce.wang2009.sets import SETS

LEARNERS = (HINGE, PA, RAMP, ASVM)
OFFLINE_SEEDS = 1  # its cost hardly varies, and can be large
NEAR = 1.0  # points of accuracy
LEAST = 0.1  # smaller gains do not count: on USPS, with one test set, 0.05 points are one digit
PLACE = "section IV.C, table 1"


def cases(quick: bool) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name in ("gauss", "banana") if quick else SETS:
        data = SETS[name]
        files = [] if data.file is None else [data.file]
        for learner in (*LEARNERS, OFFLINE):
            seeds = min(data.seeds, OFFLINE_SEEDS) if learner == OFFLINE else data.seeds
            case = {"set": name, "learner": learner, "files": files, "seeds": seeds}
            found[f"{name}: {learner}"] = case
    return found


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.wang2009.learners import measure

    chosen = SETS[case["set"]]
    return measure(case["learner"], chosen, chosen.load(data, seed, quick=quick))


def measured(results: Results, added: bool = True) -> list[str]:
    """Return the sets that both kinds of loss have learned."""
    return [
        name
        for name in SETS
        if f"{name}: {RAMP}" in results
        and f"{name}: {HINGE}" in results
        and (added or not SETS[name].added)
    ]


def table(results: Results, title: str, field: str, form: str) -> Table:
    rows = [
        [
            name,
            cell(results.mean(f"{name}: {RAMP}", "rows"), "{:,.0f}"),
            *(mean_cell(results, f"{name}: {one}", field, form=form) for one in LEARNERS),
            str(results.seeds(f"{name}: {RAMP}")),
        ]
        for name in measured(results)
    ]
    return Table(["set", "rows", *LEARNERS, "seeds"], rows, title)


def shares(results: Results) -> Table:
    rows = []
    for name in measured(results):
        inside = [results.mean(f"{name}: {one}", "inside") for one in (HINGE, RAMP, ASVM)]
        asked = ratio(
            results.mean(f"{name}: {ASVM}", "labels"), results.mean(f"{name}: {ASVM}", "rows")
        )
        percent = [None if share is None else 100 * share for share in (*inside, asked)]
        rows.append([name, *(cell(value, "{:.1f}") for value in percent)])
    header = ["set", HINGE, RAMP, ASVM, f"labels asked, {ASVM}"]
    return Table(header, rows, "Support vectors with |f| ≤ 1 and labels asked for, in %")


def tables(results: Results) -> list[Table]:
    return [
        table(results, "Accuracy, %", "accuracy", "{:.2f}"),
        table(results, "Support vectors", "support_vectors", "{:,.0f}"),
        shares(results),
    ]


def gain(results: Results, one: str, other: str) -> tuple[float, float]:
    """Return by how many points one case is more accurate than another, and its standard error."""
    pairs = zip(results.values(one, "accuracy"), results.values(other, "accuracy"), strict=False)
    differences = [ours - theirs for ours, theirs in pairs]
    if not differences:
        return 0.0, 0.0
    sd = statistics.stdev(differences) if len(differences) > 1 else 0.0
    return statistics.fmean(differences), sd / math.sqrt(len(differences))


def surely(results: Results, one: str, other: str) -> bool:
    """Return whether one case is more accurate by two standard errors and by `LEAST` points."""
    points, error = gain(results, one, other)
    return points > max(2 * error, LEAST)


def said(names: list[str], own: list[str]) -> str:
    return f"{len(names)} of {len(own)} sets ({', '.join(names) or 'none'})"


def accuracy_claims(results: Results, own: list[str]) -> list[Claim]:
    complete = len(own) == 9
    gains = {name: gain(results, f"{name}: {RAMP}", f"{name}: {HINGE}")[0] for name in own}
    order = sorted(gains, key=lambda name: -gains[name])
    ahead = [name for name in own if surely(results, f"{name}: {RAMP}", f"{name}: {HINGE}")]
    others = (HINGE, RAMP, ASVM)
    behind = [
        name
        for name in own
        if all(surely(results, f"{name}: {one}", f"{name}: {PA}") for one in others)
    ]
    near = [
        name
        for name in own
        if max(gain(results, f"{name}: {one}", f"{name}: {ASVM}")[0] for one in (HINGE, RAMP))
        <= NEAR
    ]
    return [
        Claim(
            f"{RAMP} is significantly more accurate than LibSVM on 5 of 9 sets.",
            PLACE,
            judged(len(ahead) >= 5 if complete else None),
            "5 of 9 sets",
            f"by two standard errors and at least {LEAST:g} points on {said(ahead, own)}",
            "On sets with little noise both losses give nearly the same model, and on Adult and "
            "Banana the tuned LibSVM is at least as accurate.",
        ),
        Claim(
            "The largest gains over LibSVM, up to 2 points, are those on NCheckerboard and Cover.",
            PLACE,
            judged(set(order[:2]) == {"ncheckerboard", "cover"} if complete else None),
            "up to 2 points",
            ", ".join(f"{name} {gains[name]:+.2f}" for name in order[:3]) + " points",
            "NCheckerboard gains most here, too; on Cover the number of rows and the parameters "
            "probably differ from the paper's, which our copy has lost.",
        ),
        Claim(
            "PA is significantly less accurate than the other learners on 7 of 9 sets.",
            PLACE,
            judged(len(behind) >= 7 if complete else None),
            "7 of 9 sets",
            f"less accurate than LibSVM, {RAMP} and {ASVM} on {said(behind, own)}",
            "On Banana, Gauss and Waveform the tuned learners are about equally accurate, and on "
            "Cover PA, with the narrowest kernel of our grid, is the best; our copy of the paper "
            "has lost the end of its grid.",
        ),
        Claim(
            f"{ASVM} is usually at most 1 point less accurate than LibSVM and {RAMP}.",
            PLACE,
            judged(len(near) >= len(own) - 1 if complete else None),
            "usually within 1 %",
            f"at most {NEAR:g} point less accurate on {len(near)} of {len(own)} sets",
        ),
    ]


def times_sparser(results: Results, name: str, learner: str, other: str = HINGE) -> float:
    """Return how many times fewer support vectors one learner has than another, 0 if unknown."""
    vectors = [results.mean(f"{name}: {one}", "support_vectors") for one in (other, learner)]
    return ratio(*vectors) or 0.0


def size_claims(results: Results, own: list[str]) -> list[Claim]:
    complete = len(own) == 9
    gauss = [times_sparser(results, "gauss", one) for one in (RAMP, ASVM)] if own else []
    fewer = [
        name
        for name in own
        if min(times_sparser(results, name, one, o) for one in (RAMP, ASVM) for o in (HINGE, PA))
        > 1
    ]
    dense = [
        name
        for name in own
        if max(times_sparser(results, name, PA, one) for one in (HINGE, RAMP, ASVM)) < 1
    ]
    kept = ratio(
        results.mean(f"cover: {PA}", "support_vectors"), results.mean(f"cover: {PA}", "rows")
    )
    return [
        Claim(
            "The models of both ramp loss learners are much sparser than those of LibSVM and PA.",
            PLACE,
            judged(len(fewer) == len(own) if complete else None),
            "“much sparser”",
            f"sparser on {said(fewer, own)}",
            "On the other sets, which have little noise, no support vector of LibSVM lies beyond "
            "the margins, so that the ramp loss has nothing to drop.",
        ),
        Claim(
            f"On Gauss, {RAMP} and {ASVM} are about 10 times sparser than LibSVM.",
            PLACE,
            judged(min(gauss) >= 9 if gauss else None),
            "about 10 times",
            " and ".join(f"{factor:.1f}" for factor in gauss) + " times" if gauss else "–",
            "The factor depends on the overlap of the classes, and the paper does not print its "
            "distributions.",
        ),
        Claim(
            "PA has the densest models.",
            PLACE,
            judged(len(dense) == len(own) if complete else None),
            "the densest models",
            f"the most support vectors on {len(dense)} of {len(own)} sets",
        ),
        Claim(
            "On Cover, all training rows are support vectors of PA.",
            PLACE,
            judged(None if kept is None else kept >= 0.99),
            "all training rows",
            f"{cell(None if kept is None else 100 * kept, '{:.0f}')} % of the training rows",
            "PA skips the rows whose loss is 0, and their number depends on the kernel width, "
            "which our copy of the paper does not have.",
        ),
    ]


def solution_claims(results: Results, own: list[str]) -> list[Claim]:
    inside = [v for name in own for v in results.values(f"{name}: {RAMP}", "inside")]
    wrong = [v for name in own for v in results.values(f"{name}: {RAMP}", "wrong")]
    quotients = []
    for name in own:
        cases = (f"{name}: {RAMP}", f"{name}: {OFFLINE}")
        both = results.paired(*cases)
        quotient = ratio(*(both.mean(case, "objective") for case in cases))
        quotients += [] if quotient is None else [quotient]
    far = max((abs(quotient - 1) for quotient in quotients), default=0.0)
    return [
        Claim(
            f"{RAMP} maintains the optimal solution of the ramp loss SVM after each example.",
            "abstract, section III",
            judged(far <= 0.01 if len(quotients) == 9 else None),
            "the optimal solution",
            f"objective after the last example: {min(quotients):.3f} to {max(quotients):.3f} times "
            "that of offline training"
            if quotients
            else "–",
            "The objective is not convex: online and offline training may end in different local "
            "minima.",
        ),
        Claim(
            "All support vectors of the ramp loss lie inside the ramp.",
            "section II.C",
            judged(min(inside) > 0.99 and max(wrong) == 0 if inside else None),
            "all",
            f"{100 * min(inside):.1f} to {100 * max(inside):.1f} % of them have |f| ≤ 1 up to a "
            f"tolerance of 0.01; {100 * max(wrong):.1f} % lie beyond the margin of the wrong class"
            if inside
            else "–",
            "The others lie just outside their own margin, with a small coefficient that the "
            "stopping criterion of the solver leaves.",
        ),
    ]


def claims(results: Results) -> list[Claim]:
    own = measured(results, added=False)
    return [
        *accuracy_claims(results, own),
        *size_claims(results, own),
        *solution_claims(results, own),
    ]


EXPERIMENT = Experiment(
    "wang2009",
    "Table 1",
    "Accuracy and support vectors of hinge and ramp loss",
    "Attributes have mean 0 and deviation 1 over the training rows. C and the kernel width of each "
    "learner were chosen by five-fold cross-validation (`python -m reproduce.wang2009.tuning`). "
    "Our copy of the paper has lost the sizes of the sets. Adult, Cover and Letter (not one of the "
    "paper's) use 10,000 training rows. The paper does not print its Gauss distributions: ours "
    "are N((0, 0), I) and N((2, 0), 4 I), for which no rule exceeds 81.5 %. The order of the rows "
    "is drawn by seed; the paper repeats ten times. Adult, DNA and USPS have a fixed test set, so "
    "that their deviations do not include the choice of the test rows.",
    cases=cases,
    run=run,
    seeds=10,
    tables=tables,
    claims=claims,
)
