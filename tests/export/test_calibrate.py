from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from export.calibrate import with_mixed
from export.graph import linear_inputs
from export.graphs import encoder_graph, step_graph
from export.states import states_of
from model.transformer import Transformer
from server.bundle.graphs import cache_outputs
from server.bundle.states import SELF_STATE
from tests.export.conftest import build_model, calibrated

Ranges = Mapping[str, NDArray[np.float32]]
SOURCES = [[5, 9, 12, 7, 3], [8, 3], [6, 15, 3]]
TARGETS = [[2, 10], [2, 14, 15, 16, 7], [2, 17, 4]]
RTOL, ATOL = 1e-4, 1e-5  # float32, other order of sums


def ranges_of(model: Transformer, sources: list[list[int]], targets: list[list[int]]) -> dict[str, NDArray[np.float32]]:
    return calibrated(encoder_graph(model), step_graph(model), sources, targets)


def largest_of(*parts: Ranges) -> dict[str, NDArray[np.float32]]:
    return {name: np.max([part[name] for part in parts], axis=0) for name in parts[0]}


def assert_same(found: Ranges, expected: Ranges) -> None:
    for name, largest in found.items():
        np.testing.assert_allclose(largest, expected[name], rtol=RTOL, atol=ATOL, err_msg=name)


def random_sentences(count: int, first: int) -> list[list[int]]:
    rng = np.random.default_rng(first)
    return [[first, *rng.integers(4, 20, rng.integers(1, 9)).tolist()] for _ in range(count)]


class Observed:
    """What torch computes, by the names of the graphs' tensors: the largest magnitudes over all sentences fed."""

    def __init__(self, model: Transformer) -> None:
        self.ranges: dict[str, NDArray[np.float32]] = {}
        self._model = model
        self._side = "encoder"
        for embedding in (model.embedding, model.source_embedding):
            if embedding is not None:
                embedding.register_forward_hook(lambda _, inputs, output: self._note(f"{self._side}.input", output))
        for side, layers in (("encoder", model.encoder), ("decoder", model.decoder)):
            for i, layer in enumerate(layers):
                kinds = ["self", "cross"] if side == "decoder" else ["self"]
                for kind in kinds:
                    self._watch_output(f"{side}.{i}.{kind}.norm", getattr(layer, f"{kind}_norm"))
                    if kind == "cross" or layer.recurrence is None:
                        self._watch_input(f"{side}.{i}.{kind}.context", getattr(layer, f"{kind}_attention").output)
                    elif layer.mixer == "retention":
                        self._watch_input(f"{side}.{i}.retention.context", layer.retention.output)
                self._watch_output(f"{side}.{i}.ffn.norm", layer.feed_forward_norm)
                self._watch_input(f"{side}.{i}.ffn.activation", layer.feed_forward.output)
        self._watch_output("encoder.norm", model.encoder_norm)
        self._watch_output("decoder.norm", model.decoder_norm)

    @torch.inference_mode()
    def feed(self, source: list[int], target: list[int]) -> None:
        model = self._model
        self._side = "encoder"
        memory, visible = model.encode(torch.tensor([source]))
        self._side = "decoder"
        handles = [
            layer.self_attention.qkv.register_forward_hook(
                lambda _, inputs, output, i=i: self._note_caches(f"self_{{}}.{i}", output.chunk(3, -1)[1:])
            )
            for i, layer in enumerate(model.decoder)
            if layer.recurrence is None
        ]
        model.decode(torch.tensor([target]), memory, visible)
        for handle in handles:
            handle.remove()
        for i, layer in enumerate(model.decoder):
            qkv, width = layer.cross_attention.qkv, layer.cross_attention.width
            projected = functional.linear(memory, qkv.weight[width:], qkv.bias[width:])
            self._note_caches(f"cross_{{}}.{i}", projected.chunk(2, -1))

    def _watch_output(self, name: str, module: torch.nn.Module) -> None:
        module.register_forward_hook(lambda _, inputs, output: self._note(name, output))

    def _watch_input(self, name: str, module: torch.nn.Module) -> None:
        module.register_forward_hook(lambda _, inputs, output: self._note(name, inputs[0]))

    def _note_caches(self, pattern: str, keys_and_values: Any) -> None:
        for part, tensor in zip(("key", "value"), keys_and_values, strict=True):
            heads = tensor[0].unflatten(-1, (self._model.config.num_heads, -1))  # [T, H, D]
            self._raise(pattern.format(part), torch.stack([-heads.amin(0), heads.amax(0)]).numpy())

    def _note(self, name: str, tensor: torch.Tensor) -> None:
        self._raise(name, tensor.abs().max().numpy())

    def _raise(self, name: str, largest: Any) -> None:
        self.ranges[name] = np.maximum(self.ranges.get(name, largest), largest)


