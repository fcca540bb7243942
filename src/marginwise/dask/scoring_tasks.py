"""Tasks of `predict_files`: read one input file, and write one complete output file."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from marginwise._files.disk import replace_file
from marginwise.dask.versions import VersionError, check_version
from marginwise.data.columns import need_arrow
from marginwise.data.errors import DataError
from marginwise.data.modelled import Layout, open_rows, split_model
from marginwise.data.predictions import column_names, csv_rows, csv_text, predicted

GROUP_ROWS = 1 << 17  # minimum rows per row group of the output, except the last
# Errors caused by a file or a worker rather than by the code.
REFUSED = (ValueError, TypeError, OSError, ImportError, MemoryError, VersionError)


@dataclass(frozen=True)
class Job:
    """One input file and the options of its output.

    Parameters
    ----------
    source, target : str
        Absolute paths of the input and the output.
    layout : Layout
        Layout of the input file.
    scores, proba : bool
        Whether to write decision values and probabilities.
    release : str
        Version of marginwise that created the job.
    """

    source: str
    target: str
    layout: Layout
    scores: bool
    proba: bool
    release: str


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job: number of rows, size and time stamp of the output, or an error."""

    rows: int = 0
    size: int = 0
    mtime: int = 0  # nanoseconds
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Scorer:
    """A fitted model that tasks share without modifying it.

    Parameters
    ----------
    model : estimator or Pipeline
        The model.
    names : list of str or None
        Names of the features, if the model itself does not have them.
    """

    model: Any
    names: list[str] | None = None


def unpack(payload: bytes) -> Any:
    """Unpickle the scorer once; other tasks receive the result of this task."""
    return pickle.loads(payload)


def score_file(job: Job, scorer: Scorer) -> Outcome:
    """Predict the rows of one file, and write an output file that appears only when complete.

    Parameters
    ----------
    job : Job
        The files and options.
    scorer : Scorer
        The model.

    Returns
    -------
    outcome : Outcome
        Errors in the input are returned, not raised, because the task must not be repeated.
    """
    began = time.perf_counter()
    try:
        check_version(job.release)
        rows = _write(job, scorer)
        status = os.stat(job.target)
    except REFUSED as error:
        return Outcome(error=_described(error, job), seconds=time.perf_counter() - began)
    return Outcome(rows, status.st_size, status.st_mtime_ns, time.perf_counter() - began)


def _described(error: Exception, job: Job) -> str:
    """Return the message of an error, including the name of the file."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}."
    if isinstance(error, MemoryError):
        return (
            f"{job.source}: the worker does not have enough memory. Give it more, or fewer tasks."
        )
    text = " ".join(str(error).split()) or type(error).__name__
    return text if job.source in text else f"{job.source}: {text}"


def _write(job: Job, scorer: Scorer) -> int:
    """Write the output; return the number of rows."""
    before = _identity(job.source)
    model, names = scorer.model, scorer.names
    source = open_rows(model, job.source, job.layout, labelled=False, names=names)
    _, estimator = split_model(model)
    blocks = _predictions(job, estimator, source)
    write = _parquet if job.target.endswith(".parquet") else _csv
    columns = column_names(estimator, job.scores, job.proba)
    counted: list[int] = []

    def write_all(handle: BinaryIO) -> None:
        counted.append(write(handle, estimator, columns, blocks))
        if _identity(job.source) != before:
            raise DataError(
                f"{job.source}: the file changed while it was read. Run again when it is complete."
            )

    replace_file(job.target, write_all)
    return counted[0]


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _predictions(job: Job, estimator: Any, source: Any) -> Iterator[tuple[Any, Any]]:
    """Yield labels and numeric columns of the predictions, chunk by chunk."""
    first = 0
    for X, _ in source.chunks():
        try:
            yield predicted(estimator, X, job.scores, job.proba)
        except ValueError as error:
            raise DataError(_located(job.source, X, first, error)) from error
        first += X.shape[0]


def _located(path: str, X: Any, first: int, error: ValueError) -> str:
    """Return an error message for a chunk of rows, naming the row if one value is not finite."""
    values = X.data if hasattr(X, "indptr") else np.asarray(X)
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    if not bad.size:
        return f"{path}: rows {first} to {first + X.shape[0] - 1}: {error}"
    if hasattr(X, "indptr"):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        column = int(X.indices[bad[0]])
    else:
        row, column = divmod(int(bad[0]), values.shape[1])
    kind = "missing" if np.isnan(values.ravel()[bad[0]]) else "infinite"
    return (
        f"{path}: row {first + row}, feature {column}: the value is {kind}; expected a finite "
        "number. Correct the row."
    )


# -- formats ---------------------------------------------------------------------------------------


def _csv(handle: BinaryIO, estimator: Any, names: list[str], blocks: Iterator[Any]) -> int:
    """Write CSV with a header; return the number of rows."""
    handle.write(csv_text([["label", *names]]).encode())
    rows = 0
    for labels, numbers in blocks:
        handle.write(csv_rows(labels, numbers).encode())
        rows += len(labels)
    return rows


def _parquet(handle: BinaryIO, estimator: Any, names: list[str], blocks: Iterator[Any]) -> int:
    """Write Parquet in large row groups; return the number of rows."""
    pa = need_arrow()
    from pyarrow import parquet

    kind = _label_type(estimator)
    schema = pa.schema([("label", kind), *((name, pa.float64()) for name in names)])
    rows = 0
    with parquet.ParquetWriter(handle, schema) as writer:
        for labels, numbers in _gathered(blocks):
            given = labels.tolist()
            made = pa.array(list(map(str, given)) if kind == pa.string() else given, kind)
            columns = [made, *(pa.array(numbers[:, k]) for k in range(len(names)))]
            writer.write_table(pa.table(columns, schema=schema))
            rows += len(labels)
    return rows


def _label_type(estimator: Any) -> Any:
    """Return the Arrow type of labels; strings if Arrow has no type for them."""
    pa = need_arrow()
    labels = estimator.classes_.tolist() if hasattr(estimator, "classes_") else [-1, 1]
    try:
        return pa.array(labels).type
    except pa.ArrowException:
        return pa.string()


def _gathered(blocks: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Merge successive blocks until they have at least `GROUP_ROWS` rows."""
    held: list[tuple[Any, Any]] = []
    for labels, numbers in blocks:
        held.append((labels, numbers))
        if sum(len(some) for some, _ in held) >= GROUP_ROWS:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(held: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    labels, numbers = zip(*held, strict=True)
    return np.concatenate(labels), np.concatenate(numbers)
