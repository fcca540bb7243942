"""
The right to be forgotten
=========================

::

    python examples/forgetting.py [--persons 100] [--picture forgetting.png]

A model learns twenty measurements of each person, and one person asks to be forgotten.
``forget`` turns the model into the one that never saw that person's rows, faster than a refit, and
the saved file no longer contains them. ``leave_one_out`` estimates the error on new rows, and
forgetting one person after the other estimates the error on new persons; neither needs a refit.

This page shows ``python examples/forgetting.py --persons 60 --picture output/forgetting.png``.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from marginwise import ExactSVC, save

FEATURES = 8
ROWS = 20  # per person
SAME: dict[str, Any] = {"C": 3.0, "gamma": 0.05}  # a number: "scale" would be recomputed
SEED = 0

Rows = NDArray[np.float64]
Labels = NDArray[np.int64]
Times = tuple[float, float, float]


def measurements(persons: int) -> tuple[Rows, Labels, Labels]:
    """Return the features, the state (0 or 1) and the person of each row, in random order."""
    rng = np.random.default_rng(SEED)
    person = rng.permutation(np.repeat(np.arange(persons), ROWS))
    y = rng.integers(0, 2, len(person))
    usual = rng.normal(size=(persons, FEATURES))
    change = 0.8 + rng.normal(size=(persons, FEATURES))  # similar for all persons
    X = usual[person] + y[:, np.newaxis] * change[person]
    return X + 0.7 * rng.normal(size=X.shape), y, person


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of work, and the milliseconds it took."""
    start = time.perf_counter()
    done = work()
    return done, 1000 * (time.perf_counter() - start)


# %%
# Forgetting
# ----------
def compare(model: ExactSVC, X: Rows, y: Labels, gone: Labels) -> tuple[ExactSVC, Times]:
    """Forget rows, fit a model that never saw them, and print the differences.

    Return the model that forgot, and the milliseconds of each method.
    """
    rest = np.setdiff1d(np.arange(len(y)), gone)
    forgetful = copy.deepcopy(model)
    _, forgetting = timed(lambda: forgetful.forget(gone))
    ignorant, refitting = timed(lambda: ExactSVC(**SAME).fit(X[rest], y[rest]))
    _, svc = timed(lambda: SVC(**SAME).fit(X[rest], y[rest]))
    off = np.abs(forgetful.decision_function(X) - ignorant.decision_function(X)).max()
    print(
        f"{len(gone) // ROWS:>8}{len(gone):>7}{forgetting:>11.1f} ms{refitting:>11.1f} ms"
        f"{svc:>8.1f} ms{off:>17.0e}"
    )
    return forgetful, (forgetting, refitting, svc)


def draw(path: Path, times: dict[int, Times]) -> None:
    """Draw the time of forgetting and of refitting against the number of rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    names = ("ExactSVC.forget", "ExactSVC, refitted", "SVC, refitted")
    for name, values, marker in zip(names, zip(*times.values(), strict=True), "os^", strict=True):
        axes.plot(list(times), values, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="rows to forget", ylabel="milliseconds")
    axes.set_xticks(list(times), [str(rows) for rows in times])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def rows_in(path: Path, X: Rows) -> int:
    """Count the rows of X that the file of an rbf model contains, exactly or nearly."""
    with zipfile.ZipFile(path) as archive, archive.open("_machine.X.npy") as file:
        stored = np.load(file)
    looked_for = np.sqrt(SAME["gamma"]) * X  # features are stored in this scale for rbf
    distance, _ = NearestNeighbors(n_neighbors=1).fit(stored).kneighbors(looked_for)
    return int(np.sum(distance < 1e-6))


# %%
# The error without a refit
# -------------------------
def new_rows(model: ExactSVC, X: Rows, y: Labels) -> None:
    """Print the leave-one-out error, and check three of its values by refits."""
    left_out, milliseconds = timed(model.leave_one_out)
    off = 0.0
    for k in left_out.ids[:3]:
        rest = np.delete(np.arange(len(y)), k)
        other = ExactSVC(**SAME).fit(X[rest], y[rest])
        said = left_out.decision[left_out.ids == k]
        off = max(off, float(np.abs(other.decision_function(X[k : k + 1]) - said)[0]))
    print(f"on new rows of known persons   {left_out.error:>7.1%}   {milliseconds / 1000:.1f} s")
    print(
        f"   (three of the {len(y):,} values checked by a refit without the row: off by {off:.0e})"
    )


def new_persons(model: ExactSVC, X: Rows, y: Labels, person: Labels) -> None:
    """Print the error on the rows of each person by the model that never saw that person."""

    def error() -> float:
        wrong = 0
        for who in np.unique(person):
            rows = np.flatnonzero(person == who)
            model.forget(rows)
            wrong += int(np.sum(model.predict(X[rows]) != y[rows]))
            model.partial_fit(X[rows], y[rows], ids=rows)
        return wrong / len(y)

    found, milliseconds = timed(error)
    print(f"on rows of new persons         {found:>7.1%}   {milliseconds / 1000:.1f} s")


# %%
# Main program
# ------------
def main() -> None:
    parser = argparse.ArgumentParser(description="Forget persons, and verify the result.")
    parser.add_argument("--persons", type=int, default=100, help="persons, with twenty rows each")
    parser.add_argument("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()
    X, y, person = measurements(options.persons)
    model = ExactSVC(**SAME).fit(X, y)
    print(f"{len(y):,} rows of {options.persons} persons, {len(model.support_)} support vectors\n")

    print(" persons   rows        forget    ExactSVC refit  SVC refit  largest difference")
    asks = np.flatnonzero(person == 0)
    forgetful, times = compare(model, X, y, asks)
    by_rows = {len(asks): times}
    for persons in (5, 20):
        gone = np.flatnonzero(person < persons)
        by_rows[len(gone)] = compare(model, X, y, gone)[1]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mwz"
        save(forgetful, path)
        others = np.flatnonzero(person != 0)
        print(f"\nThe model file holds {rows_in(path, X[others]):,} rows of the others,")
        print(f"and {rows_in(path, X[asks])} of the {len(asks)} that were forgotten.\n")

    print("error                                    time")
    new_rows(model, X, y)
    new_persons(copy.deepcopy(model), X, y, person)
    _, refit = timed(lambda: ExactSVC(**SAME).fit(X, y))
    print(f"   (one refit takes {refit / 1000:.1f} s, and there are {options.persons} persons)")
    if options.picture:
        draw(options.picture, by_rows)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
