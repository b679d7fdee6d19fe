"""Graphs in int8, and what they put into their caches."""

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from export.graph import Graph
from export.graphs import _activate, encoder_graph, step_graph
from export.quantize import quantize_graph
from model.data import pad
from model.transformer import ACTIVATIONS, Transformer
from tests.export.conftest import Array, Stepper, calibrated, open_graph, run_encoder

Ranges = dict[str, NDArray[np.float32]]
Graphs = tuple[onnx.ModelProto, onnx.ModelProto]
SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10, 11, 4], [2, 14, 15, 16], [2, 17, 4, 5]]
LENGTHS = [len(source) for source in SOURCES]
ALL = [0, 1, 2]
FLOORS = {"silu": 0.2785, "gelu": 0.17, "quick_gelu": 0.1637}  # minus the least value of an activation
KINDS = ["norm", "relu", "any", *FLOORS]
TOLERANCE = 0.1  # of a channel's range: int8 through two layers is 0.05 off, a wrong scale 1 or more


def graphs_of(model: Transformer) -> Graphs:
    return encoder_graph(model), step_graph(model)


def ranges_of(model: Transformer) -> Ranges:
    return calibrated(*graphs_of(model), SOURCES, TARGETS)


def quantized(model: Transformer, ranges: Ranges | None = None) -> Graphs:
    encoder, step = graphs_of(model)
    ranges = ranges or ranges_of(model)
    return quantize_graph(encoder, ranges), quantize_graph(step, ranges)


def encoded(encoder: onnx.ModelProto) -> list[Array]:
    return run_encoder(encoder, pad(SOURCES, 0).numpy(), LENGTHS)


def caches_of(model: Transformer, graphs: Graphs) -> dict[str, Array]:
    """All caches after a step each at the positions 0 to 3, by name; what no row has written is 0."""
    encoder, step = graphs
    stepper = Stepper(step, model, encoded(encoder), capacity=4)
    for position in range(4):
        stepper([target[position] for target in TARGETS], [position] * 3, LENGTHS, ALL)
    for cross in stepper.cross.values():
        for row, length in enumerate(LENGTHS):
            cross[row, :, length:] = 0
    return {**stepper.self_caches, **stepper.cross}


def linear_graph(kind: str, weight: torch.Tensor, bias: torch.Tensor) -> onnx.ModelProto:
    """Returns y = f(x) W + b, where f(x) is LayerNormalization, an activation, or nothing ("any")."""
    graph = Graph("linear", np.float32)
    x = graph.input("x", np.float32, ["rows", weight.shape[1]])
    if kind == "norm":
        x = graph.layer_norm("activation", x, torch.nn.LayerNorm(weight.shape[1]))
    else:
        x = _activate(graph, kind, x, "activation") if kind != "any" else graph.node("Identity", [x], "activation")  # type: ignore[arg-type]
    graph.linear("y", x, weight, bias)
    graph.output("y", np.float32, ["rows", weight.shape[0]])
    return graph.build()


def activation(kind: str, x: Array) -> Array:
    if kind == "norm":
        return torch.nn.functional.layer_norm(torch.from_numpy(x), x.shape[1:]).numpy()
    return x if kind == "any" else ACTIVATIONS[kind](torch.from_numpy(x)).numpy()  # type: ignore[index]


def run(graph: onnx.ModelProto, x: Array) -> Array:
    y: Array = open_graph(graph).run(["y"], {"x": x})[0]
    return y


def random_linear() -> tuple[torch.Tensor, torch.Tensor, Array]:
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(24, 32, generator=generator), torch.randn(24, generator=generator)
    x = torch.randn(6, 32, generator=generator).numpy()
    x *= np.array([1, 100, 0.01, 5, 1, 0], np.float32)[:, None]
    return weight, bias, x
