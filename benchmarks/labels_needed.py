"""Count the labels that active learning needs to match SVC with all labels, on SMS spam.

    python benchmarks/labels_needed.py --data FOLDER [--seeds 10] [--only STRATEGY]

For each seed, the messages are split into a pool of 4,074 messages and a test set of the rest. The
target is the test error of SVC with the same kernel and C, fitted to all labels of the pool, plus
--tolerance. The error is measured every 20 labels until the pool is exhausted. The number of labels
needed is the smallest after which the error stays at or below the target; a run that does not reach
the target counts as the whole pool. Random sampling is measured in the same way. The table shows
medians over the seeds, and their ratio to that of random sampling.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC
from stopping import Data, sms

from marginwise import ActiveLearner, OnlineSVC

STEP = 20  # labels between measurements
# Strategy and pool_size, by name in the table.
STRATEGIES: dict[str, tuple[str, int | None]] = {
    "random": ("random", 59),
    "active, 59": ("active", 59),
    "active, 250": ("active", 250),
    "active, 1000": ("active", 1000),
    "autoactive": ("autoactive", 59),
    "near_boundary": ("near_boundary", None),
}


def needed(data: Data, params: dict[str, Any], name: str, target: float, seed: int) -> int:
    """Return the number of labels after which the error stays at or below the target."""
    strategy, pool_size = STRATEGIES[name]
    learner = ActiveLearner(
        OnlineSVC(**params),
        data.X,
        strategy=strategy,
        pool_size=pool_size,
        stop=None,
        classes=np.unique(data.y),
        random_state=seed,
    )
    reached = end = data.X.shape[0]
    stays = False
    while len(learner.history_) < end:
        learner.run(lambda row: data.y[row], max_labels=min(STEP, end - len(learner.history_)))
        if not learner.has_model_:
            continue
        error = 1 - learner.estimator_.score(data.X_test, data.y_test)
        if error <= target + 1e-12 and not stays:
            reached = len(learner.history_)
        stays = error <= target + 1e-12
    return reached if stays else end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MARGINWISE_DATA", "."))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=0.002)
    parser.add_argument("--kernel", default="linear")
    parser.add_argument("--C", type=float, default=2.0)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--only", choices=STRATEGIES, action="append")
    args = parser.parse_args()
    params = {"kernel": args.kernel, "C": args.C, "gamma": args.gamma}
    sets = [sms(args.data, seed) for seed in range(args.seeds)]
    full = [1 - SVC(**params).fit(d.X, d.y).score(d.X_test, d.y_test) for d in sets]
    print(f"{params}, SVC with all labels: {100 * np.median(full):.2f} % (median)")
    print("| strategy | labels needed | range | ratio to random |\n|---|---|---|---|")
    random = None
    for name in args.only or STRATEGIES:
        found = [
            needed(data, params, name, full[seed] + args.tolerance, seed)
            for seed, data in enumerate(sets)
        ]
        median = float(np.median(found))
        random = median if name == "random" else random
        ratio = "" if random is None or name == "random" else f"1/{random / median:.1f}"
        print(f"| {name} | {median:,.0f} | {min(found):,}–{max(found):,} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
