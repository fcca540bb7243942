"""Kills: a process that is killed while it learns with checkpoints, or while it saves.

Invariant: a run that is resumed after every kill ends with the model of a run that was never
killed. A file is always readable: it has the content of one of the saves. The next save removes
the temporaries that killed processes left behind.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import marginwise
from tests.stress.harness import Options, Outcome
from tests.stress.subjects import digest_of, learn, make, rows
from tests.support import Rows

TOTAL = 30
BATCH = 5
LIMIT = 120.0
KILLS = 4  # of every case
LEARNERS = ("OnlineSVC", "GapSVC", "TrackingSVC", "ExactRampSVC", "KernelPerceptron", "ExactSVC")


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case % 5 == 4:
            return _while_saving(Path(folder), rng)
        return _while_learning(LEARNERS[case % len(LEARNERS)], case % 3, Path(folder), rng)


def _in_child(action: Callable[[], Any]) -> int:
    """Run an action in a process of its own, which is forked to have everything loaded."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    return child


def _end(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- learning ----------------------------------------------------------------------------------


def _learn_with_checkpoints(name: str, sift: float | None, path: Path | None) -> Any:
    """Learn from a source in forty stages, each of which may end with a checkpoint."""
    X, y = rows(np.random.default_rng(0), 800)
    source = Rows(X, y, list(range(20, 801, 20)))
    model = make(name, C=10.0)
    choose = sift if hasattr(model, "selection") else None
    return model.learn_from(source, sift=choose, checkpoint=path, checkpoint_minutes=0)


@cache
def _never_killed(name: str, sift: float | None) -> tuple[str, float]:
    """The digest of a run that was not killed, and its duration with checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        _learn_with_checkpoints(name, sift, Path(folder, "run.mwz"))
        seconds = time.monotonic() - began
    return digest_of(_learn_with_checkpoints(name, sift, None)), seconds


def _while_learning(name: str, mode: int, folder: Path, rng: np.random.Generator) -> Outcome:
    sift = (None, 0.0, 0.05)[mode]
    expected, seconds = _never_killed(name, sift)
    path, result = folder / "run.mwz", folder / "result"

    def learn_on() -> None:
        result.write_text(digest_of(_learn_with_checkpoints(name, sift, path)))

    outcome = Outcome()
    for _ in range(KILLS):
        child = _in_child(learn_on)
        time.sleep(float(rng.uniform(0, seconds / 2)))
        os.kill(child, signal.SIGKILL)
        code = _end(child)
        if code == -signal.SIGKILL:
            outcome.count("kills while learning")
        elif code != 0:
            return outcome.violate(f"{name}: a killed run cannot be resumed")
    if _end(_in_child(learn_on)) != 0:
        return outcome.violate(f"{name}: a killed run cannot be resumed")
    if result.read_text() != expected:
        outcome.violate(f"{name}, sift={sift}: another model than without kills")
    left = sorted(p.name for p in folder.iterdir() if p not in (path, result))
    if left:
        outcome.violate(f"{name}: temporaries are left: {left}")
    return outcome.count("runs resumed to their end")


# -- saving ------------------------------------------------------------------------------------


def _while_saving(folder: Path, rng: np.random.Generator) -> Outcome:
    models = [make("OnlineSVC", kernel="linear") for _ in range(2)]
    for k, model in enumerate(models):
        learn(model, *rows(np.random.default_rng(k), 2000, 2, 200))
    digests = {digest_of(model) for model in models}
    path = folder / "model.mwz"
    marginwise.save(models[0], path)

    def save_again_and_again() -> None:
        for k in range(10**6):
            marginwise.save(models[k % 2], path)

    outcome = Outcome()
    for _ in range(KILLS):
        child = _in_child(save_again_and_again)
        time.sleep(float(rng.uniform(0.01, 0.2)))
        os.kill(child, signal.SIGKILL)
        _end(child)
        outcome.count("kills while saving")
        if digest_of(marginwise.load(path)) not in digests:
            outcome.violate("the file holds another model than those that were saved")
    marginwise.save(models[0], path)
    left = sorted(p.name for p in folder.iterdir() if p != path)
    if left:
        outcome.violate(f"a save does not remove the temporaries of killed processes: {left}")
    return outcome
