"""How estimators fit their surroundings: processors, joblib, terminals, notebooks and logs."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import joblib
import pytest
from sklearn.base import clone

from marginwise import ExactSVC, OnlineSVC, load, progress, save
from marginwise._engine.engine import MOST_THREADS, thread_count
from tests.support import assert_same_model, blobs

# -- threads --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity on this system")
def test_all_processors_are_those_of_the_affinity_mask() -> None:
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from marginwise._engine.engine import thread_count;"
        "print(thread_count(-1), thread_count(None))"
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


def test_daemon_processes_may_use_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = types.SimpleNamespace(daemon=True)
    monkeypatch.setattr("multiprocessing.current_process", lambda: daemon)
    assert thread_count(None) == 1
    assert thread_count(2) == 2
    assert thread_count(-1) == joblib.cpu_count()


def test_a_fit_within_parallel_config_uses_its_threads(seed: int) -> None:
    X, y = blobs(200, seed)
    alone = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    assert alone._engine.threads == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        model = OnlineSVC(gamma=0.5, random_state=0).fit(X, y)
    assert model._engine.threads == 2
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


# -- scikit-learn's callbacks ---------------------------------------------------------------------


class Log:
    """A callback that notes what it is told, and may end the epochs."""

    def __init__(self, last_epoch: int = 99) -> None:
        self.last_epoch = last_epoch
        self.calls: list[str] = []
        self.scores: list[float] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any, y: Any, fitted_estimator: Any
    ) -> bool:
        self.calls.append(f"end {context.task_name}")
        self.scores.append(fitted_estimator.score(X, y))
        return context.task_name == "epoch" and context.task_id == self.last_epoch


needs_callbacks = pytest.mark.skipif(
    not hasattr(OnlineSVC, "set_callbacks"), reason="scikit-learn before 1.9 has no callbacks"
)
EPOCH = ["begin epoch", "end epoch"]


@needs_callbacks
def test_callbacks_are_told_of_each_epoch(seed: int) -> None:
    X, y = blobs(150, seed)
    plain = OnlineSVC(gamma=0.5, epochs=3, random_state=0)
    log = Log()
    model = clone(plain).set_callbacks(log).fit(X, y)
    assert log.calls == ["setup", "begin fit", *3 * EPOCH, "end fit", "teardown"]
    assert log.scores[-1] == model.score(X, y)
    assert_same_model(model, plain.fit(X, y), "callbacks changed the model")


@needs_callbacks
def test_a_callback_may_end_the_epochs(seed: int) -> None:
    X, y = blobs(150, seed)
    log = Log(last_epoch=1)
    model = OnlineSVC(gamma=0.5, epochs=9, random_state=0).set_callbacks(log).fit(X, y)
    assert log.calls.count("end epoch") == 2
    two = OnlineSVC(gamma=0.5, epochs=2, random_state=0).fit(X, y)
    assert_same_model(model, two, "an end after two epochs")


@needs_callbacks
def test_callbacks_are_torn_down_after_an_error(seed: int) -> None:
    X, y = blobs(150, seed)
    log = Log()
    with pytest.raises(ValueError, match="inconsistent"):
        ExactSVC(gamma=0.5).set_callbacks(log).fit(X, y[:3])
    assert log.calls == ["setup", "begin fit", "teardown"]


@needs_callbacks
def test_callbacks_are_not_part_of_files(seed: int, tmp_path: Path) -> None:
    X, y = blobs(150, seed)
    model = OnlineSVC(gamma=0.5, random_state=0).set_callbacks(Log()).fit(X, y)
    save(model, tmp_path / "model.mwz")
    assert_same_model(load(tmp_path / "model.mwz"), model, "a file")
    assert pickle.loads(pickle.dumps(model)).n_iter_ == model.n_iter_
