"""Adding classes to a trained model: its state with more binary problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise._engine.plan import Plan, paired, problems_of, signs

BY_PLACE = ("alpha", "g", "rank", "box", "trail", "inherited", "notes")  # one row per problem
MIRRORED = ("alpha", "g", "trail", "inherited")  # change their sign if classes swap sides


def grown(
    state: Mapping[str, Any], plan: Plan, numbers: Ints, classes: int, pairs: bool
) -> tuple[Plan, dict[str, Any]]:
    """Return the plan and the state of a model after adding classes.

    The problems of existing classes do not change. The problem of a new class starts with all
    stored members and zero coefficients, so its gradient is the label of each member.

    Parameters
    ----------
    state : mapping
        State of the engine.
    plan : Plan
        Its plan.
    numbers : ndarray of int64
        New number of each existing class.
    classes : int
        New number of classes.
    pairs : bool
        Whether the new problems are pairs of classes.
    """
    plan = replace(plan, problems=problems_of(classes, pairs), pairs=pairs)
    labels = numbers[state["labels"]].astype(np.int32)
    sides = signs(labels, plan.problems, pairs)
    live = (state["rank"] >= 0).any(axis=0)
    rows: dict[str, list[Any]] = {name: [] for name in BY_PLACE}
    for c, (source, mirrored) in enumerate(sources(numbers, plan)):
        if source is None:
            held = live & (sides[:, c] != 0)
            for name in BY_PLACE:
                rows[name].append(np.zeros_like(state[name][0]))
            rows["g"][c][held] = sides[held, c]
            rows["rank"][c][:] = np.where(held, np.cumsum(held) - 1, -1)
            if plan.problems == 1:  # places equal positions
                rows["rank"][c][held] = np.flatnonzero(held)
            continue
        for name in BY_PLACE:
            row = state[name][source]
            rows[name].append(-row if mirrored and name in MIRRORED else row)
    return plan, {**state, "labels": labels, **{name: np.array(rows[name]) for name in BY_PLACE}}


def sources(numbers: Ints, plan: Plan) -> list[tuple[int | None, bool]]:
    """Return the previous problem of each problem, and whether its classes have swapped sides."""
    before = {int(number): k for k, number in enumerate(numbers)}
    alone = len(before) <= 2  # a single problem

    def of_class(number: int) -> tuple[int | None, bool]:
        if number not in before:
            return None, False
        return (0, before[number] == 0) if alone else (before[number], False)

    def of_pair(first: int, second: int) -> tuple[int | None, bool]:
        if first not in before or second not in before:
            return None, False
        if alone:
            return 0, False
        earlier = paired(len(before) * (len(before) - 1) // 2)
        at = (earlier[0] == before[first]) & (earlier[1] == before[second])
        return int(np.flatnonzero(at)[0]), False

    if len(before) == 1:  # no problem before
        return [(None, False)] * plan.problems
    if plan.problems == 1:
        return [(0, False)]
    if plan.pairs:
        return [of_pair(int(a), int(b)) for a, b in zip(*paired(plan.problems), strict=True)]
    return [of_class(c) for c in range(plan.problems)]
