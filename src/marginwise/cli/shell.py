"""`completion` and `reproduce`: what surrounds the library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

import marginwise
from marginwise.cli.group import Refused, main
from marginwise.cli.output import Console, with_console

REPOSITORY = "the source distribution of marginwise (pip download --no-binary :all: marginwise)"


@main.command(
    example=[
        "marginwise completion bash > marginwise-completion.sh",
        "source marginwise-completion.sh",
    ]
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands and options in SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise Refused(f"click has no completion for {shell}; use bash, zsh or fish.")
    script = kind(main, {}, "marginwise", "_MARGINWISE_COMPLETE")
    # Bash's script asks for the version of bash, which matters only where it is sourced.
    click.echo(script.source_template % script.source_vars())


@main.command(
    example=["marginwise reproduce", "marginwise reproduce bordes2005_rows --help"],
    context_settings={"allow_interspersed_args": False},
)
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@with_console
def reproduce(name: str | None, arguments: tuple[str, ...], console: Console) -> None:
    """List the scripts that make the papers' tables, or run the one called NAME.

    ARGUMENTS are passed to the script. Scripts are part of a checkout of the repository, not of the
    installed package; they read the data folder named by MARGINWISE_DATA.
    """
    found = scripts()
    if name is None:
        rows = [(key, summary(path)) for key, path in found.items()]
        console.give({"scripts": dict(rows)}, (f"{key}: {text}" for key, text in rows))
        return
    if name not in found:
        raise click.UsageError(f"there is no script {name!r}; expected {', '.join(found)}.")
    command = [sys.executable, str(found[name]), *arguments]
    raise click.exceptions.Exit(subprocess.run(command, check=False).returncode)


def scripts() -> dict[str, Path]:
    """Return the scripts of the checkout that have a command line, by name."""
    folder = Path(marginwise.__file__).resolve().parents[2] / "reproduce"
    paths = sorted(folder.glob("*.py"))
    found = {path.stem: path for path in paths if 'if __name__ == "__main__"' in path.read_text()}
    if not found:
        raise Refused(
            f"the scripts are not installed: {folder} has none. They are part of {REPOSITORY}."
        )
    return found


def summary(path: Path) -> str:
    """Return the first line of a script's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
