"""The nodes and outputs of a whole model."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise.exchange.graph import Graph
from marginwise.exchange.onnx_labels import labels, plain_labels, probabilities, scores
from marginwise.exchange.onnx_values import binary_values
from marginwise.exchange.snapshot import Snapshot

OPSET = 15  # old enough for all current runtimes
MOST_BYTES = (1 << 31) - (1 << 20)  # a protocol buffer has at most 2 GB


def outputs_of(graph: Graph, model: Snapshot, x: str, integers: bool) -> dict[str, str]:
    """Add all nodes of a model, and return the names of the values of its outputs."""
    values = binary_values(graph, model, x, integers)
    found = {"decision": scores(graph, model, values)}
    if model.calibrator is not None:
        found["probabilities"] = probabilities(graph, model, values)
    label = labels(graph, model, found["decision"], found.get("probabilities"))
    return {"label": label, **found}


def output_types(model: Snapshot, real: Any) -> dict[str, tuple[Any, list[Any]]]:
    """Return the type and the shape of each output."""
    classes = 0 if model.classes is None else len(model.classes)
    label = np.dtype(np.int64) if model.classes is None else plain_labels(model.classes).dtype
    shape = [None, classes] if classes > 2 else [None]
    found = {"label": (label, [None]), "decision": (real, shape)}
    if model.calibrator is not None:
        found["probabilities"] = (real, [None, classes])
    return found


def check_size(graph: Graph, name: str) -> None:
    """Raise if constants do not fit into one ONNX file."""
    size = graph.bytes
    if size > MOST_BYTES:
        raise ValueError(
            f"this {name} would take {size / 2**30:.1f} GB as ONNX; files of at most 2 GB are "
            "supported. Make the model smaller with compress, or use dtype='float32'."
        )
