"""Look into data and models: suspect labels, margins, and the search for C and gamma."""

from marginwise.inspect.label_errors import LabelErrors, find_label_errors
from marginwise.inspect.margins import MarginDisplay
from marginwise.inspect.tuning import TuningDisplay

__all__ = [
    "LabelErrors",
    "MarginDisplay",
    "TuningDisplay",
    "find_label_errors",
]
