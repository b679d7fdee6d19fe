"""Greedy and beam search without a cache: plain, slow, and the oracle that every parity test compares with.

The rules, which `server.decoding.beam_search` keeps too:
- A step extends each of the W live beams by its 2W best tokens; of these, the 2W best by total log-probability are the
  candidates (equal ones: lower beam first, then lower rank).
- A candidate that ends with eos is finished if it is among the first W; the first W that do not end live on.
- The search of a sentence is over when W hypotheses are finished, or when the beams have `max_tokens` tokens: then
  the live ones fill the list up.
- Hypotheses are ranked by log-probability / length^length_penalty, where the length counts eos.
Greedy search is W = 1. Source of the stopping rule: fairseq's sequence generator.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.data import pad
from model.transformer import Transformer


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation: ids without bos and eos, its score, and whether the model ended it itself."""

    ids: list[int]
    score: float
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Beam:
    ids: list[int]
    log_prob: float


class _Search:
    """The state of one sentence."""

    def __init__(self, beam_size: int, length_penalty: float, max_tokens: int, eos_id: int) -> None:
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.max_tokens = max_tokens
        self.eos_id = eos_id
        self.live = [_Beam([], 0.0)]
        self.finished: list[Hypothesis] = []

    def advance(self, log_probs: Tensor) -> None:
        """Takes one step; `log_probs` [live beams, V]."""
        top = log_probs.topk(min(2 * self.beam_size, log_probs.shape[-1]), dim=-1)
        extended = [
            (_Beam([*beam.ids, int(token)], beam.log_prob + float(value)), int(token) == self.eos_id)
            for beam, values, tokens in zip(self.live, top.values, top.indices, strict=True)
            for value, token in zip(values, tokens, strict=True)
        ]
        candidates = sorted(extended, key=lambda candidate: -candidate[0].log_prob)[: 2 * self.beam_size]
        for beam, is_end in candidates[: self.beam_size]:
            if is_end:
                self._finish(beam.ids[:-1], beam, is_complete=True)
        self.live = [beam for beam, is_end in candidates if not is_end][: self.beam_size]
        if self.live and len(self.live[0].ids) == self.max_tokens:
            for beam in self.live:
                self._finish(beam.ids, beam, is_complete=False)
            self.live = []
        if len(self.finished) == self.beam_size:
            self.live = []

    def _finish(self, ids: list[int], beam: _Beam, is_complete: bool) -> None:
        if len(self.finished) < self.beam_size:
            score = beam.log_prob / len(beam.ids) ** self.length_penalty
            self.finished.append(Hypothesis(ids, score, is_complete))


@torch.inference_mode()
def search(
    model: Transformer,
    sources: list[list[int]],
    *,
    beam_size: int = 1,
    length_penalty: float = 1.0,
    max_tokens: int | list[int] = 256,
) -> list[list[Hypothesis]]:
    """Translates a batch of sentences.

    Args:
        model: in evaluation mode.
        sources: token ids of each sentence, ending with eos.
        beam_size: W, at least 1; 1 is greedy search.
        length_penalty: exponent of the length in the score.
        max_tokens: most tokens of a translation, for all or for each sentence.

    Returns:
        For each sentence its hypotheses (`beam_size`, or fewer where the vocabulary is that small), best first.
    """
    config = model.config
    limits = [max_tokens] * len(sources) if isinstance(max_tokens, int) else max_tokens
    searches = [_Search(beam_size, length_penalty, limit, config.eos_id) for limit in limits]
    device = model.embedding.tokens.weight.device
    memory, visible = model.encode(pad(sources, config.pad_id).to(device))
    while any(s.live for s in searches):
        rows = [i for i, s in enumerate(searches) for _ in s.live]
        prefixes = pad([[config.bos_id, *beam.ids] for s in searches for beam in s.live], config.pad_id).to(device)
        logits, _ = model.decode(prefixes, memory[rows], visible[rows])
        lengths = torch.tensor([len(beam.ids) for s in searches for beam in s.live], device=device)
        last = logits[torch.arange(len(rows), device=device), lengths]
        log_probs = last.float().log_softmax(dim=-1)
        row = 0
        for one in searches:
            count = len(one.live)
            if count:
                one.advance(log_probs[row : row + count])
                row += count
    return [sorted(s.finished, key=lambda hypothesis: -hypothesis.score) for s in searches]


def default_max_tokens(source_tokens: int, limit: int) -> int:
    """Returns the default bound on the target's tokens: twice the source's plus 16, at most `limit`."""
    return min(limit, 2 * source_tokens + 16)
