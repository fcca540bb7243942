"""How estimators fit their surroundings: processors, joblib, terminals, notebooks and logs."""

from __future__ import annotations

import os
import subprocess
import sys

import joblib
import pytest

from marginwise import OnlineSVC
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
