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
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                title = "Estimator options" if isinstance(param, EstimatorOption) else "Options"
                found[title].append(record)
        return {title: records for title, records in found.items() if records}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, records in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        write_example(self.example, formatter)


def write_example(lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write an example at the end of a help text."""
    formatter.write("\nExample:\n")
    for line in lines:
        formatter.write(f"  {line}\n")
