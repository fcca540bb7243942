"""Data sources: labelled rows that are read from files when they are needed."""

from marginwise.data.errors import DataError
from marginwise.data.svmlight import SvmlightSource
from marginwise.data.svmlight_writer import write_svmlight

__all__ = ["DataError", "SvmlightSource", "write_svmlight"]
