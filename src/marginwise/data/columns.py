"""Conversion of table columns to numbers, strings or vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._extras import install

MICROSECONDS = 86_400e6  # per day
LARGEST = float(np.finfo(np.float32).max)


def need_arrow() -> Any:
    """Return the module pyarrow, or raise ImportError with the command that installs it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise ImportError(
            f"tables are read with pyarrow, which is not installed. Run {install('tables')}."
        ) from error
    return pyarrow


class CellError(ValueError):
    """Error about an invalid value in a table.

    Parameters
    ----------
    row : int
        Row of the value.
    column : str
        Name of the column.
    fault : str
        Description of the error, and the expected value.
    """

    def __init__(self, row: int, column: str, fault: str) -> None:
        super().__init__(f"row {row}, column {column!r}: {fault}")
        self.row, self.column, self.fault = row, column, fault


@dataclass
class Numbers:
    """Numbers, booleans as 0 and 1, or dates as days since 1970; missing values are NaN."""

    family: str  # "numeric", "boolean" or "date"
    values: Float


@dataclass
class Strings:
    """Strings in a pyarrow array; missing values are null."""

    values: Any
    coded: bool = False  # whether the type of the column declares them as categories
    family: str = "string"


@dataclass
class Vectors:
    """Vectors of equal length, such as embeddings, as rows of a matrix."""

    values: NDArray[Any]
    family: str = "vector"


Column = Numbers | Strings | Vectors


def as_table(data: Any) -> Any:
    """Convert a table of any supported type to a pyarrow Table."""
    pa = need_arrow()
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        return pa.table({str(name): to_array(data[name], str(name)) for name in data})
    if hasattr(data, "columns") and hasattr(data, "iloc"):  # pandas
        names = [str(name) for name in data.columns]
        columns = [to_array(data.iloc[:, k], name) for k, name in enumerate(names)]
        return pa.table(columns, names=names)
    if hasattr(data, "__arrow_c_stream__"):  # polars and others
        return pa.table(data)
    raise TypeError(
        "expected a table with named columns: a pyarrow Table or RecordBatch, a data frame, or a "
        f"dict of columns; got {type(data).__name__}."
    )


def to_array(values: Any, name: str) -> Any:
    """Convert a column of any supported type to a pyarrow array."""
    pa = need_arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and values.ndim == 2:
        flat = pa.array(np.ascontiguousarray(values).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {name!r} mixes values of several types: {error}. Convert it to numbers or to "
            "strings."
        ) from error


def read_column(array: Any, name: str) -> Column | None:
    """Return a column as numbers, strings or vectors; None if it has no values.

    Parameters
    ----------
    array : pyarrow Array or ChunkedArray
        The column.
    name : str
        Name of the column, for messages.
    """
    pa, kind = need_arrow(), array.type
    types = pa.types
    if types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        column = read_column(array.cast(kind.value_type), name)
        return replace(column, coded=True) if isinstance(column, Strings) else column
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Strings(whole(array.cast(pa.string())))
    if types.is_boolean(kind):
        return Numbers("boolean", floats(array.cast(pa.uint8())))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return Numbers("numeric", _finite(floats(array), name))
    if types.is_date(kind) or types.is_timestamp(kind):
        moment = pa.timestamp("us", getattr(kind, "tz", None))
        return Numbers("date", days(array.cast(moment, safe=False)))
    if types.is_time(kind) or types.is_duration(kind):
        unit = pa.duration("us") if types.is_duration(kind) else pa.time64("us")
        return Numbers("date", days(array.cast(unit, safe=False)))
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return Vectors(_vectors(whole(array), name))
    raise ValueError(
        f"column {name!r} has the type {kind}; expected numbers, booleans, strings, dates or lists "
        "of numbers. Convert the column, or name it in drop."
    )


def check_finite(values: Float, name: str) -> None:
    """Raise unless all numbers are missing or within the range of float32."""
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if wrong.size:
        raise CellError(
            int(wrong[0]),
            name,
            f"{values[wrong[0]]:g} is outside the range of float32; expected a finite number.",
        )


def whole(array: Any) -> Any:
    """Return an array without chunks."""
    pa = need_arrow()
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def floats(array: Any) -> Float:
    """Return an array of numbers as doubles; missing values are NaN."""
    pa = need_arrow()
    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(whole(array).to_numpy(zero_copy_only=False), dtype=np.float64)


def _finite(values: Float, name: str) -> Float:
    check_finite(values, name)
    return values


def days(array: Any) -> Float:
    """Convert times or durations from microseconds to days."""
    return floats(array.cast(need_arrow().int64())) / MICROSECONDS


def _vectors(array: Any, name: str) -> NDArray[Any]:
    """Return the lists of a column as rows of a matrix."""
    pa = need_arrow()
    if array.null_count:
        row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise CellError(row, name, "the vector is missing; expected one in every row.")
    lengths = pa.compute.list_value_length(array).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != lengths[:1])
    if wrong.size:
        row = int(wrong[0])
        raise CellError(
            row, name, f"the vector has {lengths[row]} values; expected {lengths[0]} as in row 0."
        )
    kind = array.type.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ValueError(
            f"column {name!r} has lists of {kind}; expected lists of numbers. Convert the column, "
            "or name it in drop."
        )
    flat = array.flatten()
    dtype = np.float32 if kind in (pa.float32(), pa.float16()) else np.float64
    values = flat.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    rows: NDArray[Any] = values.reshape(len(array), int(lengths[0]) if len(lengths) else 0)
    wrong = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))
    if wrong.size:
        raise CellError(int(wrong[0]), name, "the vector has a value that is not a finite number.")
    return rows
