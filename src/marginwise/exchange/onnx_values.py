"""ONNX nodes that compute the decision values of all binary problems.

The kernel values of a batch are computed by one matrix product with the support vectors. To avoid
passes over the large matrix of kernel values, factors and terms that depend only on the support
vectors, such as gamma, squared norms and coefficients, are folded into the constants, and terms
that depend only on the row are an additional column of the product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginwise._arrays import Float, spread_rows
from marginwise.exchange.graph import Graph
from marginwise.exchange.onnx_integers import find_grid, integer_values
from marginwise.exchange.snapshot import Snapshot

ROUNDING = 5e-5  # tolerated relative error of decision values in float32
SAMPLE = 256  # number of support vectors with which this error is estimated
CLOSER = 0.8  # centring is used if it reduces the sum of squared norms below this fraction
FEWER = 0.95  # zero columns are omitted if at most this fraction of the columns remains


def binary_values(graph: Graph, model: Snapshot, x: str, integers: bool) -> str:
    """Add the nodes of the decision values; return the name of the values, (n, problems).

    Parameters
    ----------
    graph : Graph
        Graph in float32 or float64 to which nodes are added.
    model : Snapshot
        The model.
    x : str
        Name of the input rows, in the type of the graph.
    integers : bool
        Whether to allow integer products if features are small integers times a unit.
    """
    if model.coef is not None:
        return graph.op("Gemm", x, model.coef.T, model.intercepts)
    if graph.real == np.float32 and needs_double(model):
        inner = Graph(np.float64, graph.unique)
        values = _values(inner, model, inner.cast(x, np.float64), False)
        single = inner.cast(values, np.float32)
        graph.nodes += inner.nodes
        graph.constants += inner.constants
        return single
    return _values(graph, model, x, integers)


def needs_double(model: Snapshot) -> bool:
    """Return whether float32 is too inaccurate, based on the values of some support vectors."""
    if model.coef is not None or len(model.vectors) == 0:
        return False
    prepared = _prepared(model)
    rows = prepared.vectors[spread_rows(len(prepared.vectors), SAMPLE)]
    with np.errstate(all="ignore"):
        exact = _reference(prepared, rows, np.float64)
        rough = _reference(prepared, rows, np.float32)
    return not bool(np.abs(rough - exact).max() <= ROUNDING * max(np.abs(exact).max(), 1e-30))


def _reference(model: Snapshot, rows: Float, real: Any) -> Float:
    """Return decision values without intercepts, computed in the same way as by the nodes."""
    X: Any = rows.astype(real)
    S: Any = model.vectors.astype(real)
    dots = X @ S.T
    xx, ss = (np.einsum("ij,ij->i", A, A) for A in (X, S))
    if model.kernel == "rbf":
        K = np.exp(-real(model.gamma) * (xx[:, None] + ss - 2 * dots))
    elif model.kernel == "poly":
        K = (real(model.gamma) * dots + real(model.coef0)) ** model.degree
    elif model.kernel == "sigmoid":
        K = np.tanh(real(model.gamma) * dots + real(model.coef0))
    elif model.kernel == "cosine":
        norms = np.sqrt(xx)[:, None] * np.sqrt(ss)
        K = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    elif model.kernel == "tanimoto":
        either = xx[:, None] + ss - dots
        K = np.divide(dots, either, out=np.ones_like(dots), where=either > 0)
    else:
        K = dots
    values: Float = (K @ model.weights.astype(real).T).astype(np.float64)
    return values


# -- the rows ----------------------------------------------------------------------------------


def _prepared(model: Snapshot) -> Snapshot:
    """Return the model with a suitable centre for its kernel, and with at least one vector."""
    vectors, center, weights = model.vectors, model.center, model.weights
    if len(vectors) == 0:
        vectors, weights = np.zeros((1, model.features)), np.zeros((model.problems, 1))
    if model.kernel == "rbf":  # invariant under translation
        vectors = vectors if center is None else vectors + center
        center = vectors.mean(axis=0)
        if np.square(vectors - center).sum() <= CLOSER * np.square(vectors).sum():
            vectors = vectors - center
        else:
            center = None
    return replace(model, vectors=vectors, center=center, weights=weights)


def _values(graph: Graph, model: Snapshot, x: str, integers: bool) -> str:
    grid = find_grid(model) if integers and graph.real == np.float32 else None
    if grid is not None:
        return integer_values(graph, model, x, grid)
    model = _prepared(model)
    x = x if model.center is None else graph.op("Sub", x, model.center)
    return _KERNELS[model.kernel](graph, model, x)


def _squares(graph: Graph, x: str) -> str:
    """Return |x|^2 of each row, as a column."""
    return graph.op("ReduceSum", graph.op("Mul", x, x), np.array([1]), keepdims=1)


# -- the kernels -------------------------------------------------------------------------------


def rbf_exponents(graph: Graph, model: Snapshot, x: str) -> str:
    """Return -gamma |x - s|^2 for all rows and vectors, computed by one matrix product."""
    squares = graph.op("Mul", _squares(graph, x), -model.gamma)
    vectors = model.vectors
    used = np.flatnonzero((vectors != 0).any(axis=0))
    if len(used) <= FEWER * model.features and len(used):
        x, vectors = graph.op("Gather", x, used, axis=1), vectors[:, used]
    wide = graph.op("Concat", x, squares, axis=1)
    norms = -model.gamma * np.einsum("ij,ij->i", vectors, vectors)
    table = np.vstack([2 * model.gamma * vectors.T, np.ones(len(vectors))])
    return graph.op("Gemm", wide, table, norms)


def _weighed(graph: Graph, model: Snapshot, K: str) -> str:
    return graph.op("Gemm", K, model.weights.T, model.intercepts)


def _rbf(graph: Graph, model: Snapshot, x: str) -> str:
    K = graph.op("Exp", rbf_exponents(graph, model, x))
    values = _weighed(graph, model, K)
    return _inside(graph, model, values, np.ones(1)) if model.total else values


def _poly(graph: Graph, model: Snapshot, x: str) -> str:
    dots = graph.op("Gemm", x, model.gamma * model.vectors.T, np.full(1, model.coef0))
    values = _weighed(graph, model, _power(graph, dots, model.degree))
    if not model.total:
        return values
    own = graph.op("Mul", _squares(graph, x), model.gamma)
    own = _power(graph, graph.op("Add", own, model.coef0), model.degree)
    return _inside(graph, model, values, own)


def _power(graph: Graph, base: str, degree: int) -> str:
    if degree == 1:
        return base
    if degree > 3:
        return graph.op("Pow", base, float(degree))
    square = graph.op("Mul", base, base)
    return square if degree == 2 else graph.op("Mul", square, base)


def _sigmoid(graph: Graph, model: Snapshot, x: str) -> str:
    dots = graph.op("Gemm", x, model.gamma * model.vectors.T, np.full(1, model.coef0))
    values = _weighed(graph, model, graph.op("Tanh", dots))
    if not model.total:
        return values
    own = graph.op("Mul", _squares(graph, x), model.gamma)
    return _inside(graph, model, values, graph.op("Tanh", graph.op("Add", own, model.coef0)))


def _linear(graph: Graph, model: Snapshot, x: str) -> str:
    """Return the values of a one-class model; classifiers use feature weights instead."""
    values = graph.op("Gemm", x, (model.weights @ model.vectors).T, model.intercepts)
    return _inside(graph, model, values, _squares(graph, x))


def _cosine(graph: Graph, model: Snapshot, x: str) -> str:
    """Return linear values of normalized rows; the cosine with a row of zeros is 0."""
    norm = graph.op("Sqrt", _squares(graph, x))
    some = graph.op("Greater", norm, 0.0)
    unit = graph.op("Div", x, graph.op("Where", some, norm, 1.0))
    norms = np.linalg.norm(model.vectors, axis=1, keepdims=True)
    units = np.divide(model.vectors, norms, out=np.zeros_like(model.vectors), where=norms > 0)
    values = graph.op("Gemm", unit, (model.weights @ units).T, model.intercepts)
    own = graph.cast(some, graph.real) if model.total else ""
    return _inside(graph, model, values, own) if model.total else values


def _tanimoto(graph: Graph, model: Snapshot, x: str) -> str:
    """Return the weighted sum of x.s / (|x|^2 + |s|^2 - x.s), where 0/0 is 1."""
    zero = np.asarray(~model.vectors.any(axis=1))
    at_zero = model.weights[:, zero].sum(axis=1)
    if zero.all():
        zero[0] = False  # keep at least one vector, with weight 0
        model = replace(model, vectors=np.ones_like(model.vectors), weights=0 * model.weights)
    model = replace(model, vectors=model.vectors[~zero], weights=model.weights[:, ~zero])
    squares = _squares(graph, x)
    dots = graph.op("MatMul", x, model.vectors.T)
    both = graph.op("Add", squares, np.einsum("ij,ij->i", model.vectors, model.vectors))
    K = graph.op("Div", dots, graph.op("Sub", both, dots))
    values = _weighed(graph, model, K)
    if at_zero.any():
        empty = graph.op("Where", graph.op("Greater", squares, 0.0), 0.0, 1.0)
        values = graph.op("Add", values, graph.op("Mul", empty, at_zero))
    return _inside(graph, model, values, np.ones(1)) if model.total else values


def _inside(graph: Graph, model: Snapshot, values: str, own: str | Float) -> str:
    """Return decision values of a sphere, positive inside; `own` is K(x, x).

    Values within the rounding error are set to 0.
    """
    sides = graph.op("Mul", own, model.total)
    values = graph.op("Sub", values, graph.op("Mul", sides, 0.5))
    rounding = 1e-12 if graph.real == np.float64 else 2e-6
    size = graph.op("Add", sides, float(abs(model.intercepts[0])))
    small = graph.op("LessOrEqual", graph.op("Abs", values), graph.op("Mul", size, rounding))
    return graph.op("Where", small, 0.0, values)


_KERNELS = {
    "rbf": _rbf,
    "poly": _poly,
    "sigmoid": _sigmoid,
    "linear": _linear,
    "cosine": _cosine,
    "tanimoto": _tanimoto,
}
