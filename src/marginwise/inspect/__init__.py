"""Look into data and models: suspect labels, margins, and the search for C and gamma."""

from marginwise.inspect.label_errors import LabelErrors, find_label_errors

__all__ = [
    "LabelErrors",
    "find_label_errors",
]
