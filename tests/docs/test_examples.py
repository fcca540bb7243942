"""The examples and the benchmark run, and say what they should."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MARGINWISE_DATA"}
    return subprocess.run(
        [sys.executable, ROOT / script, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
    )


def test_stream_example() -> None:
    done = run("examples/stream.py")
    assert done.returncode == 0, done.stderr
    assert "after 100 examples of one class: predicts [1]" in done.stdout
    early, late = (float(text) for text in re.findall(r"accuracy (\d\.\d+)", done.stdout))
    assert early > 0.95
    assert late > 0.96
    assert "the same model, bit for bit" in done.stdout
    support, held = (int(n) for n in re.findall(r"finished: (\d+) .* of (\d+)", done.stdout)[0])
    assert 0 < support <= held < 2600


def test_demo_on_few_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    done = run("examples/demo.py", "--rows", "600", "--picture", picture)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if re.match(r"(OnlineSVC|SVC)\b", line)]
    assert [row[:19].strip() for row in rows] == ["OnlineSVC", "OnlineSVC, 2 epochs", "SVC"] * 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_benchmark_on_small_data(tmp_path: Path) -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    data, out = tmp_path / "banana.npz", tmp_path / "speed.json"
    np.savez(data, X=X.astype(np.float32), y=2 * y - 1)
    few = ("--quick", "--no-intelex", "--threads", "1", "--rounds", "1")
    done = run(
        "benchmarks/speed.py",
        "--data",
        tmp_path,
        "--out",
        out,
        *few,
        "--only",
        "banana",
        "learn_one",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "banana: fit: times faster than SVC" in done.stdout
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["data"] == {"banana.npz": hashlib.sha256(data.read_bytes()).hexdigest()}
    assert {"machine", "versions", "commit", "dirty"} <= report.keys()
    race = report["works"]["banana"]["measurements"]
    assert race.keys() == {"OnlineSVC", "SVC"}
    for (measurement,) in race.values():
        assert measurement["fit"]["wall"] > 0
        assert measurement["error"] < 15
        assert measurement["load"].keys() == {"before", "after"}
    measured = {figure["what"]: figure["measured"] for figure in report["figures"]}
    assert measured["error off SVC's, points"] < 10
    assert measured["microseconds a call, median"] > 0


def test_benchmark_without_data_says_how_to_name_them(tmp_path: Path) -> None:
    done = run("benchmarks/speed.py", "--data", tmp_path / "none")
    assert done.returncode == 1
    assert "--data or in MARGINWISE_DATA" in done.stderr
    done = run("benchmarks/speed.py", "--data", tmp_path, "--only", "banana")
    assert "lacks banana.npz" in done.stderr
