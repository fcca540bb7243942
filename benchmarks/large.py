"""Train on files larger than memory, and measure how time and memory grow.

    python benchmarks/large.py files --gigabytes 10              svmlight, CSV and Parquet, one pass
    python benchmarks/large.py files --formats csv --gigabytes 1
    python benchmarks/large.py growth                            rows, stored examples, features

files   Writes generated rows of 100 features to a temporary folder (in `--folder`), trains on them
        with `marginwise train --stream` in one pass, and removes them. The table shows wall time
        and peak memory of the whole command.
growth  Fits `OnlineSVC` to generated arrays, each in its own process. The table shows CPU seconds,
        stored examples, and memory beyond the arrays.

Tables are printed, and results stored in `results/large.json`. `page` writes the tables into
`docs/guide/large.md`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import commit, filled, machine, versions, write

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "large.json"
PAGE = HERE.parent / "docs" / "guide" / "large.md"
FEATURES = 100
LEVELS = 1000  # distinct values of a feature
PIECE = 20_000  # rows generated at a time
GROWTH = [
    *({"rows": n, "features": 20, "flipped": 0.0} for n in (10_000, 30_000, 100_000, 300_000)),
    *({"rows": n, "features": 20, "flipped": 0.05} for n in (10_000, 30_000, 100_000)),
    *({"rows": 30_000, "features": d, "flipped": 0.0} for d in (20, 100, 500)),
]


# -- rows ----------------------------------------------------------------------------------------


def levels(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, and integer features below LEVELS, the first ten of which determine them."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).integers(200, 800, size=(8, 10))
    which = rng.integers(0, len(centres), rows)
    X = rng.integers(300, 700, size=(rows, FEATURES))
    X[:, :10] = np.clip(centres[which] + rng.normal(0, 40, size=(rows, 10)), 0, LEVELS - 1)
    return X, which % 2


def pieces(total: int, size: Callable[[int], int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows until they take `total` bytes; `size` returns the bytes of a number of rows."""
    written = seed = 0
    while written < total:
        seed += 1
        yield levels(PIECE, seed)
        written += size(PIECE)


def tokens(form: str) -> np.ndarray:
    """Return every value of every feature as bytes of one width."""
    texts = [
        [form.format(feature=d + 1, value=v / LEVELS) for v in range(LEVELS)]
        for d in range(FEATURES)
    ]
    return np.array(texts, dtype="S").view(np.uint8).reshape(FEATURES, LEVELS, -1)


def write_text(path: Path, total: int, form: str, *, header: bool) -> None:
    """Write lines of fixed width: a label and the features, or the features and a label."""
    known = tokens(form)
    width = FEATURES * known.shape[2] + 2
    with path.open("wb") as file:
        if header:
            file.write((",".join(f"x{d}" for d in range(FEATURES)) + ",label\n").encode())
        for X, y in pieces(total, lambda rows: rows * width):
            values = known[np.arange(FEATURES), X].reshape(len(y), -1)
            label = (ord("0") + y).astype(np.uint8)[:, np.newaxis]
            end = np.full((len(y), 1), ord("\n"), dtype=np.uint8)
            parts = [values, label, end] if header else [label, values, end]
            file.write(np.hstack(parts).tobytes())


def write_svmlight(path: Path, total: int) -> None:
    write_text(path, total, " {feature:03d}:{value:.3f}", header=False)


def write_csv(path: Path, total: int) -> None:
    write_text(path, total, "{value:.3f},", header=True)


def write_parquet(path: Path, total: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for X, y in pieces(total, lambda rows: 4 * rows * FEATURES):
        columns = {f"x{d}": X[:, d].astype(np.float32) / LEVELS for d in range(FEATURES)}
        batch = pa.table({**columns, "label": y})
        if writer is None:
            writer = pq.ParquetWriter(path, batch.schema, use_dictionary=False, compression="none")
        writer.write_table(batch)
    if writer is not None:
        writer.close()


FORMATS = {"svmlight": write_svmlight, "csv": write_csv, "parquet": write_parquet}
# Columns of tables are standardised, which makes most squared distances about 100 times as large.
GAMMAS = {"svmlight": "0.1", "csv": "0.001", "parquet": "0.001"}


# -- files ---------------------------------------------------------------------------------------


def peak_of(command: list[str]) -> tuple[float, float, str]:
    """Run a command; return wall seconds, sampled peak resident memory in MB, and its output."""
    import psutil

    began, peak = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                peak = max(peak, watched.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            time.sleep(0.05)
        output.seek(0)
        text = output.read()
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command[:6])} … failed with status {process.returncode}.")
    return time.monotonic() - began, peak / 2**20, text


