"""Data sources for training on arrays, files and streams."""

from marginwise.data.arrays import ArraySource
from marginwise.data.catalogue import Dataset, load_dataset
from marginwise.data.encoder import TableEncoder
from marginwise.data.errors import DataError
from marginwise.data.recognise import open_source
from marginwise.data.streams import IteratorStream
from marginwise.data.svmlight import SvmlightSource
from marginwise.data.svmlight_writer import write_svmlight
from marginwise.data.tables import TableSource
from marginwise.data.transformed import StreamPipeline, TransformedSource

__all__ = [
    "ArraySource",
    "DataError",
    "Dataset",
    "IteratorStream",
    "StreamPipeline",
    "SvmlightSource",
    "TableEncoder",
    "TableSource",
    "TransformedSource",
    "load_dataset",
    "open_source",
    "write_svmlight",
]
