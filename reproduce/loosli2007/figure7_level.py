"""Figure 7, the level of its errors: what each choice that the paper leaves open changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Claim, Experiment, Results, Table, Values, judged
from reproduce.rows import ABSENT, cell, mean_cell, minus

TRANSFORMED, QUICK = 10, 200
NONE, BEST = "no deformation", "strength 2, 1 pixel"
PAPER = {NONE: 2.52, BEST: 1.28}
STANDARD = "standard"
USUAL = {"images": 5000, "split": "random", "gamma": 0.024, "C": 1000.0, "prepare": "none"}
CHANGES: dict[str, dict[str, Any]] = {
    STANDARD: {},
    "learn the first, test the last images": {"split": "forwards"},
    "learn the last, test the first images": {"split": "backwards"},
    "test the 10,000 test images": {"split": "test"},
    "γ = 0.006": {"gamma": 0.006},
    "γ = 0.012": {"gamma": 0.012},
    "γ = 0.05": {"gamma": 0.05},
    "C = 1": {"C": 1.0},
    "C = 10": {"C": 10.0},
    "C = 100": {"C": 100.0},
    "images smoothed by 0.7 pixel": {"prepare": "smooth"},
    "images deskewed": {"prepare": "deskew"},
    "images scaled to norm 1, γ = 2": {"prepare": "norm", "gamma": 2.0},
    "one-vs-one": {"multiclass": "ovo"},
    "images deskewed, learn the first, test the last": {"prepare": "deskew", "split": "forwards"},
    "10,000 images": {"images": 10_000},
    "12,500 images": {"images": 12_500},
    "15,000 images": {"images": 15_000},
    "20,000 images": {"images": 20_000},
}
BOTH = (  # changes that are also tried with variants, which cost more
    STANDARD,
    "learn the first, test the last images",
    "γ = 0.012",
    "C = 10",
    "images smoothed by 0.7 pixel",
    "images deskewed",
    "images deskewed, learn the first, test the last",
    "10,000 images",
    "12,500 images",
    "15,000 images",
)
SEEDS = {(STANDARD, NONE): 5, (STANDARD, BEST): 3}


def cases(quick: bool) -> dict[str, Case]:
    changes = (STANDARD, "images deskewed") if quick else CHANGES
    return {
        f"{change}: {way}": {
            **USUAL,
            **CHANGES[change],
            "variants": TRANSFORMED * (way == BEST) + 1,
            "seeds": SEEDS.get((change, way), 1),
        }
        for way in (NONE, BEST)
        for change in changes
        if way == NONE or change in BOTH
    }


def run(case: Case, seed: int, data: Path, quick: bool) -> Values:
    from reproduce.loosli2007.setup import model, sizes, virtual
    from reproduce.measures import error, timed

    images = divided(case["split"], data, seed)
    images = images.first(QUICK if quick else case["images"])
    images.X, images.X_test = (prepared(X, case["prepare"]) for X in (images.X, images.X_test))
    variants = min(case["variants"], 3) if quick else case["variants"]
    source = virtual(images, variants, bootstrap=(), random_state=seed)
    given = {"gamma": case["gamma"], "C": case["C"], "multiclass": case.get("multiclass", "ovr")}
    learned, seconds = timed(lambda: model(seed, **given, cache_size=4000).learn_from(source))
    found = error(learned, images.X_test, images.y_test)
    return {"error": found, **sizes(learned), "fit": seconds}


def divided(split: str, data: Path, seed: int) -> Any:
    """Divide MNIST into images to learn and 10,000 to test."""
    import numpy as np

    from reproduce.loosli2007.setup import load, load_validation

    order = np.arange(60_000)
    orders = {"forwards": order, "backwards": order[::-1]}
    orders["random"] = np.random.RandomState(1 + seed).permutation(len(order))
    if split == "test":
        images, order = load(data), orders["random"]
        images.X, images.y = images.X[order], images.y[order]
        return images
    return load_validation(data, order=orders[split])


def prepared(X: Any, how: str) -> Any:
    """Preprocess images, which stay rows of pixels."""
    import numpy as np

    from reproduce.loosli2007.setup import smooth

    if how == "smooth":
        return smooth(255 * X, 0.7)
    if how == "norm":
        return X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.stack([deskewed(row) for row in X]) if how == "deskew" else X


def deskewed(row: Any) -> Any:
    """Shear an image so that its strokes are upright, by its moments."""
    import numpy as np
    from scipy.ndimage import affine_transform

    image = row.reshape(28, 28)
    i, j = np.mgrid[:28, :28]
    mass = image.sum()
    i0, j0 = (i * image).sum() / mass, (j * image).sum() / mass
    slope = ((i - i0) * (j - j0) * image).sum() / ((i - i0) ** 2 * image).sum()
    matrix = np.array([[1.0, 0.0], [slope, 1.0]])
    offset = np.array([0.0, -slope * i0])
    upright = affine_transform(image, matrix, offset=offset, order=1)
    return upright.ravel().astype(np.float32)


def effect(results: Results, case: str, way: str) -> float | None:
    """Return by how many points a change raises the error, over the seeds that both have."""
    usual = f"{STANDARD}: {way}"
    both = results.paired(case, usual)
    return minus(both.mean(case, "error"), both.mean(usual, "error"))


def tables(results: Results) -> list[Table]:
    rows = []
    for change in CHANGES:
        cells = []
        for way in (NONE, BEST):
            case = f"{change}: {way}"
            gap = effect(results, case, way)
            shown = change != STANDARD and gap is not None
            cells += [
                mean_cell(results, case, "error"),
                cell(gap, "{:+.2f}") if shown else ABSENT,
            ]
        rows.append([change, *cells])
    rows.append(["paper", f"{PAPER[NONE]:.2f}", ABSENT, f"{PAPER[BEST]:.2f}", ABSENT])
    header = ["changed", f"error, {NONE}, %", "change", f"error, {BEST}, %", "change"]
    return [Table(header, rows)]


def draw(results: Results, figure: Any) -> None:
    from reproduce.drawing import COLOURS

    for axes, way in zip(figure.subplots(1, 2), (NONE, BEST), strict=True):
        names = [change for change in CHANGES if f"{change}: {way}" in results]
        errors = [results.mean(f"{change}: {way}", "error") or 0 for change in names]
        axes.barh(names, errors, color=COLOURS[0])
        axes.axvline(PAPER[way], color="black", linestyle=(0, (1, 2)), label="paper")
        axes.invert_yaxis()
        axes.set(title=way, xlabel="validation error, %")
        axes.tick_params(axis="y", labelsize=7)
        axes.legend(fontsize=7, loc="lower right")


def images_needed(results: Results, way: str) -> float | None:
    """Return the number of images with the paper's error, in hundreds, by interpolation."""
    import numpy as np

    sizes = {5000: STANDARD} | {n: f"{n:,} images" for n in (10_000, 12_500, 15_000)}
    names = {n: f"{name}: {way}" for n, name in sizes.items()}
    found = results.paired(*names.values())  # the same division
    if len(found.cases) < len(names):
        return None
    errors = [found.mean(name, "error") or 1.0 for name in names.values()]
    at, images = np.log(errors[::-1]), np.log(list(names)[::-1])
    return round(float(np.exp(np.interp(np.log(PAPER[way]), at, images))), -2)


