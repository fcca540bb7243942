"""Sources that prepare the rows of a file for a fitted model."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from marginwise.data.encoder import TableEncoder
from marginwise.data.errors import DataError
from marginwise.data.matrix import ColumnMatrix
from marginwise.data.recognise import expand, open_source
from marginwise.data.sniff import kind_of
from marginwise.data.table_profile import missing_column
from marginwise.data.tables import TableSource
from marginwise.data.transformed import TransformedSource

NUMBERED = re.compile(r"x\d+", re.ASCII)  # names of columns of CSV files without a header
TYPED = ("parquet", "arrow", "arrow stream")  # tables whose columns have types

Steps = list[tuple[str, Any]]  # names and fitted transformers


@dataclass(frozen=True)
class Layout:
    """Location of features and labels in a file.

    Parameters
    ----------
    label : str or None
        Column of the labels; None for the default column.
    zero_based : bool
        Whether indices in svmlight text start at 0.
    header : bool
        Whether the first line of CSV contains the column names.
    missing : sequence of str
        Values to treat as missing, in addition to empty values.
    """

    label: str | None = None
    zero_based: bool = False
    header: bool = True
    missing: Collection[str] = ()


def split_model(model: Any) -> tuple[Steps, Any]:
    """Split a model into the preceding steps and the final estimator."""
    if isinstance(model, Pipeline):
        return model.steps[:-1], model.steps[-1][1]
    return [], model


def drop_names(model: Any) -> list[str] | None:
    """Remove the feature names from an estimator, and return them.

    The estimator receives arrays with features in the order of these names, for which scikit-learn
    would warn that names are missing. Transformers keep their names, because they receive data
    frames.
    """
    names: list[str] | None = None
    if not isinstance(model, Pipeline) and hasattr(model, "feature_names_in_"):
        names = [str(name) for name in model.feature_names_in_]
        del model.feature_names_in_
    return names


def open_rows(
    model: Any,
    path: str,
    layout: Layout,
    *,
    labelled: bool,
    names: Sequence[str] | None = None,
) -> Any:
    """Open a file as a source of rows for the final estimator of a model.

    Parameters
    ----------
    model : estimator or Pipeline
        The fitted model.
    path : str
        File, glob pattern or folder.
    layout : Layout
        Location of features and labels.
    labelled : bool
        Whether to read labels.
    names : sequence of str, default=None
        Feature names, if they were removed from the model.
    """
    steps, estimator = split_model(model)
    if steps and isinstance(steps[0][1], TableEncoder):
        source = _open_encoded(steps[0][1], estimator, path, layout, labelled)
        return after(steps[1:], source)
    first = steps[0][1] if steps else estimator
    n = int(first.n_features_in_)
    if _is_typed(path):
        names = getattr(first, "feature_names_in_", names)
        return after(steps, _open_typed(names, bool(steps), n, path, layout, labelled))
    source = open_layout(path, layout, labelled=labelled, n_features=n)
    if isinstance(source, TableSource):
        if getattr(first, "feature_names_in_", names) is not None:
            raise DataError(
                f"{path} is a table of text, but the model was trained on columns of numbers; give "
                "a Parquet or Arrow file with these columns."
            )
        raise DataError(
            f"{path} is a table, but the model was trained on {n} features without names; give "
            "svmlight text or an array, or train on a table."
        )
    if not labelled and source.n_features == n + 1 and is_npy(path):
        source = open_layout(path, layout, labelled=False, label=-1)
    _check_width(source.n_features, n, path)
    return after(steps, source)


def completed(layout: Layout, encoder: Any, path: str) -> Layout:
    """Return a layout with the options that a fitted encoder stores, for a file like its own."""
    if not isinstance(encoder, TableEncoder):
        return layout
    header = layout.header and not _lacks_header(path, encoder.feature_names_in_.tolist())
    return replace(layout, missing=[*layout.missing, *(encoder.missing or ())], header=header)


def _lacks_header(path: str, names: list[str]) -> bool:
    """Return whether a file is CSV without a header, as the file with these columns was."""
    first = expand(path)[0]
    if kind_of(first) != "csv" or not all(NUMBERED.fullmatch(name) for name in names):
        return False
    rows = open_source(first, header=False, encoder=None, labelled=False).chunks(1)
    values = [column[0].as_py() for X, _ in itertools.islice(rows, 1) for column in X.columns]
    return not set(names) <= set(values)


def open_layout(path: str, layout: Layout, **more: Any) -> Any:
    """Return the source of a file; `more` are arguments of `open_source`."""
    options: dict[str, Any] = {"zero_based": layout.zero_based, "header": layout.header}
    label = layout.label
    if label is not None and label.lstrip("-").isdigit() and is_npy(path):
        options["label"] = int(label)
    return open_source(path, **{"label": label, "missing": layout.missing, **options, **more})


def is_npy(path: str) -> bool:
    """Return whether a file is a .npy file."""
    return path.endswith(".npy") or (os.path.isfile(path) and kind_of(Path(path)) == "npy")


def after(steps: Steps, source: Any) -> Any:
    """Return a source to which fitted steps are applied."""
    return TransformedSource(source, [step for _, step in steps]) if steps else source


def _is_typed(path: str) -> bool:
    return os.path.isfile(path) and kind_of(Path(path)) in TYPED


def _check_width(found: int, n: int, path: str) -> None:
    if found != n:
        raise DataError(
            f"{path} has {found} features, but the model was trained on {n} features; "
            "give data with the same features."
        )


def _open_typed(
    names: Any, transforms: bool, n: int, path: str, layout: Layout, labelled: bool
) -> Any:
    """Open a table with typed columns for a model without a table encoder.

    Columns are selected by name if the model has feature names. Otherwise all columns are features,
    in the order of the file.
    """
    columns = list(open_layout(path, layout, encoder=None, labelled=False).feature_names)
    needed = columns if names is None else [str(name) for name in names]
    _check_present(needed, columns, path)
    label = layout.label
    if names is None and labelled and label is None:
        label, needed = columns[-1], columns[:-1]
    elif labelled and label is None:
        others = [name for name in columns if name not in set(needed)]
        label = others[0] if len(others) == 1 else None
    if names is not None and transforms:  # the first transformer selects its columns
        return open_layout(path, layout, label=label, encoder=None, labelled=labelled)
    _check_width(len(needed), n, path)
    encoder = ColumnMatrix(needed, finite=not transforms)
    return open_layout(path, layout, label=label, encoder=encoder, labelled=labelled)


def _check_present(needed: Sequence[str], columns: Sequence[str], path: str) -> None:
    for name in needed:
        if name not in columns:
            raise DataError(f"{path}: {missing_column(name, list(columns))}")


def _open_encoded(
    encoder: TableEncoder, estimator: Any, path: str, layout: Layout, labelled: bool
) -> TableSource:
    """Open a table with the encoder of a model; the label is one of the other columns."""
    layout = completed(layout, encoder, path)
    raw = open_layout(path, layout, encoder=None, labelled=False)
    known = encoder.feature_names_in_.tolist()
    if not isinstance(raw, TableSource):
        raise DataError(
            f"{path} has no column names, but the model needs the columns {', '.join(known)}; "
            "give a table with these columns."
        )
    others = [name for name in raw.feature_names if name not in set(known)]
    if labelled and layout.label is None and not others:
        raise DataError(
            f"{path} has no labels: all columns are features of the model; expected one more."
        )
    label = layout.label or (others[0] if len(others) == 1 else None)
    if labelled and label is None:  # a feature of the model may have another name
        open_layout(path, layout, labelled=False, encoder=encoder)
    classes = getattr(estimator, "classes_", None)
    found = open_layout(
        path, layout, label=label, labelled=labelled, encoder=encoder, classes=classes
    )
    assert isinstance(found, TableSource)
    return found
