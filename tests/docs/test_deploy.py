"""The page on deployment: its figures are the stored ones, and its C program compiles."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from marginwise import OnlineSVC
from marginwise.exchange import to_c
from tests.support import blobs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "deploy.md"
RESULT = ROOT / "benchmarks" / "results" / "exchange.json"
LEAST_SAME, MOST_DIFFERENT, MOST_RATIO = 0.9999, 1e-4, 1.5
MOST_CHECKED, MOST_UNCHECKED = 250, 15  # microseconds per row


def test_the_page_shows_the_stored_figures(tmp_path: Path) -> None:
    copy = tmp_path / "deploy.md"
    shutil.copy(PAGE, copy)
    command = [sys.executable, str(ROOT / "benchmarks" / "exchange.py"), "--page", str(copy)]
    subprocess.run(command, check=True, timeout=60)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_the_stored_figures_reach_what_was_aimed_at() -> None:
    report = json.loads(RESULT.read_text(encoding="utf-8"))
    single = report["batch"]["contestants"]["ONNX Runtime, float32"]
    assert report["batch"]["train_rows"] == 60_000
    assert single["ratio"] <= MOST_RATIO
    assert single["same_labels"] >= LEAST_SAME
    assert single["largest_difference"] <= MOST_DIFFERENT
    assert report["row"]["predict"] <= MOST_CHECKED
    assert report["row"]["predict_one"] <= MOST_UNCHECKED


def test_the_program_of_the_page_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (program,) = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    X, y = blobs(80, 0, 3)
    model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    to_c(model, tmp_path / "digits.h", name="digits")
    (tmp_path / "main.c").write_text(program)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    made = str(tmp_path / "main")
    subprocess.run([compiler, *flags, "-o", made, str(tmp_path / "main.c"), "-lm"], check=True)
    shown = subprocess.run([made], check=True, capture_output=True, text=True).stdout
    expected = model.predict(np.zeros((1, 2)))[0]
    assert shown.startswith(f"class {expected}, value ")
