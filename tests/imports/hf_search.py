"""The search of `transformers` 5.23 for one sentence, restated: what an oracle's `early_stopping=False` must equal.

Proved equal to `generate` by `python -m tests.imports.check`. What is unlike `model/search.py`:
- Hypotheses that end in one step compete with those that ended before: the best W are kept, not the first W.
- Without early stopping the search goes on until the best live beam, at its present length, is no better than the worst
  of W finished ones.
- A forced token has log-probability 0, and all others none; it counts in the length.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tests.imports.expected import Run

Prefixes = list[list[int]]


def search(
    next_log_probs: Callable[[Prefixes], Tensor], run: Run, eos_id: int, forced_bos: int | None = None
) -> list[int]:
    """Translates a sentence.

    Args:
        next_log_probs: gives the log-probabilities [prefixes, V] of what follows each prefix; prefixes are ids without
            the start token, all of one length. A suppressed id has -inf.
        run: how to search. Beam size 1 is greedy search, where early stopping has no say.
        eos_id: the token that ends a sentence.
        forced_bos: the token that must come first, if any.

    Returns:
        The ids of the best hypothesis, with `forced_bos`, and eos if it ended.
    """
    width, early_stopping = run.beam_size, run.early_stopping or run.beam_size == 1
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, run.max_tokens + 1):
        log_probs = next_log_probs([ids for _, ids in live])
        if length == 1 and forced_bos is not None:
            log_probs = _only(forced_bos, log_probs)
        if length == run.max_tokens and run.forced_eos:
            log_probs = _only(eos_id, log_probs)
        totals = (log_probs + torch.tensor([score for score, _ in live])[:, None]).flatten()
        best = totals.topk(min(2 * width, len(totals)))
        candidates = [
            (score, [*live[index // log_probs.shape[1]][1], index % log_probs.shape[1]])
            for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if score > -math.inf
        ]
        is_last = length == run.max_tokens
        ended = [
            (score / length**run.length_penalty, ids)
            for score, ids in candidates[:width]
            if is_last or ids[-1] == eos_id
        ]
        finished = sorted([*finished, *ended], key=lambda one: -one[0])[:width]
        live = [(score, ids) for score, ids in candidates if ids[-1] != eos_id][:width]
        if len(finished) == width:
            hope = live[0][0] / length**run.length_penalty if live else -math.inf
            if early_stopping or hope <= finished[-1][0]:
                break
    return finished[0][1]


def _only(token: int, log_probs: Tensor) -> Tensor:
    forced = torch.full_like(log_probs, -math.inf)
    forced[:, token] = 0.0
    return forced
