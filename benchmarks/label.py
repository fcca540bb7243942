"""Label 100,000 generated texts over HTTP: time to the first item, memory, time per answer.

    python benchmarks/label.py                      100,000 texts, 1,000 labels
    python benchmarks/label.py --goal find          items ranked by score
    python benchmarks/label.py --texts 5000 --labels 100

The server is the command `marginwise label`, in its own process. A script labels items by a rule
and then times further answers, from sending an answer to receiving the next questions. The start
time runs from calling the command to receiving the first item. Wall-clock times depend on the load
of the machine, so the load and the CPU time of the server are reported as well. The texts have 20
to 60 words, whose frequencies follow Zipf's law, and TF-IDF keeps 20,000 terms.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from report import commit, machine, versions

ROOT = Path(__file__).parents[1]
WORDS = 60_000
COMMON = 400  # words that determine the label
TARGETS = {"start_seconds": 15.0, "memory_gb": 1.5, "median_ms": 50.0, "p99_ms": 200.0}


def write_texts(path: Path, texts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = np.array([f"{'common' if k < COMMON else 'word'}{k}" for k in range(WORDS)])
    share = 1 / (np.arange(WORDS) + 5.0)
    lengths = rng.integers(20, 61, texts)
    drawn = names[rng.choice(WORDS, int(lengths.sum()), p=share / share.sum())]
    ends = np.cumsum(lengths)
    with path.open("w") as file:
        file.write("text\n")
        for first, end in zip(ends - lengths, ends, strict=True):
            file.write(" ".join(drawn[first:end]) + "\n")


def label_of(text: str) -> str:
    weights = [zlib.crc32(word.encode()) % 1000 - 500 for word in text.split() if word[0] == "c"]
    return "yes" if sum(weights) > 0 else "no"


class Client:
    """An HTTP client that sends all requests on one connection, as browsers do."""

    def __init__(self, url: str) -> None:
        base, self._token = url.split("/?token=")
        self._connection = http.client.HTTPConnection(base.removeprefix("http://"))

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request(method, path, json.dumps(body or {}), headers)
        answer = json.loads(self._connection.getresponse().read())
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        return answer


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    path = folder / "texts.csv"
    write_texts(path, options.texts, options.seed)
    words = ["--labels", "yes,no", "--text-column", "text", "--store", str(folder / "labels.db")]
    words += ["--goal", options.goal, "--no-open", "--json", "-q"]
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "marginwise", "label", str(path), *words],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            client = Client(json.loads(process.stdout.readline())["url"])
            queue = client.send("GET", "/api/state")["queue"]
            found = {"start_seconds": time.perf_counter() - began}
            server = psutil.Process(process.pid)
            found["start_cpu_seconds"] = sum(server.cpu_times()[:2])
            found |= answered(client, server, queue, options)
            found["memory_gb"] = peak(process.pid) / 1e9
            process.send_signal(signal.SIGINT)
            process.wait(30)
        finally:
            process.kill()
    return found


def answered(
    client: Client, server: psutil.Process, queue: list[dict[str, Any]], options: argparse.Namespace
) -> dict[str, Any]:
    """Give labels, then time further answers; return the times."""
    waits = []
    for k in range(options.labels + options.timed):
        body = {"key": str(k), "item": queue[0]["id"], "label": label_of(queue[0]["text"])}
        if k == options.labels:
            before = sum(server.cpu_times()[:2])
        began = time.perf_counter()
        queue = client.send("POST", "/api/answer", {**body, "duration": 1.0})["queue"]
        waits.append(1000 * (time.perf_counter() - began))
    cpu = (sum(server.cpu_times()[:2]) - before) / options.timed
    began = time.perf_counter()
    client.send("POST", "/api/undo", {"key": "undo"})
    undo = 1000 * (time.perf_counter() - began)
    began = time.perf_counter()
    client.send("GET", "/api/progress")
    last = np.array(waits[options.labels :])
    return {
        "median_ms": float(np.median(last)),
        "p99_ms": float(np.percentile(last, 99)),
        "cpu_ms": 1000 * cpu,
        "undo_ms": undo,
        "progress_ms": 1000 * (time.perf_counter() - began),
    }


def peak(pid: int) -> float:
    """Return the largest resident memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return 1024.0 * int(line.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--timed", type=int, default=200)
    parser.add_argument("--goal", choices=["learn", "find"], default="learn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="JSON file (default: results/label.json or label_find.json)")
    options = parser.parse_args()
    facts = {"machine": machine(), "versions": versions(), "commit": commit(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options)
    for name, value in found.items():
        target = f"   (to reach: {TARGETS[name]:g})" if name in TARGETS else ""
        print(f"{name:18} {value:10.2f}{target}")
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    result = {**facts, "load": os.getloadavg(), "options": settings, "targets": TARGETS, **found}
    name = "label" if options.goal == "learn" else f"label_{options.goal}"
    out = Path(options.out or ROOT / "benchmarks" / "results" / f"{name}.json")
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
