"""Description of an algorithm for engines and model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marginwise._checks import Rule

# The boxes that a coefficient may have, as the core numbers them.
USUAL, SHIFTED, SHUT, ENDLESS = range(4)

ALGORITHMS: dict[str, Algorithm] = {}  # by name, those of the estimators that were imported


@dataclass(frozen=True)
class Algorithm:
    """Properties of an algorithm that engines and model files use.

    Parameters
    ----------
    name : str
        The name in the core.
    settings : mapping of str to Rule
        Settings passed to the core, with the rules that they must satisfy in a file.
    counts : int, default=0
        Number of counters that the core stores for each binary problem.
    numbers : int, default=0
        Number of other values that follow the counters.
    boxes : set of int, default={USUAL}
        The boxes that coefficients may have.
    biased : bool, default=False
        Whether the decision function has a bias.
    pairs : bool, default=False
        Whether the algorithm supports one-vs-one.
    budgeted : bool, default=False
        Whether the algorithm supports a budget with projection.
    shared : bool, default=False
        Whether a member may count in the problems of other classes.
    exact : bool, default=False
        Whether the model is the exact solution: computed in double precision throughout, with a
        factor of its free set in its state.
    arrays : mapping of str to tuple, default={}
        Arrays of a state that only this algorithm has: their types, and what their sides count.
    sizes : callable, default=None
        Called with a state; returns how many there are of what only those arrays count.
    check : callable, default=None
        Called with a state; raises ValueError if it cannot be of this algorithm.
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
    exact: bool = False
    arrays: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    sizes: Callable[[Mapping[str, Any]], dict[str, int]] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None

    def __post_init__(self) -> None:
        ALGORITHMS[self.name] = self
