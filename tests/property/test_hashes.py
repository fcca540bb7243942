"""Two equal fits have equal pickles and hashes, so that `joblib.Memory` recognizes them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from marginwise import (
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    TrackingSVC,
    load,
    save,
)
from marginwise._training import loop as _loop

ROOT = Path(__file__).parents[2]
RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((300, 3))
Y = np.array(["low", "middle", "high"])[
    np.digitize(X[:, 0] + 0.5 * RANDOM.standard_normal(300), [-0.5, 0.5])
]

FITS: dict[str, Callable[[], Any]] = {
    "online": lambda: OnlineSVC(random_state=0, class_weight={"low": 2.0}).fit(X, Y),
    "threads": lambda: OnlineSVC(random_state=0, n_jobs=2).fit(X, Y),
    "selection": lambda: OnlineSVC(random_state=0, selection="active", pool_size=9).fit(X, Y),
    "generator": lambda: OnlineSVC(random_state=np.random.RandomState(3)).fit(X, Y),
    "gap": lambda: GapSVC(random_state=0).fit(X, Y),
    "tracking": lambda: TrackingSVC(random_state=0).fit(X, Y),
    "recorded": lambda: TrackingSVC(random_state=0, record=True).fit(X, Y),
    "exact ramp": lambda: ExactRampSVC(random_state=0).fit(X, Y),
    "perceptron": lambda: KernelPerceptron(random_state=0, average=True).fit(X, Y),
    "exact": lambda: ExactSVC(gamma=1.0, record=True).fit(X, Y).forget([3, 5]),
    "one class": lambda: ExactOneClassSVM(nu=0.2).fit(X),
    "stream": lambda: OnlineSVC().partial_fit(X, Y, classes=np.unique(Y)).finish(),
}


@pytest.mark.parametrize("name", FITS)
def test_equal_fits_are_equal(name: str, tmp_path: Path) -> None:
    one, two = FITS[name](), FITS[name]()
    assert pickle.dumps(one) == pickle.dumps(two)
    assert joblib.hash(one) == joblib.hash(two)
    for model, file in ((one, "one.mwz"), (two, "two.mwz")):
        save(model, tmp_path / file)
    assert (tmp_path / "one.mwz").read_bytes() == (tmp_path / "two.mwz").read_bytes()


@pytest.mark.parametrize("name", [name for name in FITS if name != "recorded"])
def test_the_clock_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of `stats_` nor the one that cuts learning into slices."""
    expected = joblib.hash(FITS[name]())
    monkeypatch.setattr(_loop, "SLICE_SECONDS", 1e-4)
    assert joblib.hash(FITS[name]()) == expected


@pytest.mark.slow
def test_fits_of_other_processes_are_equal() -> None:
    code = (
        "import joblib\nfrom tests.property.test_hashes import FITS\n"
        "print([joblib.hash(fit()) for fit in FITS.values()])"
    )
    here = str([joblib.hash(fit()) for fit in FITS.values()])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.stdout.strip() == here, ran.stderr


def test_a_memory_recognizes_an_equal_fit(tmp_path: Path) -> None:
    computed: list[str] = []
    memory = joblib.Memory(tmp_path, verbose=0)

    @memory.cache
    def support(model: Any, name: str) -> int:
        computed.append(name)
        return len(model.support_)

    for name, fit in FITS.items():
        assert support(fit(), name) == support(fit(), name)
    assert computed == list(FITS)


def test_stats_count_the_work_of_this_process(tmp_path: Path) -> None:
    model = FITS["online"]()
    assert model.stats_["learn_seconds"] > 0
    assert model.stats_["kernel_evaluations"] > 0
    save(model, tmp_path / "m.mwz")
    again = load(tmp_path / "m.mwz")
    own = {"kernel_evaluations", "cache_hits", "cache_misses"}
    own |= {name for name in model.stats_ if name.endswith("seconds")}
    for name, value in again.stats_.items():
        assert value == (0 if name in own else model.stats_[name]), name
    again.partial_fit(X, Y)
    assert again.stats_["learn_seconds"] > 0
    assert again.stats_["kernel_evaluations"] > 0


def test_a_change_of_precision_keeps_the_clocks() -> None:
    model = OnlineSVC(gamma=1.0).partial_fit(X[:, :1], X[:, 0] > 0, classes=[False, True])
    seconds = model.stats_["learn_seconds"]
    assert model.stats_["precision"] == "single"
    model.partial_fit([[100.0], [-100.0]], [True, False])
    assert model.stats_["precision"] == "double"
    assert model.stats_["learn_seconds"] > seconds
