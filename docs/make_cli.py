"""Write the description of the commands into docs/guide/cli.md: python docs/make_cli.py."""

from __future__ import annotations

import re
from pathlib import Path

import click

from marginwise.cli import main
from marginwise.cli.commands import Command, EstimatorOption, every_command

MARK = "<!-- What follows is written by docs/make_cli.py. -->\n"
PAGE = Path(__file__).parent / "guide" / "cli.md"
OPTIONS = """\
### Options of estimators

Each option sets a parameter of the estimators in brackets, or of all estimators if there are none.
The default shown is that of the first one.
The pages of the [algorithms](../algorithms/index.md) describe the parameters.

"""


def page() -> str:
    """Return the page: its current introduction, and the commands as defined in the code."""
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return introduction + MARK + commands_part()


def commands_part() -> str:
    """Return the description of all commands."""
    root = click.Context(main, info_name="marginwise")
    commands = every_command(main)
    rows = ["| command | |", "|---|---|"]
    for name, command in commands.items():
        summary = prose(command.help or "").partition("\n")[0]
        rows.append(f"| [`{name}`](#marginwise-{name.replace(' ', '-')}) | {summary} |")
    parts = [section(name, command, root) for name, command in commands.items()]
    every = described(main.commands["train"], root)["Estimator options"]
    parts.append(OPTIONS + "\n".join(table("option", every)) + "\n")
    return "\n## Commands\n\n" + "\n".join(rows) + "\n\n" + "\n".join(parts)


def section(name: str, command: Command, root: click.Context) -> str:
    """Return the description of a command."""
    context = click.Context(command, info_name=name, parent=root)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    lines = [f"### marginwise {name}", "", "```", usage, "```", ""]
    lines += [prose(command.help or ""), "", "For example:", "", "```", *command.example, "```", ""]
    sections = described(command, root)
    lines += table("option", sections["Options"])
    if "Estimator options" in sections:
        link = "[options of estimators](#options-of-estimators)"
        lines += ["", f"It also has the {link}{lacking(command)}."]
    return "\n".join([*lines, ""])


def lacking(command: click.Command) -> str:
    """Return a phrase on the estimator options that a command lacks; empty if none."""
    names = {param.name for param in command.params}
    missing = [
        f"`{param.opts[-1]}`"
        for param in main.commands["train"].params
        if isinstance(param, EstimatorOption) and param.name not in names
    ]
    return f", except {', '.join(missing)}" if missing else ""


def described(command: click.Command, root: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the options of a command by section, without --help."""
    assert isinstance(command, Command)
    found = command.sections(click.Context(command, info_name=command.name, parent=root))
    found["Options"] = [record for record in found["Options"] if "--help" not in record[0]]
    return found


def table(title: str, records: list[tuple[str, str]]) -> list[str]:
    """Return the lines of a table of options."""
    if not records:
        return []
    rows = [f"| `{cell(option)}` | {cell(text)} |" for option, text in records]
    return [f"| {title} | |", "|---|---|", *rows]


def prose(text: str) -> str:
    """Return a help text with one sentence per line."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(re.sub(r"(?<=[.:]) (?=[A-Z`])", "\n", part) for part in paragraphs)


def cell(text: str) -> str:
    """Return a text as the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
