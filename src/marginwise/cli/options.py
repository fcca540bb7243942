"""Options of commands: types of values, and the parameters of the estimators as options."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

import marginwise
from marginwise._checks import check_params

ESTIMATORS = (
    "OnlineSVC",
    "GapSVC",
    "TrackingSVC",
    "ExactSVC",
    "ExactRampSVC",
    "KernelPerceptron",
    "ExactOneClassSVM",
)
LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")  # -t 0 to 3
SHORT = {  # as in LIBSVM
    "C": "-c",
    "gamma": "-g",
    "kernel": "-t",
    "degree": "-d",
    "coef0": "-r",
    "tol": "-e",
    "cache_size": "-m",
    "nu": "-n",
}
OTHERWISE = ("n_jobs", "random_state", "verbose")  # --threads, --seed and --quiet
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Value(click.ParamType):
    """A value of a parameter as it is written in Python or JSON: numbers, none, names, objects."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        return parsed(value) if isinstance(value, str) else value


class KernelName(click.ParamType):
    """A kernel by its name, or by its number in LIBSVM."""

    name = "kernel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        if value.isdigit():
            if int(value) < len(LIBSVM_KERNELS):
                return LIBSVM_KERNELS[int(value)]
            self.fail("numbers of kernels are 0 linear, 1 poly, 2 rbf, 3 sigmoid.", param, ctx)
        return value


class Duration(click.ParamType):
    """A length of time in seconds, or with a unit."""

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


class Values(click.ParamType):
    """A number of values to try, or the values themselves, separated by commas."""

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
    """Return the value that a text stands for; a text that is no other value is a string."""
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


# -- parameters of the estimators ------------------------------------------------------------------


def documented(kind: type) -> dict[str, tuple[str, str]]:
    """Return type and description of each parameter in the docstring of an estimator."""
    text = inspect.getdoc(kind) or ""
    _, _, section = text.partition("\nParameters\n----------\n")
    section = section.partition("\nAttributes\n----------\n")[0]
    items = re.findall(r"^(\w+) : (.*)\n((?:(?:    .*)?\n)*)", section + "\n", re.MULTILINE)
    return {name: (" ".join(kind.split()), inspect.cleandoc(text)) for name, kind, text in items}


def first_sentence(text: str) -> str:
    """Return the first sentence of a description."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z\"])", paragraph)[0].rstrip(":")


def estimator_class(name: str) -> Any:
    """Return an estimator by name."""
    return getattr(marginwise, name)


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of an estimator that are options."""
    given = inspect.signature(estimator_class(name)).parameters
    return {key: value for key, value in given.items() if key not in OTHERWISE}


class Section(click.Option):
    """An option that is listed in a section of the help text."""

    section = "Estimator options"


class SectionedCommand(click.Command):
    """A command whose options are listed in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, the general one first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                title = param.section if isinstance(param, Section) else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _takers(parameter: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if parameter in parameters_of(name)]


def _option(parameter: str, names: tuple[str, ...]) -> click.Option:
    """Return the option of a parameter, described as in the first estimator that has it."""
    takers = _takers(parameter, names)
    kind, text = documented(estimator_class(takers[0]))[parameter]
    default = parameters_of(takers[0])[parameter].default
    help_text = first_sentence(text)
    if len(takers) < len(names):
        help_text += f"  [{', '.join(takers)}]"
    long = "--" + parameter.replace("_", "-")
    if isinstance(default, bool):
        off = "--no-" + parameter.replace("_", "-")
        return Section([f"{long}/{off}", parameter], default=None, help=help_text)
    marks = [SHORT[parameter], long] if parameter in SHORT else [long]
    help_text += f"  [default: {default!s}]" if len(takers) else ""
    kernel = parameter == "kernel"
    return Section(
        [*marks, parameter],
        type=KernelName() if kernel else Value(),
        metavar=_metavar(kind, default),
        default=None,
        help=help_text,
    )


def _metavar(kind: str, default: Any) -> str:
    """Return what is shown as the value of an option: its choices, or its type."""
    choices = re.match(r"\{(.*?)\}", kind)
    if choices is not None and "float" not in kind:
        return "|".join(re.findall(r'"(\w+)"', choices[1]))
    words = {"int": "INTEGER", "float": "NUMBER", "dict": "JSON"}
    return next((mark for word, mark in words.items() if word in kind), "TEXT")


def estimator_options(
    names: tuple[str, ...] = ESTIMATORS,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the parameters of estimators as options.

    The command receives them as `parameters`, a dict of those that were given.
    """
    union = list(dict.fromkeys(key for name in names for key in parameters_of(name)))
    options = [_option(parameter, names) for parameter in union]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def command(**given: Any) -> Any:
            values = {key: given.pop(key) for key in union}
            parameters = {key: value for key, value in values.items() if was_given(key)}
            return function(parameters=parameters, **given)

        command.__doc__, command.__name__ = function.__doc__, function.__name__
        before = getattr(function, "__click_params__", [])
        command.__click_params__ = [*reversed(options), *before]  # type: ignore[attr-defined]
        return command

    return decorate


def was_given(option: str) -> bool:
    """Return whether an option of the current command was given, be it as none."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not click.core.ParameterSource.DEFAULT


def make_estimator(name: str, parameters: dict[str, Any], **others: Any) -> Any:
    """Return an estimator with these parameters; raise UsageError for one that it cannot have."""
    known = inspect.signature(estimator_class(name)).parameters
    for parameter in parameters:
        if parameter not in known:
            takers = ", ".join(_takers(parameter, ESTIMATORS)) or "the search"
            raise click.UsageError(
                f"--{parameter.replace('_', '-')} is not a parameter of {name}, but of {takers}. "
                "Leave it out, or choose another --estimator."
            )
    fitting = {key: value for key, value in others.items() if key in known}
    model = estimator_class(name)(**parameters, **fitting)
    try:
        check_params(model)
    except ValueError as error:
        raise click.UsageError(f"{error}") from error
    return model
