"""What the heads of attention of a network are worth: `babelserve-evaluate --heads`.

For each head: how much the loss rises without it, in each of several texts, and which other head attends most alike.
Both are measured with given translations, so that they need no search.

Sources of the ideas: Michel et al., "Are Sixteen Heads Really Better than One?", NeurIPS 2019 (arXiv:1905.10650); Voita
et al., "Analyzing Multi-Head Self-Attention", ACL 2019 (arXiv:1905.09418).
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sentencepiece
import torch
from torch import Tensor
from torch.nn import functional

from model.attention import MultiHeadAttention
from model.augment import Pair
from model.checkpoint import Checkpoint
from model.data import Batch, make_batch
from model.transformer import Transformer

_BATCH_PAIRS = 32


class Head(NamedTuple):
    """A head: of the encoder, of the decoder's attention to itself, or of its attention to the source (`cross`)."""

    attention: str
    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of each sentence, in nats, and all target tokens, each sentence's end included."""

    sums: Tensor
    num_tokens: int

    @property
    def mean(self) -> float:
        """In nats per target token."""
        return float(self.sums.sum()) / self.num_tokens

    def rise(self, before: "Loss") -> tuple[float, float]:
        """Returns how much higher it is in nats per token, and half the width of its 95% interval over sentences."""
        differences = self.sums - before.sums
        margin = 1.96 * math.sqrt(len(differences)) * float(differences.std(correction=0))
        return float(differences.sum()) / self.num_tokens, margin / self.num_tokens


def measure_heads(checkpoint: Checkpoint, texts: Mapping[str, Sequence[Pair]]) -> dict[str, Any]:
    """Returns what `report` shows, as JSON has it.

    Args:
        checkpoint: of the network.
        texts: pairs of source and target, by a name for each text. Pairs that are too long are left out.

    Raises:
        ValueError: a text has no pair that fits.
    """
    model = checkpoint.build_model()
    batches = {name: _batches(checkpoint, name, pairs) for name, pairs in texts.items()}
    with torch.inference_mode():
        before = {name: loss(model, own) for name, own in batches.items()}
        distances = {name: _distances(model, own) for name, own in batches.items()}
        rises: dict[Head, dict[str, tuple[float, float]]] = {}
        for head in heads_of(model):
            with without(model, [head]):
                rises[head] = {name: loss(model, own).rise(before[name]) for name, own in batches.items()}
    mean = {kind: torch.stack([each[kind] for each in distances.values()]).mean(0) for kind in _attentions(model)}
    return {
        "loss": {name: each.mean for name, each in before.items()},
        "tokens": {name: each.num_tokens for name, each in before.items()},
        "heads": [
            {**head._asdict(), **_closest(model, head, mean), "rise": {name: own[0] for name, own in each.items()}}
            | {"margin": {name: own[1] for name, own in each.items()}}
            for head, each in rises.items()
        ],
        "distances": {name: {kind: matrix.tolist() for kind, matrix in own.items()} for name, own in distances.items()},
    }


