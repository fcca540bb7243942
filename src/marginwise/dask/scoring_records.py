"""The record of a folder of predictions: the model and the input of each output.

The record is a hidden file of JSON lines in the folder, so that programs that read the folder skip
it. A line is appended when an output is planned, and another one when it is complete; the last line
of each output counts. Only the process that submits tasks writes the record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = ".marginwise-predictions.jsonl"


class Record:
    """Record of the outputs in a folder of predictions.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / NAME
        self._lines = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return the last line of each output; skip lines that were truncated by a crash."""
        found: dict[str, dict[str, Any]] = {}
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return found
        for line in text.splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if isinstance(one, dict) and isinstance(one.get("output"), str):
                found[one["output"]] = one
        return found

    def knows(self, name: str) -> bool:
        """Return whether an output was planned or written by an earlier run."""
        return name in self._lines

    def is_complete(self, name: str, origin: Mapping[str, Any]) -> bool:
        """Return whether an output is complete, unchanged and has this origin."""
        line = self._lines.get(name)
        if line is None or line.get("origin") != json.loads(json.dumps(dict(origin))):
            return False
        try:
            status = os.stat(self._folder / name)
        except OSError:
            return False
        return [status.st_size, status.st_mtime_ns] == line.get("written")

    def plan(self, names: list[str]) -> None:
        """Record that outputs will be written."""
        self._append([{"output": name} for name in names])

    def complete(
        self, name: str, origin: Mapping[str, Any], written: tuple[int, int], rows: int
    ) -> None:
        """Record that an output is complete."""
        line = {"output": name, "rows": rows, "written": list(written), "origin": dict(origin)}
        self._append([line])

    def _append(self, lines: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        # The leading line break terminates a line that an earlier run may have left incomplete.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if file.tell() else "") + text)
        self._lines |= {line["output"]: line for line in lines}
