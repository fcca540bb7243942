"""Compare probabilities of OnlineSVC(calibration=...) and CalibratedClassifierCV(SVC(), cv=5).

    python benchmarks/probabilities.py                 a9a, MNIST ten classes, letter, SMS
    python benchmarks/probabilities.py letter sms      some of them
    python benchmarks/probabilities.py --svc intelex   SVC of scikit-learn-intelex, for large sets

The table shows, on test rows, the log loss, the Brier score, the expected calibration error (15
bins of the largest probability), the number of rows per 10,000 whose most probable class is not the
predicted one, and the error. Then come CPU seconds of fit, and the relative increase of the fit
time by sigmoid calibration: the median over --rounds of alternating fits with and without it. All
fits have one thread and the same C and gamma.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from contestants import CONTESTANTS
from corners import parse_cases, timed
from datasets import SOURCES, Split, load
from label_errors import SMS, rows_of
from numpy.typing import NDArray
from report import heading, write
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits
from works import A9A, LETTER, MNIST10

SETS: dict[str, dict[str, float]] = {
    "a9a": A9A,
    "mnist10": MNIST10,
    "letter": LETTER,
    "sms": {"C": 10, "gamma": 1.0},
}
FORMS = {"a9a": "csr64"}
BINS = 15
HERE = Path(__file__).parent


def read(name: str, folder: Path) -> Split:
    """Load a set; a fifth of the messages are test rows."""
    if name != "sms":
        return load(name, str(folder), form=FORMS.get(name, "dense32"))
    X, y = rows_of(name, folder)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[len(y) // 5 :], order[: len(y) // 5]
    return Split(X[train], y[train], X[test], y[test])


def expected_error(p: NDArray[Any], right: NDArray[Any]) -> float:
    """Return the expected calibration error: mean |accuracy - confidence| over bins."""
    confidence = p.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [
        abs((right[own] - confidence[own]).sum()) for k in range(BINS) if (own := bins == k).any()
    ]
    return float(sum(gaps) / len(p))


def quality(model: Any, split: Split) -> dict[str, float]:
    p, y = model.predict_proba(split.X_test), split.y_test
    likely, said = model.classes_[p.argmax(axis=1)], model.predict(split.X_test)
    truth = (y[:, None] == model.classes_).astype(float)
    return {
        "log_loss": log_loss(y, p, labels=model.classes_),
        "brier": float(((p - truth) ** 2).sum(axis=1).mean()),
        "expected_error": expected_error(p, likely == y),
        "differ": 10_000 * float(np.mean(likely != said)),
        "error": 100 * float(np.mean(said != y)),
    }


def prolonged(name: str, split: Split, rounds: int) -> float:
    """Return the median ratio of the times of alternating fits with and without calibration."""
    ratios = []
    for seed in range(rounds):
        plain, calibrated = (
            CONTESTANTS["OnlineSVC"]({**SETS[name], "calibration": kind}, 1, seed)
            for kind in (None, "sigmoid")
        )
        seconds = [timed(model.fit, split.X, split.y)[0] for model in (plain, calibrated)]
        ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios))


def compare(name: str, options: Any) -> dict[str, Any]:
    split = read(name, options.data)
    models = {
        f"OnlineSVC, {kind}": CONTESTANTS["OnlineSVC"]({**SETS[name], "calibration": kind}, 1, 0)
        for kind in ("sigmoid", "isotonic")
    }
    if options.svc != "none":
        label = f"CalibratedClassifierCV({options.svc})"
        models[label] = CalibratedClassifierCV(CONTESTANTS[options.svc](SETS[name], 1, 0), cv=5)
    found: dict[str, Any] = {"added": prolonged(name, split, options.rounds) - 1}
    for label, model in models.items():
        seconds, _ = timed(model.fit, split.X, split.y)
        row = found[label] = {"seconds": seconds, **quality(model, split)}
        added = f"{found['added']:+.1%}" if label.startswith("Online") else ""
        print(
            f"| {name} | {label} | {row['log_loss']:.4f} | {row['brier']:.4f} "
            f"| {row['expected_error']:.4f} | {row['differ']:.0f} | {row['error']:.2f} % "
            f"| {seconds:.2f} | {added} |",
            flush=True,
        )
    return found


def main() -> None:
    options = parse_cases(
        __doc__,
        list(SETS),
        svc={"choices": ("SVC", "intelex", "none"), "default": "SVC", "help": "SVC of the peer"},
        rounds={"type": int, "default": 5, "help": "pairs of fits, with and without calibration"},
        out={"type": Path, "help": "JSON file to write"},
    )
    names = [SMS if name == "sms" else SOURCES[name].file for name in options.cases]
    files = [options.data / name for name in names if name is not None]
    report = heading(HERE.parent, files)  # first, to record the measured commit
    print("| set | model | log loss | Brier | ECE | differ of 10,000 | error | fit s | added |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    with threadpool_limits(1):
        results = {name: compare(name, options) for name in options.cases}
    if options.out:
        write(options.out, {**report, "sets": results})


if __name__ == "__main__":
    main()
