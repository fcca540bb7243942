"""Measure when the default stopping rule of ActiveLearner stops, and the error of the model.

    python benchmarks/stopping.py --data FOLDER              ten seeds of each set
    python benchmarks/stopping.py --data FOLDER --only sms --seeds 3

Each run asks for labels until ErrorAudit() stops. The table shows medians over the seeds: number of
labels, number of audited labels, test error, error bound of the rule, and test error of SVC with
the same kernel and C fitted to all labels of the pool. "bounds that hold" counts the runs whose
test error does not exceed the bound. Sets whose file is missing are reported and skipped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_moons
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from marginwise import ActiveLearner, OnlineSVC
from marginwise.active import ErrorAudit

NOISE = 0.15  # fraction of flipped labels in the noisy set


@dataclass(frozen=True)
class Data:
    """A pool, test rows, and suitable parameters of a model."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    params: dict[str, Any]


def split(X: Any, y: NDArray[Any], seed: int, train: int, test: int, **params: Any) -> Data:
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=train, test_size=test, stratify=y, random_state=seed
    )
    return Data(X, y, X_test, y_test, params)


def sms(folder: Path, seed: int) -> Data:
    with gzip.open(folder / "sms_spam.jsonl.gz", "rt", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    texts = np.array([item["text"].strip('"\t ') for item in items], dtype=object)
    labels = np.array([str(item["label"]) for item in items])
    data = split(texts, labels, seed, 4074, len(texts) - 4074, kernel="linear", C=2.0)
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(data.X)
    return Data(
        words.transform(data.X), data.y, words.transform(data.X_test), data.y_test, data.params
    )


def banana(folder: Path, seed: int) -> Data:
    archive = np.load(folder / "banana.npz")
    X, y = archive["X"], archive["y"]
    return split(X, y, seed, 4000, len(y) - 4000, C=10.0, gamma=1.0)


def usps(folder: Path, seed: int) -> Data:
    archive = np.load(folder / "usps.npz")
    X = np.concatenate([archive["X_train"], archive["X_test"]]).astype(np.float64)
    y = np.concatenate([archive["y_train"], archive["y_test"]])
    return split(X, y, seed, 7291, len(y) - 7291, C=10.0, gamma=1 / 128)


def mnist8(folder: Path, seed: int) -> Data:
    archive = np.load(folder / "mnist.npz")
    X, y = archive["X_train"].astype(np.float32) / 255, (archive["y_train"] == 8).astype(int)
    return split(X, y, seed, 10_000, 5000, C=10.0, gamma=0.02)


def noisy(_: Path, seed: int) -> Data:
    X, y = make_moons(6000, noise=0.2, random_state=seed)
    wrong = np.random.default_rng(seed).random(len(y)) < NOISE
    return split(X, np.where(wrong, 1 - y, y), seed, 4000, 2000, C=1.0, gamma=1.0)


def imbalanced(_: Path, seed: int) -> Data:
    X, y = make_classification(
        9000,
        n_features=10,
        n_informative=6,
        n_redundant=0,
        weights=[0.95],
        flip_y=0.01,
        class_sep=1.2,
        random_state=seed,
    )
    return split(X, y, seed, 6000, 3000, C=10.0, gamma=0.1)


SETS: dict[str, Callable[[Path, int], Data]] = {
    "sms": sms,
    "banana": banana,
    "usps": usps,
    "mnist8": mnist8,
    "noisy": noisy,
    "imbalanced": imbalanced,
}


def one_run(data: Data, seed: int, rule: ErrorAudit) -> dict[str, float]:
    learner = ActiveLearner(
        OnlineSVC(**data.params), data.X, stop=rule, classes=np.unique(data.y), random_state=seed
    )
    learner.run(lambda row: data.y[row])
    audits = rule.audits(learner.history_)
    error = 1 - learner.estimator_.score(data.X_test, data.y_test)
    bound = audits[-1].bound if audits else 1.0
    full = 1 - SVC(**{"gamma": 1.0, **data.params}).fit(data.X, data.y).score(
        data.X_test, data.y_test
    )
    constant = 1 - np.unique(data.y_test, return_counts=True)[1].max() / len(data.y_test)
    return {
        "pool": data.X.shape[0],
        "labels": len(learner.history_),
        "audited": sum(step["purpose"] == "audit" for step in learner.history_),
        "error": 100 * error,
        "bound": 100 * bound,
        "svc": 100 * full,
        "constant": 100 * constant,
        "holds": float(error <= bound),
    }


HEAD = (
    "| set | pool | labels | of audits | error % | stated: below % | bounds that hold "
    "| SVC, all labels % | constant answer % |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MARGINWISE_DATA", "."))
    parser.add_argument("--only", choices=SETS, action="append")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=ErrorAudit().rows)
    parser.add_argument("--change", type=float, default=ErrorAudit().change)
    args = parser.parse_args()
    rule = ErrorAudit(change=args.change, rows=args.rows)
    print(HEAD)
    for name in args.only or SETS:
        try:
            runs = [one_run(SETS[name](args.data, seed), seed, rule) for seed in range(args.seeds)]
        except FileNotFoundError as error:
            print(f"| {name} | {error} |")
            continue
        found = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        low, high = (f([run["labels"] for run in runs]) for f in (min, max))
        holds = sum(run["holds"] for run in runs)
        print(
            f"| {name} | {found['pool']:,.0f} | {found['labels']:,.0f} ({low:,.0f}–{high:,.0f}) "
            f"| {found['audited']:.0f} | {found['error']:.1f} | {found['bound']:.1f} "
            f"| {holds:.0f} of {len(runs)} | {found['svc']:.1f} | {found['constant']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
