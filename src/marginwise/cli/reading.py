"""Data of a command: files, globs and standard input as sources of rows."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from marginwise._engine.memory import available
from marginwise.cli.options import packed

SHARE = 2  # data may take one part in so many of the memory that is available
SAMPLE = 2000  # rows from which the memory that all rows take is estimated


@dataclass(frozen=True)
class Layout:
    """Where features, labels and groups are in a file.

    Parameters
    ----------
    label : str or None
        The column of the labels; None for the last one.
    zero_based : bool or None
        Whether the first feature of svmlight text is number 0; None for number 1.
    """

    label: str | None = None
    zero_based: bool | None = None


layout_options = packed(
    "layout",
    Layout,
    [
        click.Option(
            ["--label"], metavar="COLUMN", help="Column of the labels.  [default: the last one]"
        ),
        click.Option(
            ["--zero-based/--one-based", "zero_based"],
            default=None,
            help="Number of the first feature in svmlight text.  [default: one-based]",
        ),
    ],
)


class Arrays:
    def __init__(self, X, y):
        self.X, self.y = X, y
        self.n_features = X.shape[1]
        self.classes = None if y is None else np.unique(y)

    def __len__(self):
        return self.X.shape[0]

    def read(self, ids):
        return self.X[ids], None if self.y is None else self.y[ids]

    def chunks(self, rows=4096, start=0):
        for k in range(start, len(self), rows):
            yield self.X[k : k + rows], None if self.y is None else self.y[k : k + rows]


def transformed(source, step):
    return Arrays(step.transform(source.X), source.y)


def split_model(model):
    from sklearn.pipeline import Pipeline
    if isinstance(model, Pipeline):
        return model.steps[:-1], model.steps[-1][1]
    return [], model


def open_for(model, data, layout, *, labelled):
    source, _ = open_training(data, layout)
    for _, step in split_model(model)[0]:
        source = transformed(source, step)
    return source


def open_data(data, layout):
    return open_training(data, layout)[0]


def lines_of(path):
    with click.open_file(path) as f:
        return [line.strip() for line in f if line.strip()]


def open_training(data: str, layout: Layout, recipe=None, steps=None):
    """Return a source, and the encoder that its tables are read with, if it is one."""
    with open(data, "rb") as f:
        magic = f.read(2)
    if magic == b"PK":
        with np.load(data) as a:
            return Arrays(a["X"], a["y"]), None
    X, y = load_svmlight_file(data, dtype=np.float32, zero_based=bool(layout.zero_based))
    return Arrays(X, y.astype(int)), None


def whole(source):
    parts = list(source.chunks())
    Xs = [X for X, _ in parts]
    X = sp.vstack(Xs, format="csr") if sp.issparse(Xs[0]) else np.concatenate(Xs)
    return X, np.concatenate([y for _, y in parts])


def fits_in_memory(source):
    X, _ = source.read(np.arange(min(len(source), SAMPLE)))
    size = X.data.nbytes * 2 if sp.issparse(X) else X.nbytes
    return size / X.shape[0] * len(source) < available() / SHARE
