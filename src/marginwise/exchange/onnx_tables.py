"""ONNX nodes of a `TableEncoder`, so that the inputs of a model are the columns of a table.

ONNX has no missing strings, so an empty string represents a missing value. Missing numbers are NaN,
booleans are 0 and 1, and dates are days since 1970.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise._arrays import Ints
from marginwise.data import TableEncoder
from marginwise.data.parsing import numbers_of
from marginwise.data.table_profile import MEASURED, UNUSED
from marginwise.exchange.graph import Graph, add_to
from marginwise.exchange.onnx_terms import term_features

ML = "ai.onnx.ml"


def used_columns(encoder: Any) -> list[tuple[str, str]]:
    """Return the names and kinds of the columns that an encoder uses."""
    columns = zip(encoder.feature_names_in_.tolist(), encoder.kinds_, strict=True)
    return [(name, kind) for name, kind in columns if kind not in UNUSED]


def column_types(encoder: Any, number: Any) -> list[tuple[str, Any]]:
    """Return the names and skl2onnx types of the inputs of a graph that begins with an encoder.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted encoder.
    number : type
        Type of numbers.
    """
    from skl2onnx.common.data_types import StringTensorType

    sizes = iter(encoder.sizes_)
    types = []
    for name, kind in used_columns(encoder):
        if kind in ("categorical", "text"):
            types.append((name, StringTensorType([None, 1])))
        else:
            types.append((name, number([None, next(sizes) if kind == "vector" else 1])))
    return types


def register_encoder(skl2onnx: Any) -> None:
    """Register a converter of table encoders with skl2onnx."""
    skl2onnx.update_registered_converter(
        TableEncoder, "MarginwiseTableEncoder", _set_types, _convert, overwrite=True, parser=_parse
    )


# -- functions called by skl2onnx --------------------------------------------------------------


def _parse(scope: Any, encoder: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the output of the encoder."""
    operator = scope.declare_local_operator("MarginwiseTableEncoder", encoder)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", _type_of(operator)))
    return operator.outputs


def _type_of(operator: Any) -> Any:
    """Return the type of the features: double if any column is double."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    double = any(isinstance(each.type, DoubleTensorType) for each in operator.inputs)
    width = len(operator.raw_operator.get_feature_names_out())
    return (DoubleTensorType if double else FloatTensorType)([None, width])


def _set_types(operator: Any) -> None:
    """Set the type and shape of the features."""
    operator.outputs[0].set_type(_type_of(operator))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of an encoder to the graph of a pipeline."""
    encoder = operator.raw_operator
    if encoder.unseen == "error":
        raise ValueError(
            "a TableEncoder with unseen='error' cannot be converted, because an ONNX graph cannot "
            "raise an error. Call set_params(unseen='ignore') on it, which encodes unseen "
            "categories as zeros."
        )
    by_name = {variable.raw_name: variable for variable in operator.inputs}
    graph = Graph(np.float64, scope.get_unique_variable_name)
    blocks = _Blocks(graph, encoder, scope, by_name)
    features = graph.op("Concat", *blocks.parts, axis=1)
    if (np.diff(blocks.order) < 0).any():
        features = graph.op("Gather", features, np.argsort(blocks.order), axis=1)
    double = type(operator.outputs[0].type).__name__.startswith("Double")
    real = np.float64 if double else np.float32
    graph.op("Cast", features, output=operator.outputs[0].full_name, to=graph.type_of(real))
    add_to(container, graph, scope)


class _Blocks:
    """Features of the columns, numeric columns first, and the position of each feature."""

    def __init__(self, graph: Graph, encoder: Any, scope: Any, by_name: dict[str, Any]) -> None:
        self.graph, self.encoder, self.scope, self.by_name = graph, encoder, scope, by_name
        widths = self._widths()
        ends = np.cumsum(widths)
        places = [np.arange(end - n, end) for n, end in zip(widths, ends, strict=True)]
        columns = used_columns(encoder)
        measured = [k for k, (_, kind) in enumerate(columns) if kind in MEASURED]
        others = [k for k in range(len(columns)) if k not in measured]
        self.parts = [self._measured([columns[k] for k in measured])] if measured else []
        counts = dict.fromkeys(("categorical", "text", "vector"), 0)
        for k in others:
            name, kind = columns[k]
            self.parts.append(getattr(self, f"_{kind}")(name, counts[kind]))
            counts[kind] += 1
        self.order: Ints = np.concatenate([places[k] for k in [*measured, *others]])

    def _widths(self) -> list[int]:
        """Return the number of features of each column."""
        encoder = self.encoder
        known = zip(encoder.categories_, encoder.missing_, strict=True)
        widths = {
            "categorical": iter([len(categories) + missing for categories, missing in known]),
            "text": iter([len(v.vocabulary_) for v in encoder.vectorizers_]),
            "vector": iter(encoder.sizes_),
        }
        return [1 if kind in MEASURED else next(widths[kind]) for _, kind in used_columns(encoder)]

    def _input(self, name: str) -> Any:
        if name not in self.by_name:
            raise ValueError(
                f"column {name!r} is missing; the inputs are {', '.join(map(repr, self.by_name))}."
            )
        return self.by_name[name]

    def _measured(self, columns: list[tuple[str, str]]) -> str:
        """Standardise columns of numbers, after replacing missing values."""
        graph, encoder = self.graph, self.encoder
        values = [graph.cast(self._input(name).full_name, np.float64) for name, _ in columns]
        x = graph.op("Concat", *values, axis=1)
        absent = graph.op("IsNaN", x)
        for gap in numbers_of(encoder.missing or ()):
            gaps = np.array([gap if kind == "numeric" else np.nan for _, kind in columns])
            absent = graph.op("Or", absent, graph.op("Equal", x, gaps))
        filled = graph.op("Where", absent, encoder.fill_, x)
        moved = graph.op("Div", graph.op("Sub", filled, encoder.mean_), encoder.scale_)
        return graph.cast(moved, np.float32)

    def _categorical(self, name: str, place: int) -> str:
        """One-hot encode a column; an empty string is missing, unless it is a category."""
        categories, missing = self.encoder.categories_[place], self.encoder.missing_[place]
        keys = {category: k for k, category in enumerate(categories)}
        for token in ("", *(self.encoder.missing or ())) if missing else ():
            keys.setdefault(token, len(categories))
        numbers = self.graph.op(
            "LabelEncoder",
            self._input(name).full_name,
            domain=ML,
            keys_strings=list(keys),
            values_int64s=list(keys.values()),
            default_int64=-1,
        )
        return self.graph.cast(
            self.graph.op("Equal", numbers, np.arange(len(categories) + missing)), np.float32
        )

    def _text(self, name: str, place: int) -> str:
        vectorizer = self.encoder.vectorizers_[place]
        for token in self.encoder.missing or ():
            if vectorizer.transform([token]).nnz:
                raise ValueError(
                    f"column {name!r} is text with words of {token!r}, which represents a missing "
                    "value; an ONNX graph cannot distinguish them. Use drop for the column, or "
                    "remove the string from missing and fit the encoder again."
                )
        return term_features(self.scope, self._input(name), vectorizer, self.graph)

    def _vector(self, name: str, place: int) -> str:
        return self.graph.cast(self._input(name).full_name, np.float32)
