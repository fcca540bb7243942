"""Time from an answer to the next item on screen, measured in Chromium.

    python benchmarks/label_page.py                  100,000 texts, 1,000 initial labels
    python benchmarks/label_page.py --goal find      items ranked by score
    python benchmarks/label_page.py --texts 5000 --labels 50 --timed 50

`marginwise label` serves the texts of label.py, and the initial labels are given over HTTP. Then a
browser answers with the keyboard, in two ways: at the pace of a user, with a pause of 300 ms after
each item, and as fast as the page shows items, which drains the prefetched queue, so that the
server sets the pace. A time runs from the key event to the first message after the frame in which
the page shows another item. Times of requests are measured by the browser.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from label import Client, label_of, write_texts
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
PACE = 300  # milliseconds between the appearance of an item and its answer
TARGETS = {"median": 50.0, "p99": 200.0}

# Measures the milliseconds from a key to the frame that shows another item.
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


def start(folder: Path, options: argparse.Namespace) -> tuple[subprocess.Popen[str], str]:
    """Start the command on generated texts, and return the address of its page."""
    write_texts(folder / "texts.csv", options.texts, options.seed)
    words = ["--labels", "yes,no", "--text-column", "text", "--store", str(folder / "labels.db")]
    words += ["--goal", options.goal, "--no-open", "--json", "-q"]
    command = [sys.executable, "-m", "marginwise", "label", str(folder / "texts.csv"), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


def give_before(client: Client, count: int) -> None:
    queue = client.send("GET", "/api/state")["queue"]
    for k in range(count):
        body = {"key": f"before {k}", "item": queue[0]["id"], "label": label_of(queue[0]["text"])}
        queue = client.send("POST", "/api/answer", {**body, "duration": 1.0})["queue"]


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
        page.keyboard.press("1" if label_of(text) == "yes" else "2")
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
    parser.add_argument("--labels", type=int, default=1000, help="initial labels, over HTTP")
    parser.add_argument("--timed", type=int, default=300, help="answers at each pace")
    parser.add_argument("--goal", choices=["learn", "find"], default="learn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="JSON file (default: results/label_page[_find].json)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, url = start(Path(folder), options)
        try:
            give_before(Client(url), options.labels)
            load = os.getloadavg()[0]
            found = in_browser(url, options.timed)
        finally:
            process.terminate()
            process.wait()
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    loads = [round(load, 1), round(os.getloadavg()[0], 1)]
    report = {**heading(ROOT, []), "load": loads, "options": settings, "targets": TARGETS, **found}
    name = "label_page" if options.goal == "learn" else f"label_page_{options.goal}"
    write(Path(options.out or ROOT / "benchmarks" / "results" / f"{name}.json"), report)
    quantiles = ["median", "p90", "p99", "largest"]
    rows = [
        [f"{name}: {what}", *(f"{found[name][what][q]:.1f}" for q in quantiles)]
        for name in ("person", "fastest")
        for what in ("shown_ms", "request_ms")
    ]
    print(table(["milliseconds", *quantiles], rows))
    print(f"to reach for shown_ms: {TARGETS}; load of the machine: {loads}")


if __name__ == "__main__":
    main()
