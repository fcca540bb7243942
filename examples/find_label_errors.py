"""
Finding wrong labels
====================

::

    python examples/find_label_errors.py [--noise 0.1] [--seed 0] [--picture suspects.png]

Some of the training labels of scikit-learn's digits are replaced by other classes.
``find_label_errors`` ranks the rows by how likely their labels are wrong. The test errors show the
gain from dropping the suspects, and from using the suggested labels. The figure shows the margins
of all rows, and the digits with the most suspect labels.

This page shows ``python examples/find_label_errors.py --picture output/label_errors.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from marginwise import OnlineSVC
from marginwise.inspect import LabelErrors, MarginDisplay, find_label_errors

SHOWN = (3, 6)  # rows and columns of digits in the picture


def mislabelled(truth: NDArray[np.int64], noise: float, seed: int) -> NDArray[np.int64]:
    """Replace a fraction of the labels by other digits."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(truth))[: round(noise * len(truth))]
    y = truth.copy()
    y[chosen] = (y[chosen] + rng.integers(1, 10, len(chosen))) % 10
    return y


def report(found: LabelErrors, y: NDArray[np.int64], truth: NDArray[np.int64]) -> None:
    """Print how many suspects are wrong, and how many wrong labels are suspect."""
    wrong, suspects = y != truth, found.is_suspect
    precision = average_precision_score(wrong, -found.probability)
    print(f"{wrong.sum()} of {len(y):,} labels are wrong; {suspects.sum()} are suspect.")
    print(f"{wrong[suspects].mean():.0%} of the suspects are wrong.")
    print(f"{suspects[wrong].mean():.0%} of the wrong labels are suspect.")
    print(f"average precision of the ranking: {precision:.3f}\n")
    print("    row  label  suggested  truth  probability  margin")
    for row in found.order[:8]:
        print(
            f"{row:7} {y[row]:6} {found.suggested[row]:10} {truth[row]:6}"
            f" {found.probability[row]:12.4f} {found.margin[row]:7.2f}"
        )


def draw(path: Path, found: LabelErrors, X: Any, y: NDArray[np.int64]) -> None:
    """Draw the margins of all rows, and the digits whose labels are most suspect."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    MarginDisplay.from_predictions(y, found.decision, ax=left.subplots())
    right.suptitle("most suspect: label → suggestion", fontsize="medium")
    for row, ax in zip(found.order, right.subplots(*SHOWN).flat, strict=False):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"{y[row]} → {found.suggested[row]}", fontsize="small")
        ax.set(xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    print(f"\npicture: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Find wrong labels among handwritten digits.")
    parser.add_argument("--noise", type=float, default=0.1, help="fraction of wrong labels")
    parser.add_argument("--seed", type=int, default=0, help="seed of split and wrong labels")
    parser.add_argument("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()

    X, digits = load_digits(return_X_y=True)
    X, X_test, truth, y_test = train_test_split(X / 16, digits, random_state=options.seed)
    y = mislabelled(truth, options.noise, options.seed)
    model = OnlineSVC(C=10, random_state=options.seed)
    found = find_label_errors(model, X, y, random_state=options.seed)
    report(found, y, truth)

    kept = ~found.is_suspect
    training = {
        "all given labels": (X, y),
        "without the suspects": (X[kept], y[kept]),
        "suggested labels of suspects": (X, np.where(kept, y, found.suggested)),
        "the true labels": (X, truth),
    }
    print("\ntest error, trained with")
    for name, (rows, labels) in training.items():
        print(f"  {name:29} {100 * (1 - model.fit(rows, labels).score(X_test, y_test)):5.2f} %")
    if options.picture:
        draw(options.picture, found, X, y)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
