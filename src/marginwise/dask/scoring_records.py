"""The record of a folder of predictions: which file was made by which model from which input.

The record is a file of JSON lines in the folder, hidden so that readers of the folder skip it. A
line is appended when an output is planned, and another one when it is complete; the last line of an
output counts. Only the process that submits tasks writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = ".marginwise-predictions.jsonl"


class Record:
    """What is known of the files in a folder of predictions.

    Parameters
    ----------
    folder : Path
        The folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / NAME
        self._lines = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return the last line of each output; a line that was cut off by a crash is skipped."""
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
        """Return whether an output is complete, unchanged, and of this origin."""
        line = self._lines.get(name)
        if line is None or line.get("origin") != json.loads(json.dumps(dict(origin))):
            return False
        try:
            status = os.stat(self._folder / name)
        except OSError:
            return False
        return [status.st_size, status.st_mtime_ns] == line.get("written")

    def plan(self, names: list[str]) -> None:
        """Note outputs that will be written."""
        self._append([{"output": name} for name in names])

    def complete(
        self, name: str, origin: Mapping[str, Any], written: tuple[int, int], rows: int
    ) -> None:
        """Note that an output is complete."""
        line = {"output": name, "rows": rows, "written": list(written), "origin": dict(origin)}
        self._append([line])

    def _append(self, lines: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        # The line break before the text ends a line that an earlier run could not complete.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if file.tell() else "") + text)
        self._lines |= {line["output"]: line for line in lines}
