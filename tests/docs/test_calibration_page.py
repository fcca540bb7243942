"""The figures of the page on probabilities are those that benchmarks/calibration.py stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results" / "calibration.json"


def calibration(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BENCHMARKS / "calibration.py", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def case(about: str, log_loss: float, *, stream: bool = False, **ours: Any) -> dict[str, Any]:
    """Return a result whose log loss is compared with 0.5."""
    known = {
        "log_loss": log_loss,
        "prior": 0.69,
        "fit": 1.0,
        "fit_calibrated": 1.1,
        "first": 0.4,
        "accuracy_change": [0.0, 0.001],
        "report": {"fallback": False},
        "held_out": {"log_loss": 0.5},
        "warnings": [],
    }
    peers = {} if stream else {"peers": {"single": {"log_loss": 0.5}}}
    return {"about": about, "ours": known | ours, **peers}


def outcome(**changes: Any) -> dict[str, Any]:
    recall = {"recall_change": [-0.2, 0.05], "fit_calibrated": 1.3}
    stream = "OnlineSVC(C=1, replay=300), sigmoid; 500 rows, 2 classes, sorted in chunks of 50"
    cases = {
        "fit/0": case("OnlineSVC(C=1), sigmoid; 500 rows, 2 classes", 0.5),
        "fit/1": case("OnlineSVC(C=2), isotonic; 500 rows, 2 classes", 0.6, **recall),
        "fit/2": case("GapSVC(C=2), sigmoid; 500 rows, 2 classes", 0.6, folds={"log_loss": 0.4}),
        "stream/0": case(stream, 0.55, stream=True, accuracy_change=[-0.02, 0.02]),
        "stream/1": {"about": "OnlineSVC()", "ours": {"failed": "too slow"}},
    }
    return {"quick": False, "cases": cases, **changes}


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    text = "before\n<!-- figures: calibration -->\nold\n<!-- end -->\nafter\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(outcome()), encoding="utf-8")
    return path


def test_page_shows_the_stored_figures() -> None:
    if not RESULTS.is_file():
        pytest.skip("no results are stored: benchmarks/calibration.py makes them")
    done = calibration("--check")
    assert done.returncode == 0, done.stderr
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert len(stored["cases"]) >= 120
    assert not stored["dirty"], "the results are of code that is not committed"


def test_table_is_written_between_the_markers(page: Path, results: Path) -> None:
    assert calibration("--page", page, "--out", results, "--check").returncode == 1
    done = calibration("--page", page, "--out", results)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- figures: calibration -->\n")
    assert text.endswith("\n<!-- end -->\nafter\n")
    # 0.5 / 0.5 and 0.6 / 0.5; 0.6 / 0.4; 0.55 / 0.5, which is within the target of streams.
    svc = "| 2 | 1.100 × | 1.20 × | +0.1000 | +0.000 ± 0.001 | -0.200 ± 0.050 |"
    assert f"`CalibratedClassifierCV(SVC)` {svc}" in text
    assert "| 1 | 1.500 × | 1.50 × | +0.2000 | +0.000 ± 0.001 | – |" in text
    assert "| 1 | 1.100 × | 1.10 × | +0.0500 | -0.020 ± 0.020 | – |" in text
    # The loss of recall is larger than two standard errors, that of accuracy is not.
    assert "In 2 of 4 settings, the log loss is higher by more than 15 %" in text
    assert "in 1, accuracy or recall is lower" in text
    assert "adds 10 % to the time of `fit` in the median and 30 % at most" in text
    assert "calibration adds 50 % in the median and 70 % at most" in text
    assert calibration("--page", page, "--out", results, "--check").returncode == 0


def test_worst_settings_are_listed(results: Path) -> None:
    done = calibration("--show", "--out", results)
    assert done.returncode == 0, done.stderr
    _, _, lists = done.stdout.partition("Log loss, fits, worst first:")
    first = lists.strip().splitlines()[0].strip()
    assert first.startswith("1.500: 0.6000, other 0.4000, held out 0.5000, prior 0.6900")
    assert "--setting fit/2: GapSVC(C=2)" in first
    assert "-0.2000 ± 0.0500, accuracy +0.0000  --setting fit/1" in lists
    assert "failed: stream/1: too slow" in done.stdout


def test_a_smoke_test_gives_no_figures(page: Path, results: Path) -> None:
    results.write_text(json.dumps(outcome(quick=True)), encoding="utf-8")
    before = page.read_text(encoding="utf-8")
    done = calibration("--page", page, "--out", results)
    assert done.returncode == 1
    assert "smoke test" in done.stderr
    assert page.read_text(encoding="utf-8") == before
