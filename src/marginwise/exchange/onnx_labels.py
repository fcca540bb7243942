"""ONNX nodes that convert binary decision values to scores, probabilities and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise._arrays import Float
from marginwise._engine.plan import paired
from marginwise.calibration import LEAST, Isotonic, Sigmoid
from marginwise.exchange.graph import Graph
from marginwise.exchange.snapshot import Snapshot, integer_labels


def scores(graph: Graph, model: Snapshot, values: str) -> str:
    """Add the nodes of `decision_function`: (n,), or (n, classes) for more than two classes."""
    if model.pairs:
        return _votes(graph, values, model.problems)
    if model.problems == 1:
        return graph.op("Reshape", values, np.array([-1]))
    return values


def _votes(graph: Graph, values: str, problems: int) -> str:
    """Count the pairs that each class wins; the sum of clipped values decides ties."""
    first, second = paired(problems)
    sides = np.zeros((problems, int(second.max()) + 1))
    sides[np.arange(problems), second] = 1.0
    sides[np.arange(problems), first] = -1.0
    wins = graph.cast(graph.op("Greater", values, 0.0), graph.real)
    won = graph.op("Gemm", wins, sides, (sides < 0).sum(axis=0).astype(float))
    sums = graph.op("MatMul", graph.op("Clip", values, -1.0, 1.0), sides)
    size = graph.op("Mul", graph.op("Add", graph.op("Abs", sums), 1.0), 3.0)
    return graph.op("Add", won, graph.op("Div", sums, size))


def labels(graph: Graph, model: Snapshot, decision: str, probabilities: str | None) -> str:
    """Add the nodes of `predict`."""
    if model.classes is None:
        inside = graph.op("GreaterOrEqual", decision, 0.0)
        return graph.op("Where", inside, np.array(1), np.array(-1))
    if probabilities is not None and model.by_probability:
        best = graph.op("ArgMax", probabilities, axis=1, keepdims=0)
    elif model.problems == 1:
        best = graph.cast(graph.op("Greater", decision, 0.0), np.int64)
    else:
        best = graph.op("ArgMax", decision, axis=1, keepdims=0)
    return graph.op("Gather", plain_labels(model.classes), best)


def plain_labels(classes: Any) -> Any:
    """Return labels as 64-bit integers or strings."""
    return integer_labels(classes) if classes.dtype.kind in "biuf" else classes


# -- probabilities -----------------------------------------------------------------------------


def probabilities(graph: Graph, model: Snapshot, values: str) -> str:
    """Add the nodes of `predict_proba`, in double precision."""
    assert model.calibrator is not None
    inner = Graph(np.float64, graph.unique)
    f = inner.cast(values, np.float64)
    positive = _curves(inner, model.calibrator.curves, f)
    if model.problems == 1:
        found = inner.op("Concat", inner.op("Sub", 1.0, positive), positive, axis=1)
    elif model.pairs:
        found = _coupled(inner, positive, model.problems)
    else:
        found = _normalized(inner, positive, model.problems)
    found = inner.cast(found, graph.real)
    graph.nodes += inner.nodes
    graph.constants += inner.constants
    return found


def _curves(graph: Graph, curves: Any, f: str) -> str:
    """Return the probability of the positive class of each problem."""
    smooth = [curve.sigmoid if isinstance(curve, Isotonic) else curve for curve in curves]
    is_above = graph.op("Greater", f, 0.0)
    slope, constant = (
        graph.op("Where", is_above, *(np.array([getattr(c, name) for c in smooth]) for name in two))
        for two in (("above", "below"), ("high", "low"))
    )
    z = graph.op("Add", graph.op("Mul", f, slope), constant)
    clipped = np.array([curve.clipped for curve in smooth])
    if clipped.any():
        up, down = graph.op("Greater", z, 0.0), graph.op("Greater", 0.0, z)
        wrong = graph.op("Where", is_above, down, up)  # across one half
        z = graph.op("Where", graph.op("And", wrong, clipped), 0.0, z)
    sigmoids = _sigmoid(graph, z)
    shares = np.array([curve.share if isinstance(curve, Isotonic) else 1.0 for curve in curves])
    if (shares == 1).all():
        return sigmoids
    steps = [_steps(graph, curve, f, c) for c, curve in enumerate(curves)]
    stairs = graph.op("Concat", *steps, axis=1)
    return graph.op("Add", graph.op("Mul", stairs, 1 - shares), graph.op("Mul", sigmoids, shares))


def _sigmoid(graph: Graph, z: str) -> str:
    """Return 1 / (1 + exp(-z)); some runtimes lack the operator Sigmoid in double precision."""
    return graph.op("Div", 1.0, graph.op("Add", graph.op("Exp", graph.op("Neg", z)), 1.0))


def _steps(graph: Graph, curve: Sigmoid | Isotonic, f: str, c: int) -> str:
    """Return the isotonic regression of one problem as a column; an unused column for a sigmoid."""
    column = graph.op("Gather", f, np.array([c]), axis=1)
    if isinstance(curve, Sigmoid):
        return column
    above = _interpolated(graph, curve.above, column)
    if curve.above is curve.below:
        return above
    below = _interpolated(graph, curve.below, column)
    return graph.op("Where", graph.op("Greater", column, 0.0), above, below)


def _interpolated(graph: Graph, regression: Any, column: str) -> str:
    """Interpolate between the thresholds of a regression, as a sum of ramps."""
    at, height = regression.X_thresholds_, regression.y_thresholds_
    if len(at) == 1:
        return graph.op("Add", graph.op("Mul", column, 0.0), float(height[0]))
    width, rise = np.diff(at), np.diff(height)
    some = width > 0
    start, width, rise = at[:-1][some], width[some], rise[some]
    along = graph.op("Div", graph.op("Sub", column, start), width)
    ramps = graph.op("MatMul", graph.op("Clip", along, 0.0, 1.0), rise[:, None])
    return graph.op("Add", ramps, float(height[0]))


def _normalized(graph: Graph, positive: str, classes: int) -> str:
    """Divide values by their sum; if the sum is 0, all values are equal."""
    total = graph.op("ReduceSum", positive, np.array([1]), keepdims=1)
    some = graph.op("Greater", total, 0.0)
    shares = graph.op("Div", positive, graph.op("Where", some, total, 1.0))
    return graph.op("Where", some, shares, np.full(classes, 1 / classes))


def _coupled(graph: Graph, second: str, problems: int) -> str:
    """Combine the probabilities of pairs into probabilities of classes.

    They minimize p'Qp subject to a sum of 1. Therefore, all elements of Qp are equal, and p is the
    solution of (Q + 11')y = 1, divided by its sum. The matrix is positive definite, so elimination
    needs no pivoting.
    """
    first, other = paired(problems)
    classes = int(other.max()) + 1
    clipped = graph.op("Clip", second, LEAST, 1 - LEAST)
    against = graph.op("Sub", 1.0, clipped)
    matrix = graph.op("Add", _quadratic(graph, clipped, against, first, other), 1.0)
    ones = graph.op("Expand", np.ones((1, 1, 1)), _rows_by(graph, second, classes, 1))
    system = graph.op("Concat", matrix, ones, axis=2)
    for k in range(classes):
        system = _eliminated(graph, system, k, classes)
    solution = graph.op("Gather", system, np.array(classes), axis=2)
    return _normalized(graph, graph.op("Max", solution, 0.0), classes)


def _quadratic(graph: Graph, second: str, first: str, i: Any, j: Any) -> str:
    """Return Q of each row, (n, classes, classes), from the probabilities of the pairs (i, j)."""
    classes, problems = int(j.max()) + 1, len(i)
    off = np.zeros((problems, classes, classes))
    pairs = np.arange(problems)
    off[pairs, i, j] = off[pairs, j, i] = -1.0
    # Q[i, i] is the sum over the pairs of class i of the squared probability of the other class.
    of_second, of_first = np.zeros((2, problems, classes, classes))
    of_second[pairs, i, i] = 1.0
    of_first[pairs, j, j] = 1.0
    terms = [
        (graph.op("Mul", second, first), off),
        (graph.op("Mul", second, second), of_second),
        (graph.op("Mul", first, first), of_first),
    ]
    wide = graph.op("Concat", *(values for values, _ in terms), axis=1)
    table = np.vstack([places.reshape(problems, -1) for _, places in terms])
    flat = graph.op("Gemm", wide, table, 1e-12 * np.eye(classes).ravel())
    return graph.op("Reshape", flat, np.array([-1, classes, classes]))


def _rows_by(graph: Graph, values: str, height: int, width: int) -> str:
    """Return the shape (n, height, width)."""
    rows = graph.op("Gather", graph.op("Shape", values), np.array([0]), axis=0)
    return graph.op("Concat", rows, np.array([height, width]), axis=0)


def _eliminated(graph: Graph, system: str, k: int, classes: int) -> str:
    """Eliminate column k: subtract multiples of row k so that it becomes a unit vector."""
    pivot_row = graph.op("Gather", system, np.array([k]), axis=1)
    pivot = graph.op("Gather", pivot_row, np.array([k]), axis=2)
    column = graph.op("Gather", system, np.array([k]), axis=2)
    unit: Float = np.eye(classes)[:, k : k + 1]
    factors = graph.op("Sub", column, unit)
    scaled = graph.op("Div", pivot_row, pivot)
    return graph.op("Sub", system, graph.op("Mul", factors, scaled))
