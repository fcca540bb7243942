"""The experiments of the checkout, found by their files: reproduce/<paper>/<name>.py."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from reproduce.experiment import Experiment, Paper

HERE = Path(__file__).resolve().parent
EXPERIMENT = "EXPERIMENT = "  # an experiment's file defines this name


@cache
def names() -> tuple[str, ...]:
    """Return all names, "paper/experiment", sorted; figure10 follows figure9."""
    found = []
    for path in HERE.glob("*/*.py"):
        if f"\n{EXPERIMENT}" in path.read_text(encoding="utf-8"):
            found.append(f"{path.parent.name}/{path.stem}")
    return tuple(sorted(found, key=_in_natural_order))


def _in_natural_order(name: str) -> list[tuple[str, int]]:
    """Return a sort key that compares the numbers in a name by value."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(word, int(number or 0)) for word, number in parts]


def papers() -> list[str]:
    """Return the papers that have experiments."""
    return sorted({name.partition("/")[0] for name in names()})


@cache
def load(name: str) -> Experiment:
    """Return an experiment by its full name."""
    module = importlib.import_module("reproduce." + name.replace("/", "."))
    experiment: Experiment = module.EXPERIMENT
    return experiment


def paper(key: str) -> Paper:
    """Return the description of a paper."""
    described: Paper = importlib.import_module(f"reproduce.{key}").PAPER
    return described


def measured(name: str) -> str:
    """Return the name under which the results of an experiment are stored."""
    shared = load(name).shares
    return f"{name.partition('/')[0]}/{shared}" if shared else name


def select(given: list[str] | tuple[str, ...]) -> list[str]:
    """Return the experiments selected by names: a paper, an experiment, or "all"."""
    chosen: list[str] = []
    for name in given:
        matches = [
            one for one in names() if name == "all" or one == name or one.startswith(f"{name}/")
        ]
        if not matches:
            raise LookupError(
                f"there is no experiment {name!r}; expected all, a paper ({', '.join(papers())}) "
                "or one of the names that `marginwise reproduce` lists."
            )
        chosen += [one for one in matches if one not in chosen]
    return chosen
