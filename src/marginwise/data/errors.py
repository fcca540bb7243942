"""Errors in the content of data files."""

from __future__ import annotations


class DataError(ValueError):
    """Error raised if the content of a data file is invalid.

    The message begins with ``file:line:``. For files with columns, it names the row and the column
    instead of the line. If the error does not belong to a line, it names only the file.
    """
