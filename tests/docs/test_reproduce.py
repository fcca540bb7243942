"""The reproductions run on small parts of the data, and say what they should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MARGINWISE_DATA") or ROOT.parent / "shared" / "data")


def run(script: str, out: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / script, "--quick", "--out", out, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )


def measured(out: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Measurements of a report by set and method."""
    sets = json.loads(out.read_text(encoding="utf-8"))["sets"]
    for one in sets.values():
        assert one["settings"]["quick"]
        assert {"machine", "versions", "commit", "dirty"} <= one["made"].keys()
    return {name: one["measurements"] for name, one in sets.items()}


def need(*files: str) -> None:
    lacking = [file for file in files if not (DATA / file).is_file()]
    if lacking:
        pytest.skip(f"the data folder {DATA} lacks {', '.join(lacking)}")


def test_questions_are_timed(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("benchmarks/active.py", out)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text(encoding="utf-8"))
    for name in ("ask-59", "ask-all"):
        (measurement,) = report["works"][name]["measurements"][name]
        assert 500 < measurement["members"][0] < 1400
        assert 0 < measurement["ask_ms"] <= measurement["ask_p95_ms"]
    assert measurement["ask_ms"] < measurement["scratch_ms"]
    assert {figure["target"] for figure in report["figures"]} == {5.0, 50.0, 150.0, 1000.0, None}


@pytest.mark.parametrize(
    ("rows", "count"), [(("leave-one-out", "soak"), 2 + 18), (("arrivals", "forget"), 36 + 12)]
)
def test_exactness_is_measured(rows: tuple[str, ...], count: int, tmp_path: Path) -> None:
    need("banana.npz", "mnist.npz", "a9a.npz", "reuters_moneyfx_lasvm.npz")
    out = tmp_path / "out.json"
    done = run("benchmarks/exact.py", out, "--data", DATA, "--only", *rows)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["works"].keys() == set(rows)
    judged = [figure for figure in report["figures"] if figure["sense"] == "≤"]
    assert len(judged) == count
    assert all(figure["reached"] for figure in judged), done.stdout


def test_memory_is_measured_apart(tmp_path: Path) -> None:
    need("mnist.npz")
    out = tmp_path / "out.json"
    given = ("--data", DATA, "--only", "large", "--rows", "300", "--threads", "1")
    done = run("benchmarks/exact.py", out, *given)
    assert done.returncode == 0, done.stdout + done.stderr
    (one,) = json.loads(out.read_text(encoding="utf-8"))["works"]["large"]["measurements"][
        "300 rows"
    ]
    assert 0.05 < one["peak_gb"] < 1
    assert one["violation"] < 1e-9
