"""Compare compressed models with full models, and with Nystroem and LinearSVC.

    python benchmarks/compress.py                       all sets
    python benchmarks/compress.py --sets a9a --choose   one set, and a size chosen on held-out rows

The table has one row per set and contestant: number of vectors, test error, and CPU seconds of fit
and of predicting the test rows. The fit time of a compressed model includes that of the full model.
On binary sets, Nystroem has 200 components, and the C of LinearSVC is the best of three values on a
held-out fifth of the rows; it is then refitted to all rows. Everything runs on one thread. The
contestants alternate in predicting, and the table shows medians of five predictions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from datasets import Split, files_of, load
from report import heading, write
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginwise import OnlineSVC

# Parameters of the model, format of the rows, and numbers of vectors.
SETS: dict[str, tuple[dict[str, float], str, tuple[int, ...]]] = {
    "a9a": ({"C": 100, "gamma": 0.005}, "csr64", (50, 150)),
    "checkerboard": ({"C": 10, "gamma": 10.0}, "dense32", (100, 200, 250, 300)),
    "letter": ({"C": 10, "gamma": 0.1}, "dense32", (500, 1500)),
    "covtype2": ({"C": 10, "gamma": 0.1}, "dense32", (500, 2000)),
    "mnist10": ({"C": 10, "gamma": 0.02}, "dense32", (500, 1750, 2500)),
}
COMPONENTS, CS = 200, (1.0, 10.0, 100.0)
PREDICTIONS = 5
INCREASE = 0.001


def timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = call(*args, **kwargs)
    return time.process_time() - start, result


def nystroem(split: Split, gamma: float) -> Any:
    """Fit Nystroem and LinearSVC, with the best of three values of C on a held-out fifth."""
    features = Nystroem(gamma=gamma, n_components=COMPONENTS, random_state=0)
    Z = features.fit_transform(split.X)
    train, test, y, y_held = train_test_split(Z, split.y, test_size=0.2, random_state=0)
    best = max(CS, key=lambda C: LinearSVC(C=C).fit(train, y).score(test, y_held))
    return make_pipeline(features, LinearSVC(C=best).fit(Z, split.y))


def contestants(name: str, split: Split, choose: bool) -> dict[str, tuple[float, int, Any]]:
    """Fit all contestants; return seconds, number of vectors and model of each."""
    params, _, sizes = SETS[name]
    model = OnlineSVC(**params, cache_size=2000, random_state=0, n_jobs=1)
    fit, _ = timed(model.fit, split.X, split.y)
    found = {"full model": (fit, len(model.support_), model)}
    seconds, small = timed(model.compress, max_vectors=sizes[-1])
    found[f"projected, {sizes[-1]}"] = (fit + seconds, small.n_vectors_, small)
    for size in sizes:
        seconds, small = timed(model.compress, split.X, split.y, max_vectors=size)
        found[f"compressed, {size}"] = (fit + seconds, small.n_vectors_, small)
    if choose:
        seconds, small = timed(model.compress, split.X, split.y, max_error_increase=INCREASE)
        found["compressed, chosen"] = (fit + seconds, small.n_vectors_, small)
    if len(model.classes_) == 2:
        seconds, peer = timed(nystroem, split, params["gamma"])
        found[f"Nystroem({COMPONENTS}) + LinearSVC"] = (seconds, COMPONENTS, peer)
    return found


def compare(name: str, split: Split, choose: bool) -> dict[str, dict[str, float]]:
    fitted = contestants(name, split, choose)
    times: dict[str, list[float]] = {each: [] for each in fitted}
    rows: dict[str, dict[str, float]] = {}
    for _ in range(PREDICTIONS):
        for each, (seconds, vectors, model) in fitted.items():
            taken, predicted = timed(model.predict, split.X_test)
            times[each].append(taken)
            error = 100 * float(np.mean(predicted != split.y_test))
            rows[each] = {"vectors": vectors, "error": error, "fit_seconds": seconds}
    for each, row in rows.items():
        row["predict_seconds"] = float(np.median(times[each]))
    return rows


def show(name: str, rows: dict[str, dict[str, float]]) -> None:
    full = rows["full model"]["predict_seconds"]
    for each, row in rows.items():
        print(
            f"| {name} | {each} | {row['vectors']:,} | {row['error']:.2f} | "
            f"{row['fit_seconds']:.2f} | {row['predict_seconds']:.3f} | "
            f"{full / row['predict_seconds']:.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    add("--choose", action="store_true", help="also choose a size on held-out rows, which is slow")
    add("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    print("| set | model | vectors | error, % | fit, s | predict, s | × faster |")
    print("|---|---|---|---|---|---|---|")
    repository = Path(__file__).parent.parent
    files = [options.data / file for file in files_of(options.sets)]
    report: dict[str, Any] = {**heading(repository, files), "sets": {}}
    for name in options.sets:
        split = load(name, str(options.data), form=SETS[name][1])
        with threadpool_limits(1):
            report["sets"][name] = compare(name, split, options.choose)
        show(name, report["sets"][name])
        if options.out:
            write(options.out, report)


if __name__ == "__main__":
    main()
