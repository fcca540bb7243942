"""Commands: `marginwise train --checkpoint` that is stopped by signals, and `marginwise continue`.

Invariant: a run that is continued after every stop ends with the model file, bit for bit, of a run
that was never stopped and of one without a checkpoint. Under its name, the model is complete or
absent. SIGTERM and SIGINT end the command with code 130. No temporaries are left.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.stress.harness import Options, Outcome

TOTAL = 70
BATCH = 7
LIMIT = 240.0
STOPS = 6  # of every case, at most
ROWS = 1500
CHUNK = 100  # rows of a chunk, instead of 16,384
SOFT = (signal.SIGTERM, signal.SIGINT)

FILES = ("rows.svm", "rows.csv", "rows.parquet", "rows.jsonl", "rows.svm.gz", "rows.npz", "*.part")
FLAGS = (
    "-c 1 -g 0.1",
    "-c 1 -g 0.1 --epochs 2",
    "--tune-rows 100 --Cs 2 --gammas 2",
    "--no-tune --estimator GapSVC",
    "--no-tune --estimator TrackingSVC",
    "-c 1 --replay 100",
    "-c 1 --budget 60 --epochs 2",
    "-c 1 --no-shuffle --finish-every 300",
    "--no-tune --calibration sigmoid",
    "-c 1 --selection active --pool-size 5",
)


def run(case: int, rng: np.random.Generator, options: Options) -> Outcome:
    file, flags = FILES[case % len(FILES)], FLAGS[case % len(FLAGS)]
    expected, seconds = _never_stopped(file, flags)
    with tempfile.TemporaryDirectory() as name:
        folder, outcome = Path(name), Outcome()
        _write_data(folder)
        for _ in range(STOPS):
            number = signal.SIGKILL if rng.random() < 0.8 else SOFT[int(rng.integers(2))]
            if _is_stopped(folder, file, flags, number, rng.uniform(0, seconds / 2), outcome):
                break
        if not outcome.violations and _end(_started(folder, file, flags)) != 0:
            outcome.violate(f"{file} {flags}: a stopped run cannot be continued")
        _compare(folder, expected, f"{file} {flags}", outcome)
    return outcome


def _is_stopped(
    folder: Path, file: str, flags: str, number: int, after: float, outcome: Outcome
) -> bool:
    """Start or continue a run, and send it a signal; return whether it is all over."""
    child = _started(folder, file, flags)
    time.sleep(after)
    os.kill(child, number)
    code = _end(child)
    complete = (folder / "model.mwz").exists()
    if number == signal.SIGKILL and code == -number:
        outcome.count("kills")
    elif number != signal.SIGKILL and code in (130, -number):  # -number before it has begun
        outcome.count("stops by SIGTERM or SIGINT")
    elif code != 0 or not complete:
        outcome.violate(f"{file} {flags}: code {code} after signal {number}")
    return complete or bool(outcome.violations)


def _compare(folder: Path, expected: bytes, what: str, outcome: Outcome) -> None:
    """Note what differs from a run that was never stopped."""
    if outcome.violations:
        return
    if (folder / "model.mwz").read_bytes() != expected:
        outcome.violate(f"{what}: another model than without stops")
    left = [path.name for path in folder.iterdir() if path.name.startswith(".mwz")]
    if left:
        outcome.violate(f"{what}: temporaries are left: {left}")
    outcome.count("runs continued to their end")


# -- commands ----------------------------------------------------------------------------------


def _started(folder: Path, file: str, flags: str) -> int:
    """Start the command that a user would give next; return the number of its process."""
    model, checkpoint = folder / "model.mwz", folder / "run.ckpt"
    if checkpoint.exists():
        return _command("continue", str(checkpoint), "--force", "-q")
    train = ("train", str(folder / file), str(model), "--stream", "--threads", "1", "-q")
    return _command(*train, *flags.split(), "--checkpoint", str(checkpoint), "--every", "0s")


def _command(*arguments: str) -> int:
    """Run a command in a process that is forked, so that signals rarely meet imports."""
    from marginwise.cli import main

    child = os.fork()
    if child:
        return child
    from marginwise._training import runs

    runs.CHUNK = CHUNK  # type: ignore[attr-defined]
    code: Any = 99
    try:
        main(list(arguments), prog_name="marginwise")
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt:  # before the command has begun
        code = 130
    finally:
        os._exit(code)


def _end(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@cache
def _never_stopped(file: str, flags: str) -> tuple[bytes, float]:
    """The model of a run without a checkpoint, and the duration of one with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.mwz"
        _write_data(folder)
        began = time.monotonic()
        assert _end(_started(folder, file, flags)) == 0, f"{file} {flags} fails"
        seconds = time.monotonic() - began
        expected = model.read_bytes()
        model.unlink()
        plain = ("train", str(folder / file), str(model), "--stream", "--threads", "2", "-q")
        assert _end(_command(*plain, *flags.split())) == 0
        assert model.read_bytes() == expected, f"{file} {flags}: a checkpoint changes the model"
    return expected, seconds


# -- data --------------------------------------------------------------------------------------


@cache
def _data() -> dict[str, bytes]:
    """The content of the files, by name; made in a process that needs no threads later."""
    with tempfile.TemporaryDirectory() as name:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                _make(Path(name))
                os._exit(0)
            os._exit(1)
        assert _end(child) == 0, "the data cannot be made"
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


def _write_data(folder: Path) -> None:
    for name, content in _data().items():
        (folder / name).write_bytes(content)


def _make(folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 3)).round(3)
    y = (X[:, 0] * X[:, 1] + rng.normal(0, 0.3, ROWS) > 0).astype(int) + (X[:, 2] > 1.2)
    color = rng.choice(["red", "blue", "green"], ROWS)
    columns = {f"x{k}": X[:, k] for k in range(3)} | {"color": color, "y": y.astype(str)}
    table = pa.table(columns)
    csv.write_csv(table, folder / "rows.csv")
    parquet.write_table(table, folder / "rows.parquet", row_group_size=70)
    lines = table.rename_columns(["x0", "x1", "x2", "color", "label"]).to_pandas()
    lines.to_json(folder / "rows.jsonl", orient="records", lines=True)
    np.savez(folder / "rows.npz", X=X, y=y)
    text = [
        f"{label} " + " ".join(f"{k}:{v:g}" for k, v in enumerate(row, 1)) + "\n"
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    (folder / "rows.svm").write_text("".join(text))
    (folder / "rows.svm.gz").write_bytes(gzip.compress("".join(text).encode()))
    (folder / "a.part").write_text("".join(text[:900]))
    (folder / "b.part").write_text("".join(text[900:]))
