"""Data sources: arrays, files and streams, from which any classifier can learn."""

from marginwise.data.arrays import ArraySource
from marginwise.data.encoder import TableEncoder
from marginwise.data.errors import DataError
from marginwise.data.recognise import open_source
from marginwise.data.streams import IteratorStream
from marginwise.data.tables import TableSource

__all__ = [
    "ArraySource",
    "DataError",
    "IteratorStream",
    "TableEncoder",
    "TableSource",
    "open_source",
]
