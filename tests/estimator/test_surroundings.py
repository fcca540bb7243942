"""How estimators fit their surroundings: processors, joblib, terminals, notebooks and logs."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types
import warnings
from typing import Any

import joblib
import pytest

from marginwise import OnlineSVC, progress
from marginwise._params import MOST_THREADS, thread_count
from tests.support import assert_same_model, blobs

# -- threads --------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity on this system")
def test_all_processors_are_those_of_the_affinity_mask() -> None:
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from marginwise._params import thread_count; print(thread_count(-1), thread_count(None))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.split() == ["1", "1"]


def test_joblib_sets_the_number_of_threads() -> None:
    assert thread_count(None) == 1
    assert thread_count(-1) == joblib.cpu_count()
    assert thread_count(-10_000) == 1
    assert thread_count(10_000) == MOST_THREADS
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert thread_count(None) == 3
        assert thread_count(2) == 2


def test_a_fit_within_parallel_config_uses_its_threads(seed: int) -> None:
    X, y = blobs(200, seed)
    alone = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    assert alone._machine.threads == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    assert model._machine.threads == 2
    assert_same_model(model, alone, "two threads of joblib's choice")


# -- progress -------------------------------------------------------------------------------------


def show_some(total: int = 100) -> None:
    with progress.Progress(total, 1) as bar:
        bar.learned(40, 7, 0.25)
        bar.finishing(0.125)


def test_progress_goes_to_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    show_some()
    lines = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} == {"marginwise"}
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    learned, finishing, closing = lines
    for part in ("40 of 100 rows", "rows/s", "7 members", "violation 0.25", "s left"):
        assert part in learned
    assert finishing.startswith("finishing: ")
    assert "violation 0.125" in finishing
    assert "left" not in closing


def test_lines_are_a_few_seconds_apart(caplog: pytest.LogCaptureFixture) -> None:
    show_some()
    assert len(caplog.records) == 1, "a short run should only log its last line"


def test_the_level_of_the_logger_counts(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING, logger="marginwise")
    show_some()
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_progress_goes_to_stderr_if_logging_is_not_configured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = logging.Logger("marginwise")  # outside the tree of loggers, so without handlers
    monkeypatch.setattr(progress, "LOGGER", quiet)
    show_some()
    assert capsys.readouterr().err.startswith("marginwise: 40 of 100 rows")
    quiet.setLevel(logging.ERROR)
    show_some()
    assert capsys.readouterr().err == ""


def pretend_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)


def test_a_notebook_without_ipywidgets_shows_the_plain_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_notebook(monkeypatch)
    for name in ("tqdm.auto", "tqdm.autonotebook", "tqdm.notebook"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    progress._bar_class.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            show_some()
    finally:
        progress._bar_class.cache_clear()
    shown = capsys.readouterr().err
    assert "40.0/100" in shown
    assert "δ 0.125" in shown


def test_nothing_is_shown_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pretend_notebook(monkeypatch)
    monkeypatch.setattr(progress, "_bar_class", None)  # which would be called
    with progress.Progress(100, 0) as bar:
        bar.learned(40, 7, 0.25)
    assert not caplog.records
