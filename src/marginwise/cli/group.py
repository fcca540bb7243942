"""The group of commands: one-line errors, exit codes, signals and warnings."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import IO, Any

import click

from marginwise.cli.commands import Command, write_example

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
REFUSALS = (  # errors caused by the user's input
    ValueError,
    TypeError,
    KeyError,
    OSError,
    ImportError,
    MemoryError,
)
STDIN = "marginwise-stdin"  # key in the context, and prefix of the copy of standard input
IN_PYTHON = {  # advice for Python users, and the corresponding advice for command-line users
    "Pass zero_based=True": "Pass --zero-based",
    "Pass a larger n_features, or drop the feature": "Give data with the features of the model",
    "Pass unseen='ignore' to encode": "Train with --unseen ignore to encode",
    "If the file has no header, pass header=False": "If the file has no header, pass --no-header",
    "Declare one in numeric, categorical or text": "Use --numeric, --categorical or --text",
    "Name it in numeric to use it, or in drop": "Pass it to --numeric to use it, or to --drop",
    "Name it in categorical or text to use it, or in drop": "Pass it to --categorical or --text to "
    "use it, or to --drop",
    "or name it in drop": "or pass it to --drop",
    "pass force=True to replace it": "--force to replace it",
    "pass scores=True instead of proba=True": "use --scores",
    "Train it with calibration='sigmoid'": "Train it with --calibration sigmoid",
    "call again to score the others": "repeat the command to score the others",
    "pass allow_local=True": "pass --allow-local",
    "name it in missing": "pass it to --missing",
    "name them in missing": "pass them to --missing",
    "name the column in categorical, text or drop": "pass the column to --categorical, --text or "
    "--drop",
    "Pass decimal=',' if the comma is the decimal mark, and decimal='.'": "Pass --decimal , if the "
    "comma is the decimal mark, and --decimal .",
    "Name the column of the label.": "Name the column of the label by --label.",
    "Name the column of the label, or pass labelled=False": "Name the column by --label",
    "Name the column of the label, or pass classes": "Name the column by --label",
}


class Refused(click.ClickException):
    """Error for data, models or files that the command cannot use: one line and exit code 1."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message as one line on standard error."""
        click.echo(f"marginwise: error: {self.message}", file=file, err=True)


class Commands(click.Group):
    """Group of commands that handle errors, warnings and signals in the same way."""

    command_class = Command
    example = ("marginwise train train.csv model.mwz", "marginwise test model.mwz test.csv")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        write_example(self.example, formatter)

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command line.

        If a signal interrupts click's own code, click exits with code 1, which is replaced here.
        """
        with Stopping() as stopping:
            try:
                return super().main(*args, obj=stopping, **settings)
            except SystemExit as end:
                if end.code == 1 and stopping.asked:
                    sys.exit(INTERRUPTED)
                raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the arguments of the command line."""
        ctx.meta["arguments"] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with refusing(), printing_warnings():
            return super().invoke(ctx)


@click.group(
    cls=Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: name.replace("_", "-"),
        "max_content_width": 100,
    },
)
@click.version_option(package_name="marginwise", prog_name="marginwise")
def main() -> None:
    """Kernel machines that learn one example at a time.

    Exit codes: 0 on success, 1 for data, models or files that cannot be used, 2 for wrong options,
    130 after SIGINT or SIGTERM.
    """


def one_line(message: str) -> str:
    """Return a message without line breaks."""
    return " ".join(message.split())


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Convert errors of the library to one line, and interrupts to exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of the output has closed it: click exits silently
        raise
    except Refused as error:
        raise Refused(translated(error.message)) from error.__cause__
    except REFUSALS as error:
        raise Refused(translated(described(error))) from error


@contextlib.contextmanager
def usage() -> Iterator[None]:
    """Convert errors about values of options to usage errors, which have exit code 2."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error


def described(error: BaseException) -> str:
    """Return the message of an error for users."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"{str(error) or 'there is not enough memory'}; try --stream, or fewer rows."
    if isinstance(error, KeyError) and error.args:  # str() would add quotes
        return str(error.args[0])
    return str(error) or type(error).__name__


def translated(message: str) -> str:
    """Return a message of the library as one line, with advice for command-line users."""
    copy = click.get_current_context().meta.get(STDIN)
    if copy is not None:
        message = message.replace(copy, "standard input")
    for advice, instead in IN_PYTHON.items():
        message = message.replace(advice, instead)
    return one_line(message)


@contextlib.contextmanager
def printing_warnings() -> Iterator[None]:
    """Print warnings as single lines on standard error, without the location in the code."""

    def show(message: Warning | str, *_: Any) -> None:
        click.echo(f"marginwise: warning: {translated(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


class Stopping:
    """Handler of SIGINT and SIGTERM: the first signal stops the command, the second one kills it.

    The first signal raises KeyboardInterrupt. While it is deferred, it only sets `asked`.
    """

    def __init__(self) -> None:
        self.asked = False
        self._deferred = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            self._before = {name: signal.signal(name, self._answer) for name in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Only record the first signal, so that a run can stop where it can be resumed."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _answer(self, number: int, frame: Any) -> None:
        if self.asked:
            os._exit(INTERRUPTED)
        self.asked = True
        if not self._deferred:
            raise KeyboardInterrupt


def current_stopping() -> Stopping:
    """Return the signal handler of the current command."""
    found = click.get_current_context().find_object(Stopping)
    assert found is not None
    return found