def learn_file(name: str, folder: Path, gigabytes: float) -> dict[str, Any]:
    """Write a file, and train on it with the command; return time, peak memory and model size."""
    data, model = folder / f"rows.{name}", folder / "model.mwz"
    FORMATS[name](data, int(gigabytes * 1e9))
    size = data.stat().st_size
    try:
        command = [sys.executable, "-m", "marginwise", "train", str(data), str(model)]
        options = ["--stream", "--force", "--quiet", "--json", "--seed", "0"]
        chosen = ["-c", "10", "-g", GAMMAS[name]]
        seconds, peak, text = peak_of([*command, *options, *chosen])
    finally:
        data.unlink()
    said = json.loads(text)
    return {
        "format": name,
        "gigabytes": size / 1e9,
        "rows": said["rows"],
        "seconds": seconds,
        "peak_mb": peak,
        "support_vectors": said.get("support_vectors"),
    }


def show_files(report: dict[str, Any]) -> str:
    rows = [
        [
            one["format"],
            f"{one['gigabytes']:.1f}",
            f"{one['rows']:,}",
            f"{one['support_vectors']:,}",
            f"{one['seconds']:.0f}",
            f"{one['peak_mb']:.0f}",
        ]
        for one in report["rows"]
    ]
    return markdown(["format", "GB", "rows", "support vectors", "seconds", "peak MB"], rows)


# -- growth --------------------------------------------------------------------------------------


def growing_task(rows: int, features: int, flipped: float) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters of two classes, with noise features and some flipped labels."""
    rng = np.random.default_rng(0)
    centres = np.random.default_rng(1).normal(size=(20, 10)) * 1.5
    which = rng.integers(0, 20, rows)
    X = rng.normal(size=(rows, features), scale=0.5).astype(np.float32)
    X[:, :10] = centres[which] + 0.7 * rng.normal(size=(rows, 10))
    y = which % 2
    return X, np.where(rng.random(rows) < flipped, 1 - y, y)


def fit_once(job: dict[str, Any]) -> dict[str, Any]:
    """Fit in this process; return CPU seconds, stored examples and memory."""
    import memory

    from marginwise import OnlineSVC

    X, y = growing_task(job["rows"], job["features"], job["flipped"])
    OnlineSVC(gamma=1.0).fit(X[:100], y[:100])  # initialisation of the process
    memory.forget_peak()
    before, began = memory.resident(), time.process_time()
    model = OnlineSVC(C=1, gamma=1 / job["features"], random_state=0).fit(X, y)
    seconds = time.process_time() - began
    grown = (memory.peak() - before) / 2**20
    return {**job, "seconds": seconds, "members": len(model.ids_), "growth_mb": grown}


def grow() -> list[dict[str, Any]]:
    found = []
    for job in GROWTH:
        command = [sys.executable, str(Path(__file__).resolve()), "fit", json.dumps(job)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
        print(found[-1], flush=True)
    return found


def show_growth(report: dict[str, Any]) -> str:
    rows = [
        [
            f"{one['rows']:,}",
            str(one["features"]),
            f"{100 * one['flipped']:.0f} %",
            f"{one['members']:,}",
            f"{one['seconds']:.2f}",
            f"{one['growth_mb']:.0f}",
        ]
        for one in report["rows"]
    ]
    return markdown(["rows", "features", "flipped labels", "stored", "seconds", "MB"], rows)


# -- tables --------------------------------------------------------------------------------------


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---:"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(page: Path) -> None:
    """Write the stored figures into a page."""
    report, text = json.loads(RESULTS.read_text()), page.read_text(encoding="utf-8")
    text = filled(text, "growth", show_growth(report["growth"]))
    page.write_text(filled(text, "files", show_files(report["files"])), encoding="utf-8")


# -- the command ---------------------------------------------------------------------------------


def keep(part: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Store and return a part of the report; its other parts and other file formats are kept."""
    report = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    before = {row["format"]: row for row in report.get(part, {}).get("rows", []) if "format" in row}
    if part == "files":
        known = before | {row["format"]: row for row in found}
        found = [known[name] for name in FORMATS if name in known]
    report[part] = {"machine": machine(), "versions": versions(), **commit(HERE), "rows": found}
    write(RESULTS, report)
    part_of_it: dict[str, Any] = report[part]
    return part_of_it


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["files", "growth", "fit", "page"])
    parser.add_argument("job", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--folder", type=Path, default=None, help="folder for the temporary files")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write the figures into")
    arguments = parser.parse_args()
    if arguments.part == "fit":
        print(json.dumps(fit_once(json.loads(arguments.job))))
    elif arguments.part == "growth":
        print(show_growth(keep("growth", grow())))
    elif arguments.part == "files":
        for name in arguments.formats:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                found = learn_file(name, Path(folder), arguments.gigabytes)
            print(show_files(keep("files", [found])), flush=True)
    else:
        write_page(arguments.page)


if __name__ == "__main__":
    main()