def test_ranges_are_those_that_torch_computes(model: Transformer) -> None:
    found = ranges_of(model, SOURCES, TARGETS)

    observed = Observed(model)
    for source, target in zip(SOURCES, TARGETS, strict=True):
        observed.feed(source, target)
    assert_same(found, observed.ranges)


def test_every_linear_map_and_every_cache_has_a_range(model: Transformer) -> None:
    config = model.config

    ranges = ranges_of(model, SOURCES, TARGETS)

    inputs = {*linear_inputs(encoder_graph(model)), *linear_inputs(step_graph(model))}
    of_all = cache_outputs(states_of(config), config.decoder_layers)
    caches = {name for name in of_all if not name.startswith(SELF_STATE)}
    assert ranges.keys() == inputs | caches
    assert {ranges[name].shape for name in inputs} == {()}
    assert {ranges[name].shape for name in caches} == {(2, config.num_heads, config.head_dim)}
    assert {largest.dtype.name for largest in ranges.values()} == {"float32"}
    assert all(ranges[name] > 0 for name in inputs)
    assert all((ranges[name].sum(axis=0) > 0).all() for name in caches)


def test_what_pads_a_batch_does_not_count(model: Transformer) -> None:
    with torch.no_grad():
        model.source_tokens[0] = torch.linspace(-50, 50, model.config.d_model)  # shows wherever it counts

    together = ranges_of(model, SOURCES, TARGETS)

    alone = [ranges_of(model, [source], [target]) for source, target in zip(SOURCES, TARGETS, strict=True)]
    assert_same(together, largest_of(*alone))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_more_sentences_only_raise_ranges(norm: str) -> None:
    model = build_model(vocab_size=20, norm=norm)
    sources, targets = random_sentences(40, first=5), random_sentences(40, first=2)  # more than one batch

    every = ranges_of(model, sources, targets)

    few, rest = ranges_of(model, sources[:7], targets[:7]), ranges_of(model, sources[7:], targets[7:])
    assert_same(every, largest_of(few, rest))
    assert any((every[name] > few[name] * 1.01).any() for name in every)


def test_few_sentences_are_mixed_with_nonsense_of_their_tokens() -> None:
    sources = [[5, 9, 12, 7, 3], [5, 8, 3], [6, 15, 16, 17, 3]]
    targets = [[2, 10, 11], [2, 14, 15, 16, 7], [2, 17, 4]]

    mixed = with_mixed(sources, targets, max_tokens=8)

    assert [len(side) for side in mixed] == [200, 200]
    assert (mixed[0][:3], mixed[1][:3]) == (sources, targets)
    assert {(ids[0], ids[-1]) for ids in mixed[0]} == {(5, 3), (6, 3)}  # a language first, eos last
    assert {tuple(ids[:2]) for ids in mixed[1]} == {(2, 10), (2, 14), (2, 17)}
    assert {token for ids in mixed[0] for token in ids[1:-1]} == {9, 12, 7, 8, 15, 16, 17}
    assert [max(map(len, side)) for side in mixed] == [8, 8]
    assert with_mixed(sources, targets, max_tokens=8) == mixed


def test_many_sentences_and_those_of_no_tokens_stay_as_they_are() -> None:
    many = [[5, 9, 3]] * 200
    assert with_mixed(many, [[2, 7, 8]] * 200, 60)[0] == many
    assert with_mixed([[5, 3]], [[2]], 60) == ([[5, 3]], [[2]])
    assert with_mixed([], [], 60) == ([], [])
