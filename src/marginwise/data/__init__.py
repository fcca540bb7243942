"""Data sources: arrays, files and streams, from which any classifier can learn."""

from marginwise.data.errors import DataError

__all__ = ["DataError"]
