"""
Hinge loss and ramp loss with wrong labels
==========================================

::

    python examples/wrong_labels.py [--rows 2000] [--seeds 3] [--picture wrong_labels.png]

The training labels of two half-moons are flipped with probability 0 to 0.3; the test rows have
their true labels. With the hinge loss, every wrong label becomes a support vector. The ramp loss
ignores rows that lie far on the wrong side of the boundary, so the model remains small.

This page shows ``python examples/wrong_labels.py --rows 1000 --seeds 2
--picture output/wrong_labels.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from marginwise import ExactRampSVC, GapSVC

SHARES = (0.0, 0.1, 0.2, 0.3)  # fractions of wrong labels
TEST = 3000  # rows
SAME: dict[str, Any] = {"C": 3.0, "gamma": 1.0}  # for all

Labels = NDArray[np.int64]


def models(seed: int) -> dict[str, Any]:
    return {
        "SVC": SVC(**SAME),
        "GapSVC, hinge": GapSVC(loss="hinge", random_state=seed, **SAME),
        "GapSVC, ramp": GapSVC(loss="ramp", random_state=seed, **SAME),
        "GapSVC, filter": GapSVC(loss="filter", random_state=seed, **SAME),
        "ExactRampSVC": ExactRampSVC(random_state=seed, **SAME),
    }


def moons(rows: int, share: float, seed: int) -> tuple[NDArray[np.float64], Labels, Labels]:
    """Return features, true labels, and labels of the training rows, some of them flipped."""
    X, truth = make_moons(rows + TEST, noise=0.2, random_state=seed)
    flipped = np.random.default_rng(seed).random(rows) < share
    return X, truth, np.where(flipped, 1 - truth[:rows], truth[:rows])


def one_run(rows: int, share: float, seed: int) -> dict[str, tuple[float, int]]:
    """Return error in percent, and number of support vectors, of each model."""
    X, truth, y = moons(rows, share, seed)
    found = {}
    for name, model in models(seed).items():
        model.fit(X[:rows], y)
        error = 100 * float(np.mean(model.predict(X[rows:]) != truth[rows:]))
        found[name] = error, len(model.support_)
    return found


def suspects(rows: int, share: float, seed: int) -> tuple[int, float, float]:
    """Return the number of rows that ExactRampSVC ignores, the fraction of them with a wrong label,
    and the fraction of all wrong labels among them.
    """
    X, truth, y = moons(rows, share, seed)
    model = models(seed)["ExactRampSVC"].fit(X[:rows], y)
    beyond = (2 * y - 1) * model.decision_function(X[:rows]) < -1
    wrong = y != truth[:rows]
    right = float(np.mean(wrong[beyond])) if beyond.any() else 0.0
    return int(beyond.sum()), right, float(np.mean(beyond[wrong]))


def draw(path: Path, means: dict[str, list[Any]]) -> None:
    """Draw support vectors and test error of each model against the fraction of wrong labels."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shares = [100 * share for share in SHARES]
    for (name, values), marker in zip(means.items(), "*os^D", strict=True):
        errors, sizes = zip(*values, strict=True)
        axes[0].plot(shares, sizes, marker=marker, label=name)
        axes[1].plot(shares, errors, marker=marker, label=name)
    axes[0].set(xlabel="wrong labels, %", ylabel="support vectors", ylim=(0, None))
    axes[1].set(xlabel="wrong labels, %", ylabel="test error, %", ylim=(0, None))
    axes[0].legend(frameon=False)
    for axis in axes:
        axis.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hinge and ramp with wrong labels.")
    parser.add_argument("--rows", type=int, default=2000, help="training rows")
    parser.add_argument("--seeds", type=int, default=3, help="number of data sets")
    parser.add_argument("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()
    print(
        f"means over {options.seeds} sets of {options.rows:,} rows: test error, support vectors\n"
    )
    print(f"{'wrong labels':16}" + "".join(f"{f'{share:.0%}':>17}" for share in SHARES))
    runs = {
        share: [one_run(options.rows, share, seed) for seed in range(options.seeds)]
        for share in SHARES
    }
    means = {
        name: [np.mean([run[name] for run in runs[share]], axis=0) for share in SHARES]
        for name in models(0)
    }
    for name, values in means.items():
        print(f"{name:16}" + "".join(f"{error:>9.2f} %{size:>6.0f}" for error, size in values))
    many, right, part = suspects(options.rows, SHARES[-1], 0)
    print(f"\nWith {SHARES[-1]:.0%} wrong labels, ExactRampSVC ignores {many:,} rows.")
    print(f"Of these, {right:.0%} are labelled wrong; they are {part:.0%} of all wrong labels.")
    if options.picture:
        draw(options.picture, means)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
