"""The page on Dask: its figures are the stored ones, and blocks for real clusters compile."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_pages import BLOCK, section

pytest.importorskip("distributed")

from marginwise.dask import faults, plan, rounds, tasks, training
from marginwise.dask.estimators import DaskClassifier

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "dask.md"
SCRIPT = ROOT / "benchmarks" / "dask_simulation.py"
RESULTS = ROOT / "benchmarks" / "results" / "dask_simulation.json"
CLUSTERS = ("SSHCluster", "KubeCluster", "SLURMCluster")


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_stored_figures(tmp_path: Path) -> None:
    copy = tmp_path / "dask.md"
    shutil.copy(PAGE, copy)
    command = [sys.executable, str(SCRIPT), "page", "--page", str(copy)]
    subprocess.run(command, check=True, timeout=60)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_page_shows_the_measured_speed() -> None:
    path = ROOT / "benchmarks" / "results" / "dask_training.json"
    works = json.loads(path.read_text(encoding="utf-8"))["works"]
    text = section("When it pays", PAGE).partition("### Measured costs")[0]
    for name, digits in (("digits", (0, 2)), ("kdd", (1, 3))):
        alone, dask = works[name]["alone"], works[name]["dask"]
        seconds, percent = digits
        for one in (alone, dask):
            assert f"| {one['seconds']:.{seconds}f} s |" in text
            assert f" {one['error']:.{percent}f} % |" in text
        assert f"{alone['rows']:,} " in text
    assert f"{round(works['digits']['dask']['members'], -3):,} members" in text
    assert f"{works['kdd']['dask']['members']} members" in text
    assert works["kills"]["same"] == works["kills"]["within"] == 20
    assert works["workers"]["same"]


def test_the_speed_of_scoring_is_that_of_the_results() -> None:
    path = ROOT / "benchmarks" / "results" / "dask_scoring.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    ratios = found["ratios"]
    assert (found["rows"], found["features"], found["files"]) == (5_000_000, 100, 40)
    assert len(ratios) == 4
    page = PAGE.read_text(encoding="utf-8")
    assert f"Two workers are {found['ratio_of_all']:.1f} times as fast as one process" in page
    assert f"from {min(ratios):.1f} to {max(ratios):.1f}" in page


def test_the_simulation_was_checked_with_one_and_two_workers(report: dict[str, Any]) -> None:
    for name in report["works"]:
        runs = [one for one in report["check"] if one["work"] == name]
        assert [one["workers"] for one in runs] == [1, 2]


def test_predictions_keep_their_bounds(report: dict[str, Any]) -> None:
    """Neither the workers nor the driver do more than they can."""
    for found in report["works"].values():
        for one in found["curves"]:
            for at in one["curve"]:
                assert at["speed_up"] <= at["workers"] * 1.01
                assert 0 < at["driver"] <= 1 + 1e-9


def test_blocks_for_real_clusters_compile() -> None:
    blocks = [code for language, code in BLOCK.findall(PAGE.read_text("utf-8")) if language == "py"]
    for code in blocks:
        compile(code, str(PAGE), "exec")
    assert [kind for kind in CLUSTERS if any(f"{kind}(" in code for code in blocks)] == [*CLUSTERS]


def test_numbers_of_the_protocol_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert rounds.DELAY == 2
    assert "after round *t* − 2" in text
    assert f"tasks of up to {plan.MOST_PIECE:,}" in text
    assert f"one in {training.SAMPLED} of the others" in text
    assert f"after {faults.LEAST_PATIENCE:.0f} seconds without any answer" in text
    assert f"or {faults.PATIENCE:.0f} times the longest task" in text
    assert faults.MOST_TRIES == 5
    assert "after five attempts" in text
    assert training.MOST_EXTRA == 10
    assert "up to ten more passes" in text


def test_limits_name_all_parameters_that_are_refused() -> None:
    text = section("Limits", PAGE)
    refused = [name for name, *_ in training._UNSUPPORTED]
    given = inspect.signature(DaskClassifier.partial_fit).parameters
    for name in [*refused, *(one for one in ("sample_weight", "ids", "groups") if one in given)]:
        assert f"`{name}`" in text


def test_tasks_of_the_dashboard_exist() -> None:
    names = re.findall(r"^\| `([\w-]+)` \|", section("The dashboard", PAGE), re.MULTILINE)
    known = {"take_census", *(f"marginwise-{task.__name__}" for task in (tasks.sift, tasks.audit))}
    assert {*names} == known | {"marginwise-predict"}
