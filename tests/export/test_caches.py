"""Caches of signed bytes: what is written can be read again within half a unit, and other nodes stay."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from export.caches import READ, cache_scales, identity_nodes

WIDTH = 8


def reach(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns how far each channel of [rows, D] goes below zero and above, [2, 1, D]."""
    return np.stack([np.maximum(-values.min(0), 0), np.maximum(values.max(0), 0)])[:, None].astype(np.float32)


@pytest.mark.parametrize("cache", ["cross_key.0", "cross_value.0"])
def test_what_is_written_is_read_within_half_a_unit(cache: str) -> None:
    values = np.random.default_rng(0).normal(loc=2, size=(20, WIDTH)).astype(np.float32)
    ranges = {cache: reach(values)}
    read = f"{cache}.all{READ}"

    written, constants = identity_nodes(helper.make_node("Identity", ["x"], ["bytes"]), cache, ranges)
    found, more = identity_nodes(helper.make_node("Identity", ["bytes"], [read]), None, ranges)

    graph = helper.make_graph(
        [*written, *found],
        "caches",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [20, WIDTH])],
        [
            helper.make_tensor_value_info(read, TensorProto.FLOAT, [20, WIDTH]),
            helper.make_tensor_value_info("bytes", TensorProto.INT8, [20, WIDTH]),
        ],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants | more).items()],
    )
    outputs: Any = ReferenceEvaluator(helper.make_model(graph)).run(None, {"x": values})
    result, stored = outputs
    assert stored.dtype == np.int8
    assert np.all(np.abs(result - values) <= 0.5001 * cache_scales(cache, ranges[cache]))


def test_an_identity_that_no_cache_is_behind_stays() -> None:
    node = helper.make_node("Identity", ["x"], ["y"])

    nodes, constants = identity_nodes(node, None, {})

    assert [each.SerializeToString() for each in nodes] == [node.SerializeToString()]
    assert isinstance(nodes[0], onnx.NodeProto)
    assert not constants
