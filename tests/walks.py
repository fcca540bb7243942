"""Count the files of the package that calls pass through; tests/test_house.py has the limits.

    python -m tests.walks           every walk, one line each
    python -m tests.walks fit       one walk, function by function

A switch is a call, or a return, that lands in another file than the one before it. An edge is a
pair of files between which calls switch. Switches grow with rows and values, edges do not. All
walks are counted in one new process, because a first call also imports modules.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

import marginwise
from marginwise import ActiveLearner, ExactSVC, OnlineSVC, OnlineSVCCV, load, save

PACKAGE = Path(marginwise.__file__).parent
Call = Callable[[], object]


class Step(NamedTuple):
    """A function that was entered or returned to, and its file."""

    file: str
    function: str


class Walk(NamedTuple):
    """Counts of a walk."""

    edges: int
    files: int
    switches: int


def steps(call: Call) -> list[Step]:
    """Return the steps of a call in the package, in order."""
    found: list[Step] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        seen = frame if event == "call" else frame.f_back if event == "return" else None
        path = Path(seen.f_code.co_filename) if seen is not None else None
        if seen is None or path is None or not path.is_relative_to(PACKAGE):
            return
        step = Step(path.relative_to(PACKAGE).as_posix(), seen.f_code.co_name)
        if found[-1:] != [step]:
            found.append(step)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def count(taken: list[Step]) -> Walk:
    """Return the counts of some steps."""
    switches = [(a.file, b.file) for a, b in itertools.pairwise(taken) if a.file != b.file]
    return Walk(len(set(switches)), len({step.file for step in taken}), len(switches))


# -- the calls -------------------------------------------------------------------------------------


def walks(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield the names of walks and their calls, which have to be made in this order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    yield from _models(X, y, folder)
    yield "learn_from", _run(folder)
    yield from _product(X, y, folder)
    yield from _labelling(folder)


def _models(X: np.ndarray, y: np.ndarray, folder: Path) -> Iterator[tuple[str, Call]]:
    fitted = OnlineSVC(gamma=1.0, random_state=0).fit(X, y)
    stream = OnlineSVC(gamma=1.0).partial_fit(X[:50], y[:50], classes=[0, 1])
    exact = ExactSVC(gamma=1.0).fit(X[:100], y[:100])
    path = folder / "model.mwz"
    yield "fit", lambda: OnlineSVC(gamma=1.0, random_state=0).fit(X, y)
    yield (
        "fit-active",
        lambda: OnlineSVC(gamma=1.0, selection="active", random_state=0).fit(X, y),
    )
    yield "partial_fit", lambda: stream.partial_fit(X[50:], y[50:])
    yield "predict", lambda: fitted.predict(X)
    yield "save", lambda: save(fitted, path)
    yield "load", lambda: (save(fitted, path), load(path))
    yield "forget", lambda: exact.forget([1, 2, 3])


def _run(folder: Path) -> Call:
    """Return a run over deformed images, with a sieve and a checkpoint."""
    from sklearn.datasets import load_digits

    from marginwise.invariance import ImageDeformer, VirtualSet

    digits, labels = load_digits(return_X_y=True)
    source = VirtualSet(digits[:200] / 16, labels[:200], ImageDeformer((8, 8)), variants=3)
    given = {"gamma": 0.2, "selection": "active", "random_state": 0}
    return lambda: OnlineSVC(**given).learn_from(source, sift=0.01, checkpoint=folder / "run.mwz")


def _product(X: np.ndarray, y: np.ndarray, folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield the walks of the product around the engine, through public names only."""
    from marginwise.active import SupportVectorPlateau
    from marginwise.cli import main
    from marginwise.data import open_source
    from marginwise.removal import remove_from_file

    table, model, exact, learner = (folder / n for n in ("t.csv", "m.mwz", "e.mwz", "l.mwz"))
    lines = [f"{a:.4f},{b:.4f},{'yes' if c else 'no'}" for (a, b), c in zip(X, y, strict=True)]
    table.write_text("\n".join(["a,b,label", *lines]))
    save(ExactSVC(gamma=1.0).fit(X[:100], y[:100]), exact)
    asked = _labelled(X, y)
    _labelled(X, y).save(learner)
    stopped = {"selection": "active", "stop": SupportVectorPlateau(), "random_state": 0}

    def run(*words: object) -> None:
        main([str(word) for word in (*words, "--quiet", "--force")], standalone_mode=False)

    yield "train", lambda: run("train", table, model, "-c", "10", "-g", "0.5")
    yield "train-tuned", lambda: run("train", table, folder / "t.mwz")
    yield "predict-file", lambda: run("predict", model, table, folder / "p.csv")
    yield "read-csv", lambda: open_source(table).read(np.arange(10))
    yield "learn-csv", lambda: OnlineSVC(gamma=0.5).learn_from(open_source(table))
    yield "removal", lambda: remove_from_file(exact, ids=[1, 2])
    yield "teach", lambda: asked.teach(asked.ask(), 1)
    yield "undo", lambda: asked.undo()
    yield "load-learner", lambda: ActiveLearner.load(learner, X)
    yield "fit-stop", lambda: OnlineSVC(gamma=0.5, **stopped).fit(X, y)
    yield "tune", lambda: OnlineSVCCV(Cs=2, gammas=2, cv=2, random_state=0).fit(X, y)


def _labelled(X: np.ndarray, y: np.ndarray) -> ActiveLearner:
    """Return a learner that was taught 20 rows."""
    learner = ActiveLearner(OnlineSVC(C=10, gamma=0.5), X, random_state=0)
    for _ in range(20):
        row = learner.ask()
        learner.teach(row, int(y[row]))
    return learner


def _labelling(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield one answer and one undo of a labelling session that has a model."""
    from tests.label_support import label_some, open_session, queue_of, write_csv

    session = open_session(write_csv(folder), folder / "labels.db")
    label_some(session, 20)
    item = queue_of(session)[0]
    try:
        yield "label-answer", lambda: session.answer("answered", item, "good")
        yield "label-undo", lambda: session.undo("undone")
    finally:
        session.close()


def main() -> None:
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name, call in walks(Path(folder)):
            taken = steps(call)
            if wanted and name not in wanted:
                continue
            print(name, *count(taken))
            for step in taken if wanted else ():
                print(f"    {step.file}: {step.function}")


if __name__ == "__main__":
    main()
