"""Conversion of models to ONNX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline

from marginwise._checks import boolean, check_arguments, either, none, one_of
from marginwise._files.disk import replace_file
from marginwise.exchange.converters import convert_pipeline
from marginwise.exchange.graph import Graph, Names
from marginwise.exchange.onnx_model import OPSET, check_size, output_types, outputs_of
from marginwise.exchange.snapshot import Snapshot, snapshot

IR_VERSION = 8  # of ONNX files; old enough for all current runtimes


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    sample: Any = None,
    integers: bool | None = None,
    options: Mapping[Any, Any] | None = None,
) -> Any:
    """Convert a fitted model or pipeline to ONNX.

    The graph uses only standard operators of opset 15, which all runtimes support. The input is
    "X". The outputs are "label" (the result of `predict`), "decision" (the result of
    `decision_function`) and, if the model has probabilities, "probabilities".

    Memory consumption is proportional to the number of rows in a batch times the number of support
    vectors. Batches of a few hundred rows are fastest.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted estimator of this package, or a scikit-learn `Pipeline` that ends in one and whose
        other steps are supported by skl2onnx. The kernel must not be callable or precomputed.
    path : str or path-like, default=None
        File to write, usually with the suffix ``.onnx``. An existing file is replaced atomically.
        None writes no file.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features, decision values and probabilities.
    sample : array-like or data frame, default=None
        Example rows, which determine the column types of a pipeline. Required for pipelines unless
        all columns are numeric; ignored for other models.
    integers : bool, default=None
        Whether to use 8-bit integer arithmetic for large RBF models whose features are small
        integers times a unit, such as pixels. This is exact and faster. Batches with other values
        are computed in floating point. None means True for ``dtype="float32"``.
    options : mapping, default=None
        Options of skl2onnx for the other steps of a pipeline, by class or id. For example, use
        ``{TfidfVectorizer: {"locale": "C"}}`` for runtimes that lack the locale en_US, which is
        needed to convert non-ASCII text to lower case.

    Returns
    -------
    model : onnx.ModelProto
        The ONNX model.

    Raises
    ------
    ImportError
        If the package onnx, or for pipelines skl2onnx, is not installed.
    ValueError
        If the model cannot be converted. The message states the reason.

    See Also
    --------
    to_c : Export a small model as C source.
    register_converters : Register the estimators of this package with skl2onnx.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import to_onnx
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = OnlineSVC(C=10, gamma=2.0, random_state=0).fit(X, y)
    >>> converted = to_onnx(model)
    >>> [output.name for output in converted.graph.output]
    ['label', 'decision']
    """
    check_arguments(
        {"dtype": one_of("float32", "float64"), "integers": either(none(), boolean())},
        dtype=dtype,
        integers=integers,
    )
    allowed = integers is None or bool(integers)
    if isinstance(model, Pipeline):
        converted = convert_pipeline(model, np.dtype(dtype), sample, allowed, options or {})
    else:
        converted = _convert(snapshot(model), np.dtype(dtype), allowed)
    if path is not None:
        content = converted.SerializeToString()
        replace_file(path, lambda file: file.write(content))
    return converted


def _convert(model: Snapshot, real: Any, integers: bool) -> Any:
    """Return the ONNX model of an estimator that is not in a pipeline."""
    graph = Graph(real, Names())
    graph.unique("X")
    found = outputs_of(graph, model, "X", integers)
    for name, result in found.items():
        graph.rename(result, name)
    ends = [(name, *kind) for name, kind in output_types(model, real).items()]
    check_size(graph, model.estimator)
    inner = graph.proto("marginwise", [("X", real, [None, model.features])], ends)
    return graph.model(inner, OPSET, IR_VERSION, f"{model.estimator}, kernel={model.kernel!r}")
