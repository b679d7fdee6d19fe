"""Greedy and beam search without a cache: plain, slow, and the oracle that every parity test compares with.

The rules, which `server.decoding.beam_search` keeps too:
- A step extends each of the W live beams by its 2W best tokens; of these, the 2W best by total log-probability are the
  candidates (equal ones: lower beam first, then lower rank).
- A candidate that ends with eos is finished if it is among the first W; the first W that do not end live on.
- The search of a sentence is over when W hypotheses are finished, or when the candidates have `max_tokens` tokens:
  then the first W are finished, best first, whatever their last token.
- Hypotheses are ranked by log-probability / length^length_penalty, where the length counts eos.
- A forced prefix is one beam of log-probability 0; its tokens count in the length and in `max_tokens`.
- `SearchRules` say what else a model may want.
- Where a source has placeholders, a candidate's log-probability is less by 6 for each that it ends without, and by 100
  if its last token is one that it has too often; with W = 1 nothing is charged.
Greedy search is W = 1. Source of the stopping rule: fairseq's sequence generator; of the others: HF transformers'
`generate`, which imported models are compared with.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from model.data import pad
from model.rnn import RecurrentNetwork
from model.transformer import Transformer

Stepwise = Transformer | RecurrentNetwork  # what writes a translation token by token

_DROPPED, _INVENTED = 6.0, 100.0  # nats, for placeholders


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation: ids without bos, forced prefix and eos, its score, and whether the model ended it itself."""

    ids: list[int]
    score: float
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Beam:
    ids: list[int]
    log_prob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules:
    """When a search ends.

    Attributes:
        early_stopping: if not, it goes on until the best live beam, by log-probability / present length^length_penalty,
            is no better than the worst of the W best hypotheses.
        forced_eos: the last token that `max_tokens` allows is eos, with log-probability 0.
    """

    early_stopping: bool = True
    forced_eos: bool = False


