"""A written variant's weights as they lie in its file, for proofs: in memory once, however many sessions read them."""

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from server.bundle.graphs import WEIGHTS_FILE


def external_weights(graph: onnx.ModelProto, content: bytes | mmap.mmap) -> dict[str, NDArray[Any]]:
    """Returns the weights that a graph reads from a file of that content, by name, as views of it."""
    weights = {}
    for tensor in graph.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            facts = {entry.key: entry.value for entry in tensor.external_data}
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            data = np.frombuffer(content, dtype, math.prod(tensor.dims), int(facts["offset"]))
            weights[tensor.name] = data.reshape(tensor.dims)
    return weights


class MappedWeights:
    """Maps the weights of a variant.

    Args:
        directory: of the variant, as `export.files` writes it.
    """

    def __init__(self, directory: Path) -> None:
        with (directory / WEIGHTS_FILE).open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __call__(self, graph: bytes) -> dict[str, NDArray[Any]]:
        """Returns those that a graph of the variant reads from the file, by name."""
        return external_weights(onnx.load_model_from_string(graph), self._map)

    def drop(self) -> None:
        """Lets go of the memory; what is read next comes from the file."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
