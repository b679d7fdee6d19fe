"""The end of a step as a graph; what it computes is tested with the whole of it, in `test_graphs`."""

import numpy as np
import pytest

from export.graphs import step_graph
from export.projection import MAX_TOP_K, block_size
from tests.export.conftest import build_model


@pytest.mark.parametrize(
    ("vocab_size", "expected"),
    [
        (20, 1),
        (1_000, 31),  # 32 blocks and the rest
        (32_000, 128),
        (60_000, 125),
        (58_101, 107),
        (256_206, 64),  # 2 * 3 * 42,701
    ],
)
def test_blocks_divide_the_vocabulary_where_anything_does(vocab_size: int, expected: int) -> None:
    assert block_size(vocab_size) == expected
    assert vocab_size < MAX_TOP_K or vocab_size // expected >= MAX_TOP_K


@pytest.mark.parametrize(("vocab_size", "operator"), [(4_096, "ReduceMax"), (4_099, "MaxPool")])
def test_no_vocabulary_has_its_logits_padded(vocab_size: int, operator: str) -> None:
    operators = [node.op_type for node in step_graph(build_model(vocab_size=vocab_size), np.float32).graph.node]

    assert operator in operators
    assert "Pad" not in operators
