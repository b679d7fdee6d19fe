"""What is wrong with a bundle's graphs: their tensors against the contract in `server.bundle.graphs`."""

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from server.bundle.graphs import CHOSEN_NAMES, EMBEDDING, LOGITS, WEIGHTS_FILE, StepForm, cache_names, cache_outputs
from server.bundle.manifest import Dimensions
from server.bundle.shortlist import Shortlist
from server.bundle.states import State
from server.errors import BundleError
from server.runtime.onnx_messages import EXTERNAL, attribute_tensors, graphs_of, has_sparse_tensors, read_model

MAX_GRAPH_BYTES = 16 << 20  # exports have about 20 KB for six layers
ONNX_TYPES = {1: "float32", 3: "int8", 10: "float16"}  # of `TensorProto.DataType`, what variants have
# Of the types that weights may have: those of numbers of whole bytes.
_ITEM_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
_DIGITS = re.compile(rb"[0-9]{1,18}")
_MAX_FAULTS = 20  # that are named
_MAX_DIMS = 8
_SHOWN_CHARACTERS = 40
_PLACE_KEYS = {b"location", b"offset", b"length"}  # ONNX Runtime knows more, which nothing has verified


def refuse(path: Path, faults: list[str]) -> None:
    """Raises BundleError if there are any faults of a file."""
    if faults:
        raise BundleError([f"{path}: {fault}" for fault in faults])


def content_faults(graph: bytes, dtype: str, weights_bytes: int | None) -> list[str]:
    """Says what is wrong with the contents of a graph, before ONNX Runtime makes a session of them.

    - A Loop may never end, and a function may hide one.
    - ONNX Runtime reads weights where they were verified, as many bytes as a graph says, of whatever file it names. So
      each tensor must lie within the weights, to the byte.
    - A graph of another variant loads and runs: its caches have another type than the runtime's, and no error that
      comes of this names the cause. So the token embedding must have the type that the manifest says.

    Args:
        graph: an ONNX file; what else may be wrong with it is for ONNX Runtime to say.
        dtype: of the manifest.
        weights_bytes: size of the weights; None if they are lent, each by its name.
    """
    if len(graph) > MAX_GRAPH_BYTES:
        return [f"it has {len(graph)} bytes, at most {MAX_GRAPH_BYTES} are read"]
    try:
        model = read_model(graph)
    except ValueError as error:
        return [str(error)]
    faults = ["it has functions of its own, which no export makes"] if model.functions else []
    graphs = [*graphs_of(model)]
    if any(node.op_type == b"Loop" for each in graphs for node in each.node):
        faults.append("it has a Loop, which may never end and which no export makes")
    if any(has_sparse_tensors(each) for each in graphs):
        faults.append("it has sparse tensors, which no export makes")
    for tensor in (tensor for each in graphs for tensor in each.initializer):
        if tensor.name == EMBEDDING.encode() and (found := _type_name(tensor)) != dtype:
            faults.append(f"{EMBEDDING} is {found}, by the manifest it is {dtype}")
        faults += _place_faults(tensor, weights_bytes)
    for tensor in (tensor for each in graphs for tensor in attribute_tensors(each)):
        faults += _place_faults(tensor, 0)
    more = len(faults) - _MAX_FAULTS
    return faults if more <= 0 else [*faults[:_MAX_FAULTS], f"and {more} faults more"]


def _type_name(tensor: Any) -> str:
    return ONNX_TYPES.get(tensor.data_type, f"of ONNX's type {tensor.data_type}")


