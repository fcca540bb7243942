"""Output of commands: reports, JSON, tables, and files that are written atomically."""

from __future__ import annotations

import functools
import json
import os
import platform
import shlex
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import click
import numpy as np

from marginwise import save
from marginwise._core import cpu
from marginwise._files.disk import replace_file
from marginwise.cli.group import Refused

STANDARD = "-"  # standard input or output


@dataclass(frozen=True)
class Console:
    """Output of a command: results on standard output, everything else on standard error."""

    quiet: bool = False
    as_json: bool = False

    @property
    def verbose(self) -> int:
        """Value of the parameter `verbose` of estimators."""
        return 0 if self.quiet else 1

    def say(self, line: str) -> None:
        """Print a line for the user, unless the command is quiet."""
        if not self.quiet:
            click.echo(f"marginwise: {line}", err=True)

    def give(self, report: dict[str, Any], text: str | Iterable[str]) -> None:
        """Print a result as one JSON object or as lines of text."""
        if self.as_json:
            click.echo(json.dumps(plain(report), ensure_ascii=False))
            return
        for line in [text] if isinstance(text, str) else text:
            click.echo(line)

    def give_beside(self, out: str | None, report: dict[str, Any], text: str) -> None:
        """Print a result, on standard error if the output was written to standard output."""
        if out == STANDARD:
            self.say(text)
        else:
            self.give(report, text)

    def check_output(self, out: str | None) -> None:
        """Raise if two results would be printed on standard output."""
        if self.as_json and out == STANDARD:
            raise click.UsageError("--json and - both write to standard output: give one of them.")

    def head(self) -> None:
        """Print the versions of packages, the processor, and the command line."""
        names = ("numpy", "scikit-learn")
        listed = ", ".join(f"{name} {release}" for name, release in versions(names).items())
        self.say(f"{listed}, {cpu()}")
        self.say(shlex.join(["marginwise", *_arguments()]))


def with_console(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options --quiet and --json to a command, which receives them as a console."""

    @click.option("--quiet", "-q", is_flag=True, help="Do not print progress and parameters.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
    @functools.wraps(function)
    def command(*, quiet: bool, as_json: bool, **given: Any) -> None:
        function(console=Console(quiet, as_json), **given)

    return command


def _arguments() -> list[str]:
    return list(click.get_current_context().meta["arguments"])


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of marginwise, Python and the named packages."""
    found = {"marginwise": version("marginwise"), "Python": platform.python_version()}
    return found | {name: version(name) for name in names}


def plain(value: Any) -> Any:
    """Convert a value to types that JSON supports."""
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a table; the first column is left-aligned, the others right-aligned."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in cells
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


# -- files -----------------------------------------------------------------------------------------


def check_free(path: str | os.PathLike[str] | None, force: bool) -> None:
    """Raise if a file cannot be written; called before any work is done."""
    if path is None or os.fspath(path) == STANDARD:
        return
    target = Path(path)
    if target.is_dir():
        raise Refused(f"{target} is a directory; give the name of a file to write.")
    if target.exists() and not force:
        raise Refused(f"{target} exists and is kept; give another name, or --force to replace it.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise Refused(f"{target} cannot be written: there is no directory {folder}. Create it.")
    if not os.access(folder, os.W_OK):
        raise Refused(f"{target} cannot be written: {folder} is read-only. Give another place.")


def save_model(model: Any, path: str) -> None:
    """Write a model to a file, or to standard output."""
    if path != STANDARD:
        save(model, path)
        return
    with tempfile.TemporaryDirectory(prefix="marginwise-") as folder:
        copy = Path(folder) / "model.mwz"
        save(model, copy)
        click.echo(copy.read_bytes(), nl=False)


def write_blocks(path: str | None, blocks: Iterable[str]) -> None:
    """Write blocks of lines to standard output, or atomically to a file."""
    if path is None or path == STANDARD:
        for block in blocks:
            click.echo(block, nl=False)
        return

    def write(handle: BinaryIO) -> None:
        for block in blocks:
            handle.write(block.encode())

    replace_file(path, write)
