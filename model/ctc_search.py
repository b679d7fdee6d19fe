"""How a translation is read from what each position of a one-pass network may be: the oracle of the server's searches.

A path names a token or the blank for each position. Its translation is what remains when equal neighbours become one
and the blanks are taken out. The probability of a path is the product of its positions', that of a translation the sum
of its paths'.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.data import pad
from model.one_pass import UPSAMPLING, OnePass


@dataclass(frozen=True, slots=True)
class Reading:
    """A translation's ids, and the logarithm of its probability, or of its best path's."""

    ids: list[int]
    log_prob: float


def collapse(path: Sequence[int], blank: int) -> list[int]:
    """Returns the translation of a path."""
    return [label for i, label in enumerate(path) if label != blank and (i == 0 or path[i - 1] != label)]


def keep_top(positions: Tensor, k: int, blank: int) -> Tensor:
    """Returns log-probabilities [T, V] with -inf at all but the k best tokens of each position, and the blank."""
    top = positions.topk(min(k, positions.shape[1]), dim=-1)
    kept = torch.full_like(positions, -math.inf).scatter(1, top.indices, top.values)
    kept[:, blank] = positions[:, blank]
    return kept


def best_path(positions: Tensor, blank: int) -> Reading:
    """Returns the translation of the most probable path: greedy search.

    Args:
        positions: log-probabilities [T, V].
        blank: its id.
    """
    best = positions.max(dim=-1)
    return Reading(collapse(best.indices.tolist(), blank), float(best.values.sum()))


def prefix_beam(positions: Tensor, blank: int, beam_size: int) -> list[Reading]:
    """Returns the most probable translations, at most `beam_size`, best first, by the sum of their paths.

    After each position the `beam_size` most probable beginnings live on; of equal ones those found first. What is lost
    with the others makes a sum too small.

    Args:
        positions: log-probabilities [T, V]; what has -inf is not considered.
        blank: its id.
        beam_size: at least 1.

    Source: "First-Pass Large Vocabulary Continuous Speech Recognition using Bi-Directional Recurrent DNNs"
    (arXiv:1408.2873).
    """
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, -math.inf)}  # paths that end with a blank, without
    for row in positions.tolist():
        labels = [label for label, value in enumerate(row) if label != blank and value > -math.inf]
        grown: dict[tuple[int, ...], tuple[float, float]] = {}
        for ids, (with_blank, without) in beams.items():
            _add(grown, ids, _log_sum(with_blank, without) + row[blank], -math.inf)
            for label in labels:
                if ids and label == ids[-1]:
                    _add(grown, ids, -math.inf, without + row[label])
                    _add(grown, (*ids, label), -math.inf, with_blank + row[label])
                else:
                    _add(grown, (*ids, label), -math.inf, _log_sum(with_blank, without) + row[label])
        beams = dict(sorted(grown.items(), key=lambda each: -_log_sum(*each[1]))[:beam_size])
    return [Reading(list(ids), _log_sum(*ends)) for ids, ends in beams.items() if _log_sum(*ends) > -math.inf]


def exact_length(positions: Tensor, blank: int, num_tokens: int) -> Reading:
    """Returns the translation of exactly `num_tokens` tokens that has the most probable path (Viterbi's algorithm).

    Takes time in O(T * V' * num_tokens), where V' is what a position may be. The state of a path is how many tokens it
    has, and what it ends with.

    Args:
        positions: log-probabilities [T, V]; what has -inf is not considered.
        blank: its id.
        num_tokens: at least 0.

    Raises:
        ValueError: no path has so many.
    """
    # By number of tokens, then by last label: the best path, as its log-probability and its links back.
    paths: list[dict[int, _Path]] = [{blank: (0.0, None)}, *({} for _ in range(num_tokens))]
    for row in positions.tolist():
        labels = [(label, value) for label, value in enumerate(row) if label != blank and value > -math.inf]
        extended: list[dict[int, _Path]] = []
        for count, same in enumerate(paths):
            ends = {blank: _extend(max(same.values(), key=_log_prob), row[blank], None)} if same else {}
            fewer = sorted(paths[count - 1].items(), key=lambda each: -_log_prob(each[1]))[:2] if count else []
            for label, value in labels:
                origins = [_extend(path, value, label) for last, path in fewer if last != label][:1]
                if label in same:
                    origins.append(_extend(same[label], value, None))
                if origins:
                    ends[label] = max(origins, key=_log_prob)
            extended.append(ends)
        paths = extended
    finished = [path for path in paths[num_tokens].values() if _log_prob(path) > -math.inf]
    if not finished:
        raise ValueError(f"no path over {len(positions)} positions has {num_tokens} tokens")
    log_prob, link = max(finished, key=_log_prob)
    ids = []
    while link is not None:
        label, link = link
        ids.append(label)
    return Reading(ids[::-1], log_prob)


@torch.inference_mode()
def translate(model: OnePass, sources: list[list[int]], beam_size: int = 1) -> list[list[int]]:
    """Translates a batch of sentences by prefix beam search, or greedily with a beam of one.

    Args:
        model: in evaluation mode.
        sources: token ids of each sentence, ending with eos.
        beam_size: W, at least 1; a position may be one of its 2W best tokens, or the blank.

    Returns:
        The best translation of each sentence, ids without eos.
    """
    config = model.config
    states = model.decode(*model.upsample(pad(sources, config.pad_id).to(model.source_tokens.device)))
    counts = [UPSAMPLING * len(source) for source in sources]
    if beam_size == 1:
        paths = model.best_tokens(states).tolist()
        return [collapse(path[:count], config.bos_id) for path, count in zip(paths, counts, strict=True)]
    translations = []
    for own, count in zip(states, counts, strict=True):
        positions = model.logits(own[:count]).float().log_softmax(dim=-1)
        considered = keep_top(positions, 2 * beam_size, config.bos_id)
        translations.append(prefix_beam(considered, config.bos_id, beam_size)[0].ids)
    return translations


_Link = tuple[int, "_Link | None"]
_Path = tuple[float, _Link | None]


def _log_prob(path: _Path) -> float:
    return path[0]


def _extend(path: _Path, value: float, token: int | None) -> _Path:
    log_prob, link = path
    return log_prob + value, link if token is None else (token, link)


def _add(beams: dict[tuple[int, ...], tuple[float, float]], ids: tuple[int, ...], *ends: float) -> None:
    before = beams.get(ids, (-math.inf, -math.inf))
    beams[ids] = (_log_sum(before[0], ends[0]), _log_sum(before[1], ends[1]))


def _log_sum(one: float, other: float) -> float:
    larger, smaller = max(one, other), min(one, other)
    return larger if smaller == -math.inf else larger + math.log1p(math.exp(smaller - larger))
