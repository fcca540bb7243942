"""ONNX nodes of TF-IDF features with ``sublinear_tf=True``.

skl2onnx computes log(1 + tf) where scikit-learn computes 1 + log(tf). Therefore, skl2onnx converts
only the counting of terms, and this module adds the nodes of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline

from marginwise.exchange.graph import Graph, add_to


class SublinearTerms(BaseEstimator):  # type: ignore[misc]
    """Replacement of a vectorizer or transformer during the conversion.

    Parameters
    ----------
    terms : TfidfVectorizer or TfidfTransformer
        Fitted vectorizer or transformer with ``sublinear_tf=True``.
    """

    def __init__(self, terms: Any) -> None:
        self.terms = terms


def with_terms(pipeline: Pipeline) -> Pipeline:
    """Return a plain pipeline of the same steps, with such vectorizers replaced."""
    steps = [
        (name, SublinearTerms(step) if _is_sublinear(step) else step)
        for name, step in pipeline.steps
    ]
    for name, step in steps:
        inside = step.get_params(deep=True).values() if hasattr(step, "get_params") else ()
        if not isinstance(step, SublinearTerms) and any(map(_is_sublinear, inside)):
            raise ValueError(
                f"the step {name!r} contains a vectorizer with sublinear_tf=True, which skl2onnx "
                "converts to other values than those of scikit-learn. Make the vectorizer a step "
                "of the pipeline itself, use TableEncoder, or set sublinear_tf=False."
            )
    return Pipeline(steps)


def _is_sublinear(step: Any) -> bool:
    return isinstance(step, TfidfVectorizer | TfidfTransformer) and bool(step.sublinear_tf)


def text_options(pipeline: Pipeline, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return options for the vectorizers of a pipeline without given options.

    The conversion of strings to lower case depends on a locale, and a graph cannot run if its
    locale is not installed. The locale "C" is always available and converts ASCII letters only,
    which suffices if all terms are ASCII.
    """
    options = {}
    for _, step in pipeline.steps:
        for each in [step, *getattr(step, "vectorizers_", ())]:
            plain = isinstance(each, CountVectorizer) and all(map(str.isascii, each.vocabulary_))
            if plain and type(each) not in given:
                options[id(each)] = {"locale": "C"}
    return options


def register_terms(skl2onnx: Any) -> None:
    """Register a converter of such vectorizers with skl2onnx."""
    skl2onnx.update_registered_converter(
        SublinearTerms, "MarginwiseTerms", _set_types, _convert, overwrite=True, parser=_parse
    )


def term_features(scope: Any, source: Any, terms: Any, graph: Graph) -> str:
    """Add the nodes of TF-IDF features; return the name of the features, (n, terms) in float32.

    Parameters
    ----------
    scope : Scope of skl2onnx
        Scope in which the counting operator is declared.
    source : Variable of skl2onnx
        Texts, or counts for a TfidfTransformer.
    terms : TfidfVectorizer or TfidfTransformer
        The vectorizer or transformer to convert.
    graph : Graph
        Graph to which nodes are added.
    """
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType

    counts = source.full_name
    if isinstance(terms, TfidfVectorizer):
        counter = scope.declare_local_operator(skl2onnx.get_model_alias(CountVectorizer), terms)
        counter.inputs.append(source)
        kind = FloatTensorType([None, len(terms.vocabulary_)])
        counter.outputs.append(scope.declare_local_variable("counts", kind))
        counts = counter.outputs[0].full_name
    tf = graph.cast(counts, graph.real)
    if terms.sublinear_tf:
        logarithm = graph.op("Add", graph.op("Log", graph.op("Max", tf, 1.0)), 1.0)
        tf = graph.op("Where", graph.op("Greater", tf, 0.0), logarithm, 0.0)
    weighted = graph.op("Mul", tf, np.asarray(terms.idf_).ravel()) if terms.use_idf else tf
    return graph.cast(_normalized(graph, weighted, terms.norm), np.float32)


def _normalized(graph: Graph, x: str, norm: str | None) -> str:
    """Divide rows by their norm; rows of zeros remain unchanged."""
    if norm is None:
        return x
    size = graph.op("Abs", x) if norm == "l1" else graph.op("Mul", x, x)
    total = graph.op("ReduceSum", size, np.array([1]), keepdims=1)
    length = total if norm == "l1" else graph.op("Sqrt", total)
    some = graph.op("Greater", length, 0.0)
    return graph.op("Div", x, graph.op("Where", some, length, 1.0))


# -- functions called by skl2onnx --------------------------------------------------------------


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the output of the vectorizer."""
    operator = scope.declare_local_operator("MarginwiseTerms", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", _type_of(model)))
    return operator.outputs


def _type_of(model: SublinearTerms) -> Any:
    from skl2onnx.common.data_types import FloatTensorType

    terms = model.terms
    width = len(getattr(terms, "vocabulary_", ())) or terms.n_features_in_
    return FloatTensorType([None, width])


def _set_types(operator: Any) -> None:
    """Set the type and shape of the features."""
    operator.outputs[0].set_type(_type_of(operator.raw_operator))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a vectorizer to the graph of a pipeline."""
    graph = Graph(np.float32, scope.get_unique_variable_name)
    features = term_features(scope, operator.inputs[0], operator.raw_operator.terms, graph)
    graph.op("Identity", features, output=operator.outputs[0].full_name)
    add_to(container, graph, scope)
