"""What is wrong with a bundle's graphs: their tensors against the contract in `server.bundle.graphs`."""

import re
from pathlib import Path
from typing import Any

from server.bundle.graphs import CHOSEN_NAMES, EMBEDDING, LOGITS, StepForm, cache_names, self_caches
from server.bundle.manifest import Dimensions
from server.bundle.shortlist import Shortlist
from server.errors import BundleError

ONNX_TYPES = {1: "float32", 3: "int8", 10: "float16"}  # of `TensorProto.DataType`, what variants have


def refuse(path: Path, faults: list[str]) -> None:
    """Raises BundleError if there are any faults of a file."""
    if faults:
        raise BundleError([f"{path}: {fault}" for fault in faults])


def embedding_faults(graph: bytes, dtype: str) -> list[str]:
    """Compares the type that a graph says its token embedding has with that of the manifest.

    A graph of another variant loads, as its weights have the sizes that it says, and runs: its caches have another type
    than the runtime's, and no error that comes of this names the cause.

    The type is read off the file where protobuf writes it: a tensor's field 2, and its name, 8, next, as the data
    between them are in another file.

    Args:
        graph: an ONNX file; what else may be wrong with it is for ONNX Runtime to say.
        dtype: of the manifest.
    """
    name = EMBEDDING.encode()
    types = re.findall(b"\x10(.)\x42" + bytes([len(name)]) + name, graph, re.DOTALL)
    found = [ONNX_TYPES.get(code, f"of ONNX's type {code}") for (code,) in types]
    return [f"{EMBEDDING} is {other}, by the manifest it is {dtype}" for other in found if other != dtype]


def tensor_faults(session: Any, inputs: list[str], outputs: list[str]) -> list[str]:
    """Compares the names of a session's inputs and outputs with those that are needed."""
    has_inputs = {tensor.name for tensor in session.get_inputs()}
    has_outputs = {tensor.name for tensor in session.get_outputs()}
    return [
        *(f"the graph lacks input {name}" for name in inputs if name not in has_inputs),
        *(f"the graph has an unknown input {name}" for name in sorted(has_inputs - set(inputs))),
        *(f"the graph lacks output {name}" for name in outputs if name not in has_outputs),
    ]


def step_faults(session: Any, form: StepForm, sizes: Dimensions) -> list[str]:
    """Compares a step's tensors, and its caches' and logits' shapes, with the form and the manifest's dimensions."""
    own = self_caches(sizes, "")
    cross = cache_names("cross", sizes.decoder_layers)
    shapes = {name: [own.parts, own.positions or "positions", own.width] for name in own.names}
    shapes |= {name: [sizes.num_heads, "positions", sizes.head_dim] for name in cross}
    outputs = [*CHOSEN_NAMES, form.projected, *(f"new_{name}" for name in shapes)]
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
