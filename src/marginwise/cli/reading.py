"""Input of commands: files, patterns and standard input as data sources."""

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

from marginwise import load
from marginwise._engine.memory import available
from marginwise.cli.group import STDIN, Refused
from marginwise.cli.options import packed
from marginwise.cli.output import STANDARD
from marginwise.data import SvmlightSource, TableEncoder, TableSource
from marginwise.data.modelled import Layout as Layout
from marginwise.data.modelled import Steps as Steps
from marginwise.data.modelled import after as after
from marginwise.data.modelled import open_layout, open_rows
from marginwise.data.modelled import split_model as split_model

SHARE = 2  # data may take 1 / SHARE of the available memory
SAMPLE = 2000  # rows from which the memory consumption of all rows is estimated


@dataclass(frozen=True)
class Columns:
    """Use of the columns of tables.

    Parameters
    ----------
    numeric, categorical, text, drop : sequence of str
        Columns to treat as the given kind, regardless of their content.
    unseen : {"ignore", "error"}
        How to handle categories that did not occur in training.
    decimal : {"auto", ".", ","}
        Decimal mark of numbers that can be read in two ways.
    groups : str or None
        Column with the group of each row.
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    unseen: str = "ignore"
    decimal: str = "auto"
    groups: str | None = None

    def encoder(self, scale: bool) -> TableEncoder:
        """Return an unfitted encoder."""
        return TableEncoder(
            numeric=list(self.numeric),
            categorical=list(self.categorical),
            text=list(self.text),
            drop=[*self.drop, *([] if self.groups is None else [self.groups])],
            unseen=self.unseen,
            decimal=self.decimal,
            scale=scale,
        )


MISSING = click.Option(
    ["--missing"],
    metavar="VALUE",
    multiple=True,
    help="Value of tables to treat as missing, in addition to empty values; may be repeated. "
    "Models store it.",
)
layout_options = packed(
    "layout",
    Layout,
    [
        click.Option(["--label"], metavar="COLUMN", help="Label column.  [default: the last one]"),
        click.Option(
            ["--zero-based/--one-based", "zero_based"],
            default=False,
            help=(
                "Whether feature indices of svmlight files start at 0 or 1.  [default: one-based]"
            ),
        ),
        click.Option(
            ["--header/--no-header"],
            default=True,
            help="Whether the first line of CSV files contains column names. Otherwise, columns "
            "are named x0, x1 and so on.  [default: header]",
        ),
        MISSING,
    ],
)

column_options = packed(
    "columns",
    Columns,
    [
        *(
            click.Option([f"--{kind}"], metavar="COLUMN", multiple=True, help=text)
            for kind, text in {
                "numeric": "Column to treat as numeric; may be repeated.",
                "categorical": "Column to treat as categorical, such as a code; may be repeated.",
                "text": "Column to treat as text; may be repeated.",
                "drop": "Column to ignore; may be repeated.",
            }.items()
        ),
        click.Option(
            ["--unseen"],
            type=click.Choice(["ignore", "error"]),
            default="ignore",
            show_default=True,
            help="How to handle categories that did not occur in training: ignore encodes them as "
            "zeros, error rejects the row.",
        ),
        click.Option(
            ["--decimal"],
            type=click.Choice(["auto", ".", ","]),
            default="auto",
            show_default=True,
            help="Decimal mark of numbers that can be read in two ways, such as 1,234. auto reads "
            "them as thousands, with a warning.",
        ),
        click.Option(
            ["--groups"],
            metavar="COLUMN",
            help="Column with the group of each row, such as a customer, which `forget` can "
            "remove. It is not used as a feature. Exact estimators only.",
        ),
    ],
)


# -- opening ---------------------------------------------------------------------------------------


def placed(data: str) -> str:
    """Return the path of data; standard input is copied to a temporary file."""
    if data != STANDARD:
        return data
    context = click.get_current_context()
    if STDIN in context.meta:
        return str(context.meta[STDIN])
    handle, path = tempfile.mkstemp(prefix=f"{STDIN}-")
    context.meta[STDIN] = path
    context.call_on_close(lambda: os.unlink(path))
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def check_inputs(*paths: str | None) -> None:
    """Raise if more than one file would be read from standard input."""
    if paths.count(STANDARD) > 1:
        raise click.UsageError(
            "standard input can be read only once. Pass a file instead of one -."
        )


def load_model(path: str) -> Any:
    """Return the model in a file, or on standard input."""
    return load(placed(path))


def open_data(data: str, layout: Layout, **more: Any) -> Any:
    """Return the source of a file; `more` are arguments of `open_source`."""
    return open_layout(placed(data), layout, **more)


def open_for(model: Any, data: str, layout: Layout, *, labelled: bool) -> Any:
    """Open data as a source of rows for the final estimator of a model."""
    return open_rows(model, placed(data), layout, labelled=labelled)


def check_classes(classes: Any, data: str) -> None:
    """Raise unless there are labels of at least two classes."""
    if classes is None:
        raise Refused(f"{data} has no labels; expected a label for each row.")
    if classes.dtype.kind == "f":
        wrong = [y for y in classes.tolist() if not (y.is_integer() and abs(y) < 2**53)]
        if wrong:
            raise Refused(
                f"{data}: the label {wrong[0]:g} is not a class; expected integers below 2^53, or "
                "names in a table. Regression is not supported."
            )
    if len(classes) < 2:
        raise Refused(
            f"{data}: all rows have the label {classes[0]}; expected at least two classes."
        )


def encoder_of(source: Any) -> Any:
    """Return the fitted encoder of a source of tables, or None."""
    return source.encoder if isinstance(source, TableSource) else None


def groups_of(data: str, layout: Layout, name: str) -> list[Any]:
    """Return the group of each row."""
    source = open_data(data, layout, encoder=None, labelled=False)
    if not isinstance(source, TableSource):
        raise Refused(f"{data} is not a table; --groups needs columns with names.")
    if name not in source.feature_names:
        raise Refused(
            f"{data}: column {name!r} is missing; it has {', '.join(source.feature_names)}."
        )
    return [group for X, _ in source.chunks() for group in X[name].to_pylist()]


def lines_of(path: str) -> list[str]:
    """Return the non-empty lines of a text file."""
    with click.open_file(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


# -- rows ------------------------------------------------------------------------------------------


def fits_in_memory(source: Any) -> bool:
    """Return whether all rows of a source fit in memory."""
    most = available() / SHARE
    if isinstance(source, SvmlightSource) and source.random_access:
        # Rows take at most twice the size of the text, so this estimate needs no reading.
        return sum(os.path.getsize(path) for path in source.paths) < most / 2
    rows = len(source)
    X, _ = source.read(np.arange(min(rows, SAMPLE)))
    size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    return bool(size / X.shape[0] * rows < most)
