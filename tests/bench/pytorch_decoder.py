"""A plain PyTorch decoder, the third system on a GPU: static caches, a CUDA graph per shape, greedy search.

What an engineer writes in an afternoon who knows how: sentences sorted by length, batches by tokens, caches of a fixed
shape so that the step can be captured once and replayed. A batch runs until its last sentence has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from model.attention import MultiHeadAttention
from model.search import default_max_tokens
from model.transformer import Layer, Transformer

_SOURCE_BUCKET = 32  # positions: a sentence is padded to a multiple
_STEPS_PER_LOOK = 4  # between two questions whether all have ended, each of which waits for the GPU


@dataclass(frozen=True, slots=True)
class _Shape:
    """B rows, S source and T target positions."""

    rows: int
    source: int
    target: int


class PyTorchDecoder:
    """Translates token ids greedily."""

    def __init__(self, model: Transformer, device: str, dtype: torch.dtype, batch_tokens: int) -> None:
        """Moves the model to the device.

        Args:
            model: in evaluation mode; changed.
            device: "cpu" or "cuda".
            dtype: of weights and caches.
            batch_tokens: padded source tokens of a batch.
        """
        self._model = model.to(device, dtype)
        self._device = device
        self._batch_tokens = batch_tokens
        self._steps: dict[_Shape, _Step] = {}
        self.padded_source_tokens = 0

    @torch.inference_mode()
    def translate(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        """Returns target ids without bos and eos, in the sources' order."""
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        results: list[list[int]] = [[]] * len(sources)
        self.padded_source_tokens = 0
        while order:
            width = -(-len(sources[order[0]]) // _SOURCE_BUCKET) * _SOURCE_BUCKET
            rows = max(1, self._batch_tokens // width)
            batch, order = order[:rows], order[rows:]
            for i, ids in zip(batch, self._translate([sources[i] for i in batch], rows, width), strict=True):
                results[i] = ids
        return results

    def _translate(self, sources: list[Sequence[int]], rows: int, width: int) -> list[list[int]]:
        config = self._model.config
        source_ids = torch.full((rows, width), config.pad_id)
        source_ids[:, 0] = config.eos_id  # of rows that nobody uses
        for row, ids in enumerate(sources):
            source_ids[row, : len(ids)] = torch.tensor(ids)
        self.padded_source_tokens += source_ids.numel()
        shape = _Shape(rows, width, min(default_max_tokens(width, config.max_positions), config.max_positions))
        if shape not in self._steps:
            self._steps[shape] = _Step(self._model, shape, self._device)
        step = self._steps[shape]
        step.begin(source_ids.to(self._device), len(sources))
        limits = [default_max_tokens(len(ids), config.max_positions) for ids in sources]
        for position in range(max(limits)):
            step.run()
            if position % _STEPS_PER_LOOK == 0 and bool(step.is_finished.all()):
                break
        found = step.chosen[: len(sources)].tolist()
        return [
            (ids[: ids.index(config.eos_id)] if config.eos_id in ids[:limit] else ids[:limit])
            for ids, limit in zip(found, limits, strict=True)
        ]


class _Step:
    """One step of one shape: everything that it reads and writes stays where it is."""

    def __init__(self, model: Transformer, shape: _Shape, device: str) -> None:
        config = model.config
        dtype = model.embedding.tokens.weight.dtype

        def caches(positions: int) -> list[tuple[Tensor, Tensor]]:
            size = shape.rows, config.num_heads, positions, config.head_dim
            zeros = [torch.zeros(size, dtype=dtype, device=device) for _ in range(2 * config.decoder_layers)]
            return list(zip(zeros[::2], zeros[1::2], strict=True))

        self._model = model
        self._self, self._cross = caches(shape.target), caches(shape.source)
        self._is_source = torch.zeros(shape.rows, 1, 1, shape.source, dtype=torch.bool, device=device)
        self._ids = torch.zeros(shape.rows, dtype=torch.int64, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        self._positions = torch.arange(shape.target, device=device)
        self.chosen = torch.zeros(shape.rows, shape.target, dtype=torch.int64, device=device)
        self.is_finished = torch.zeros(shape.rows, dtype=torch.bool, device=device)
        self.run: Callable[[], None] = self._run
        if device == "cuda":
            self.run = self._captured()

    def begin(self, source_ids: Tensor, num_sentences: int) -> None:
        """Encodes a batch [B, S], of which the first rows are sentences, and goes back to the first position."""
        memory, is_source = self._model.encode(source_ids)
        self._is_source.copy_(is_source)
        for layer, (keys, values) in zip(self._model.decoder, self._cross, strict=True):
            attention = layer.cross_attention
            width = memory.shape[-1]
            projected = functional.linear(memory, attention.qkv.weight[width:], attention.qkv.bias[width:])
            for cache, part in zip((keys, values), projected.chunk(2, dim=-1), strict=True):
                cache.copy_(_heads(part, attention))
        self._ids.fill_(self._model.config.bos_id)
        self._position.zero_()
        self.chosen.fill_(self._model.config.eos_id)
        self.is_finished.zero_()
        self.is_finished[num_sentences:] = True

    def _run(self) -> None:
        embedding = self._model.embedding
        x = embedding.tokens.weight[self._ids] * embedding.scale + embedding.positions[self._position]  # [B, M]
        is_past = (self._positions <= self._position)[None, None, None]
        for layer, self_cache, cross_cache in zip(self._model.decoder, self._self, self._cross, strict=True):
            x = self._layer(layer, x, self_cache, cross_cache, is_past)
        ids = self._model.logits(self._model.decoder_norm(x)).argmax(-1)
        self._ids.copy_(ids)
        self.chosen.index_copy_(1, self._position, ids[:, None])
        self.is_finished.logical_or_(ids == self._model.config.eos_id)
        self._position.add_(1)

    def _layer(
        self,
        layer: Layer,
        x: Tensor,
        self_cache: tuple[Tensor, Tensor],
        cross_cache: tuple[Tensor, Tensor],
        is_past: Tensor,
    ) -> Tensor:
        def attend_self(x: Tensor) -> Tensor:
            attention = layer.self_attention
            q, *new = (_heads(part[:, None], attention) for part in attention.qkv(x).chunk(3, dim=-1))
            for cache, one in zip(self_cache, new, strict=True):
                cache.index_copy_(2, self._position, one)
            return _output(functional.scaled_dot_product_attention(q, *self_cache, attn_mask=is_past), attention)

        def attend_cross(x: Tensor) -> Tensor:
            attention = layer.cross_attention
            width = x.shape[-1]
            query = functional.linear(x, attention.qkv.weight[:width], attention.qkv.bias[:width])
            q = _heads(query[:, None], attention)
            return _output(
                functional.scaled_dot_product_attention(q, *cross_cache, attn_mask=self._is_source), attention
            )

        parts = (
            (layer.self_norm, attend_self),
            (layer.cross_norm, attend_cross),
            (layer.feed_forward_norm, layer.feed_forward),
        )
        for norm, update in parts:
            x = x + update(norm(x)) if layer.is_pre_norm else norm(x + update(x))
        return x

    def _captured(self) -> Callable[[], None]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # libraries choose their kernels before the capture
                self._run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._run()
        return graph.replay


def _heads(x: Tensor, attention: MultiHeadAttention) -> Tensor:
    """Splits [B, T, M] into [B, H, T, D]."""
    heads: Tensor = x.unflatten(-1, (attention.num_heads, -1))
    return heads.transpose(1, 2)


def _output(context: Tensor, attention: MultiHeadAttention) -> Tensor:
    """Joins [B, H, 1, D] and projects it to [B, M]."""
    result: Tensor = attention.output(context.transpose(1, 2).flatten(2)[:, 0])
    return result
