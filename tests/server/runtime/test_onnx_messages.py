"""The messages that are declared here, against ONNX's own."""

from typing import Any

import onnx
import pytest

from server.runtime.onnx_messages import _MESSAGES as MESSAGES
from server.runtime.onnx_messages import attribute_tensors, graphs_of, has_sparse_tensors, read_model
from tests.server.runtime.conftest import field

DEEP = 40  # levels of graphs; each has three messages, of which protobuf reads 100 within each other


def within(levels: int) -> bytes:
    graph = field(1, field(4, b"Innermost"))
    for _ in range(levels):
        graph = field(1, field(5, field(6, graph)))  # a node, its attribute, and the graph that this is
    return field(7, graph)


def test_every_field_has_the_number_that_onnx_gives_it() -> None:
    theirs: dict[str, Any] = {"Entry": onnx.StringStringEntryProto}
    for message, fields in MESSAGES.items():
        numbers = (theirs.get(message) or getattr(onnx, f"{message}Proto")).DESCRIPTOR.fields_by_name
        assert {name: number for name, (number, _) in fields.items()} == {
            name: numbers[name.rstrip("*")].number for name in fields
        }


def test_graphs_are_found_in_nodes_at_any_depth() -> None:
    found = [*graphs_of(read_model(within(20)))]

    assert [node.op_type for node in found[-1].node] == [b"Innermost"]
    assert len(found) == 21


def test_what_is_no_graph_or_nested_too_deeply_is_refused() -> None:
    for data in (b"\xff", within(DEEP)):
        with pytest.raises(ValueError, match="no ONNX graph"):
            read_model(data)


def test_tensors_of_nodes_are_found() -> None:
    tensor = onnx.TensorProto(name="inside", dims=[1], data_type=1)
    nodes = [
        onnx.helper.make_node("Constant", [], ["a"], value=tensor),
        onnx.helper.make_node("Other", [], ["b"], values=[tensor, tensor]),
    ]
    (graph,) = graphs_of(read_model(onnx.ModelProto(graph=onnx.GraphProto(node=nodes)).SerializeToString()))

    assert [each.name for each in attribute_tensors(graph)] == [b"inside"] * 3
    assert not has_sparse_tensors(graph)
