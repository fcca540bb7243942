"""How long an answer takes until the next item is on screen, measured in Chromium.

    python benchmarks/label_page.py                  100,000 texts, 1,000 labels given before
    python benchmarks/label_page.py --texts 5000 --before 50 --answers 50

`marginwise label` is started on made-up texts, and answers are given by HTTP until the model has
learned some. Then a browser answers with the keyboard, in two ways: at a person's pace, one answer
in 300 ms, and as fast as the page shows items, which drains the prefetched queue, so that the
server sets the pace. A time runs from the key event to the first message after the frame in which
the page shows another item. The times of requests are those of the browser's own clock.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from report import heading, table, write

ROOT = Path(__file__).parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PACE = 300  # milliseconds between the answers of a person
WORDS = 40_000

# Counts the milliseconds from a key to the frame that shows another item.
STOPWATCH = """
window.times = [];
let pressed = null, item = null;
addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
const channel = new MessageChannel();
channel.port1.onmessage = () => { window.times.push(performance.now() - pressed); pressed = null; };
const look = () => {
  const shown = document.getElementById("item");
  const now = shown && !shown.hidden ? shown.dataset.item : null;
  if (now !== null && now !== item) {
    item = now;
    if (pressed !== null) channel.port2.postMessage(null);
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""

REQUESTS = """
() => performance.getEntriesByType("resource")
  .filter(({ name }) => name.endsWith("/api/answer"))
  .map(({ duration }) => duration)
"""


def write_texts(path: Path, count: int, seed: int) -> None:
    """Write texts of Zipf-distributed words; those of "news" have other frequencies than "chat"."""
    rng = np.random.default_rng(seed)
    ranks = np.arange(1, WORDS + 1)
    chances = 1 / ranks**1.05
    tilt = np.exp(0.8 * rng.standard_normal(WORDS))
    words = np.array([f"w{k:05}" for k in range(WORDS)])
    draws = {}
    for label, weight in (("news", tilt), ("chat", 1 / tilt)):
        share = chances * weight
        draws[label] = np.cumsum(share / share.sum())
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        for k in range(count):
            label = "news" if k % 4 == 0 else "chat"
            places = np.searchsorted(draws[label], rng.random(rng.integers(10, 60)))
            text = " ".join(words[np.minimum(places, WORDS - 1)])
            # What annotators see and the model does not: one letter is no term.
            writer.writerow([f"{'n' if label == 'news' else 'c'} {text} {k}"])


def truth(text: str) -> str:
    return "news" if text.startswith("n ") else "chat"


class Server:
    """The command, and a connection to it."""

    def __init__(self, items: Path, store: Path) -> None:
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "marginwise", "label", str(items), "--labels", "news,chat",
                "--text-column", "text", "--store", str(store), "--no-open", "--json",
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        parts = urlsplit(self.url)
        self.token = parts.query.removeprefix("token=")
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=120)
        self.state = self.call("/api/state")
        self.start = time.perf_counter() - started

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
        self.connection.request(method, path, data, headers)
        reply = json.loads(self.connection.getresponse().read())
        if not reply["ok"]:
            sys.exit(f"{path}: {reply['error']}")
        return reply

    def answer(self, count: int) -> None:
        state = self.state
        for k in range(count):
            item = state["queue"][0]
            body = {"key": f"before {k}", "item": item["id"], "label": truth(item["text"])}
            state = self.call("/api/answer", {**body, "duration": 1.0})

    def memory_mb(self) -> float | None:
        """Return the largest resident memory of the process so far."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return None
        peak = next(line for line in lines if line.startswith("VmHWM"))
        return round(int(peak.split()[1]) / 1024)

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def in_browser(url: str, count: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    path = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    if path is None:
        sys.exit("no Chromium was found; install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_page()
        page.add_init_script(STOPWATCH)
        page.goto(url)
        page.wait_for_selector("#labels button")
        found = {}
        for name, pause in (("person", PACE), ("fastest", 0)):
            page.evaluate("() => { window.times = []; performance.clearResourceTimings(); }")
            page.evaluate("() => performance.setResourceTimingBufferSize(100000)")
            give(page, count, pause)
            times = page.evaluate("() => window.times")
            requests = page.evaluate(REQUESTS)
            found[name] = {"shown_ms": summary(times), "request_ms": summary(requests)}
        found["browser"] = browser.version
        browser.close()
    return found


def give(page: Any, count: int, pause: int) -> None:
    """Answer with the keyboard; wait for the next item after each answer."""
    for k in itertools.count():
        text = page.evaluate("() => document.querySelector('#item-body .text').textContent")
        page.keyboard.press("1" if truth(text) == "news" else "2")
        while len(page.evaluate("() => window.times")) <= k:
            pass
        if k + 1 >= count:
            return
        if pause:
            page.wait_for_timeout(pause)


def summary(times: list[float]) -> dict[str, float]:
    quantiles = {"median": 50, "p90": 90, "p99": 99, "largest": 100}
    return {name: round(float(np.percentile(times, q)), 2) for name, q in quantiles.items()} | {
        "count": len(times)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--before", type=int, default=1000, help="labels given before")
    parser.add_argument("--answers", type=int, default=300, help="answers in each way")
    parser.add_argument("--seed", type=int, default=0)
    default = Path(__file__).parent / "results" / "label_page.json"
    parser.add_argument("--out", type=Path, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder) / "texts.csv"
        write_texts(items, given.texts, given.seed)
        server = Server(items, Path(folder) / "labels.db")
        try:
            server.answer(given.before)
            load = os.getloadavg()[0]
            results = in_browser(server.url, given.answers)
            memory = server.memory_mb()
        finally:
            server.stop()
    report = {
        **heading(ROOT, []),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "settings": {key: getattr(given, key) for key in ("texts", "before", "answers", "seed")},
        "first_item_s": round(server.start, 2),
        "server_memory_mb": memory,
        **results,
    }
    write(given.out, report)
    print(f"first item after {server.start:.1f} s; server memory {memory} MB; load {load:.1f}")
    quantiles = ["median", "p90", "p99", "largest"]
    rows = [
        [f"{name}: {what}", *(f"{report[name][what][q]:.1f}" for q in quantiles)]
        for name in ("person", "fastest")
        for what in ("shown_ms", "request_ms")
    ]
    print(table(["milliseconds", *quantiles], rows))


if __name__ == "__main__":
    main()