def report(found: dict[str, Any]) -> str:
    """Returns a table of heads, first those whose loss hurts least in the text that it hurts most."""
    names = list(found["loss"])
    numbered = list(enumerate(names, start=1))
    lines = [
        f"text {i}: loss {found['loss'][name]:.3f}, {found['tokens'][name]} tokens, {name}" for i, name in numbered
    ]
    lines += ["", "how much the loss rises without a head (half a 95% interval), and the head that is most alike", ""]
    rows = [("head", *(f"text {number}" for number, _ in numbered), "most alike", "bits")]
    for head in sorted(found["heads"], key=lambda each: max(each["rise"].values())):
        shown = [f"{head['rise'][name]:+.4f} ({head['margin'][name]:.4f})" for name in names]
        other = head["closest"]
        rows.append((_named(head), *shown, _named(other) if other else "none", f"{head['distance']:.2f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join([*lines, *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)])


def loss(model: Transformer, batches: Sequence[Batch]) -> Loss:
    """Returns the loss without smoothing of given translations."""
    sums, num_tokens = [], 0
    for batch in batches:
        logits = model(batch.source, batch.target_in)
        pad_id = model.config.pad_id
        each = functional.cross_entropy(logits.mT, batch.target_out, ignore_index=pad_id, reduction="none")
        sums.append(each.double().sum(1))
        num_tokens += int((batch.target_out != pad_id).sum())
    return Loss(torch.cat(sums), num_tokens)


def heads_of(model: Transformer) -> list[Head]:
    """Returns all heads of a network."""
    return [
        Head(kind, layer, head)
        for kind, layers in _attentions(model).items()
        for layer, attention in enumerate(layers)
        for head in range(attention.num_heads)
    ]


@contextlib.contextmanager
def without(model: Transformer, heads: Sequence[Head]) -> Iterator[None]:
    """Lets a network go without some heads: nothing of what they gather is passed on."""
    attentions = _attentions(model)
    kept = []
    with torch.no_grad():
        for head in heads:
            attention = attentions[head.attention][head.layer]
            width = attention.width // attention.num_heads
            columns = attention.output.weight[:, head.head * width : (head.head + 1) * width]
            kept.append((columns, columns.clone()))
            columns.zero_()
        try:
            yield
        finally:
            for columns, weights in kept:
                columns.copy_(weights)


def distances_of(weights: Tensor) -> Tensor:
    """Returns how differently heads attend: the mean Jensen-Shannon divergence in bits, 0 (alike) to 1 (disjoint).

    Args:
        weights: [heads, positions, keys], a distribution over keys for each head and position.

    Returns:
        [heads, heads].
    """
    entropies = torch.special.entr(weights).sum(-1)
    result = torch.zeros(len(weights), len(weights))
    for index, own in enumerate(weights[:-1]):
        others = slice(index + 1, None)
        middle = torch.special.entr((own + weights[others]) / 2).sum(-1)
        divergence = middle - (entropies[index] + entropies[others]) / 2
        result[index, others] = result[others, index] = divergence.mean(-1).clamp(min=0) / math.log(2)
    return result


def _attentions(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """Returns the attentions of each kind, by layer. A decoder of SSRUs or retention does not attend to itself."""
    kinds = {
        "encoder": [layer.self_attention for layer in model.encoder],
        "decoder": [layer.self_attention for layer in model.decoder if layer.recurrence is None],
        "cross": [layer.cross_attention for layer in model.decoder],
    }
    return {kind: layers for kind, layers in kinds.items() if layers}


def _batches(checkpoint: Checkpoint, name: str, pairs: Sequence[Pair]) -> list[Batch]:
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    limit = checkpoint.config.max_positions
    encoded = [(tokenizer.encode(source), tokenizer.encode(target)) for source, target in pairs]
    fitting = sorted((each for each in encoded if max(map(len, each)) < limit), key=lambda each: len(each[1]))
    if not fitting:
        raise ValueError(f"{name} has no pair of at most {limit} tokens")
    starts = range(0, len(fitting), _BATCH_PAIRS)
    return [make_batch(fitting[start : start + _BATCH_PAIRS], checkpoint.config) for start in starts]


def _distances(model: Transformer, batches: Sequence[Batch]) -> dict[str, Tensor]:
    """Returns the distances of all heads of each kind, over all positions."""
    totals = {kind: torch.zeros(()) for kind in _attentions(model)}
    num_positions = dict.fromkeys(totals, 0)
    for batch in batches:
        for kind, weights in _weights(model, batch).items():
            queries = batch.source if kind == "encoder" else batch.target_in
            is_token = queries != model.config.pad_id
            own = weights.transpose(0, 1)[:, is_token]  # [heads, positions, keys]
            totals[kind] = totals[kind] + distances_of(own) * own.shape[1]
            num_positions[kind] += own.shape[1]
    return {kind: total / num_positions[kind] for kind, total in totals.items()}


def _weights(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Returns what all heads of each kind look at, [B, heads, queries, keys]."""
    found: dict[str, list[Tensor]] = {}
    with contextlib.ExitStack() as hooks:
        for kind, layers in _attentions(model).items():
            own = found.setdefault(kind, [])
            for attention in layers:
                asking = attention.register_forward_pre_hook(lambda _, given: (*given[:3], True))
                taking = attention.register_forward_hook(lambda _, given, result, own=own: own.append(result[1]))
                hooks.callback(asking.remove)
                hooks.callback(taking.remove)
        model(batch.source, batch.target_in)
    return {kind: torch.cat(each, 1) for kind, each in found.items()}


def _closest(model: Transformer, head: Head, distances: Mapping[str, Tensor]) -> dict[str, Any]:
    """Returns the head of the same kind that attends most alike, and the distance; none if there is no other."""
    own = [each for each in heads_of(model) if each.attention == head.attention]
    row = distances[head.attention][own.index(head)].clone()
    row[own.index(head)] = math.inf
    place = int(row.argmin())
    return {
        "closest": own[place]._asdict() if len(own) > 1 else None,
        "distance": float(row[place]) if len(own) > 1 else 0.0,
    }


def _named(head: Mapping[str, Any]) -> str:
    return f"{head['attention']} {head['layer']}.{head['head']}"
