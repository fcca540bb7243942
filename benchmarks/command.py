"""The command `marginwise train` beside the library, and beside a pipeline of scikit-learn.

    python benchmarks/command.py                         both parts, all sets
    python benchmarks/command.py --sets sms satimage     some sets only, "mnist8" is part (a)
    python benchmarks/command.py --rows 5000 --part 1    fewer training rows, all fits of the peer

(a) MNIST, 8 against the rest, C=1000 and gamma=0.005: `marginwise train` from svmlight text beside
`OnlineSVC.fit` of the same rows in memory, one thread. Both run in processes of their own and take
turns; the medians count. The time of the command is stated twice: of the whole process, and without
starting Python and importing libraries.

(b) `marginwise train` without any parameter on a raw file, beside a pipeline of scikit-learn's
preprocessing and GridSearchCV(SVC) over the same values of C and gamma, with 5 folds. The time of
the peer is that of a random part of its fits and scores, times the number of parts, plus the last
fit. With --part 1, all fits are made, and the peer chooses its own pair; otherwise it has the pair
that OnlineSVCCV chooses with all rows. Errors are of test rows. Wall-clock seconds of one thread.
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
Rows = tuple[Any, Any]  # features and labels


@dataclass
class Case:
    """A raw data set: train and test parts, and what scikit-learn prepares it with."""

    train: Rows
    test: Rows
    names: list[str]
    prepare: Any
    file: str


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
    return Case(part("train"), part("test"), names, prepare, "adult_raw.npz")


def numeric(name: str) -> Callable[[Path], Case]:
    def read(folder: Path) -> Case:
        archive = np.load(folder / f"{name}.npz")
        parts = [(archive[f"X_{part}"], archive[f"y_{part}"]) for part in ("train", "test")]
        names = [f"feature{k}" for k in range(parts[0][0].shape[1])]
        return Case(*parts, names, StandardScaler(), f"{name}.npz")

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
    return Case((X, y), (X_test, y_test), ["text"], prepare, "sms_spam.jsonl.gz")


CASES = {"adult": adult, "letter": numeric("letter"), "satimage": numeric("satimage"), "sms": sms}
PARTS = {"adult": 35, "letter": 35, "satimage": 1, "sms": 5}


def write_csv(path: Path, names: list[str], X: Any, y: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True))
    return path


# -- the command -----------------------------------------------------------------------------------


def command(*arguments: object) -> tuple[float, dict[str, Any]]:
    """Run the command with one thread; return the seconds of the process and its report."""
    call = [sys.executable, "-m", "marginwise", *map(str, arguments), "--json", "--quiet"]
    began = time.perf_counter()
    done = subprocess.run(call, check=True, capture_output=True, text=True, env=_environment())
    return time.perf_counter() - began, json.loads(done.stdout)


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def python(code: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=_environment()
    )
    return time.perf_counter() - began, done.stdout


def error_of(model: Any, rows: Rows) -> float:
    return 100 * float(np.mean(model.predict(rows[0]) != rows[1]))


# -- (a) from text beside from memory --------------------------------------------------------------


def from_text(folder: Path, rows: int | None) -> dict[str, Any]:
    split = load("mnist8", str(folder), form="dense32")
    X, y = split.X[:rows], split.y[:rows]
    with tempfile.TemporaryDirectory() as name:
        text, test, model = (Path(name) / file for file in ("train.svm", "test.svm", "model.mwz"))
        dump_svmlight_file(X, y, str(text), zero_based=False)
        dump_svmlight_file(split.X_test, split.y_test, str(test), zero_based=False)
        given = ["-c", GIVEN["C"], "-g", GIVEN["gamma"], "--threads", 1, "--force"]
        whole, training, fits = [], [], []
        for _ in range(REPEATS):
            seconds, report = command("train", text, model, *given)
            whole.append(seconds)
            training.append(sum(report["seconds"].values()))
            began = time.perf_counter()
            ours = OnlineSVC(**GIVEN, random_state=0, n_jobs=1).fit(X, y)
            fits.append(time.perf_counter() - began)
        _, tested = command("test", model, test)
        size = text.stat().st_size / 1e6
    start = statistics.median(python("import marginwise.cli")[0] for _ in range(REPEATS))
    process, call, fit = (statistics.median(times) for times in (whole, training, fits))
    return {
        "megabytes": size,
        "process": process,
        "command": call,
        "start": start,
        "fit": fit,
        "ratio": call / fit,
        "process_ratio": process / fit,
        "parts": report["seconds"],
        "error": 100 * tested["error"],
        "fit_error": error_of(ours, (split.X_test, split.y_test)),
    }


# -- (b) no parameter beside GridSearchCV(SVC) -----------------------------------------------------


def without_parameters(name: str, folder: Path, rows: int | None, part: int) -> dict[str, Any]:
    case = CASES[name](folder)
    kept = np.sort(np.random.default_rng(0).permutation(len(case.train[1]))[:rows])
    case.train = case.train[0][kept], case.train[1][kept]
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place) / f"{part}.csv" for part in ("train", "test")]
        for path, (X, y) in zip(paths, (case.train, case.test), strict=True):
            write_csv(path, case.names, X, y)
        model = Path(place) / "model.mwz"
        seconds, report = command("train", paths[0], model, "--threads", 1)
        _, tested = command("test", model, paths[1])
    row = {"rows": len(case.train[1]), "seconds": seconds, "parts": report["seconds"]}
    row |= {"C": report["C"], "gamma": report["gamma"], "error": 100 * tested["error"]}
    with threadpool_limits(1):
        peer = searched(case, part)
    return {**row, **peer, "speedup": peer["peer_seconds"] / seconds}


def searched(case: Case, part: int) -> dict[str, Any]:
    """Time GridSearchCV(SVC) by a part of its fits, and measure the error of what it chooses."""
    X, y = case.train
    began = time.perf_counter()
    features = case.prepare.fit_transform(X)
    prepared = time.perf_counter() - began
    ours = OnlineSVCCV(random_state=0, n_jobs=-1)
    ours.fit(features, y)
    found = ours.cv_results_
    fits = [
        (k, pair, fold)
        for k, pair in enumerate(found["params"])
        for fold in StratifiedKFold(5).split(features, y)
    ]
    order = np.random.default_rng(0).permutation(len(fits))[: max(1, round(len(fits) / part))]
    seconds, scores = 0.0, np.zeros(len(found["params"]))
    for number in order:
        k, pair, (train, test) = fits[number]
        began = time.perf_counter()
        model = SVC(**pair, cache_size=2000).fit(features[train], y[train])
        scores[k] += model.score(features[test], y[test])
        seconds += time.perf_counter() - began
    pair = found["params"][int(np.argmax(scores))] if part == 1 else ours_pair(ours)
    began = time.perf_counter()
    last = SVC(**pair, cache_size=2000).fit(features, y)
    total = prepared + seconds * len(fits) / len(order) + time.perf_counter() - began
    error = error_of(last, (case.prepare.transform(case.test[0]), case.test[1]))
    return {"peer_seconds": total, "peer_error": error, "peer_pair": pair, "peer_fits": len(order)}


def ours_pair(search: OnlineSVCCV) -> dict[str, float]:
    return {"C": search.C_, "gamma": search.gamma_}


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
        lines.append([name, *ours, *peer, f"{row['speedup']:.0f} ×"])
    header = ("", "rows", "train, s", "error, %", "GridSearchCV, s", "error, %", "speed")
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
    add("--part", type=int, help="the peer makes one in so many fits (default: by set)")
    add("--out", type=Path, help="where JSON goes")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    report = {**heading(HERE.parent, []), "sets": rows}
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