class _Search:
    """The state of one sentence."""

    def __init__(
        self,
        beam_size: int,
        length_penalty: float,
        max_tokens: int,
        eos_id: int,
        prefix: Sequence[int] = (),
        rules: SearchRules = SearchRules(),
        placeholders: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        if len(prefix) >= max_tokens:
            raise ValueError(f"a forced prefix of {len(prefix)} tokens must be shorter than max_tokens, {max_tokens}")
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.max_tokens = max_tokens
        self.eos_id = eos_id
        self.num_forced = len(prefix)
        self.rules = rules
        self.placeholders = placeholders if beam_size > 1 else {}
        self.live = [_Beam(list(prefix), 0.0)]
        self.finished: list[Hypothesis] = []

    def advance(self, log_probs: Tensor) -> None:
        """Takes one step; `log_probs` [live beams, V]."""
        is_last = len(self.live[0].ids) + 1 == self.max_tokens
        if is_last and self.rules.forced_eos:
            log_probs = torch.full_like(log_probs, -math.inf)
            log_probs[:, self.eos_id] = 0.0
        candidates = self._candidates(log_probs)
        for beam in candidates[: self.beam_size]:
            if beam.ids[-1] == self.eos_id:
                self._finish(beam, is_complete=not (is_last and self.rules.forced_eos))
            elif is_last:
                self._finish(beam, is_complete=False)
        self.live = [beam for beam in candidates if beam.ids[-1] != self.eos_id][: self.beam_size]
        if is_last or self._is_over():
            self.live = []

    def _candidates(self, log_probs: Tensor) -> list[_Beam]:
        """Returns the 2W best beams that are one token longer; impossible ones, suppressed tokens, are left out."""
        top = log_probs.topk(min(2 * self.beam_size, log_probs.shape[-1]), dim=-1)
        extended = [
            _Beam([*beam.ids, token], beam.log_prob + value - self._charge(beam.ids, token))
            for beam, values, tokens in zip(self.live, top.values.tolist(), top.indices.tolist(), strict=True)
            for value, token in zip(values, tokens, strict=True)
            if value > -math.inf
        ]
        return sorted(extended, key=lambda beam: -beam.log_prob)[: 2 * self.beam_size]

    def _charge(self, taken: list[int], token: int) -> float:
        chosen = taken[self.num_forced :]
        if token == self.eos_id:
            return _DROPPED * sum(max(0, times - chosen.count(each)) for each, times in self.placeholders.items())
        return _INVENTED if token in self.placeholders and chosen.count(token) >= self.placeholders[token] else 0.0

    def _is_over(self) -> bool:
        if len(self.finished) < self.beam_size or self.rules.early_stopping or not self.live:
            return len(self.finished) == self.beam_size
        return self._score(self.live[0]) <= self.finished[-1].score

    def _finish(self, beam: _Beam, is_complete: bool) -> None:
        if len(self.finished) < self.beam_size or not self.rules.early_stopping:
            ids = beam.ids[self.num_forced :]
            if ids[-1] == self.eos_id:
                ids = ids[:-1]
            self.finished.append(Hypothesis(ids, self._score(beam), is_complete))
            if not self.rules.early_stopping:
                self.finished = sorted(self.finished, key=lambda hypothesis: -hypothesis.score)[: self.beam_size]

    def _score(self, beam: _Beam) -> float:
        return beam.log_prob / float(len(beam.ids) ** self.length_penalty)


@torch.inference_mode()
def search(
    model: Stepwise,
    sources: list[list[int]],
    *,
    beam_size: int = 1,
    length_penalty: float = 1.0,
    max_tokens: int | list[int] = 256,
    forced_prefixes: Sequence[Sequence[int]] = (),
    rules: SearchRules = SearchRules(),
    placeholder_ids: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Translates a batch of sentences.

    Args:
        model: in evaluation mode.
        sources: token ids of each sentence, ending with eos.
        beam_size: W, at least 1; 1 is greedy search.
        length_penalty: exponent of the length in the score.
        max_tokens: most tokens of a translation, forced ones and eos included, for all or for each sentence.
        forced_prefixes: for each sentence what its translation must begin with, shorter than its `max_tokens`;
            hypotheses are without it. Nothing is nothing for all.
        rules: of the model.
        placeholder_ids: of the vocabulary.

    Returns:
        For each sentence its hypotheses (`beam_size`, or fewer where the vocabulary is that small), best first.

    Raises:
        ValueError: a forced prefix is too long.
    """
    config = model.config
    limits = [max_tokens] * len(sources) if isinstance(max_tokens, int) else max_tokens
    searches = [
        _Search(beam_size, length_penalty, limit, config.eos_id, prefix, rules, _count(placeholder_ids, source))
        for limit, prefix, source in zip(limits, forced_prefixes or [()] * len(sources), sources, strict=True)
    ]
    device = model.embedding.tokens.weight.device
    memory, visible = model.encode(pad(sources, config.pad_id).to(device))
    while any(s.live for s in searches):
        rows = [i for i, s in enumerate(searches) for _ in s.live]
        prefixes = pad([[config.bos_id, *beam.ids] for s in searches for beam in s.live], config.pad_id).to(device)
        states = model.decode_states(prefixes, memory[rows], visible[rows])
        lengths = torch.tensor([len(beam.ids) for s in searches for beam in s.live], device=device)
        last = states[torch.arange(len(rows), device=device), lengths]
        log_probs = model.logits(last).float().log_softmax(dim=-1)
        row = 0
        for one in searches:
            count = len(one.live)
            if count:
                one.advance(log_probs[row : row + count])
                row += count
    return [sorted(s.finished, key=lambda hypothesis: -hypothesis.score) for s in searches]


def _count(placeholder_ids: Sequence[int], source: Sequence[int]) -> dict[int, int]:
    """Returns how often a source has each placeholder, or nothing if it has none."""
    counts = {each: source.count(each) for each in placeholder_ids}
    return counts if any(counts.values()) else {}


def default_max_tokens(source_tokens: int, limit: int) -> int:
    """Returns the default bound on the target's tokens: twice the source's plus 16, at most `limit`."""
    return min(limit, 2 * source_tokens + 16)
