"""The values of C and gamma that a search tries."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise._arrays import Float
from marginwise._checks import Rule, either, integer, is_integer
from marginwise._engine.plan import WITH_GAMMA, resolve_gamma

RATIO = 4.0  # of neighbouring values
CENTRAL_C = 8.0
MOST_VALUES = 1000


def values_rule() -> Rule:
    """Return the rule for a parameter that is a number of values or a list of values."""
    return either(integer(1, MOST_VALUES), list_rule())


def list_rule() -> Rule:
    """Return the rule for a list of values."""
    return is_list, "a list of different positive numbers"


def is_list(given: Any) -> bool:
    """Return whether a parameter is a valid list of values instead of their number."""
    if isinstance(given, str | bytes) or not hasattr(given, "__len__"):
        return False
    try:
        values = np.asarray(given)
    except ValueError:  # lists of different lengths
        return False
    if values.ndim != 1 or not 1 <= len(values) <= MOST_VALUES or values.dtype.kind not in "iuf":
        return False
    usual = np.isfinite(values) & (values >= np.finfo(np.float64).tiny)
    return bool(usual.all() and len(np.unique(values)) == len(values))


def values_around(given: Any, centre: float) -> Float:
    """Return the values in ascending order: as given, or a logarithmic grid."""
    if is_integer(given):
        steps = np.arange(int(given)) - (int(given) - 1) / 2
        return np.asarray(centre * RATIO**steps, dtype=np.float64)
    return np.sort(np.asarray(given, dtype=np.float64))


def gammas_for(given: Any, kernel: Any, X: Any, weights: Float) -> Float:
    """Return the values of gamma, around 1 / (n_features * variance of X).

    For a kernel that does not use gamma, there is only one value.
    """
    if not (isinstance(kernel, str) and kernel in WITH_GAMMA):
        return np.ones(1)
    return values_around(given, resolve_gamma("scale", X, weights))
