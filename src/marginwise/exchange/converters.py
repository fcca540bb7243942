"""Converters of the estimators for skl2onnx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from marginwise._estimator.base import KernelModel
from marginwise._estimator.compressed import CompressedSVC
from marginwise.data import TableEncoder
from marginwise.exact import ExactSVC
from marginwise.exact_ramp import ExactRampSVC
from marginwise.exchange.graph import Graph, add_to, missing
from marginwise.exchange.onnx_model import OPSET, check_size, output_types, outputs_of
from marginwise.exchange.onnx_tables import column_types, register_encoder
from marginwise.exchange.onnx_terms import register_terms, text_options, with_terms
from marginwise.exchange.snapshot import Snapshot, snapshot
from marginwise.gap import GapSVC
from marginwise.one_class import ExactOneClassSVM
from marginwise.online import OnlineSVC
from marginwise.perceptron import KernelPerceptron
from marginwise.tracking import TrackingSVC
from marginwise.tuning import OnlineSVCCV

ESTIMATORS = (
    CompressedSVC,
    ExactOneClassSVM,
    ExactRampSVC,
    ExactSVC,
    GapSVC,
    KernelPerceptron,
    OnlineSVC,
    OnlineSVCCV,
    TrackingSVC,
)
# skl2onnx passes "zipmap" to every classifier of a pipeline. It has no effect here: probabilities
# are always an array.
OPTIONS = {"zipmap": [True, False, "columns"], "integers": [True, False]}
ML_OPSET = 3  # opset of the ai.onnx.ml operators that skl2onnx uses for other steps


def register_converters() -> None:
    """Register the estimators of this package with skl2onnx.

    After this call, ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` support the estimators,
    on their own, as the last step of a pipeline and as part of other estimators. The outputs are
    those of :func:`to_onnx`. `TableEncoder` is supported as the first step. The option
    ``{"integers": False}`` corresponds to the parameter `integers` of :func:`to_onnx`. Repeated
    calls have no effect.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    See Also
    --------
    to_onnx : Convert a model or a pipeline to ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginwise import OnlineSVC
    >>> from marginwise.exchange import register_converters
    >>> X = np.arange(8, dtype=np.float32).reshape(4, 2)
    >>> model = make_pipeline(StandardScaler(), OnlineSVC()).fit(X, [0, 0, 1, 1])
    >>> register_converters()
    >>> converted = skl2onnx.to_onnx(model, X[:1])
    >>> [output.name for output in converted.graph.output]
    ['label', 'decision']
    """
    skl2onnx = _skl2onnx()
    for kind in ESTIMATORS:
        skl2onnx.update_registered_converter(
            kind,
            f"Marginwise{kind.__name__}",
            _set_types,
            _convert,
            overwrite=True,
            parser=_parse,
            options=OPTIONS,
        )
    register_encoder(skl2onnx)
    register_terms(skl2onnx)


def _skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError as error:
        raise missing("skl2onnx") from error
    return skl2onnx


# -- functions called by skl2onnx --------------------------------------------------------------


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of an estimator."""
    operator = scope.declare_local_operator(f"Marginwise{type(model).__name__}", model)
    operator.inputs = inputs
    operator.snapshot = snapshot(model)  # also used by _set_types and _convert
    for name, kind in _variable_types(operator).items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _variable_types(operator: Any) -> dict[str, Any]:
    """Return the types of the outputs as skl2onnx types."""
    from skl2onnx.common import data_types

    kinds = {
        "i": data_types.Int64TensorType,
        "U": data_types.StringTensorType,
        "O": data_types.StringTensorType,
    }
    real = _real_of(operator)
    kinds["f"] = data_types.DoubleTensorType if real == np.float64 else data_types.FloatTensorType
    types = output_types(operator.snapshot, real)
    return {name: kinds[np.dtype(dtype).kind](shape) for name, (dtype, shape) in types.items()}


def _real_of(operator: Any) -> Any:
    """Return the type of decision values: double if any feature is double."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = any(isinstance(each.type, DoubleTensorType) for each in operator.inputs)
    return np.dtype(np.float64 if double else np.float32)


def _set_types(operator: Any) -> None:
    """Set the types and shapes of the outputs."""
    for output, kind in zip(operator.outputs, _variable_types(operator).values(), strict=True):
        output.set_type(kind)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of an estimator to the graph of a pipeline."""
    model: Snapshot = operator.snapshot
    options = container.get_options(operator.raw_operator, {"integers": True}, fail=False)
    graph = Graph(_real_of(operator), scope.get_unique_variable_name)
    parts = [graph.cast(each.full_name, graph.real) for each in operator.inputs]
    x = parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)
    found = outputs_of(graph, model, x, bool(options.get("integers", True)))
    for output in operator.outputs:
        graph.op("Identity", found[output.raw_name], output=output.full_name)
    check_size(graph, model.estimator)
    add_to(container, graph, scope)


# -- pipelines ---------------------------------------------------------------------------------


def convert_pipeline(
    pipeline: Pipeline, real: Any, sample: Any, integers: bool, options: Mapping[Any, Any]
) -> Any:
    """Return the ONNX model of a pipeline that ends in an estimator of this package.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted pipeline.
    real : dtype
        Type of numbers, float32 or float64.
    sample : array-like, data frame or None
        Example rows, which determine the types of the columns.
    integers : bool
        Whether integer arithmetic is allowed.
    options : mapping
        Options of skl2onnx for the other steps.
    """
    last = pipeline.steps[-1][1]
    if not isinstance(last, KernelModel):
        raise ValueError(
            f"the last step of the pipeline is {type(last).__name__}; expected a fitted estimator "
            "of marginwise, such as OnlineSVC."
        )
    last._fitted()
    register_converters()
    skl2onnx = _skl2onnx()
    try:
        converted = skl2onnx.convert_sklearn(
            with_terms(pipeline),
            name="marginwise",
            initial_types=_input_types(pipeline, real, sample),
            target_opset={"": OPSET, "ai.onnx.ml": ML_OPSET},
            options={
                **text_options(pipeline, options),
                **options,
                id(last): {"integers": integers},
            },
        )
    except (RuntimeError, NotImplementedError) as error:  # including MissingShapeCalculator
        raise ValueError(
            f"skl2onnx cannot convert a step of the pipeline: {str(error).strip().splitlines()[0]} "
            "Use a step that it supports, or convert the last step alone."
        ) from error
    converted.producer_name = "marginwise"
    return converted


def _input_types(pipeline: Pipeline, real: Any, sample: Any) -> list[tuple[str, Any]]:
    """Return the names and types of the inputs: a single array, or the columns of a data frame."""
    from skl2onnx.common import data_types

    number = data_types.DoubleTensorType if real == np.float64 else data_types.FloatTensorType
    if isinstance(pipeline.steps[0][1], TableEncoder):  # has column names and kinds
        return column_types(pipeline.steps[0][1], number)
    if sample is None:
        features = getattr(pipeline, "n_features_in_", None)
        if features is None:
            raise ValueError(
                "the types of the columns that the pipeline takes are not known. Pass some rows as "
                "sample."
            )
        return [("X", number([None, features]))]
    if hasattr(sample, "columns"):
        return [(str(name), _column_type(sample[name], number)) for name in sample.columns]
    array = np.asarray(sample)
    width = [None] if array.ndim == 1 else [None, array.shape[1]]
    text = array.dtype.kind in "OUS"
    return [("X", data_types.StringTensorType(width) if text else number(width))]


def _column_type(column: Any, number: Any) -> Any:
    """Return the type of a column of a data frame."""
    from skl2onnx.common import data_types

    kind = np.asarray(column).dtype.kind
    if kind in "OUST":
        return data_types.StringTensorType([None, 1])
    return data_types.Int64TensorType([None, 1]) if kind in "iub" else number([None, 1])
