"""ONNX nodes for features that are small integers times a unit, such as pixels and indicators.

A matrix product of 8-bit integers takes a third of the time of a float32 product, and is exact. The
graph checks at run time whether the rows of a batch are such integers, and whether the processor
multiplies them without saturation. If not, it computes the values in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, spread_rows
from marginwise.exchange.graph import Graph
from marginwise.exchange.snapshot import Snapshot

LEAST_SIZE = 1 << 18  # minimum size of the matrix of support vectors; smaller ones gain little
LEVELS = 255
OFF = 2e-4  # tolerated distance from a level, as a fraction of the unit: rounding of float32
SAMPLE = 512  # number of support vectors from which the unit is determined
MOST_EXPONENT = 40.0  # largest gamma |s|^2 whose exponential can be folded into float32 weights
ZERO = 128  # level that is stored as the signed integer 0
# Shape of a product that saturates 16 bits on processors without instructions for sums of four
# products.
PROBE = 8, 16


@dataclass(frozen=True)
class Grid:
    """Support vectors as integers.

    Parameters
    ----------
    levels : ndarray of shape (m, used)
        Integers from 0 to 255.
    used : ndarray of shape (used,)
        Indices of the columns in which support vectors differ.
    origin : ndarray of shape (features,)
        Value of level 0 in these columns, and the constant value of the other columns.
    unit : float
        Difference between consecutive levels.
    """

    levels: NDArray[np.uint8]
    used: Ints
    origin: Float
    unit: float


def find_grid(model: Snapshot) -> Grid | None:
    """Return the support vectors of a model as 8-bit integers times a unit.

    Parameters
    ----------
    model : Snapshot
        The model.

    Returns
    -------
    grid : Grid or None
        None if the support vectors are not such integers, or too small to gain from integers.
    """
    vectors = model.vectors if model.center is None else model.vectors + model.center
    if model.kernel != "rbf" or model.total or vectors.size < LEAST_SIZE:
        return None
    some = vectors[spread_rows(len(vectors), SAMPLE)]
    values = np.unique(some)
    gaps = np.diff(values)
    span = values[-1] - values[0]
    gaps = gaps[gaps > 1e-6 * span]
    if len(gaps) == 0 or round(span / gaps.min()) > LEVELS:
        return None  # decided from a few vectors
    used = np.flatnonzero((vectors != vectors[0]).any(axis=0))
    part = vectors[:, used]
    least, span = float(part.min()), float(np.ptp(part))
    count = round(span / gaps.min())
    if not 0 < count <= LEVELS:
        return None
    unit = span / count
    places = (part - least) / unit
    levels = np.rint(places)
    if np.abs(places - levels).max() > OFF:
        return None
    origin = vectors[0].copy()
    origin[used] = least if abs(least) > OFF * unit else 0.0
    grid = Grid(levels.astype(np.uint8), used, origin, unit)
    return grid if model.gamma * unit**2 * _norms(grid).max() <= MOST_EXPONENT else None


def integer_values(graph: Graph, model: Snapshot, x: str, grid: Grid) -> str:
    """Add nodes that compute RBF decision values with integer products.

    Parameters
    ----------
    graph : Graph
        Graph in float32 to which nodes are added.
    model : Snapshot
        The model.
    x : str
        Name of the input rows.
    grid : Grid
        Support vectors of the model.
    """
    rows = graph.op("Sub", x, grid.origin)
    places = graph.op("Mul", graph.op("Gather", rows, grid.used, axis=1), 1 / grid.unit)
    levels = graph.op("Clip", graph.op("Round", places), 0.0, float(LEVELS))
    near = graph.op("LessOrEqual", graph.op("Abs", graph.op("Sub", places, levels)), OFF)
    integers = graph.cast(levels, np.uint8)
    possible = graph.op("And", _all(graph, near), _multiplies_exactly(graph, integers))
    # Both branches share the constants: the vectors as integers, and the weights.
    vectors = graph.constant((grid.levels.T.astype(np.int16) - ZERO).astype(np.int8))
    factors = np.exp(-model.gamma * grid.unit**2 * _norms(grid))
    weights = graph.constant((model.weights * factors).T)

    def values(inner: Graph, dots: str) -> str:
        squares = inner.op("ReduceSum", inner.op("Mul", rows, rows), np.array([1]), keepdims=1)
        exponents = inner.op("Mul", dots, 2 * model.gamma * grid.unit**2)
        exponents = inner.op("Add", exponents, inner.op("Mul", squares, -model.gamma))
        return inner.op("Gemm", inner.op("Exp", exponents), weights, model.intercepts)

    def with_integers(inner: Graph) -> str:
        dots = inner.op("MatMulInteger", integers, vectors, "", np.array(-ZERO, dtype=np.int8))
        return values(inner, inner.cast(dots, np.float32))

    def with_floats(inner: Graph) -> str:
        table = inner.op("Add", inner.cast(vectors, np.float32), float(ZERO))
        return values(inner, inner.op("MatMul", places, table))

    return graph.choose(possible, with_integers, with_floats)


def _norms(grid: Grid) -> Float:
    """Return the squared norms of the vectors of levels."""
    squares: Float = np.square(grid.levels.astype(np.float64)).sum(axis=1)
    return squares


def _all(graph: Graph, flags: str) -> str:
    """Return whether all flags are true, which holds if there are none."""
    wrong = graph.cast(graph.op("Not", flags), graph.real)
    return graph.op("Equal", graph.op("ReduceSum", wrong, keepdims=0), 0.0)


def _multiplies_exactly(graph: Graph, integers: str) -> str:
    """Return whether the largest possible products are exact, with the batch's number of rows."""
    depth, width = PROBE
    rows = graph.op("Gather", graph.op("Shape", integers), np.array([0]), axis=0)
    shape = graph.op("Concat", rows, np.array([depth]), axis=0)
    largest = graph.op("Expand", np.array(255, dtype=np.uint8), shape)
    product = graph.op("MatMulInteger", largest, np.full((depth, width), 127, dtype=np.int8))
    exact = np.array(depth * 255 * 127, dtype=np.int32)
    return _all(graph, graph.op("Equal", product, exact))
