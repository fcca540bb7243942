"""Estimators of commands, with their parameters as options.

Options are generated from the signatures and docstrings of the estimators.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

import marginwise
from marginwise._checks import check_params
from marginwise.cli.commands import EstimatorOption
from marginwise.cli.group import usage
from marginwise.cli.options import SEED, THREADS, Function, KernelName, Value, packed, was_given
from marginwise.cli.output import Console

ESTIMATORS = (
    "OnlineSVC",
    "GapSVC",
    "TrackingSVC",
    "ExactSVC",
    "ExactRampSVC",
    "KernelPerceptron",
    "ExactOneClassSVM",
)
CLASSIFIERS = ESTIMATORS[:-1]
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
OTHERWISE = ("n_jobs", "random_state", "verbose")  # set by --threads, --seed and --quiet
SCALES = ("auto", "standard", "none")


@dataclass(frozen=True)
class Recipe:
    """Estimator and preprocessing of a command.

    Parameters
    ----------
    estimator : str
        Name of the class.
    parameters : dict
        Parameters that the user has given.
    scale : {"auto", "standard", "none"}
        Scaling of numeric features.
    seed, threads : int
        Values of the parameters `random_state` and `n_jobs`.
    """

    estimator: str = "OnlineSVC"
    parameters: dict[str, Any] = field(default_factory=dict)
    scale: str = "auto"
    seed: int = 0
    threads: int = -1

    @property
    def classifies(self) -> bool:
        """Whether the estimator learns from labels."""
        return self.estimator in CLASSIFIERS

    def make(self, console: Console, **more: Any) -> Any:
        """Return the estimator; raise UsageError if a parameter is unknown or invalid."""
        known = inspect.signature(kind_of(self.estimator)).parameters
        for parameter in self.parameters.keys() - known.keys():
            takers = ", ".join(name for name in ESTIMATORS if parameter in parameters_of(name))
            raise click.UsageError(
                f"{flag(parameter)} is not a parameter of {self.estimator}, but of {takers}. "
                "Leave it out, or select another --estimator."
            )
        general = {"random_state": self.seed, "n_jobs": self.threads, "verbose": console.verbose}
        fitting = {key: value for key, value in general.items() if key in known}
        model = kind_of(self.estimator)(**{**fitting, **self.parameters, **more})
        with usage():
            check_params(model)
        return model


def kind_of(name: str) -> Any:
    """Return the class of an estimator."""
    return getattr(marginwise, name)


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of an estimator that are options."""
    given = inspect.signature(kind_of(name)).parameters
    return {key: value for key, value in given.items() if key not in OTHERWISE}


# -- options ---------------------------------------------------------------------------------------


def recipe_options(
    names: tuple[str, ...] = ESTIMATORS, without: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Return a decorator that adds the argument `recipe`, with one of the given estimators."""
    every = dict.fromkeys(key for name in names for key in parameters_of(name))
    union = [key for key in every if key not in without]

    def pack(**given: Any) -> Recipe:
        values = {key: given.pop(key) for key in union}
        parameters = {key: value for key, value in values.items() if was_given(key)}
        return Recipe(parameters=parameters, **given)

    return packed("recipe", pack, [*_general(names), *(_option(key, names) for key in union)])


def _general(names: tuple[str, ...]) -> list[click.Option]:
    return [
        click.Option(
            ["--estimator"],
            type=click.Choice(names),
            default=names[0],
            show_default=True,
            help="Estimator to train.",
        ),
        click.Option(
            ["--scale"],
            type=click.Choice(SCALES),
            default="auto",
            show_default=True,
            help="Scaling of features of arrays and svmlight files. auto divides by the largest "
            "value if all features share one range, and by the standard deviation of each "
            "feature otherwise; it does not scale if --gamma is a number. Columns of tables "
            "are standardised unless the value is none.",
        ),
        click.Option(["--seed"], type=SEED, default=0, show_default=True, help="Random seed."),
        click.Option(["--threads"], type=int, default=-1, show_default=True, help=THREADS),
    ]


def _option(parameter: str, names: tuple[str, ...]) -> click.Option:
    """Return the option of a parameter, with the description from the first estimator with it."""
    takers = [name for name in names if parameter in parameters_of(name)]
    kind, text = documented(kind_of(takers[0]))[parameter]
    default = parameters_of(takers[0])[parameter].default
    words = first_sentence(text)
    if len(takers) < len(names):
        words += f"  [{', '.join(takers)}]"
    words += f"  [default: {default}]"
    if isinstance(default, bool):
        both = f"{flag(parameter)}/{flag(parameter, 'no-')}"
        return EstimatorOption([both, parameter], default=None, help=words)
    marks = [SHORT[parameter]] if parameter in SHORT else []
    return EstimatorOption(
        [*marks, flag(parameter), parameter],
        type=KernelName() if parameter == "kernel" else Value(),
        metavar=_metavar(kind),
        default=None,
        help=words,
    )


def flag(parameter: str, prefix: str = "") -> str:
    """Return the name of the option of a parameter."""
    return f"--{prefix}{parameter.replace('_', '-')}"


def _metavar(kind: str) -> str:
    """Return the value of an option as shown in the help: its choices or its type."""
    choices = re.match(r"\{(.*?)\}", kind)
    if choices is not None and "float" not in kind:
        return "|".join(re.findall(r'"(\w+)"', choices[1]))
    words = {"int": "INTEGER", "float": "NUMBER", "dict": "JSON"}
    return next((mark for word, mark in words.items() if word in kind), "TEXT")


# -- docstrings ------------------------------------------------------------------------------------


def documented(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter in the docstring of an estimator."""
    _, _, section = (inspect.getdoc(kind) or "").partition("\nParameters\n----------\n")
    section = section.partition("\nAttributes\n----------\n")[0]
    items = re.findall(r"^(\w+) : (.*)\n((?:(?:    .*)?\n)*)", section + "\n", re.MULTILINE)
    return {name: (" ".join(kind.split()), inspect.cleandoc(text)) for name, kind, text in items}


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without reStructuredText markup."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    paragraph = re.sub(r" ?\[\w+\]_|:\w+:", "", paragraph)
    return re.split(r"(?<=[.:]) (?=[A-Z\"])", paragraph)[0].rstrip(":")


def shown(model: Any) -> str:
    """Return a Python expression of an estimator with all parameters."""
    listed = ", ".join(f"{key}={value!r}" for key, value in model.get_params(deep=False).items())
    return f"{type(model).__name__}({listed})"
