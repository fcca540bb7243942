"""The page on large data: its figures are the stored ones, and memory stays bounded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "large.md"
SCRIPT = ROOT / "benchmarks" / "large.py"
RESULTS = ROOT / "benchmarks" / "results" / "large.json"
MOST_MB = 1500


def test_the_page_shows_the_stored_figures(tmp_path: Path) -> None:
    copy = tmp_path / "large.md"
    shutil.copy(PAGE, copy)
    command = [sys.executable, str(SCRIPT), "page", "--page", str(copy)]
    subprocess.run(command, check=True, timeout=60)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_stored_runs_needed_little_memory() -> None:
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))["files"]["rows"]
    assert {run["format"] for run in runs} == {"svmlight", "csv", "parquet"}
    assert all(run["peak_mb"] <= MOST_MB for run in runs)