def least(results: Results, way: str) -> float | None:
    """Return the least error of 5,000 images that are not deskewed."""
    errors = [
        results.mean(case, "error")
        for case in results.cases
        if case.endswith(way) and "000 images" not in case.replace("10,000 test", "")
        if "deskewed" not in case and "12,500" not in case
    ]
    return min((error for error in errors if error is not None), default=None)


def claims(results: Results) -> list[Claim]:
    ours = {way: results.mean(f"{STANDARD}: {way}", "error") for way in PAPER}
    upright = {way: results.mean(f"images deskewed: {way}", "error") for way in PAPER}
    needed = {way: images_needed(results, way) for way in PAPER}
    known = all(value is not None for value in ours.values())

    def said(values: dict[str, float | None], form: str = "{:.2f} %") -> str:
        return " and ".join(cell(values[way], form) for way in PAPER)

    return [
        Claim(
            "5,000 images give an error of 2.52 %, and 10 variants of each lower it to 1.28 %.",
            "section 4.1, figure 7",
            judged(all((ours[w] or 0) <= PAPER[w] + 0.3 for w in PAPER) if known else None),
            "2.52 % and 1.28 %",
            f"{said(ours)}; the best of all divisions, γ, C and smoothing "
            f"{said({way: least(results, way) for way in PAPER})}; deskewed {said(upright)}",
            f"Here, these errors take about {said(needed, '{:,.0f}')} images, and of all changes "
            "to 5,000 images, deskewing them comes closest; the paper reports neither. Its 1.28 % "
            "does not agree with its own table 1 either: at least 2.06 %, with twice as many "
            "images and 5 variants of each.",
        )
    ]


EXPERIMENT = Experiment(
    "loosli2007",
    "Figure 7, level",
    "Why the errors are above the paper's",
    "The standard setting learns 5,000 random images of MNIST's training set, without deformation "
    "or with 10 variants of each (strength 2, shifts of up to 1 pixel), and tests 10,000 others of "
    "the training set: γ = 0.024, C = 1000, one-vs-rest, plain pixels. Each other row changes one "
    "thing that the paper does not state, or the number of images. Changes with variants cost "
    "more, so that only some are measured. The standard setting has five seeds (three with "
    "variants), each with its own division; the other rows have one, and *change* compares them "
    "with the standard setting of the same seed.",
    files=("mnist.npz",),
    cases=cases,
    run=run,
    seeds=5,
    tables=tables,
    draw=draw,
    size=(10, 4.4),
    claims=claims,
)
