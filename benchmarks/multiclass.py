"""Compare one-vs-one and one-vs-rest with scikit-learn's SVC: error, CPU seconds on one thread.

    python benchmarks/multiclass.py                          all sets at C = 10
    python benchmarks/multiclass.py --sets letter --C 1 10 100

"ovr" and "ovo" are single passes; "converge" is one-vs-one with epochs="converge". The columns of
letter, satimage and covtype are standardised. The table is Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from corners import timed
from datasets import Split, standardised
from sklearn.svm import SVC

from marginwise import OnlineSVC


def _canonical(X_scale: float = 1.0, scaled: bool = False) -> Callable[[Any], Split]:
    def read(archive: Any) -> Split:
        X, T = (archive[f"X_{part}"].astype(np.float32) * X_scale for part in ("train", "test"))
        split = Split(X, archive["y_train"], T, archive["y_test"])
        return standardised(split) if scaled else split

    return read


def _covtype(archive: Any) -> Split:
    order = np.random.default_rng(0).permutation(len(archive["y"]))[:50_000]
    X, y = archive["X"][order].astype(np.float32), archive["y"][order]
    return standardised(Split(X[:40_000], y[:40_000], X[40_000:], y[40_000:]))


SETS: dict[str, tuple[str, Callable[[Any], Split], float]] = {
    "letter": ("letter.npz", _canonical(scaled=True), 0.0625),
    "satimage": ("satimage.npz", _canonical(scaled=True), 0.1),
    "dna": ("dna.npz", _canonical(), 0.01),
    "usps": ("usps.npz", _canonical(), 0.0078125),
    "mnist": ("mnist.npz", _canonical(X_scale=1 / 255), 0.02),
    "covtype": ("covtype_subset.npz", _covtype, 0.1),
}


def contestants(C: float, gamma: float) -> dict[str, Any]:
    same = {"C": C, "gamma": gamma, "random_state": 0, "n_jobs": 1}
    return {
        "ovr": OnlineSVC(**same, multiclass="ovr"),
        "ovo": OnlineSVC(**same, multiclass="ovo"),
        "converge": OnlineSVC(**same, multiclass="ovo", epochs="converge"),
        "SVC": SVC(C=C, gamma=gamma, cache_size=2000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    add("--C", nargs="+", type=float, default=[10.0], help="values of C")
    add("--without-svc", action="store_true", help="exclude SVC, which takes most of the time")
    options = parser.parse_args()
    print("| set | C | ovr | ovo | ovo, converge | SVC |\n|---|---|---|---|---|---|", flush=True)
    for name in options.sets:
        file, read, gamma = SETS[name]
        with np.load(options.data / file) as archive:
            split = read(archive)
        for C in options.C:
            cells = []
            for label, model in contestants(C, gamma).items():
                if label == "SVC" and options.without_svc:
                    cells.append("")
                    continue
                seconds, _ = timed(model.fit, split.X, split.y)
                error = 100 * np.mean(model.predict(split.X_test) != split.y_test)
                cells.append(f"{error:.2f} %, {seconds:.2f} s")
            print(f"| {name} | {C:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
