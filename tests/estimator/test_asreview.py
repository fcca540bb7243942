"""The extension in ASReview itself: its command and its simulation."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

RECORDS, RELEVANT = 120, 12

if find_spec("asreview") is None:
    pytest.skip("asreview is not installed (extra [asreview])", allow_module_level=True)
if not entry_points(group="asreview.models.classifiers", name="marginwise"):
    pytest.skip(
        "marginwise was installed before it had the entry point; install it again",
        allow_module_level=True,
    )


@pytest.fixture
def review(tmp_path: Path) -> Path:
    """Write a review whose relevant records share a few words."""
    rng = np.random.default_rng(3)
    words = [f"word{k}" for k in range(200)]
    path = tmp_path / "review.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["title", "abstract", "included"])
        for record in range(RECORDS):
            relevant = record % (RECORDS // RELEVANT) == 3
            text = list(rng.choice(words, 30)) + ["kernel", "margin"] * relevant
            table.writerow([" ".join(text[:5]), " ".join(text[5:]), int(relevant)])
    return path


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, because ASReview's imports may warn and write files."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_command_simulates_with_the_classifier(review: Path) -> None:
    out = review.with_name("out.asreview")
    parts = ["-c", "marginwise", "-q", "max", "-e", "tfidf", "-b", "balanced", "-o", str(out)]
    priors = ["--n-prior-included", "1", "--n-prior-excluded", "1", "--prior-seed", "1"]
    run(review.parent, "-m", "asreview", "simulate", str(review), *parts, *priors)
    with zipfile.ZipFile(out) as project:
        project.extract("results.db", review.parent)
    with sqlite3.connect(review.with_name("results.db")) as database:
        rows = database.execute("SELECT classifier, label FROM results").fetchall()
    database.close()
    assert {name for name, _ in rows} == {None, "marginwise"}, "priors have no classifier"
    assert sum(label for _, label in rows) == RELEVANT
    assert len(rows) < RECORDS / 2, "relevant records come first"


SIMULATION = """
import json, sys
import pandas as pd
from asreview import ActiveLearningCycle, Simulate
from asreview.models.balancers import Balanced
from asreview.models.feature_extractors import Tfidf
from asreview.models.queriers import Max
from marginwise.label.asreview import ReviewSVC

table = pd.read_csv(sys.argv[1])
model = ReviewSVC()
cycle = ActiveLearningCycle(
    querier=Max(), classifier=model, balancer=Balanced(9.8), feature_extractor=Tfidf()
)
simulation = Simulate(table, table["included"], cycle, stopper=-1, print_progress=False)
simulation.label([0, 3])
simulation.review()
found = simulation._results["label"].cumsum().tolist()
print(json.dumps({"refits": model.n_refits_, "found": found}))
"""


def test_a_simulation_fits_from_scratch_only_once(review: Path) -> None:
    answer = json.loads(run(review.parent, "-c", SIMULATION, str(review)).splitlines()[-1])
    assert answer["refits"] == 1
    assert answer["found"][-1] == RELEVANT
    assert len(answer["found"]) == RECORDS
