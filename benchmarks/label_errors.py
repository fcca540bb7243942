"""Find flipped labels: compare find_label_errors with cleanlab on probabilities of SVC.

    python benchmarks/label_errors.py                        MNIST 8 and a9a, 10,000 rows
    python benchmarks/label_errors.py a9a --rows 20000       more rows
    python benchmarks/label_errors.py all --noise 0.05 0.2   all sets, other rates of wrong labels
    python benchmarks/label_errors.py all --without cleanlab all sets, without cleanlab

A random fraction of the labels is replaced by another class. The table shows the average precision
of each ranking, and CPU seconds on one thread. The contestants alternate and have the same C, gamma
and number of folds, five. "cleanlab" ranks by the self-confidence of out-of-fold probabilities,
which CalibratedClassifierCV(SVC, ensemble=False) estimates (6 fits per fold). "margin" is
find_label_errors(rounds=1, rank_by="margin"). Figures are means over --seeds, which draw rows,
noise and folds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from corners import parse_cases, timed
from datasets import load
from multiclass import SETS
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from marginwise import GapSVC, OnlineSVC
from marginwise.inspect import find_label_errors

TARGETS = ("mnist8", "a9a")
SMS = "sms_spam.jsonl.gz"
GAMMAS = {"mnist8": 0.02, "a9a": 0.005, "sms": 1.0} | {name: SETS[name][2] for name in SETS}
Ranking = Callable[[Any, NDArray[Any], int], NDArray[np.float64]]  # scores, least suspect largest


def rows_of(name: str, folder: Path) -> tuple[Any, NDArray[np.intp]]:
    if name == "sms":
        with gzip.open(folder / SMS, "rt", encoding="utf-8") as file:
            messages = [json.loads(line) for line in file]
        words = TfidfVectorizer(sublinear_tf=True, min_df=2)
        X, y = words.fit_transform([m["text"] for m in messages]), [m["label"] for m in messages]
    elif name in TARGETS:
        split = load(name, str(folder), form="csr64" if name == "a9a" else "dense32")
        X, y = split.X, split.y
    else:
        file, read, _ = SETS[name]
        with np.load(folder / file) as archive:
            split = read(archive)
        X, y = split.X, split.y
    return X, np.unique(y, return_inverse=True)[1]


def flipped(y: NDArray[np.intp], share: float, seed: int) -> NDArray[np.intp]:
    """Replace a fraction of the labels by another class."""
    rng = np.random.default_rng((seed, 1))
    chosen = rng.permutation(len(y))[: round(share * len(y))]
    count = int(y.max()) + 1
    noisy = y.copy()
    noisy[chosen] = (y[chosen] + rng.integers(1, count, len(chosen))) % count
    return noisy


def contestants(C: float, gamma: float) -> dict[str, Ranking]:
    same = {"C": C, "gamma": gamma, "n_jobs": 1}

    def ours(estimator: Any, rank_by: str = "probability", **params: Any) -> Ranking:
        def rank(X: Any, y: NDArray[Any], seed: int) -> NDArray[np.float64]:
            found = find_label_errors(estimator, X, y, rank_by=rank_by, random_state=seed, **params)
            return getattr(found, rank_by)  # type: ignore[no-any-return]

        return rank

    def cleanlab(X: Any, y: NDArray[Any], seed: int) -> NDArray[np.float64]:
        from cleanlab.rank import get_label_quality_scores

        svc = SVC(C=C, gamma=gamma, cache_size=1000)
        probabilities = cross_val_predict(
            CalibratedClassifierCV(svc, ensemble=False),
            X,
            y,
            cv=StratifiedKFold(5, shuffle=True, random_state=seed),
            method="predict_proba",
        )
        return get_label_quality_scores(y, probabilities)  # type: ignore[no-any-return]

    return {
        "find_label_errors": ours(OnlineSVC(**same)),
        "rounds=1": ours(OnlineSVC(**same), rounds=1),
        "margin": ours(OnlineSVC(**same), "margin", rounds=1),
        "GapSVC, ramp": ours(GapSVC(**same, loss="ramp")),
        "cleanlab": cleanlab,
    }


def compare(name: str, options: Any, noise: float, C: float) -> None:
    """Print one row of the table per contestant."""
    all_rows, all_labels = rows_of(name, options.data)
    methods = {
        label: method
        for label, method in contestants(C, GAMMAS[name]).items()
        if label not in options.without
    }
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in methods}
    for seed in range(options.seeds):
        rows = np.random.default_rng(seed).permutation(len(all_labels))[: options.rows]
        X, truth = all_rows[rows], all_labels[rows]
        y = flipped(truth, noise, seed)
        for label, method in methods.items():
            seconds, score = timed(method, X, y, seed)
            found[label].append((average_precision_score(y != truth, -score), seconds))
    slowest = np.mean(found["cleanlab"], axis=0)[1] if "cleanlab" in found else np.nan
    for label, results in found.items():
        precision, seconds = np.mean(results, axis=0)
        ratio = "" if np.isnan(slowest) else f"{slowest / seconds:.0f} ×"
        print(
            f"| {name} | {len(y):,} | {noise:.0%} | {C:g} | {label} | {precision:.3f} "
            f"| {seconds:.1f} | {ratio} |",
            flush=True,
        )


def main() -> None:
    options = parse_cases(
        __doc__,
        [*GAMMAS, "all"],
        rows={"type": int, "default": 10_000, "help": "maximum number of rows"},
        noise={"nargs": "+", "type": float, "default": [0.1], "help": "fractions of wrong labels"},
        C={"nargs": "+", "type": float, "default": [1.0], "help": "values of C"},
        seeds={"type": int, "default": 1, "help": "number of seeds"},
        without={"nargs": "+", "default": [], "help": "contestants to exclude"},
    )
    # Without cases, parse_cases returns every name and "all"; SVC would take hours on all sets.
    unset = len(options.cases) > len(GAMMAS)
    cases = TARGETS if unset else GAMMAS if "all" in options.cases else options.cases
    print("| set | rows | noise | C | ranking | average precision | seconds | faster |")
    print("|---|--:|--:|--:|---|--:|--:|--:|")
    for name in cases:
        for noise in options.noise:
            for C in options.C:
                compare(name, options, noise, C)


if __name__ == "__main__":
    main()
