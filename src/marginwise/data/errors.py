"""The error for bad content of a file."""

from __future__ import annotations


class DataError(ValueError):
    """Raised for bad content of a data file; the message begins with the file and the place."""
