"""Inspection of data and models: label errors, margins and searches."""

from marginwise.inspect.compression import CompressionDisplay
from marginwise.inspect.label_errors import LabelErrors, find_label_errors
from marginwise.inspect.margins import MarginDisplay
from marginwise.inspect.tuning import TuningDisplay

__all__ = [
    "CompressionDisplay",
    "LabelErrors",
    "MarginDisplay",
    "TuningDisplay",
    "find_label_errors",
]
