"""
Probabilities on a stream
=========================

::

    python examples/probabilities.py [--rows 20000] [--seed 0] [--picture probabilities.png]

Requests arrive one batch after the other. A third of them are positive, and the classes overlap.
The model predicts probabilities for each batch and then learns it, as a service would. The rows are
generated, so the true probabilities are known, and the table compares their log loss with that of
the model. The figure shows how often the positive class occurs among rows with similar predictions.

This page shows ``python examples/probabilities.py --rows 10000
--picture output/probabilities.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss

from marginwise import OnlineSVC

Values = NDArray[np.float64]
BATCH = 1000


def requests(n: int, seed: int) -> tuple[Values, NDArray[np.int64], Values]:
    """Draw rows of two overlapping classes, their labels, and the true probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = 1 / (1 + np.exp(1 - 3 * X[:, 0] * X[:, 1] - 2 * X[:, 2]))
    return X, (rng.random(n) < truth).astype(np.int64), truth


def run(X: Values, y: NDArray[np.int64], truth: Values) -> tuple[OnlineSVC, Values]:
    """Learn batch by batch; return the model, and the probability of each row before learning."""
    model = OnlineSVC(C=1, gamma=0.1, reprocess=10, calibration="sigmoid")
    model.partial_fit(X[:BATCH], y[:BATCH], classes=[0, 1])
    said = np.full(len(y), np.nan)
    print("    rows  log loss  best possible")
    for start in range(BATCH, len(y), BATCH):
        rows = slice(start, start + BATCH)
        said[rows] = model.predict_proba(X[rows])[:, 1]
        model.partial_fit(X[rows], y[rows])
        if start % (4 * BATCH) == 0:
            print(
                f"{start:8,} {log_loss(y[rows], said[rows]):9.3f}"
                f" {log_loss(y[rows], truth[rows]):14.3f}"
            )
    return model, said


def draw(path: Path, y: NDArray[np.int64], said: Values) -> None:
    """Draw the frequency of the positive class against its predicted probability."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
    CalibrationDisplay.from_predictions(
        y, said, n_bins=10, strategy="quantile", name="OnlineSVC, before learning", ax=ax
    )
    ax.set(title="Probabilities of unseen rows", xlim=(0, 1), ylim=(0, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="Probabilities on a stream.")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="PNG file to write")
    options = parser.parse_args()
    X, y, truth = requests(options.rows, options.seed)
    model, said = run(X, y, truth)
    known = np.isfinite(said)
    print(
        f"all rows: {log_loss(y[known], said[known]):.3f}, at best "
        f"{log_loss(y[known], truth[known]):.3f}; {len(model.support_):,} support vectors"
    )
    if options.picture:
        draw(options.picture, y[known], said[known])
        print(f"picture: {options.picture}")


# %%
# Output
# ------
if __name__ == "__main__":
    main()
