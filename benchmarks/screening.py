"""Compare the ASReview extension with ASReview's default model, in ASReview's simulation.

    python benchmarks/screening.py                      five reviews, ten seeds
    python benchmarks/screening.py --seeds 3            fewer
    python benchmarks/screening.py --only kitchenham    one review

Both classifiers have the feature extractor, querier and balancer of the default model (ELAS u4),
and begin with the same relevant and irrelevant record, drawn with the seed. A simulation ends when
95 % of the relevant records are found, because WSS@95 needs no more: it is the fraction of records
that need not be screened, minus 5 %. The classifiers alternate in one process. Times are CPU
seconds of `fit` and `decision_function`, on one thread. Each pair of runs is stored when it ends.
An interrupted benchmark continues; delete the file to start from scratch.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from cache import data_folder
from report import heading, table, write
from sklearn.utils import check_random_state

from marginwise.label.asreview import ReviewSVC

REPOSITORY = Path(__file__).resolve().parent.parent
RESULT = REPOSITORY / "benchmarks" / "results" / "screening.json"
REVIEWS = {
    "nagtegaal": "nagtegaal_2019",
    "kitchenham": "kitchenham_2010",
    "bannach-brown": "bannach_brown_2019",
    "ace-inhibitors": "cohen_2006_aceinhibitors",
    "beta-blockers": "cohen_2006_betablockers",
}
RECALL = 0.95
DEFAULT, OURS = "ASReview", "marginwise"


class Enough:
    """A stopper: stop when RECALL of the relevant records are found."""

    def stop(self, results: Any, labels: Any) -> bool:
        return int(sum(results["label"])) >= math.ceil(RECALL * int(sum(labels)))


class Clock:
    """A classifier that measures its CPU time."""

    def __init__(self, classifier: Any) -> None:
        self.classifier, self.name = classifier, classifier.name
        self.seconds = {"fit": 0.0, "score": 0.0}

    def fit(self, *rows: Any, **weights: Any) -> None:
        start = time.process_time()
        self.classifier.fit(*rows, **weights)
        self.seconds["fit"] += time.process_time() - start

    def decision_function(self, X: Any) -> Any:
        start = time.process_time()
        scores = self.classifier.decision_function(X)
        self.seconds["score"] += time.process_time() - start
        return scores


def default_cycle() -> Any:
    """Return the default model of ASReview."""
    from asreview import ActiveLearningCycle
    from asreview.models.models import get_ai_config

    return ActiveLearningCycle.from_meta(get_ai_config()["value"])


def cycle_of(contestant: str) -> Any:
    """Return the default model of ASReview, with its own or our classifier, timed."""
    cycle = default_cycle()
    cycle.classifier = Clock(cycle.classifier if contestant == DEFAULT else ReviewSVC())
    return cycle


def simulate(contestant: str, X: Any, y: Any, seed: int) -> dict[str, Any]:
    from asreview import Simulate

    cycle = cycle_of(contestant)
    np.random.seed(seed)  # noqa: NPY002 as ASReview's command does
    simulation = Simulate(X, y, cycle, stopper=Enough(), skip_transform=True, print_progress=False)
    for label in (1, 0):
        simulation.label(check_random_state(seed).choice(np.flatnonzero(y == label), 1))
    simulation.review()
    screened = len(simulation._results)
    steps = screened - 2
    result = {
        "wss95": (len(y) - screened) / len(y) - (1 - RECALL),
        "screened": screened,
        "ms_per_label": 1e3 * sum(cycle.classifier.seconds.values()) / steps,
        "seconds": cycle.classifier.seconds,
        "load": os.getloadavg()[0],
    }
    if contestant == OURS:
        result["refits"] = cycle.classifier.classifier.n_refits_
    return result


def warm_up() -> None:
    """Fit and score a few rows, so that loading libraries is not timed."""
    X, y = sp.random(40, 50, 0.2, format="csr", random_state=0), np.arange(40) % 2
    for contestant in (DEFAULT, OURS):
        classifier = cycle_of(contestant).classifier
        for rows in (20, 21):
            classifier.fit(X[:rows], y[:rows], sample_weight=np.ones(rows))
            classifier.decision_function(X)


def read(path: Path) -> tuple[Any, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = pd.DataFrame([json.loads(line) for line in file])
    features = default_cycle().transform(records)
    return features, records["included"].to_numpy().astype(int)


def runs(report: dict[str, Any], files: dict[str, Path], seeds: int) -> Iterator[str]:
    """Add the missing runs to a report; yield a summary after each pair."""
    data: dict[str, tuple[Any, Any]] = {}
    for seed, name in itertools.product(range(seeds), files):
        done = report["runs"].setdefault(name, {})
        if str(seed) in done:
            continue
        if name not in data:
            data[name] = read(files[name])
        order = [DEFAULT, OURS] if seed % 2 else [OURS, DEFAULT]
        done[str(seed)] = {who: simulate(who, *data[name], seed) for who in order}
        yield f"{name}, seed {seed}: " + ", ".join(
            f"{who} WSS@95 {run['wss95']:.3f} in {run['ms_per_label']:.2f} ms per label"
            for who, run in done[str(seed)].items()
        )


def summary(report: dict[str, Any]) -> tuple[dict[str, float], str]:
    """Return means over all reviews, and a table by review."""
    rows, means = [], []
    for name, seeds in report["runs"].items():
        if not seeds:
            continue
        of = {
            (who, what): statistics.fmean(pair[who][what] for pair in seeds.values())
            for who in (DEFAULT, OURS)
            for what in ("wss95", "ms_per_label")
        }
        means.append(of)
        ratio = of[OURS, "ms_per_label"] / of[DEFAULT, "ms_per_label"]
        rows.append(
            [name, str(len(seeds)), *(f"{value:.3f}" for value in of.values()), f"{ratio:.2f}"]
        )
    mean = {key: statistics.fmean(of[key] for of in means) for key in means[0]}
    figures = {
        "wss95_gain": mean[OURS, "wss95"] - mean[DEFAULT, "wss95"],
        "time_ratio": mean[OURS, "ms_per_label"] / mean[DEFAULT, "ms_per_label"],
    }
    rows.append(
        ["mean", "", *(f"{value:.3f}" for value in mean.values()), f"{figures['time_ratio']:.2f}"]
    )
    both = [f"{who} {what}" for who in (DEFAULT, OURS) for what in ("WSS@95", "ms")]
    return figures, table(("review", "seeds", *both, "ratio"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the data (default: $MARGINWISE_DATA)")
    parser.add_argument("--out", type=Path, default=RESULT, help="JSON file to write")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each review")
    parser.add_argument("--only", nargs="+", choices=list(REVIEWS), help="reviews to run")
    options = parser.parse_args()
    if find_spec("asreview") is None:
        parser.error("it needs ASReview: pip install 'marginwise[asreview]' installs it.")
    folder = (options.data or data_folder()) / "reviews"
    files = {name: folder / f"{REVIEWS[name]}.jsonl.gz" for name in options.only or REVIEWS}
    settings = ReviewSVC().get_params()
    facts = {**heading(REPOSITORY, files.values()), "asreview": version("asreview")}
    report: dict[str, Any] = {**facts, "settings": settings, "runs": {}}
    if options.out.exists():
        stored = json.loads(options.out.read_text(encoding="utf-8"))
        if stored["settings"] == settings:
            report["runs"] = stored["runs"]
            report["data"] = {**stored["data"], **report["data"]}
    warm_up()
    for done in runs(report, files, options.seeds):
        report["figures"] = summary(report)[0]
        write(options.out, report)
        print(done, flush=True)
    print("\n" + summary(report)[1])


if __name__ == "__main__":
    main()
