"""Description of an algorithm for engines and model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marginwise._checks import Rule

# Kinds of bounds ("boxes") of coefficients, with the codes of the core.
USUAL, SHIFTED, SHUT, ENDLESS = range(4)

ALGORITHMS: dict[str, Algorithm] = {}  # algorithms of the imported estimators, by name


@dataclass(frozen=True)
class Algorithm:
    """Properties of an algorithm that engines and model files use.

    Parameters
    ----------
    name : str
        Name of the algorithm in the core.
    settings : mapping of str to Rule
        Settings passed to the core, with the rules that they must satisfy in a file.
    counts : int, default=0
        Number of counters that the core stores for each binary problem.
    numbers : int, default=0
        Number of other values, stored after the counters.
    boxes : set of int, default={USUAL}
        Boxes that coefficients may have.
    biased : bool, default=False
        Whether the decision function has a bias.
    pairs : bool, default=False
        Whether the algorithm supports one-vs-one.
    budgeted : bool, default=False
        Whether the algorithm supports a budget with projection.
    shared : bool, default=False
        Whether a member may have coefficients in problems that do not include its class.
    solves : bool, default=False
        Whether the coefficients of the members are those of a solution, or close to it, so that few
        steps show the decision value of a member without it.
    exact : bool, default=False
        Whether the model is the exact solution. It is then computed in double precision throughout,
        and its state contains a factorization of the free set.
    arrays : mapping of str to tuple, default={}
        Arrays of a state that are specific to this algorithm: their types, and the names of their
        dimensions.
    sizes : callable, default=None
        Called with a state; returns the sizes of dimensions that are specific to this algorithm.
    check : callable, default=None
        Called with a state; raises ValueError if it is invalid for this algorithm.
    """

    name: str
    settings: Mapping[str, Rule]
    counts: int = 0
    numbers: int = 0
    boxes: frozenset[int] = frozenset({USUAL})
    biased: bool = False
    pairs: bool = False
    budgeted: bool = False
    shared: bool = False
    solves: bool = False
    exact: bool = False
    arrays: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    sizes: Callable[[Mapping[str, Any]], dict[str, int]] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None

    def __post_init__(self) -> None:
        ALGORITHMS[self.name] = self
