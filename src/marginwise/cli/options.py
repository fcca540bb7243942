"""Options of commands: types of values, and groups of options."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")  # -t 0 to 3

THREADS = "Number of threads; -1 means one per processor. Results do not depend on it."

Function = Callable[..., Any]


class Value(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Value of a parameter, such as a number, none, a name or a JSON object."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        return parsed(value) if isinstance(value, str) else value


class KernelName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Name of a kernel, or its number in LIBSVM."""

    name = "kernel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        if value.isdigit():
            if int(value) < len(LIBSVM_KERNELS):
                return LIBSVM_KERNELS[int(value)]
            self.fail("numbers of kernels are 0 linear, 1 poly, 2 rbf, 3 sigmoid.", param, ctx)
        return value


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Duration in seconds, or with a unit."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number of seconds."""
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd]?)", value.strip())
        if found is None:
            self.fail(f"expected a duration such as 90, 60s, 10m or 1h, got {value!r}.", param, ctx)
        return float(found[1]) * UNITS[found[2]]


class Values(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Number of values to try, or the values themselves, separated by commas."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an integer or a list of numbers."""
        if not isinstance(value, str):
            return value
        try:
            if re.fullmatch(r"\s*\d+\s*", value):
                return int(value)
            return [float(text) for text in value.split(",")]
        except ValueError:
            self.fail(f"expected a number of values, or 0.1,1,10, got {value!r}.", param, ctx)


def parsed(text: str) -> Any:
    """Parse a text as none, boolean, number or JSON object; any other text is a string."""
    word = text.strip()
    named = {"none": None, "true": True, "false": False}
    if word.lower() in named:
        return named[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    if word.startswith("{"):
        try:
            return {parsed(key): value for key, value in json.loads(word).items()}
        except ValueError:
            return text
    return text


# -- groups of options -----------------------------------------------------------------------------


def packed(
    name: str, pack: Function, options: Sequence[click.Option]
) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a command, which receives them as one argument.

    Parameters
    ----------
    name : str
        Name of the argument.
    pack : callable
        Function that computes the argument from the values of the options, passed by name.
    options : sequence of click.Option
        The options.
    """
    keys = [str(option.name) for option in options]

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            values = {key: given.pop(key) for key in keys}
            return function(**{name: pack(**values)}, **given)

        below = getattr(function, "__click_params__", [])
        command.__click_params__ = [*below, *reversed(options)]  # type: ignore[attr-defined]
        return command

    return decorate


def was_given(option: str) -> bool:
    """Return whether an option of the current command was given, even with the value none."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not click.core.ParameterSource.DEFAULT


SEED = click.IntRange(0, 2**32 - 1)
seed_option = click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed.")
force_option = click.option("--force", is_flag=True, help="Replace existing files.")
threads_option = click.option("--threads", type=int, default=-1, show_default=True, help=THREADS)
