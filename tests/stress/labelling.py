"""Labelling: a server that is killed at random moments under a scripted annotator.

Invariant: no answer that was acknowledged is lost, no answer is stored twice, and after every
answer the queue is that of a server that was never killed. The annotator sends a request again
until it is acknowledged, with the same key.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marginwise import OnlineSVC
from marginwise.label.item_files import Columns
from marginwise.label.queue import Settings
from marginwise.label.security import Address
from marginwise.label.server import listening, make_app, serve
from marginwise.label.session import Session
from marginwise.label.start import Request, start
from marginwise.label.store import LabelStore
from tests.label_support import truth_of, write_csv
from tests.stress.harness import Options, Outcome

TOTAL = 10
BATCH = 2
LIMIT = 180.0
KILLS = 6  # of every case, at most
LONGEST = 0.9  # seconds from a start to a kill
STEPS = 60
TOKEN = "token"
MODES: list[dict[str, Any]] = [
    {},
    {"holdout": 0.2},
    {"goal": "find"},
    {"strategy": "near_boundary"},
    {"overlap": 0.2},
]


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = write_csv(Path(folder), 90, case)
        mode = MODES[case % len(MODES)]
        script = [str(kind) for kind in rng.choice(["label", "skip", "undo", "change"], STEPS,
                                                   p=[0.75, 0.05, 0.1, 0.1])]  # fmt: skip
        expected = _never_killed(path, Path(folder, "calm.db"), mode, script)
        stored = _stored(Path(folder, "calm.db"))
        outcome = _under_kills(path, Path(folder, "labels.db"), mode, script, expected, rng)
        if not outcome.violations and _stored(Path(folder, "labels.db")) != stored:
            outcome.violate(f"{mode}: actions are lost, doubled or stored as others")
        return outcome.count("stored actions", len(stored))


def _session(path: Path, store: Path, mode: dict[str, Any]) -> Session:
    request = Request(str(path), Columns(text=("text",)), store=str(store))
    settings = Settings((), annotator="ann", **mode)
    return start(request, settings, ["good", "bad"], lambda *_: OnlineSVC(C=10, gamma=1.0))[0]


def _stored(path: Path) -> list[tuple[Any, ...]]:
    """Return what a store has of every action, except times and scores."""
    with LabelStore.open(path) as store:
        return [(e.key, e.kind, e.item, e.label, e.purpose, e.pending) for e in store.events()]


def _action(kind: str, step: int, queue: list[dict[str, Any]], done: list[str]) -> dict[str, Any]:
    """Return the request of a step: its path, and what is sent."""
    key = {"key": f"step {step}"}
    if kind == "undo" and done:
        return {"path": "/api/undo", **key}
    if kind == "change" and done:
        return {"path": "/api/answer", "item": done[step % len(done)], "label": "good", **key}
    first = queue[0]
    if kind == "skip":
        return {"path": "/api/skip", "item": first["id"], **key}
    return {"path": "/api/answer", "item": first["id"], "label": truth_of(first), **key}


# -- without kills -----------------------------------------------------------------------------


def _never_killed(
    path: Path, store: Path, mode: dict[str, Any], script: list[str]
) -> list[list[str]]:
    """Return the queue after every step."""
    session = _session(path, store, mode)
    queue, done, queues = session.state()["queue"], [], []
    for step, kind in enumerate(script):
        told = _action(kind, step, queue, done)
        if told["path"] == "/api/undo":
            found = session.undo(told["key"])
        elif told["path"] == "/api/skip":
            found = session.skip(told["key"], told["item"])
        else:
            found = session.answer(told["key"], told["item"], told["label"])
        queue = found["queue"]
        done += [told["item"]] if "item" in told else []
        queues.append([item["id"] for item in queue])
    session.close()
    return queues


# -- with kills --------------------------------------------------------------------------------


class Server:
    """A server in a process of its own, which is started again whenever it was killed."""

    def __init__(self, path: Path, store: Path, mode: dict[str, Any]) -> None:
        self._given = path, store, mode
        with listening("127.0.0.1", 0) as opened:
            self.port = opened.getsockname()[1]
        self._child = 0
        self._timer: threading.Timer | None = None
        self.kills = 0

    def start(self, delay: float | None) -> None:
        """Start it, to be killed after some seconds unless that is None."""
        self._child = os.fork()  # which has everything loaded
        if self._child == 0:
            try:
                self._serve()
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        if delay is not None:
            self._timer = threading.Timer(delay, os.kill, (self._child, signal.SIGKILL))
            self._timer.start()

    def _serve(self) -> None:
        session = _session(*self._given)
        with listening("127.0.0.1", self.port) as opened:
            serve(make_app(session, Address("127.0.0.1", self.port, TOKEN)), opened, lambda: None)

    def died(self) -> bool:
        """Return whether it has been killed; raise if it ended by itself."""
        child, status = os.waitpid(self._child, os.WNOHANG)
        if child == 0:
            return False
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        code = os.waitstatus_to_exitcode(status)
        if code != -signal.SIGKILL:
            raise RuntimeError(f"the server ended by itself, with status {code}")
        self.kills += 1
        return True

    def stop(self) -> None:
        """Kill it, and wait for its end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a request once; return the answer, or None if the connection broke."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body or {}), headers)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()


@contextlib.contextmanager
def _running(server: Server, rng: np.random.Generator) -> Iterator[Server]:
    server.start(float(rng.uniform(0, LONGEST)))
    try:
        yield server
    finally:
        server.stop()


def _until_answered(
    server: Server, rng: np.random.Generator, method: str, path: str, body: dict[str, Any] | None
) -> Any:
    """Send a request until it is acknowledged, and start the server when it was killed."""
    while True:
        found = server.send(method, path, body)
        if found is not None:
            return found
        if server.died():
            server.start(float(rng.uniform(0, LONGEST)) if server.kills < KILLS else None)
        time.sleep(0.02)


def _under_kills(
    path: Path,
    store: Path,
    mode: dict[str, Any],
    script: list[str],
    expected: list[list[str]],
    rng: np.random.Generator,
) -> Outcome:
    outcome, done = Outcome(), []
    with _running(Server(path, store, mode), rng) as server:
        queue = _until_answered(server, rng, "GET", "/api/state", None)["queue"]
        for step, kind in enumerate(script):
            action = _action(kind, step, queue, done)
            found = _until_answered(server, rng, "POST", action["path"], action)
            if not found["ok"]:
                return outcome.violate(f"step {step} was refused: {found['error']}")
            queue = found["queue"]
            done += [action["item"]] if "item" in action else []
            if [item["id"] for item in queue] != expected[step]:
                return outcome.violate(f"{mode}, step {step}: another queue than without kills")
            time.sleep(0.02)
        outcome.count("kills", server.kills)
    session = _session(path, store, mode)
    if [item["id"] for item in session.state()["queue"]] != expected[-1]:
        outcome.violate(f"{mode}: another queue after the last start")
    session.close()
    return outcome
