"""Items, sessions and clients for the tests of labelling."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import OnlineSVC
from marginwise.label.item_files import Columns
from marginwise.label.queue import Settings
from marginwise.label.security import Address
from marginwise.label.session import Session
from marginwise.label.start import Request, start

TOKEN = "secret-token"
ADDRESS = Address("127.0.0.1", 8123, TOKEN)
GOOD = ["fine", "lovely", "great", "bright", "splendid", "happy", "warm", "sunny"]
BAD = ["awful", "horrid", "grim", "dark", "dreadful", "sad", "cold", "rainy"]
BOTH = [
    "the",
    "day",
    "was",
    "and",
    "then",
    "we",
    "saw",
    "a",
    "film",
    "about",
    "trains",
    "in",
    "town",
    "today",
]
keys = (f"key{k}" for k in itertools.count())


def texts(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return distinct texts, and their labels."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        label = "good" if rng.random() < 0.5 else "bad"
        words = [*rng.choice(BOTH, 6), *rng.choice(GOOD if label == "good" else BAD, 2), f"n{k}"]
        found.append((" ".join(rng.permutation(words)), label))
    return found


def write_csv(folder: Path, n: int = 80, seed: int = 0) -> Path:
    """Write a CSV file of texts."""
    path = folder / "texts.csv"
    rows = [f'{k},"{text}",{label}' for k, (text, label) in enumerate(texts(n, seed))]
    path.write_text("\n".join(["number,text,truth", *rows]) + "\n")
    return path


def truth_of(item: dict[str, Any]) -> str:
    """Return the label of one of the texts."""
    words = set(item["text"].split())
    return "good" if len(words & set(GOOD)) > len(words & set(BAD)) else "bad"


def open_session(
    path: Path, store: Path, columns: Columns | None = None, **options: Any
) -> Session:
    """Open a session on a file of texts."""
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    labels = options.pop("labels", ["good", "bad"])
    features = options.pop("features", None)
    request = Request(str(path), columns or Columns(text=("text",)), None, features, str(store))
    settings = Settings((), **{"annotator": "ann", **options})
    return start(request, settings, labels, lambda *_: OnlineSVC(C=10, gamma=1.0))[0]


def queue_of(session: Session) -> list[str]:
    """Return the ids of the items that the page has."""
    return [item["id"] for item in session.state()["queue"]]


def label_some(session: Session, n: int) -> list[str]:
    """Answer n questions by the truth; return the items."""
    asked = []
    queue = session.state()["queue"]
    for _ in range(n):
        asked.append(queue[0]["id"])
        queue = session.answer(next(keys), queue[0]["id"], truth_of(queue[0]), 1.0)["queue"]
    return asked


def client_of(session: Session, token: str = TOKEN, **options: Any) -> Any:
    """Return an HTTP client that talks to the application without a socket."""
    testing = pytest.importorskip("starlette.testclient", reason="needs marginwise[label], httpx")
    from marginwise.label.server import make_app

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = f"http://127.0.0.1:{ADDRESS.port}"
    return testing.TestClient(
        make_app(session, ADDRESS),
        base_url=base,
        headers=headers,
        follow_redirects=False,
        **options,
    )
