"""ONNX models that predict as a fitted model does."""

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

IR_VERSION = 8  # of ONNX files, old enough for any runtime in use


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    sample: Any = None,
    integers: bool | None = None,
    options: Mapping[Any, Any] | None = None,
) -> Any:
    """Convert a fitted model, or a pipeline that ends in one, to ONNX.

    The graph consists of the plain operators of opset 15, which every runtime has. Its outputs are
    "label" (what `predict` returns), "decision" (what `decision_function` returns) and, if the
    model has probabilities, "probabilities". Rows are given as the input "X".

    Kernel values of a batch take the memory of rows times support vectors; batches of a few hundred
    rows are the fastest.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted estimator of this package, or a scikit-learn `Pipeline` of steps that skl2onnx
        supports, ending in one. Its kernel must not be a function or precomputed.
    path : str or path-like, default=None
        File to write, usually with the suffix ``.onnx``. It is replaced atomically. If None,
        nothing is written.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features, decision values and probabilities.
    sample : array-like or data frame, default=None
        Some rows that the model could predict. Only pipelines use it, which cannot be converted
        without the types of their columns, unless all columns are numbers.
    integers : bool, default=None
        Whether a large RBF model whose features are small integers times a unit, such as pixels, is
        computed with 8-bit integers, which is exact and faster. Batches that are not such integers
        are computed in floating point. None means True for ``dtype="float32"``.
    options : mapping, default=None
        Options of skl2onnx for the other steps of a pipeline, by class or id. For instance,
        ``{TfidfVectorizer: {"locale": "C"}}`` is for runtimes that lack the locale en_US, by which
        text with terms beyond ASCII is put into lower case.

    Returns
    -------
    model : onnx.ModelProto
        The ONNX model.

    Raises
    ------
    ImportError
        If the package onnx, or for pipelines skl2onnx, is not installed.
    ValueError
        If the model cannot be converted; the message gives the reason.

    See Also
    --------
    to_c : C source of a small model.
    register_converters : Let skl2onnx convert the estimators of this package.

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
    """Return the ONNX model of an estimator alone."""
    graph = Graph(real, Names())
    graph.unique("X")
    found = outputs_of(graph, model, "X", integers)
    for name, result in found.items():
        graph.rename(result, name)
    ends = [(name, *kind) for name, kind in output_types(model, real).items()]
    check_size(graph, model.estimator)
    inner = graph.proto("marginwise", [("X", real, [None, model.features])], ends)
    return graph.model(inner, OPSET, IR_VERSION, f"{model.estimator}, kernel={model.kernel!r}")
