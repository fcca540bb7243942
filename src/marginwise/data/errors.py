"""Errors in the content of data files."""

from __future__ import annotations


class DataError(ValueError):
    """The content of a data file is not what was expected; the message begins with ``file:line:``.

    The message names the row and the column instead of the line where a file has columns, and only
    the file if no line is to blame.
    """
