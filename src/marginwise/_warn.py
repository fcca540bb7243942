"""Warnings that refer to the user's code."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

# Modules to skip in the stack: scikit-learn may call this package, and joblib scikit-learn.
_SKIPPED = ("marginwise", "sklearn", "joblib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the line of the user's code that caused it.

    Parameters
    ----------
    message
        Text of the warning: what is wrong and what to do.
    category
        Class of the warning.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_skipped(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_unconverged(message: str) -> None:
    """Issue a ConvergenceWarning at the line of the user's code that caused it."""
    warn(message, ConvergenceWarning)


def _is_skipped(module: str) -> bool:
    return module.partition(".")[0] in _SKIPPED
