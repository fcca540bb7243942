"""The figures in the pages are those that the benchmarks stored."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproduce.store import stored as measured

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "speed.json"


def figures(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "figures.py", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def test_pages_show_the_stored_figures() -> None:
    if not RESULTS.is_file():
        pytest.skip("no results are stored: `make bench` makes them")
    done = figures("--check")
    assert done.returncode == 0, done.stderr


def test_the_introduction_of_the_readme_states_the_figures_of_the_tables() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    speed = (ROOT / "docs" / "guide" / "speed.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in speed.splitlines() if " × | " in line]
    gains = [float(row[4].removesuffix(" ×")) for row in rows if row[4] != "–"]
    assert f"{min(gains):.0f} to {max(gains):.0f} times" in readme
    rows = [line.strip("| ").split(" | ") for line in readme.splitlines() if " rows" in line]
    higher = max(float(row[4]) - float(row[5]) for row in rows if len(row) == 6)
    assert f"at most {higher:.2f} points higher" in readme


# -- the section on finished models --------------------------------------------------------------


def stored(name: str) -> dict[str, Any]:
    sets: dict[str, Any] = json.loads((RESULTS.parent / name).read_text(encoding="utf-8"))["sets"]
    return sets


def section(title: str) -> str:
    page = ROOT / "docs" / "getting_started.md"
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def test_searches_are_as_fast_as_stated() -> None:
    text = section("A finished model")
    times = {
        name: [row["loop"] / row["seconds"]]
        + [row["peers"][peer] / row["seconds"] for peer in ("intelex", "SVC")]
        for name, row in stored("tuning.json").items()
    }
    loop, intelex, svc = times.pop("mnist8")
    assert f"takes {loop:.1f} times as long with `OnlineSVC`, {intelex:.0f} times" in text
    assert f"{svc:.0f} times with `SVC`" in text
    low, high = ([f(values) for values in zip(*times.values(), strict=True)] for f in (min, max))
    ranges = f"{low[0]:.1f} to {high[0]:.1f}, {low[1]:.0f} to {high[1]:.0f}, and "
    assert ranges + f"{low[2]:.0f} to {high[2]:.0f}" in text


def test_probabilities_are_as_good_as_stated() -> None:
    text, results = section("A finished model"), stored("probabilities.json").values()
    assert max(row["added"] for row in results) <= 0.03
    assert "Probabilities add 3 % or less to the time of a fit" in text
    above = max(
        row["OnlineSVC, sigmoid"]["log_loss"] / peer["log_loss"] - 1
        for row in results
        for name, peer in row.items()
        if name.startswith("Calibrated")
    )
    assert f"at most {above:.1%} above".replace("%", " %") in text


def test_small_models_are_as_fast_as_stated() -> None:
    full, small = (
        stored("compress.json")["a9a"][name] for name in ("full model", "compressed, 150")
    )
    faster = full["predict_seconds"] / small["predict_seconds"]
    assert small["error"] <= full["error"]
    expected = f"{small['vectors']} vectors replace {full['vectors']:,} at the same error"
    assert f"{expected}, and predictions become {faster:.0f} times" in section("A finished model")


# -- the script itself, on made-up results -------------------------------------------------------


def fitted(wall: float, error: float) -> dict[str, Any]:
    return {"fit": {"wall": wall}, "predict": {"wall": wall}, "error": error, "rows": [60000, 9000]}


def report(**changes: Any) -> dict[str, Any]:
    race = {
        "OnlineSVC": [fitted(2.0, 1.0), fitted(4.0, 1.2), fitted(3.0, 1.4)],
        "intelex float32": [fitted(12.0, 1.3)],
        "SVC": [fitted(150.0, 1.25)],
    }
    return {
        "quick": False,
        "started": "2026-01-02T03:04:05Z",
        "machine": {"cpu": "a processor", "cores": 2},
        "versions": {"scikit-learn": "1.8", "scikit-learn-intelex": "2026.0", "marginwise": "0.1"},
        "commit": "0123456789abcdef",
        "dirty": False,
        "works": {
            "mnist10": {"title": "ten digits", "measurements": race},
            "learn_one": {"title": "single rows", "measurements": {"learn_one": []}},
        },
        "figures": [
            {"work": "mnist10", "what": "predict: times faster than SVC", "measured": 31.4},
            {"work": "learn_one", "what": "microseconds a call, median", "measured": 12.3},
        ],
        **changes,
    }


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- figures: speed -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "speed.json"
    path.write_text(json.dumps(report()), encoding="utf-8")
    return path


def test_table_is_written_between_the_markers(page: Path, results: Path) -> None:
    assert figures("--page", page, "--results", results, "--check").returncode == 1
    done = figures("--page", page, "--results", results)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- figures: speed -->\n")
    assert text.endswith("\n<!-- end -->\nafter\n")
    # Medians of times and means of errors: 150 / 3, 12 / 3; (1 + 1.2 + 1.4) / 3.
    assert "| ten digits | 3.0 | 150 | 12 | 50.0 × | 4.0 × | 1.20 | 1.25 |" in text
    assert "`predict` of 9,000 MNIST rows, ten classes: 31 × faster than SVC's." in text
    assert "`learn_one`: 12 µs per call" in text
    assert "commit 0123456789." in text
    assert "old" not in text
    assert figures("--page", page, "--results", results, "--check").returncode == 0


def test_readme_has_a_short_table(page: Path, results: Path) -> None:
    page.write_text("<!-- figures: headline -->\n<!-- end -->\n", encoding="utf-8")
    done = figures("--page", page, "--results", results)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "| MNIST, ten classes, 60,000 rows | 3.0 | 150 | 12 | 1.20 | 1.25 |" in text
    # The least of one set is that of the set: 150 / 3 and 12 / 3.
    assert "at least 50.0 times as fast as `SVC` and 4.0 times as fast as intelex" in text


def test_contestants_that_did_not_run_are_left_open(page: Path, results: Path) -> None:
    without = report(figures=[], dirty=True)
    del without["works"]["mnist10"]["measurements"]["intelex float32"]
    without["versions"]["scikit-learn-intelex"] = None
    results.write_text(json.dumps(without), encoding="utf-8")
    assert figures("--page", page, "--results", results).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "| ten digits | 3.0 | 150 | – | 50.0 × | – | 1.20 | 1.25 |" in text
    assert "0123456789 with changes" in text


def test_a_smoke_test_gives_no_figures(page: Path, results: Path) -> None:
    results.write_text(json.dumps(report(quick=True)), encoding="utf-8")
    before = page.read_text(encoding="utf-8")
    done = figures("--page", page, "--results", results)
    assert done.returncode == 1
    assert "smoke test" in done.stderr
    assert page.read_text(encoding="utf-8") == before


def test_missing_results_and_markers_are_named(page: Path, results: Path, tmp_path: Path) -> None:
    done = figures("--page", page, "--results", tmp_path / "none.json")
    assert done.returncode == 1
    assert "make bench" in done.stderr
    page.write_text("no markers", encoding="utf-8")
    done = figures("--page", page, "--results", results)
    assert done.returncode == 1
    assert "markers" in done.stderr


def test_page_of_rare_classes_shows_the_stored_ranks() -> None:
    """The mean ranks of the page are those of reproduce/ertekin2007/table4.py."""
    from reproduce.ertekin2007.table4 import averages

    mean = averages(measured("ertekin2007/table3"))
    page = (ROOT / "docs" / "guide" / "rare_classes.md").read_text(encoding="utf-8")
    shown = re.search(r"^\| mean rank \| \| \|(.*)\|$", page, re.MULTILINE)
    assert shown is not None
    order = ("AL", "Batch", "DC", "SMOTE", "US")
    assert shown[1].split("|") == [f" {mean[name]:.2f} " for name in order]


def test_page_of_rare_classes_shows_each_set() -> None:
    results = measured("ertekin2007/table3")
    page = (ROOT / "docs" / "guide" / "rare_classes.md").read_text(encoding="utf-8")
    assert len(results.cases) == 13
    for name in results.cases:
        values = [
            f"{results.mean(name, 'AL', 'imbalance'):.1f}",
            f"{results.mean(name, 'AL', 'efficiency'):.0f}",
            *(
                f"{results.mean(name, method, 'prbep'):.1f}"
                for method in ("AL", "Batch", "DC", "SMOTE", "US")
            ),
        ]
        assert f"| {name} | {' | '.join(values)} |" in page
    slow, fast = (results.mean("corn", name, "seconds") for name in ("AL", "SMOTE"))
    assert f"{fast:.1f} s against {slow:.1f} s" in page
