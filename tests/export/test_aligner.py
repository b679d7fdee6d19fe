"""The aligner returns the cross-attention of the torch model, teacher-forced, averaged over the chosen heads."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
import torch

from export.aligner import aligner_graph
from export.graphs import encoder_graph, step_graph
from model.data import pad
from model.transformer import Transformer
from server.bundle.alignment import Head
from tests.export.conftest import SHAPES, Array, build_model, open_graph

SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10, 11, 4], [2, 14, 15, 16, 7, 6], [2, 17]]


def heads_of(model: Transformer) -> list[Head]:
    last_layer, last_head = model.config.decoder_layers - 1, model.config.num_heads - 1
    return [Head(last_layer, 0, is_shifted=False), Head(0, last_head, is_shifted=True), Head(last_layer, 0, True)]


@torch.inference_mode()
def expected(model: Transformer, heads: Sequence[Head]) -> Array:
    memory, visible = model.encode(pad(SOURCES, 0))
    _, weights = model.decode(pad(TARGETS, 0), memory, visible, need_weights=True)
    each = [weights[h.layer][:, h.head, 1:] if h.is_shifted else weights[h.layer][:, h.head, :-1] for h in heads]
    mean: Array = torch.stack(each).mean(0).numpy()
    return mean


def attention(model: Transformer, heads: Sequence[Head], sources: list[list[int]], targets: list[list[int]]) -> Array:
    lengths = np.array([len(source) for source in sources], np.int32)
    encoder = open_graph(encoder_graph(model))
    feeds = {"source_ids": pad(sources, 0).numpy(), "source_lengths": lengths}
    caches = dict(zip([each.name for each in encoder.get_outputs()], encoder.run(None, feeds), strict=True))
    aligner = open_graph(aligner_graph(step_graph(model), heads))
    given = {"target_ids": pad(targets, 0).numpy(), "source_lengths": lengths} | caches
    given["slots"] = np.arange(len(sources))
    found: Array = aligner.run(None, {each.name: given[each.name] for each in aligner.get_inputs()})[0]
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_it_returns_the_cross_attention_of_the_model(shape: str) -> None:
    model = build_model(**SHAPES[shape])
    for heads in (*([head] for head in heads_of(model)), heads_of(model)):
        found, wanted = attention(model, heads, SOURCES, TARGETS), expected(model, heads)
        for row, target in enumerate(TARGETS):
            np.testing.assert_allclose(found[row, : len(target) - 1], wanted[row, : len(target) - 1], atol=1e-5)


@pytest.mark.parametrize("shape", ["post", "ssru", "retention"])
def test_a_row_does_not_depend_on_the_rows_beside_it(shape: str) -> None:
    model = build_model(**SHAPES[shape])
    heads = heads_of(model)

    together = attention(model, heads, SOURCES, TARGETS)

    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = attention(model, heads, [source], [target])[0]
        np.testing.assert_allclose(together[row, : len(target) - 1, : len(source)], alone, atol=1e-6)
        assert together[row, : len(target) - 1, len(source) :].max(initial=0.0) < 1e-20


@pytest.mark.parametrize("shape", ["post", "window"])
def test_what_is_not_seen_counts_nothing_where_scores_are_large(shape: str) -> None:
    model = build_model(**SHAPES[shape])
    with torch.no_grad():
        for layer in model.decoder:
            for part in (layer.self_attention, layer.cross_attention):
                part.qkv.weight *= 30.0  # scores become 900 times as large
    heads = heads_of(model)

    found, wanted = attention(model, heads, SOURCES, TARGETS), expected(model, heads)

    for row, target in enumerate(TARGETS):
        np.testing.assert_allclose(found[row, : len(target) - 1], wanted[row, : len(target) - 1], atol=1e-2)


def test_it_reads_no_more_caches_than_its_last_layer_needs() -> None:
    step = step_graph(build_model(40))

    inputs = {each.name for each in aligner_graph(step, [Head(0, 1, is_shifted=False)]).graph.input}

    assert inputs == {"target_ids", "slots", "source_lengths", "cross_key.0"}


def test_its_weights_are_those_of_the_step() -> None:
    step = step_graph(build_model(40))
    of_step = {tensor.name: tensor.raw_data for tensor in step.graph.initializer}

    graph = aligner_graph(step, [Head(1, 0, is_shifted=True)])

    large = [tensor for tensor in graph.graph.initializer if len(tensor.raw_data) > 64]
    assert large
    assert all(of_step[tensor.name] == tensor.raw_data for tensor in large)
    onnx.checker.check_model(graph)
