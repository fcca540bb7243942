"""Checks of hyperparameters: one table per estimator, one message form."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np

Rule = tuple[Callable[[Any], bool], str]

MOST_THREADS = 256
MOST = 2**62  # of counts: sums of a few stay within 64 bits
MOST_DEGREE = 1000  # the core multiplies as often
MOST_MEGABYTES = 2**40
# Steps per row, which are taken before Ctrl-C or a time limit is looked at.
MOST_STEPS = 10**6
MOST_REPROCESS = 10**9  # ends by itself where nothing is left to do


RENAMED = {"finish": "finish_at_end"}  # parameters of 0.1.0 and before


def current(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters or a state of an earlier version by the names of now."""
    return {RENAMED.get(name, name): value for name, value in named.items()}


def plain(value: Any) -> Any:
    """Return a value for a message: NumPy's scalars, alone or in a sequence, as Python's."""
    if isinstance(value, np.ndarray | list):
        return [plain(one) for one in value]
    if type(value) is tuple:
        return tuple(plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


def is_real(value: Any) -> bool:
    """Return whether a value is a finite number (a bool is not)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer (a bool is not)."""
    return not isinstance(value, bool | np.bool_) and isinstance(value, Integral)


def positive(at_most: float | None = None) -> Rule:
    if at_most is None:
        return lambda v: is_real(v) and v > 0, "a number above 0"
    return lambda v: is_real(v) and 0 < v <= at_most, f"a number above 0, at most {at_most}"


def positive_or_infinite() -> Rule:
    return lambda v: (is_real(v) and v > 0) or _is_infinite(v), "a number above 0, or infinity"


def _is_infinite(value: Any) -> bool:
    return isinstance(value, Real) and bool(value == math.inf)


def non_negative() -> Rule:
    return lambda v: is_real(v) and v >= 0, "a number of at least 0"


def share() -> Rule:
    return lambda v: is_real(v) and 0 < v <= 1, "a number above 0, at most 1"


def real() -> Rule:
    return is_real, "a finite number"


def below(most: float) -> Rule:
    return lambda v: is_real(v) and v < most, f"a number below {most:g}"


def integer(at_least: int, at_most: int | None = None) -> Rule:
    if at_most is None:
        test = is_count_from(at_least, MOST)
        return test, f"an integer of at least {at_least}"
    return is_count_from(at_least, at_most), f"an integer from {at_least} to {at_most}"


def count(least: int = 0, most: int = MOST) -> Rule:
    return is_count_from(least, most), f"an integer from {least} to {most}"


def is_count_from(least: int, most: int) -> Callable[[Any], bool]:
    return lambda v: is_integer(v) and least <= v <= most


def boolean() -> Rule:
    return lambda v: isinstance(v, bool | np.bool_), "True or False"


def one_of(*options: str) -> Rule:
    listed = ", ".join(repr(option) for option in options)
    return lambda v: isinstance(v, str) and v in options, f"one of {listed}"


def either(*rules: Rule) -> Rule:
    return lambda v: any(test(v) for test, _ in rules), " or ".join(text for _, text in rules)


def none() -> Rule:
    return lambda v: v is None, "None"


def threads() -> Rule:
    return (
        lambda v: is_integer(v) and v != 0 and abs(v) <= MOST,
        "an integer other than 0 (-1 for one per processor)",
    )


def thread_count(jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for, by joblib's rules.

    Negative numbers count down from the processors that this process may use: its CPU affinity and
    its cgroup limit them. None means 1 unless ``joblib.parallel_config`` says otherwise.
    """
    if multiprocessing.current_process().daemon:
        # joblib warns and returns 1, because such a process cannot start others; threads it can.
        wanted = 1 if jobs is None else jobs if jobs > 0 else joblib.cpu_count() + 1 + jobs
    else:
        wanted = joblib.effective_n_jobs(jobs)
    return min(max(1, int(wanted)), MOST_THREADS)


def weights() -> Rule:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return value == "balanced"
        return isinstance(value, Mapping) and all(is_real(w) and w > 0 for w in value.values())

    return test, "'balanced' or a dict of class weights above 0"


def check_params(estimator: Any, rules: Mapping[str, Rule]) -> None:
    """Raise a ValueError that names the first parameter outside its rule."""
    params = estimator.get_params(deep=False)
    for name, (test, expected) in rules.items():
        value = params[name]
        if not test(value):
            kind = type(estimator).__name__
            if is_integer(value) and abs(value) > MOST and "integer" in expected:
                expected += " (and at most 2^62)"
            raise ValueError(f"{kind}: {name} must be {expected}, got {plain(value)!r}.")
