"""Commands whose help texts have an example and sections of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class EstimatorOption(click.Option):
    """Option that corresponds to a parameter of an estimator."""


class Command(click.Command):
    """Command with an example, and with a separate section for parameters of estimators.

    Parameters
    ----------
    *given, **options
        Arguments of click.Command.
    example : sequence of str
        Lines of the example.
    """

    def __init__(self, *given: Any, example: Sequence[str], **options: Any) -> None:
        super().__init__(*given, **options)
        self.example = list(example)

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options of each section: the syntax and the description of each option."""
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
    """Command that has subcommands."""

    command_class = Command


def every_command(group: click.Group, before: str = "") -> dict[str, Command]:
    """Return all commands of a group and its subgroups, by name, in alphabetical order."""
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
    """Return the syntax of an option: its names and its value."""
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
    """Return the description of an option, with its default."""
    text = option.help or ""
    if (option.show_default or ctx.show_default) and not option.is_flag:
        default = option.default
        text += "" if default is None else f"  [default: {default}]"
    return text
