"""
Choosing C and gamma
====================

::

    python examples/tune.py [--picture tuning.png]

OnlineSVCCV chooses C and gamma for handwritten digits, by a grid search and by successive halving.
The figure shows the cross-validated accuracy of all pairs that were tried.

This page shows ``python examples/tune.py --picture output/tuning.png``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from marginwise import OnlineSVCCV


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Choose C and gamma for digits, by grid search and by halving."
    )
    parser.add_argument("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
    searches = {}
    for search in ("grid", "halving"):
        start = time.perf_counter()
        model = OnlineSVCCV(search=search, random_state=0).fit(X_train, y_train)
        seconds = time.perf_counter() - start
        searches[search] = model
        print(
            f"{search}: C={model.C_:g}, gamma={model.gamma_:.3g}, accuracy "
            f"{model.best_score_:.4f} in cross-validation, {model.score(X_test, y_test):.4f} on "
            f"test rows, {seconds:.1f} s"
        )
    if options.picture:
        draw(searches, options.picture)


def draw(searches: dict[str, OnlineSVCCV], picture: Path) -> None:
    import matplotlib.pyplot as plt

    from marginwise.inspect import TuningDisplay

    figure, axes = plt.subplots(1, 2, figsize=(12.5, 4.4), layout="constrained")
    for axis, (search, model) in zip(axes, searches.items(), strict=True):
        TuningDisplay.from_estimator(model, ax=axis)
        axis.set_title(f'search="{search}"', pad=28)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=80)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
