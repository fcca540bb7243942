"""Construction of ONNX graphs node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._extras import install

Value = str | NDArray[Any] | int | float


def missing(library: str) -> ImportError:
    """Return the error for a missing optional library."""
    return ImportError(
        f"ONNX export needs the package {library}, which is not installed. Run {install('onnx')}."
    )


class Names:
    """Generator of unique names."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, wish: str) -> str:
        """Return a name that resembles `wish` and was not returned before."""
        count = self._counts.get(wish, 0)
        self._counts[wish] = count + 1
        return f"{wish}_{count}" if count else wish


class Graph:
    """Nodes, in the order of computation, and constants.

    Parameters
    ----------
    real : dtype
        Type of floating-point constants.
    unique : callable
        Returns a unique name that resembles a given name.
    """

    def __init__(self, real: Any, unique: Callable[[str], str]) -> None:
        try:
            import onnx
        except ImportError as error:
            raise missing("onnx") from error
        self._onnx = onnx
        self.real = np.dtype(real)
        self.unique = unique
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Value) -> str:
        """Add a constant, and return its name."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.real)
        name = self.unique("constant")
        helper = self._onnx.helper
        if array.dtype.kind in "OU":
            strings = [str(each).encode("utf-8") for each in array.ravel()]
            kind = self._onnx.TensorProto.STRING
            self.constants.append(helper.make_tensor(name, kind, array.shape, strings))
        else:
            array = np.ascontiguousarray(array).reshape(array.shape)
            self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, *inputs: Value, output: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its output. Arrays and numbers become constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        result = self.unique(kind.lower()) if output is None else output
        self.nodes.append(self._onnx.helper.make_node(kind, names, [result], **attributes))
        return result

    def cast(self, value: str, dtype: Any) -> str:
        """Convert a value to another type."""
        return self.op("Cast", value, to=self.type_of(dtype))

    def choose(self, condition: str, true: Callable[[Graph], str], false: Any) -> str:
        """Add an If node with branches that the functions `true` and `false` build."""
        branches = []
        for build in (true, false):
            inner = Graph(self.real, self.unique)
            result = build(inner)
            branches.append(inner.proto("branch", [], [(result, self.real, None)]))
        return self.op("If", condition, then_branch=branches[0], else_branch=branches[1])

    def rename(self, before: str, after: str) -> None:
        """Rename a value."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for k, name in enumerate(names):
                    if name == before:
                        names[k] = after

    @property
    def bytes(self) -> int:
        """Size of the constants in bytes, including those of branches."""
        inner = (a.g for node in self.nodes for a in node.attribute if a.HasField("g"))
        return int(sum(each.ByteSize() for each in [*self.constants, *inner]))

    def type_of(self, dtype: Any) -> int:
        """Return the ONNX code of a type."""
        kind = np.dtype(dtype)
        if kind.kind in "OU":
            return int(self._onnx.TensorProto.STRING)
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(kind))

    def proto(
        self, name: str, inputs: list[tuple[str, Any, Any]], outputs: list[tuple[str, Any, Any]]
    ) -> Any:
        """Return the graph with inputs and outputs, given as names, types and shapes."""
        helper = self._onnx.helper
        ends = [
            [helper.make_tensor_value_info(n, self.type_of(t), shape) for n, t, shape in each]
            for each in (inputs, outputs)
        ]
        return helper.make_graph(self.nodes, name, *ends, initializer=self.constants)

    def model(self, graph: Any, opset: int, ir_version: int, text: str) -> Any:
        """Return a model with the given graph, after checking it."""
        made = self._onnx.helper.make_model(
            graph,
            opset_imports=[self._onnx.helper.make_opsetid("", opset)],
            ir_version=ir_version,
            producer_name="marginwise",
            doc_string=text,
        )
        self._onnx.checker.check_model(made)
        return made


def add_to(container: Any, graph: Graph, scope: Any) -> None:
    """Add the constants and nodes of a graph to an skl2onnx container."""
    from onnx.helper import get_attribute_value

    container.initializers.extend(graph.constants)
    for node in graph.nodes:
        attributes = {each.name: get_attribute_value(each) for each in node.attribute}
        container.add_node(
            node.op_type,
            list(node.input),
            list(node.output),
            op_domain=node.domain,
            name=scope.get_unique_operator_name(node.op_type),
            **attributes,
        )