def _place_faults(tensor: Any, weights_bytes: int | None) -> list[str]:
    """Says whether a tensor whose values are in another file lies within the weights."""
    if tensor.data_location != EXTERNAL and not tensor.external_data:
        return []
    name = tensor.name.decode(errors="replace")[:_SHOWN_CHARACTERS]
    place = {entry.key: entry.value for entry in tensor.external_data}
    if len(place) < len(tensor.external_data) or not place.keys() <= _PLACE_KEYS:
        return [f"{name!r} has a place that is not its file, offset and length, each once"]
    if place.get(b"location") != WEIGHTS_FILE.encode():
        return [f"{name!r} is in another file than {WEIGHTS_FILE}"]
    itemsize = _ITEM_BYTES.get(tensor.data_type)
    if itemsize is None:
        return [f"{name!r} is {_type_name(tensor)}, which weights cannot have"]
    dims = list(tensor.dims[: _MAX_DIMS + 1])
    if len(dims) > _MAX_DIMS or min(dims, default=0) < 0:
        return [f"{name!r} has sizes {dims}; at most {_MAX_DIMS} can be, none of them negative"]
    offset, length, size = place.get(b"offset", b"0"), place.get(b"length", b""), math.prod(dims) * itemsize
    if not _DIGITS.fullmatch(offset) or length not in (b"", b"%d" % size):
        shown = [each.decode(errors="replace")[:_SHOWN_CHARACTERS] for each in (offset, length)]
        return [f"{name!r} is {dims}, {size} bytes; its place is said to be {shown[0]!r} with {shown[1]!r} bytes"]
    if weights_bytes is not None and int(offset) + size > weights_bytes:
        return [f"{name!r} ends at {int(offset) + size}, behind the weights, which have {weights_bytes} bytes"]
    return []


def tensor_faults(session: Any, inputs: list[str], outputs: list[str]) -> list[str]:
    """Compares the names of a session's inputs and outputs with those that are needed."""
    has_inputs = {tensor.name for tensor in session.get_inputs()}
    has_outputs = {tensor.name for tensor in session.get_outputs()}
    return [
        *(f"the graph lacks input {name}" for name in inputs if name not in has_inputs),
        *(f"the graph has an unknown input {name}" for name in sorted(has_inputs - set(inputs))),
        *(f"the graph lacks output {name}" for name in outputs if name not in has_outputs),
    ]


def step_faults(session: Any, form: StepForm, sizes: Dimensions, states: Sequence[State]) -> list[str]:
    """Compares a step's tensors, and its caches' and logits' shapes, with the form and the manifest."""
    cross = cache_names("cross", sizes.decoder_layers)
    shapes = {state.name: _row_shape(state) for state in states}
    shapes |= {name: [sizes.num_heads, "positions", sizes.head_dim] for name in cross}
    written = itertools.chain.from_iterable(cache_outputs(states, sizes.decoder_layers).values())
    outputs = [*CHOSEN_NAMES, form.projected, *written]
    faults = tensor_faults(session, [*form.input_names, *shapes], outputs)
    for tensor in session.get_inputs():
        expected = shapes.get(tensor.name)
        if expected is not None and not _fits(tensor.shape[1:], expected):
            shape = f"[rows, {', '.join(map(str, expected))}]"
            faults.append(f"input {tensor.name} is {tensor.shape}, by the manifest it is {shape}")
    for tensor in session.get_outputs():
        if tensor.name == LOGITS and tensor.shape[1:] != [sizes.vocab_size]:
            shape = f"[rows, {sizes.vocab_size}]"
            faults.append(f"output {tensor.name} is {tensor.shape}, by the manifest it is {shape}")
    return faults


def _row_shape(state: State) -> list[int | str]:
    parts, positions, width = state.shape
    return [parts, "positions" if state.grows else positions, width]


def _fits(found: list[int | str], expected: list[int | str]) -> bool:
    """Compares lengths, of which those of positions may be any."""
    if len(found) != len(expected):
        return False
    return all(length in ("positions", has) for has, length in zip(found, expected, strict=True))


def shortlist_faults(shortlist: Shortlist, max_beam_size: int, eos_id: int) -> list[str]:
    """Says whether every sentence has candidates enough for the widest beam, and one that ends it."""
    least = 2 * max_beam_size  # a step may ask for so many best tokens
    common = set(shortlist.common.tolist())
    faults = [f"it has {len(common)} common tokens, it needs {least}"] if len(common) < least else []
    return faults if eos_id in common else [*faults, f"the end of a sentence, {eos_id}, is none of the common tokens"]
