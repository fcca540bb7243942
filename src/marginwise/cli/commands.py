"""Commands whose help has an example, and sections for the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class EstimatorOption(click.Option):
    """An option that is a parameter of an estimator."""


class Command(click.Command):
    """A command with an example, which lists parameters of estimators in a section of their own.

    Parameters
    ----------
    *given, **options
        As of click.Command.
    example : sequence of str
        Lines that could be typed.
    """

    def __init__(self, *given: Any, example: Sequence[str], **options: Any) -> None:
        super().__init__(*given, **options)
        self.example = list(example)

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options by section: how each is written, and what it is for."""
        found: dict[str, list[tuple[str, str]]] = {"Options": [], "Estimator options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and not param.hidden:
                title = "Estimator options" if isinstance(param, EstimatorOption) else "Options"
                found[title].append((written(param), purpose(param, ctx)))
        return {title: records for title, records in found.items() if records}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, records in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        write_example(self.example, formatter)


class Subcommands(click.Group):
    """A command that has commands."""

    command_class = Command


def every_command(group: click.Group, before: str = "") -> dict[str, Command]:
    """Return all commands of a group and of the groups in it, by name, in the order of names."""
    found: dict[str, Command] = {}
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            found |= every_command(command, f"{before}{name} ")
        else:
            assert isinstance(command, Command)
            found[f"{before}{name}"] = command
    return found


def write_example(lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write an example at the end of a help text."""
    formatter.write("\nExample:\n")
    for line in lines:
        formatter.write(f"  {line}\n")


def written(option: click.Option) -> str:
    """Return how an option is written: its names and its value."""
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(option.secondary_opts)
    if option.is_flag:
        return names
    kind = option.type
    if isinstance(kind, click.Choice):
        return f"{names} [{'|'.join(map(str, kind.choices))}]"
    return f"{names} {option.metavar or kind.name.upper().removesuffix(' RANGE')}"


def purpose(option: click.Option, ctx: click.Context) -> str:
    """Return what an option is for, and its default."""
    text = option.help or ""
    if (option.show_default or ctx.show_default) and not option.is_flag:
        default = option.default
        text += "" if default is None else f"  [default: {default}]"
    return text
