"""Description of the content of files: models, checkpoints and data."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from marginwise._files.format import DOCUMENT, guarded, unpack
from marginwise._training.checkpoint import KIND
from marginwise.cli.reading import Layout, encoder_of, load_model, open_data, split_model
from marginwise.data import TableEncoder
from marginwise.data.notations import example_of

MOST_SHOWN = 20  # maximum number of labels or columns to print


def stored_class(path: str) -> str | None:
    """Return the name of the class in a model file; None for other files."""
    try:
        with zipfile.ZipFile(path) as archive:
            if DOCUMENT not in archive.namelist():
                return None
            document = json.loads(archive.read(DOCUMENT))
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, RuntimeError, EOFError):
        return None
    return str(document.get("class")) if isinstance(document, dict) else None


def is_checkpoint(path: str) -> bool:
    """Return whether a file is a checkpoint."""
    return stored_class(path) == KIND


def contents_of(path: str, layout: Layout) -> dict[str, Any]:
    """Describe the content of a file."""
    name = stored_class(path) if os.path.isfile(path) else None
    if name is None:
        return data_contents(path, layout)
    size = {"file": path, "bytes": os.path.getsize(path)}
    return {**size, **(checkpoint_contents(path) if name == KIND else model_contents(path))}


def model_contents(path: str) -> dict[str, Any]:
    """Describe a model."""
    model = load_model(path)
    steps, estimator = split_model(model)
    found: dict[str, Any] = {"kind": "model", "estimator": type(estimator).__name__}
    if steps:
        found["steps"] = [type(step).__name__ for _, step in steps]
        found["columns"] = shortened(getattr(steps[0][1], "feature_names_in_", []))
        found |= encoding_of(steps[0][1])
    found["parameters"] = estimator.get_params(deep=False)
    if not hasattr(estimator, "n_features_in_"):
        return {**found, "fitted": False}
    found["features"] = int(estimator.n_features_in_)
    if hasattr(estimator, "classes_"):
        found["classes"] = shortened(estimator.classes_)
    counts = {"support_vectors": "support_", "stored_rows": "ids_", "gamma": "gamma_"}
    for name, attribute in counts.items():
        value = getattr(estimator, attribute, None)
        if value is not None:
            found[name] = float(value) if np.ndim(value) == 0 else len(value)
    return found


def checkpoint_contents(path: str) -> dict[str, Any]:
    """Describe a checkpoint and the progress of its run."""
    _, state = guarded(path, lambda data: unpack(data, [KIND]))
    try:
        job = dict(json.loads(state["note"]["job"]))
    except (KeyError, TypeError, ValueError):  # a run started in Python, with an arbitrary note
        job = {}
    return {
        "kind": "checkpoint",
        "estimator": state["estimator"],
        "parameters": state["parameters"],
        **{key: state["course"][key] for key in ("epoch", "stage", "done", "seconds")},
        **{key: job[key] for key in ("data", "model") if key in job},
    }


def data_contents(path: str, layout: Layout) -> dict[str, Any]:
    """Describe data; this reads all rows."""
    source = open_data(path, layout)
    found = {"file": path, "kind": type(source).__name__, "rows": len(source)}
    found["features"] = source.n_features
    if source.feature_names is not None:
        found["feature_names"] = shortened(source.feature_names)
    found |= encoding_of(encoder_of(source))
    counts: dict[Any, int] = {}
    for _, y in source.chunks():
        if y is not None:
            labels, times = np.unique(y, return_counts=True)
            for label, count in zip(labels.tolist(), times.tolist(), strict=True):
                counts[label] = counts.get(label, 0) + count
    return {**found, "classes": dict(sorted(counts.items()))}


def encoding_of(step: Any) -> dict[str, Any]:
    """Describe how an encoder reads the columns of tables; empty for other steps."""
    if not isinstance(step, TableEncoder):
        return {}
    columns = zip(step.feature_names_in_.tolist(), step.kinds_, step.notations_, strict=True)
    kinds = [
        f"{name}: {kind}{f', as in {example_of(notation)}' if notation else ''}"
        for name, kind, notation in columns
    ]
    missing = {} if step.missing is None else {"missing": list(step.missing)}
    return {"kinds": shortened(kinds), **missing}


def shortened(values: Any) -> list[Any]:
    """Return values as a list; a long list is truncated."""
    listed = list(np.asarray(values).tolist())
    more = len(listed) - MOST_SHOWN
    return listed if more <= 0 else [*listed[:MOST_SHOWN], f"and {more:,} more"]
