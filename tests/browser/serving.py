"""A labelling server in a thread, for tests that drive a browser."""

from __future__ import annotations

import csv
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marginwise import OnlineSVC
from marginwise.active import StoppingRule

TOKEN = "token-of-the-tests"
SPAM = (
    "WINNER!! Claim your free prize now",
    "Urgent: you have won cash",
    "Free entry, txt",
)
HAM = ("See you at lunch tomorrow", "Sorry, I'm late, call you back", "Did you water the plants")


def messages(count: int) -> list[tuple[str, str]]:
    """Return texts with their labels, all different."""
    texts = []
    for k in range(count):
        label = "spam" if k % 3 == 0 else "ham"
        starts = SPAM if label == "spam" else HAM
        texts.append((f"{starts[k % len(starts)]} no. {k}", label))
    return texts


def truth(text: str) -> str:
    """Return the label of a text of `messages`."""
    return "spam" if text.startswith(SPAM) else "ham"


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def until(page: Any, function: str, argument: Any = None) -> None:
    """Wait until a JavaScript function returns something true.

    Playwright's `wait_for_function` calls eval, which the page's security policy forbids.
    """
    for _ in range(1000):
        if page.evaluate(function, argument):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"never true: {function}")


@dataclass
class Labelling:
    """A session and the server of its page, which can be stopped and started again."""

    items: Path
    store: Path
    labels: list[str]
    annotator: str = "anna"
    columns: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    stop_rule: StoppingRule | None = None
    token: str = TOKEN
    port: int = 0

    def start(self) -> Labelling:
        import uvicorn

        from marginwise.label.item_files import Columns
        from marginwise.label.security import Address
        from marginwise.label.server import listening, make_app
        from marginwise.label.session import Settings
        from marginwise.label.start import Request, start

        request = Request(str(self.items), Columns(**self.columns), store=str(self.store))
        settings = Settings((), annotator=self.annotator, **self.settings)
        self.session, _ = start(
            request, settings, self.labels, lambda *_: OnlineSVC(C=10), stop=self.stop_rule
        )
        self._listening = listening("127.0.0.1", self.port)
        opened = self._listening.__enter__()
        self.port = opened.getsockname()[1]
        app = make_app(self.session, Address("127.0.0.1", self.port, self.token))
        config = uvicorn.Config(
            app, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [opened]}, daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.should_exit = True
            self._thread.join()
            self._listening.__exit__(None, None, None)
            self.session.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def events(self, kind: str | None = None) -> list[Any]:
        """Return the events of the store, read by a connection of their own."""
        from marginwise.label.store import LabelStore

        store = LabelStore.open(self.store, create=False)
        try:
            return [event for event in store.events() if kind in (None, event.kind)]
        finally:
            store.close()

    def labels_by_item(self) -> dict[str, str | None]:
        """Return what counts as the label of each answered item."""
        from marginwise.label.events import Answers

        answers = Answers()
        for event in self.events():
            answers.apply(event)
        return {event.item: event.label for event in answers.effective()}
