"""Building ONNX graphs node by node."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import DTypeLike, NDArray
from onnx import helper

OPSETS = {"": 21, "com.microsoft": 1}


class Graph:
    """A graph under construction: each method adds to it and returns the name of what it made."""

    def __init__(self, name: str, dtype: DTypeLike) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.initializers: dict[str, NDArray[Any]] = {}  # weights as torch has them, until the graph is built

    def input(self, name: str, dtype: DTypeLike, shape: list[str | int]) -> str:
        """Declares an input."""
        self.inputs.append(_value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: DTypeLike, shape: list[str | int]) -> None:
        """Declares a tensor that the graph makes an output."""
        self.outputs.append(_value_info(name, dtype, shape))

    def node(self, op: str, inputs: list[str], output: str = "", domain: str = "", **attributes: Any) -> str:
        """Adds a node with one output, which is named for graph, operator and place unless a name is given."""
        return self.node_of_many(op, inputs, [output or f"{self.name}.{op}_{len(self.nodes)}"], domain, **attributes)

    def node_of_many(self, op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> str:
        """As `node`, for several outputs; returns the first one's name, which is the node's too."""
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def constant(self, value: Any, dtype: DTypeLike = np.int64) -> str:
        """Adds an initializer, named for its value, so that equal ones are one."""
        array = np.asarray(value, dtype)
        return self._initializer(
            f"constant_{array.dtype}_{'_'.join(map(str, array.shape))}_{array.tobytes().hex()}", array
        )

    def weight(self, name: str, tensor: torch.Tensor) -> str:
        """Adds an initializer of the graph's dtype."""
        return self._initializer(name, tensor.detach().cpu().numpy().astype(self.dtype, copy=False))

    def linear(self, name: str, x: str, weight: torch.Tensor, bias: torch.Tensor) -> str:
        """Maps [rows, K] to [rows, N] with the torch weight [N, K]."""
        matrix = self.weight(f"{name}.weight", weight.T)
        return self.node("Gemm", [x, matrix, self.weight(f"{name}.bias", bias)], name)

    def layer_norm(self, name: str, x: str, norm: torch.nn.Module) -> str:
        """Adds a LayerNormalization of the last axis."""
        assert isinstance(norm, torch.nn.LayerNorm)
        weight, bias = self.weight(f"{name}.weight", norm.weight), self.weight(f"{name}.bias", norm.bias)
        return self.node("LayerNormalization", [x, weight, bias], name, axis=-1, epsilon=norm.eps)

    def reshape(self, x: str, shape: list[int], output: str = "") -> str:
        """Adds a Reshape; in `shape` 0 keeps a length and -1 takes what is left."""
        return self.node("Reshape", [x, self.constant(shape)], output)

    def build(self) -> onnx.ModelProto:
        """Returns the model, into which the initializers are copied one after the other."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="babelserve")
        for name, array in self.initializers.items():
            # In its place at once: a tensor that is made first and appended would be in memory twice.
            tensor = model.graph.initializer.add(name=name, dims=array.shape)
            tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor.raw_data = array.tobytes()
        return model

    def _initializer(self, name: str, array: NDArray[Any]) -> str:
        self.initializers[name] = np.atleast_1d(array)
        return name


def prune(graph: onnx.GraphProto) -> set[str]:
    """Leaves out the nodes that no output needs; returns the names of all tensors that are needed."""
    needed = {output.name for output in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            nodes.append(node)
            needed.update(node.input)
    kept = list(reversed(nodes))
    del graph.node[:]
    graph.node.extend(kept)
    return needed


def used_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Returns what the nodes read, and those of their branches."""
    branches = [attribute.g.node for node in nodes for attribute in node.attribute if attribute.HasField("g")]
    return {name for node in nodes for name in node.input}.union(*map(used_names, branches))


def before_reshapes(producers: Mapping[str, onnx.NodeProto], name: str) -> str:
    """Returns the tensor whose numbers a tensor has, all or a part of them, in another shape or order.

    Args:
        producers: nodes by each of their outputs.
        name: of the tensor.
    """
    while name in producers and producers[name].op_type in ("Reshape", "Transpose", "Split"):
        name = producers[name].input[0]
    return name


def linear_inputs(model: onnx.ModelProto) -> list[str]:
    """Returns the names of the tensors that a `Gemm` multiplies, as they are before any `Reshape` or `Transpose`."""
    producers = {node.output[0]: node for node in model.graph.node}
    return sorted({before_reshapes(producers, node.input[0]) for node in model.graph.node if node.op_type == "Gemm"})


def _value_info(name: str, dtype: DTypeLike, shape: list[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
