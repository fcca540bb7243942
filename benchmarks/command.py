"""Compare the command `marginwise train` with the library, and with scikit-learn pipelines.

    python benchmarks/command.py                         both parts, all sets
    python benchmarks/command.py --sets sms satimage     some sets only, "mnist8" is part (a)
    python benchmarks/command.py --rows 5000 --part 1    fewer training rows, all fits of the peer

(a) MNIST, 8 against the rest, C=1000 and gamma=0.005: `marginwise train` from svmlight text is
compared with `OnlineSVC.fit` of the same rows in memory. The two alternate, and the table shows
medians. The time of the command is reported twice: for the whole process, and without starting
Python and importing the command.

(b) `marginwise train` with default parameters on a raw file is compared with a pipeline of
scikit-learn's preprocessing and GridSearchCV(SVC) over the same values of C and gamma, with 5
folds. The time of GridSearchCV is extrapolated from a random subset of its fits and scores, plus
the preprocessing and the final fit. With --part 1, all fits are made, and GridSearchCV chooses C
and gamma; otherwise SVC has the values that OnlineSVCCV chooses on at most 16,000 of the rows.
Errors are test errors. The speed-up is reported twice: without the start of Python, and with it on
both sides.

Everything runs on one thread. Times are CPU seconds, which other processes hardly affect.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from datasets import load
from report import heading, table, write
from sklearn.compose import make_column_transformer
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginwise import OnlineSVC, OnlineSVCCV

HERE = Path(__file__).parent
GIVEN = {"C": 1000.0, "gamma": 0.005}
REPEATS = 3
SEARCHED = 16_000
Rows = tuple[Any, Any]  # features and labels


@dataclass
class Case:
    """A raw data set: training and test parts, and the preprocessing of scikit-learn."""

    train: Rows
    test: Rows
    names: list[str]
    prepare: Any


# -- raw data --------------------------------------------------------------------------------------


def adult(folder: Path) -> Case:
    archive = np.load(folder / "adult_raw.npz")
    numbers = archive["num_names"].tolist()
    levels = [text.split("|") for text in archive["cat_names_and_levels"].tolist()]

    def part(name: str) -> Rows:
        columns = list(archive[f"X_num_{name}"].T.astype(object))
        for (_, *known), codes in zip(levels, archive[f"X_cat_{name}"].T, strict=True):
            columns.append(np.array(known, dtype=object)[codes])
        return np.column_stack(columns), np.where(archive[f"y_{name}"] > 0, ">50K", "<=50K")

    n = len(numbers)
    prepare = make_column_transformer(
        (StandardScaler(), list(range(n))),
        (OneHotEncoder(handle_unknown="ignore"), list(range(n, n + len(levels)))),
    )
    names = [*numbers, *(text[0] for text in levels)]
    return Case(part("train"), part("test"), names, prepare)


def numeric(name: str) -> Callable[[Path], Case]:
    def read(folder: Path) -> Case:
        archive = np.load(folder / f"{name}.npz")
        parts = [(archive[f"X_{part}"], archive[f"y_{part}"]) for part in ("train", "test")]
        names = [f"feature{k}" for k in range(parts[0][0].shape[1])]
        return Case(*parts, names, StandardScaler())

    return read


def sms(folder: Path) -> Case:
    with gzip.open(folder / "sms_spam.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    texts = np.array([[record["text"]] for record in records], dtype=object)
    labels = np.array([record["label"] for record in records])
    X, X_test, y, y_test = train_test_split(
        texts, labels, test_size=0.25, random_state=0, stratify=labels
    )
    prepare = make_column_transformer((TfidfVectorizer(sublinear_tf=True), 0))
    return Case((X, y), (X_test, y_test), ["text"], prepare)


FILES = {"adult": "adult_raw.npz", "letter": "letter.npz", "satimage": "satimage.npz"}
FILES["sms"] = "sms_spam.jsonl.gz"
CASES = {"adult": adult, "letter": numeric("letter"), "satimage": numeric("satimage"), "sms": sms}
PARTS = {"adult": 60, "letter": 35, "satimage": 1, "sms": 5}


def write_csv(path: Path, names: list[str], X: Any, y: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True))
    return path


# -- the command -----------------------------------------------------------------------------------


def command(*arguments: object) -> tuple[float, dict[str, Any]]:
    """Run the command with one thread; return the CPU seconds of the process and its report."""
    call = ["-m", "marginwise", *map(str, arguments), "--threads", "1", "--json", "--quiet"]
    seconds, printed = python(*call)
    return seconds, json.loads(printed)


def python(*arguments: str) -> tuple[float, str]:
    """Run Python in a new process; return its CPU seconds and its output."""
    before = os.times()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, env=environment
    )
    after = os.times()
    user, system = (
        after.children_user - before.children_user,
        after.children_system - before.children_system,
    )
    return user + system, done.stdout


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = time.process_time()
    result = call(*arguments)
    return time.process_time() - began, result


def error_of(model: Any, rows: Rows) -> float:
    return 100 * float(np.mean(model.predict(rows[0]) != rows[1]))


# -- (a) from text and from memory -----------------------------------------------------------------


def from_text(folder: Path, rows: int | None) -> dict[str, Any]:
    split = load("mnist8", str(folder), form="dense32")
    X, y = split.X[:rows], split.y[:rows]
    with tempfile.TemporaryDirectory() as name:
        text, test, model = (Path(name) / file for file in ("train.svm", "test.svm", "model.mwz"))
        dump_svmlight_file(X, y, str(text), zero_based=False)
        dump_svmlight_file(split.X_test, split.y_test, str(test), zero_based=False)
        given = ["-c", GIVEN["C"], "-g", GIVEN["gamma"], "--force"]
        times: list[tuple[float, float, float]] = []
        for _ in range(REPEATS):
            whole, _ = command("train", text, model, *given)
            start, _ = python("-c", "import marginwise.cli")
            fit, ours = timed(OnlineSVC(**GIVEN, random_state=0, n_jobs=1).fit, X, y)
            times.append((whole, start, fit))
        _, tested = command("test", model, test)
        size = text.stat().st_size / 1e6
    whole, start, fit = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "megabytes": size,
        "process": whole,
        "start": start,
        "command": whole - start,
        "fit": fit,
        "ratio": (whole - start) / fit,
        "process_ratio": whole / fit,
        "error": 100 * tested["error"],
        "fit_error": error_of(ours, (split.X_test, split.y_test)),
    }


# -- (b) default parameters and GridSearchCV(SVC) --------------------------------------------------


def without_parameters(name: str, folder: Path, rows: int | None, part: int) -> dict[str, Any]:
    case = CASES[name](folder)
    kept = np.sort(np.random.default_rng(0).permutation(len(case.train[1]))[:rows])
    case.train = case.train[0][kept], case.train[1][kept]
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place) / f"{part}.csv" for part in ("train", "test")]
        for path, (X, y) in zip(paths, (case.train, case.test), strict=True):
            write_csv(path, case.names, X, y)
        model = Path(place) / "model.mwz"
        seconds, report = command("train", paths[0], model)
        _, tested = command("test", model, paths[1])
    start, _ = python("-c", "import marginwise.cli")
    row = {"rows": len(case.train[1]), "seconds": seconds, "start": start}
    row |= {"C": report["C"], "gamma": report["gamma"], "error": 100 * tested["error"]}
    with threadpool_limits(1):
        peer = searched(case, part)
    total = peer["peer_seconds"]
    ratios = {"speedup": total / (seconds - start), "process_speedup": (total + start) / seconds}
    return {**row, **peer, **ratios}


def searched(case: Case, part: int) -> dict[str, Any]:
    """Extrapolate the time of GridSearchCV(SVC) from some of its fits; measure its test error."""
    X, y = case.train
    prepared, features = timed(case.prepare.fit_transform, X)
    some = np.sort(np.random.default_rng(1).permutation(len(y))[:SEARCHED])
    ours = OnlineSVCCV(cache_size=2000, random_state=0, n_jobs=-1).fit(features[some], y[some])
    pairs = ours.cv_results_["params"]
    folds = list(StratifiedKFold(5).split(features, y))
    fits = [(k, fold) for k in range(len(pairs)) for fold in folds]
    order = np.random.default_rng(0).permutation(len(fits))[: max(1, round(len(fits) / part))]
    seconds, scores = 0.0, np.zeros(len(pairs))
    for number in order:
        k, (train, test) = fits[number]
        model = SVC(**pairs[k], cache_size=2000)
        fitting, _ = timed(model.fit, features[train], y[train])
        scoring, score = timed(model.score, features[test], y[test])
        seconds += fitting + scoring
        scores[k] += score
    best = int(np.argmax(scores)) if part == 1 else ours.best_index_
    last, chosen = timed(SVC(**pairs[best], cache_size=2000).fit, features, y)
    total = prepared + seconds * len(fits) / len(order) + last
    error = error_of(chosen, (case.prepare.transform(case.test[0]), case.test[1]))
    facts = {"peer_C": pairs[best]["C"], "peer_gamma": pairs[best]["gamma"]}
    return {"peer_seconds": total, "peer_error": error, **facts, "peer_fits": len(order)}


# -- reports ---------------------------------------------------------------------------------------


def shown(rows: dict[str, Any]) -> str:
    lines = []
    for name, row in rows.items():
        if name == "mnist8":
            print(
                f"mnist8: {row['megabytes']:.0f} MB of text; train {row['command']:.2f} s "
                f"({row['process']:.2f} s with the start), fit {row['fit']:.2f} s: "
                f"{row['ratio']:.2f} × ({row['process_ratio']:.2f} ×); errors {row['error']:.2f} % "
                f"and {row['fit_error']:.2f} %"
            )
            continue
        ours = [f"{row['rows']:,}", f"{row['seconds']:.1f}", f"{row['error']:.2f}"]
        peer = [f"{row['peer_seconds']:.0f}", f"{row['peer_error']:.2f}"]
        speeds = [f"{row[key]:.0f} ×" for key in ("speedup", "process_speedup")]
        lines.append([name, *ours, *peer, *speeds])
    peer = ("GridSearchCV, s", "error, %", "speed", "with start")
    header = ("", "rows", "train, s", "error, %", *peer)
    return table(header, lines) if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    sets = ["mnist8", *CASES]
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--sets", nargs="+", choices=sets, default=sets, metavar="SET", help=", ".join(sets))
    add("--rows", type=int, help="training rows (default: all)")
    add("--part", type=int, help="make 1 of PART fits of GridSearchCV (default: by set)")
    add("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    files = ["mnist.npz" if name == "mnist8" else FILES[name] for name in options.sets]
    report = {**heading(HERE.parent, [options.data / file for file in files]), "sets": rows}
    for name in options.sets:
        if name == "mnist8":
            rows[name] = from_text(options.data, options.rows)
        else:
            part = options.part or PARTS[name]
            rows[name] = without_parameters(name, options.data, options.rows, part)
        print(json.dumps({name: rows[name]}), flush=True)
        if options.out:
            write(options.out, report)
    print(shown(rows))


if __name__ == "__main__":
    main()
