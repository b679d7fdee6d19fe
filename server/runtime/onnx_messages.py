"""What of ONNX's protobuf messages is looked at before a session is made of a graph.

protobuf itself reads them, because ONNX Runtime does so too: whatever order or form fields have, both see the same.
Fields that are not declared here are skipped. Names are bytes, which need not be text.
"""

import functools
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

EXTERNAL = 1  # of `data_location`: the tensor's values are in another file

_BYTES, _INT = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES, descriptor_pb2.FieldDescriptorProto.TYPE_INT64
_MANY = "*"  # after the names of fields that repeat
# By message: its fields with their numbers in onnx.proto, which never change, and their types.
_MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "Model": {"graph": (7, "Graph"), "functions*": (25, _BYTES)},
    "Graph": {"node*": (1, "Node"), "initializer*": (5, "Tensor"), "sparse_initializer*": (15, _BYTES)},
    "Node": {"op_type": (4, _BYTES), "attribute*": (5, "Attribute")},
    "Attribute": {
        "t": (5, "Tensor"),
        "g": (6, "Graph"),
        "tensors*": (10, "Tensor"),
        "graphs*": (11, "Graph"),
        "sparse_tensor": (22, _BYTES),
        "sparse_tensors*": (23, _BYTES),
    },
    "Tensor": {
        "dims*": (1, _INT),
        "data_type": (2, _INT),
        "name": (8, _BYTES),
        "external_data*": (13, "Entry"),
        "data_location": (14, _INT),
    },
    "Entry": {"key": (1, _BYTES), "value": (2, _BYTES)},
}


def read_model(data: bytes) -> Any:
    """Reads an ONNX file, and of it what `_MESSAGES` declares.

    Raises:
        ValueError: it is no such file, or nested too deeply.
    """
    model = _model_class()()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ValueError("it is no ONNX graph") from error
    return model


def graphs_of(model: Any) -> Iterator[Any]:
    """Yields the graph of a model and those within its nodes, at any depth."""
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                graphs += [attribute.g] if attribute.HasField("g") else []
                graphs += attribute.graphs


def attribute_tensors(graph: Any) -> Iterator[Any]:
    """Yields the tensors that the nodes of a graph hold, without those of graphs within."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else []
            yield from attribute.tensors


def has_sparse_tensors(graph: Any) -> bool:
    """Returns whether a graph, without those within, has any tensor in a sparse form."""
    attributes = (attribute for node in graph.node for attribute in node.attribute)
    return bool(graph.sparse_initializer) or any(
        each.HasField("sparse_tensor") or each.sparse_tensors for each in attributes
    )


@functools.cache
def _model_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="babelserve/onnx_messages.proto", package="babelserve.onnx")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = described.field.add(name=name.rstrip(_MANY), number=number)
            field.label = field.LABEL_REPEATED if name.endswith(_MANY) else field.LABEL_OPTIONAL
            if isinstance(kind, str):
                field.type, field.type_name = field.TYPE_MESSAGE, f".{file.package}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Model"))
