"""Cases of digests.py beyond a single fit: long runs, questions, labelling, Dask, files."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import marginwise
from marginwise.active import ActiveLearner
from marginwise.label import LabelStore
from marginwise.label.items import Items, grouped
from marginwise.label.queue import Settings
from marginwise.label.session import Session
from tests.golden.digests import ESTIMATORS, SELECTIONS, WEIGHTS, Y2, Y3, X, make

Case = Callable[[], Any]
SEEN = ("kind", "item", "label", "purpose", "model_version", "undone", "score", "pending")


# More rows than are solved as a whole, so that they are sifted, or learned in rounds.
RANDOM = np.random.RandomState(2)
MANY = (RANDOM.standard_normal((6000, 5)) * 64).round() / 64
LABELS = np.digitize(MANY[:, 0] + MANY[:, 1] ** 2, [0.2, 1.2])


class Source:
    """A source of these rows, in two stages, which is read in blocks."""

    classes = (0, 1, 2)
    stages = (3000, 6000)
    block = 500

    def __len__(self) -> int:
        return len(LABELS)

    def read(self, ids: Any) -> tuple[Any, Any]:
        return MANY[ids], LABELS[ids]


def product_cases() -> dict[str, Case]:
    return _streams() | _questions() | _labelling() | _files() | {"Dask": _dask}


# -- training --------------------------------------------------------------------------------------


def _streams() -> dict[str, Case]:
    def replayed() -> Any:
        model = make("OnlineSVC", replay=50)
        return model.partial_fit(X, Y3, classes=[0, 1, 2], sample_weight=WEIGHTS).finish()

    def grown(name: str) -> Any:
        """A budget of two classes, before the third one appears."""
        few = np.flatnonzero(Y3 < 2)
        model = make(name, budget=20, **({} if name == "GapSVC" else {"multiclass": "ovr"}))
        if name == "OnlineSVC":
            return model.partial_fit(X[few], Y3[few]).partial_fit(X[150:], Y3[150:])
        return model.partial_fit(X, Y3, classes=[0, 1, 2])

    def stopped(selection: str) -> Any:
        return make("OnlineSVC", **{**SELECTIONS[selection], "stop": 60}).fit(X, Y3)

    def resumed(**given: Any) -> Any:
        """A run that is stopped after each of its first chunks, and continued from its file."""
        with tempfile.TemporaryDirectory() as folder:
            run = {"checkpoint": Path(folder, "run.mwz"), "checkpoint_minutes": 0.0, "sift": 0.02}
            for _ in range(2):
                make("OnlineSVC", **given).learn_from(Source(), **run, callback=lambda *_: True)
            return make("OnlineSVC", **given).learn_from(Source(), **run)

    return {
        "OnlineSVC, replay": replayed,
        "OnlineSVC, budget, third class": lambda: grown("OnlineSVC"),
        "GapSVC, budget": lambda: grown("GapSVC"),
        "run, sifted, resumed": lambda: resumed(C=0.2),
        "run, sifted, active, resumed": lambda: resumed(**SELECTIONS["active"]),
        **{
            f"OnlineSVC, stop, {name}": lambda name=name: stopped(name)
            for name in ("gradient", "active", "autoactive", "full")
        },
    }


def _dask() -> Any:
    """A fit on a cluster of threads of this process, of more rows than a fit without rounds."""
    import dask.array as da
    from distributed import Client

    from marginwise.dask import DaskOnlineSVC

    blocks = da.from_array(MANY, chunks=(700, 5)), da.from_array(LABELS, chunks=700)
    alone = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with Client(processes=False, **alone) as client:
        given = {"C": 2.0, "gamma": 0.4, "random_state": 0, "round_rows": 1024}
        return DaskOnlineSVC(**given, client=client).fit(*blocks, sift=0.02).to_local()


# -- questions -------------------------------------------------------------------------------------


def taught(strategy: str) -> tuple[Any, list[int]]:
    """Return a learner that was asked, and all rows that it asked about."""
    learner = ActiveLearner(make("OnlineSVC"), X, strategy=strategy, stop=None, random_state=0)
    learner.teach([0, 1, 2, 3], Y3[:4])
    asked: list[int] = []
    for step in range(15):
        rows = np.atleast_1d(learner.ask(1 + step % 3))
        asked += rows.tolist()
        if step % 5 == 2:
            learner.skip(rows)
            continue
        learner.teach(rows, Y3[rows])
        if step % 5 == 3:
            learner.undo()
        if step % 5 == 4:
            learner.correct(rows[:1], (Y3[rows[:1]] + 1) % 3)
    return learner, asked


def _questions() -> dict[str, Case]:
    def sequence(strategy: str) -> Any:
        learner, asked = taught(strategy)
        return np.array(asked), learner.decision_values()

    strategies = ("active", "autoactive", "near_boundary", "random")
    known = [name for name in strategies if name in marginwise.active.STRATEGIES]
    return {f"questions, {name}": lambda name=name: sequence(name) for name in known}


class Texts:
    """The content of items, which are named by their rows."""

    kind = "text"

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def show(self, row: int) -> dict[str, Any]:
        return {"text": self.names[row]}

    def values(self) -> list[Any]:
        return self.names

    def digests(self) -> list[bytes]:
        return [name.encode() for name in self.names]

    def take(self, rows: Any) -> Texts:
        return Texts([self.names[row] for row in rows])

    def path(self, row: int) -> None:
        return None


def _labelling() -> dict[str, Case]:
    def labelled(goal: str) -> Any:
        """Answers with undos, in two sessions on one store; its events, without their times."""
        items = grouped("items", Texts([f"item {row}" for row in range(len(X))]))
        settings = Settings(("no", "yes"), "ann", goal, holdout=0.1, overlap=0.2)
        with tempfile.TemporaryDirectory() as folder:
            for first in (0, 30):
                _answer(items, Path(folder, "labels.db"), settings, range(first, first + 30))
            with LabelStore.open(Path(folder, "labels.db")) as store:
                events = [[getattr(event, name) for name in SEEN] for event in store.events()]
        return np.frombuffer(json.dumps(events).encode(), dtype=np.uint8)

    return {f"labelling, {goal}": lambda goal=goal: labelled(goal) for goal in ("learn", "find")}


def _answer(items: Items, path: Path, settings: Settings, steps: range) -> None:
    """Answer the first question of the queue at each step."""
    store, model = LabelStore.open(path), make("OnlineSVC")
    session = Session(items, X, store, estimator=model, settings=settings)
    try:
        for step in steps:
            item = session.state()["queue"][0]["id"]
            if step % 9 == 4:
                session.skip(f"key {step}", item)
            else:
                label = settings.labels[Y2[items.row(item)]]
                session.answer(f"key {step}", item, label)
            if step % 7 == 6:
                session.undo(f"undo {step}")
    finally:
        session.close()


# -- files -----------------------------------------------------------------------------------------


def _files() -> dict[str, Case]:
    def model_file(name: str, **given: Any) -> Any:
        model = make(name, **given)
        fitted = model.fit(X) if name == "ExactOneClassSVM" else model.fit(X, Y3)
        return _content(lambda path: marginwise.save(fitted, path))

    cases = {f"file, {name}": lambda name=name: model_file(name) for name in ESTIMATORS}
    return cases | {
        "file, ExactOneClassSVM": lambda: model_file("ExactOneClassSVM", nu=0.3),
        "file, budget and replay": lambda: model_file("OnlineSVC", budget=30, replay=40),
        "file, learner": lambda: _content(taught("active")[0].save),
    }


def _content(write: Callable[[Path], None]) -> tuple[np.ndarray, ...]:
    """Return the bytes of the members of a file, except those of the version and of times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        write(path)
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    del document["marginwise"], document["sha256"]
    members["model.json"] = json.dumps(document).encode()
    members.pop("seconds.npy", None)
    return tuple(
        np.frombuffer(name.encode() + b"\0" + content, dtype=np.uint8)
        for name, content in members.items()
    )
