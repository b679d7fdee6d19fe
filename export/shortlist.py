"""Learns a lexical shortlist from parallel text, by IBM Model 1: which token is translated with which.

Source: Brown et al. 1993, "The Mathematics of Statistical Machine Translation". Its word order blindness does no harm
here, and it needs seconds for 100,000 pairs. A row of the table has no use for what every sentence may use anyway, so
the common tokens take none of its places.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from export.subject import longest_source
from model.augment import Pair
from model.checkpoint import Checkpoint
from server.bundle.shortlist import Shortlist

logger = logging.getLogger(__name__)

PER_TOKEN = 32
NUM_COMMON = 200
_ITERATIONS = 5
_CHUNK_LINKS = 2**22  # a few hundred MB at a time
_DECIMALS = 9  # of a probability: equally good translations stay equal, whatever the order of the sums


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Links of some sentence pairs: each joins a target position with a source position, or with the NULL word.

    Attributes:
        places: int64 [U], of the distinct (source token, target token) among all of the text's.
        links: int32 [L], which of them each link is; the links of one target position lie together.
        lengths: int64 [T], number of links of each target position.
    """

    places: NDArray[np.int64]
    links: NDArray[np.int32]
    lengths: NDArray[np.int64]


def learn_shortlist(pairs: list[Pair], checkpoint: Checkpoint) -> Shortlist:
    """Learns the shortlist of a model from training text, leaving out pairs too long for its training.

    Every sentence may use the byte pieces and all pieces of one character, placeholders among them, so that names,
    numbers and whatever is copied can be spelled.

    Raises:
        ValueError: no pairs, or the checkpoint does not say how long the sentences of its training were.
    """
    config = checkpoint.config
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    sources, targets = (tokenizer.encode(list(side)) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    longest = longest_source(checkpoint)
    encoded = [([*s, config.eos_id], [*t, config.eos_id]) for s, t in zip(sources, targets, strict=True)]
    fitting = [(s, t) for s, t in encoded if max(len(s), len(t)) <= longest]
    shortlist = build_shortlist(fitting, config.vocab_size, always=spelling_ids(tokenizer))
    logger.info(
        "shortlist: learned from %d pairs, %d left out over %d tokens; %d common tokens",
        len(fitting),
        len(encoded) - len(fitting),
        longest,
        len(shortlist.common),
    )
    return shortlist


def spelling_ids(tokenizer: sentencepiece.SentencePieceProcessor) -> list[int]:
    """Returns the ids that any text can be spelled with: unk, eos, bytes and all pieces of one character."""
    ids = range(tokenizer.vocab_size())
    spelled = [i for i in ids if tokenizer.is_byte(i) or len(tokenizer.id_to_piece(i).removeprefix("▁")) <= 1]
    return [tokenizer.unk_id(), tokenizer.eos_id(), *spelled]


def build_shortlist(
    pairs: list[tuple[list[int], list[int]]],
    vocab_size: int,
    *,
    always: Iterable[int],
    per_token: int = PER_TOKEN,
    num_common: int = NUM_COMMON,
) -> Shortlist:
    """Builds the table from parallel token ids.

    Args:
        pairs: source and target ids, both with eos.
        vocab_size: V, of the joint vocabulary.
        always: target tokens that are common however rare they are, such as eos.
        per_token: n, candidates of a source token: itself, since names and numbers are copied, and its n - 1 most
            probable translations that are not common.
        num_common: so many of the most frequent target tokens are common.

    Raises:
        ValueError: no pairs.
    """
    if not pairs:
        raise ValueError("there are no sentence pairs to learn a shortlist from")
    frequencies = np.bincount(np.concatenate([target for _, target in pairs]), minlength=vocab_size)
    frequent = np.argsort(-frequencies, kind="stable")[:num_common]
    common = np.union1d(frequent[frequencies[frequent] > 0], list(always)).astype(np.int32)

    keys, probabilities = translation_probabilities(pairs, vocab_size)
    sources, targets = np.divmod(keys, vocab_size)
    eligible = (sources < vocab_size) & (sources != targets) & ~np.isin(targets, common)
    sources, targets, probabilities = sources[eligible], targets[eligible], probabilities[eligible]
    order = np.lexsort((-np.round(probabilities, _DECIMALS), sources))  # stable: of equals, the smaller id comes first
    sources, targets = sources[order], targets[order]
    rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
    best = rank < per_token - 1
    by_token = np.tile(np.arange(vocab_size, dtype=np.int32)[:, None], per_token)
    by_token[sources[best], 1 + rank[best]] = targets[best]
    return Shortlist(by_token, common)


def translation_probabilities(
    pairs: list[tuple[list[int], list[int]]], vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Estimates how probable a target token is as translation of a source token.

    Returns:
        Of every two tokens that share a sentence pair source * V + target, in order, and the probability; the source
        token V is the NULL word, which stands in every source sentence.
    """
    chunks, keys = _chunks(pairs, vocab_size)
    sources = keys // vocab_size
    probabilities = np.ones(len(keys))
    for _ in range(_ITERATIONS):
        counts = np.zeros(len(keys))
        for chunk in chunks:
            share = probabilities[chunk.places][chunk.links]
            starts = np.cumsum(chunk.lengths) - chunk.lengths
            share /= np.repeat(np.add.reduceat(share, starts), chunk.lengths)
            counts[chunk.places] += np.bincount(chunk.links, share, len(chunk.places))
        probabilities = counts / np.bincount(sources, counts)[sources]
    return keys, probabilities


def _chunks(pairs: list[tuple[list[int], list[int]]], vocab_size: int) -> tuple[list[_Chunk], NDArray[np.int64]]:
    found = []
    for group in _group_by_links(pairs, vocab_size):
        grids = [np.add.outer(target, source * vocab_size) for source, target in group]
        distinct, links = np.unique(np.concatenate([grid.ravel() for grid in grids]), return_inverse=True)
        lengths = np.concatenate([np.full(grid.shape[0], grid.shape[1]) for grid in grids])
        found.append((distinct, links.astype(np.int32), lengths))
    keys = np.unique(np.concatenate([distinct for distinct, _, _ in found]))
    return [_Chunk(np.searchsorted(keys, distinct), *links) for distinct, *links in found], keys


def _group_by_links(
    pairs: list[tuple[list[int], list[int]]], vocab_size: int
) -> Iterator[list[tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    group: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    num_links = 0
    for source, target in pairs:
        group.append((np.array([*source, vocab_size]), np.array(target)))
        num_links += (len(source) + 1) * len(target)
        if num_links >= _CHUNK_LINKS:
            yield group
            group, num_links = [], 0
    if group:
        yield group
