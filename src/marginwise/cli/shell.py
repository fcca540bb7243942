"""`completion` and `reproduce`: commands for the shell and for the paper experiments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

import marginwise
from marginwise.cli.group import Refused, main
from marginwise.cli.output import Console, with_console

REPOSITORY = "https://github.com/marginwise/marginwise"


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
    # Not source(), which checks the version of the local bash: only the version that sources the
    # script matters.
    click.echo(script.source_template % script.source_vars())


@main.command(
    example=["marginwise reproduce", "marginwise reproduce bordes2005/figure10 --quick"],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Run a smoke test on a small part of the data.")
@click.option("--seeds", type=click.IntRange(min=1), help="Number of seeds.")
@click.option("--only", multiple=True, metavar="CASE", help="Run only this case (repeatable).")
@click.option("--fresh", is_flag=True, help="Measure again what is stored.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the data files.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the results.")
@with_console
def reproduce(names: tuple[str, ...], console: Console, **options: Any) -> None:
    """List the experiments of the papers, or run those called NAME.

    NAME is an experiment such as bordes2005/figure10, a paper such as bordes2005, or all.
    Experiments are part of a checkout of the repository, not of the installed package: run the
    command in the checkout. They read the data folder named by --data or MARGINWISE_DATA. A run
    that was stopped continues.
    """
    folder = checkout()
    if names and console.as_json:
        raise Refused("--json lists the experiments; a run stores its results as JSON files.")
    if console.as_json:
        console.give({"experiments": experiments(folder, options["data"])}, ())
        return
    command = [sys.executable, "-m", "reproduce", *names, *(["--quiet"] if console.quiet else [])]
    for name in ("quick", "fresh"):
        command += [f"--{name}"] if options[name] else []
    for name in ("seeds", "data", "out"):
        given = options[name]
        command += [] if given is None else [f"--{name}", str(_absolute(given))]
    command += ["--only", *options["only"]] if options["only"] else []
    with subprocess.Popen(command, cwd=folder) as running:
        try:
            status = running.wait()
        except KeyboardInterrupt:  # the child was interrupted too; it stores its results and exits
            status = running.wait()
    raise click.exceptions.Exit(status)


def _absolute(value: Any) -> Any:
    return value.resolve() if isinstance(value, Path) else value


def checkout() -> Path:
    """Return the root of the checkout: the current folder, or that of an editable installation."""
    roots = (Path.cwd(), Path(marginwise.__file__).resolve().parents[2])
    for root in roots:
        if all((root / file).is_file() for file in ("reproduce/__main__.py", "pyproject.toml")):
            return root
    raise Refused(
        f"the experiments are not installed, and {roots[0]} has no folder reproduce. They are part "
        f"of the repository: clone {REPOSITORY}, and run the command in the clone."
    )


def experiments(root: Path, data: Path | None) -> dict[str, Any]:
    """Return the output of `python -m reproduce --json`."""
    command = [sys.executable, "-m", "reproduce", "--json"]
    command += [] if data is None else ["--data", str(data.resolve())]
    done = subprocess.run(command, check=True, cwd=root, capture_output=True, encoding="utf-8")
    listed: dict[str, Any] = json.loads(done.stdout)
    return listed
