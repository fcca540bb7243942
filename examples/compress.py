"""
Making a model smaller
======================

::

    python examples/compress.py [--rows 10000] [--picture compression.png]

On a noisy checkerboard, almost half of the rows become support vectors. ``compress`` returns a
model with far fewer vectors and nearly the same error. The figure shows the error on held-out rows
against the number of vectors.

This page shows ``python examples/compress.py --picture output/compression.png``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from marginwise import OnlineSVC


def checkerboard(rng: np.random.Generator, rows: int, noise: float) -> tuple[Any, Any]:
    """Return points on a board of 4 x 4 squares, some of them with the wrong label."""
    X = 4 * rng.random((rows, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    return X, np.where(rng.random(rows) < noise, 1 - y, y)


def report(name: str, vectors: int, model: Any, X: Any, y: Any) -> None:
    start = time.perf_counter()
    error = 100 * np.mean(model.predict(X) != y)
    seconds = time.perf_counter() - start
    print(f"{name}: {vectors:,} vectors, error {error:.2f} %, predicts in {1000 * seconds:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Fit a model to a noisy checkerboard, and compress it."
    )
    parser.add_argument("--rows", type=int, default=10_000, help="training rows")
    parser.add_argument("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X, y = checkerboard(rng, options.rows, noise=0.15)
    X_test, y_test = checkerboard(rng, 20_000, noise=0.0)
    model = OnlineSVC(C=10, gamma=5.0, random_state=0).fit(X, y)
    small = model.compress(X, y, max_vectors=1000, max_error_increase=0.001, curve=True)
    report("full", len(model.support_), model, X_test, y_test)
    report("compressed", small.n_vectors_, small, X_test, y_test)
    if options.picture:
        draw(small, options.picture)


def draw(small: Any, picture: Path) -> None:
    from marginwise.inspect import CompressionDisplay

    display = CompressionDisplay.from_estimator(small)
    picture.parent.mkdir(parents=True, exist_ok=True)
    display.figure_.savefig(picture, dpi=80)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
