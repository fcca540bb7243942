"""Compare OnlineSVCCV with GridSearchCV over OnlineSVC, SVC and the SVC of scikit-learn-intelex.

    python benchmarks/tuning.py                        all sets, a random eighth of the peers' fits
    python benchmarks/tuning.py --sets a9a --part 16   one set, a sixteenth
    python benchmarks/tuning.py --search halving       search="halving" and HalvingGridSearchCV

Each search has 5 folds, 7 values of C and 5 of gamma, those of OnlineSVCCV. Times of peers are
extrapolated from a random subset of the fits and scores of GridSearchCV; they do not include the
final fit. The subset is the same for all peers, which alternate, fit by fit. Errors are test
errors: of the model of OnlineSVCCV, and of SVC with the C and gamma that GridSearchCV over
OnlineSVC chooses (with --loop) or else with those of OnlineSVCCV. Times are CPU seconds on one
thread.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from contestants import CONTESTANTS, has_intelex
from datasets import Split, files_of, load
from report import heading, write
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from marginwise import OnlineSVC, OnlineSVCCV

SETS = {
    "mnist8": ("dense32", 20_000),
    "a9a": ("csr64", 16_000),
    "covtype2": ("dense32", 20_000),
    "letter": ("dense32", 16_000),
}
PEERS = ("OnlineSVC", "SVC", "intelex")
HERE = Path(__file__).parent


def read(name: str, folder: Path, rows: int | None) -> Split:
    form, usual = SETS[name]
    split = load(name, str(folder), form=form)
    kept = np.sort(np.random.default_rng(0).permutation(len(split.y))[: rows or usual])
    split.X, split.y = split.X[kept], split.y[kept]
    return split


def error_of(model: Any, split: Split) -> float:
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def timed(call: Any, *args: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = call(*args)
    return time.process_time() - start, result


def extrapolated(split: Split, search: OnlineSVCCV, part: int, peers: list[str]) -> dict[str, Any]:
    """Time a random subset of the fits of each peer, alternately; return seconds for all fits."""
    pairs = search.cv_results_["params"]
    folds = list(StratifiedKFold(5).split(split.X, split.y))
    fits = [(pair, fold) for pair in pairs for fold in folds]
    order = np.random.default_rng(0).permutation(len(fits))[: max(1, round(len(fits) / part))]
    seconds = dict.fromkeys(peers, 0.0)
    for number in order:
        pair, (train, test) = fits[number]
        for peer in peers:
            model = CONTESTANTS[peer](pair, 1, 0)
            seconds[peer] += timed(model.fit, split.X[train], split.y[train])[0]
            seconds[peer] += timed(model.score, split.X[test], split.y[test])[0]
    return {peer: total * len(fits) / len(order) for peer, total in seconds.items()}


def compare(split: Split, options: argparse.Namespace, peers: list[str]) -> dict[str, Any]:
    search = OnlineSVCCV(search=options.search, cache_size=2000, random_state=0, n_jobs=1)
    seconds, _ = timed(search.fit, split.X, split.y)
    row: dict[str, Any] = {"seconds": seconds, "error": error_of(search, split)}
    row |= {"C": search.C_, "gamma": search.gamma_, "score": search.best_score_}
    pair = {"C": search.C_, "gamma": search.gamma_}
    if options.loop:
        pairs = search.cv_results_
        grid = {
            "C": np.unique(pairs["param_C"].data),
            "gamma": np.unique(pairs["param_gamma"].data),
        }
        loop = GridSearchCV(OnlineSVC(cache_size=2000, random_state=0, n_jobs=1), grid, cv=5)
        row["loop"], _ = timed(loop.fit, split.X, split.y)
        pair = loop.best_params_
        row |= {"loop_error": error_of(loop, split), "loop_score": loop.best_score_}
        row |= {"loop_C": pair["C"], "loop_gamma": pair["gamma"]}
    if options.search == "halving":
        row["peers"] = halving(split, search)
    elif options.part:
        row["peers"] = extrapolated(split, search, options.part, peers)
    if "SVC" in peers:
        last, svc = timed(CONTESTANTS["SVC"](pair, 1, 0).fit, split.X, split.y)
        row |= {"svc_fit": last, "svc_error": error_of(svc, split)}
    return row


def halving(split: Split, search: OnlineSVCCV) -> dict[str, float]:
    """Run HalvingGridSearchCV(SVC) over the same pairs."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV
    from sklearn.svm import SVC

    results = search.cv_results_
    grid = {
        "C": np.unique(results["param_C"].data),
        "gamma": np.unique(results["param_gamma"].data),
    }
    peer = HalvingGridSearchCV(SVC(cache_size=2000), grid, cv=5, random_state=0)
    return {"SVC": timed(peer.fit, split.X, split.y)[0]}


def shown(name: str, row: dict[str, Any]) -> str:
    ours = row["seconds"]
    cells = [name, f"{ours:.1f} s", f"{row['error']:.2f} %, C={row['C']:.3g}, γ={row['gamma']:.3g}"]
    if "loop" in row:
        cells.append(f"loop {row['loop'] / ours:.1f} ×, {row['loop_error']:.2f} %")
    for peer, seconds in row.get("peers", {}).items():
        cells.append(f"{peer} {seconds / ours:.1f} × ({seconds:.0f} s)")
    if "svc_error" in row:
        cells.append(f"SVC {row['svc_error']:.2f} %")
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    add("--rows", type=int, help="training rows (default: those of each set)")
    add("--search", choices=("grid", "halving"), default="grid", help="how to search")
    add("--part", type=int, default=8, help="make 1 of PART fits of the peers (0: none)")
    add("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="estimators to compare with")
    add("--loop", action="store_true", help="also run GridSearchCV over OnlineSVC")
    add("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    peers = [peer for peer in options.peers if peer != "intelex" or has_intelex()]
    rows: dict[str, Any] = {}
    files = [options.data / file for file in files_of(options.sets)]
    report = {**heading(HERE.parent, files), "sets": rows}  # first, to record the measured commit
    for name in options.sets:
        split = read(name, options.data, options.rows)
        with threadpool_limits(1):
            rows[name] = compare(split, options, peers)
        print(shown(name, rows[name]), flush=True)
        if options.out:
            write(options.out, report)


if __name__ == "__main__":
    main()
