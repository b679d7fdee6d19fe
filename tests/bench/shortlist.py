"""Lexical maps for the benchmark, the same for both systems.

What a shortlist saves depends on how many candidates a sentence has, and all of a batch together, not on which. So the
random weights get a random map whose sizes are those of real ones. These list some tens of translations of each token
(Marian's usual lists 50 to 100, `export.shortlist` 32), and frequent target tokens are in many of the lists, so that a
batch needs far fewer tokens than its sentences add up to. Here the lists are drawn with Zipf's frequencies for that
reason: with 32,000 tokens a sentence of newstest2014 of 30 tokens has some 1,000 candidates, and 32 sentences have some
7,500 together.

A trained model does not end its sentences at their lengths when it must choose among random tokens, so the built-in one
gets a map learned from the text and its own translations of it, in which hardly any sentence lacks a token.
"""

import numpy as np

from export.shortlist import build_shortlist
from model.config import TransformerConfig
from model.search import default_max_tokens, search
from model.transformer import Transformer
from server.bundle.shortlist import Shortlist
from tests.bench.text import Text

_PER_TOKEN = 64  # draws; frequent tokens are drawn more than once, so about 49 different ones
_NUM_COMMON = 200
_ZIPF_EXPONENT = 1.05
_BATCH = 32


def random_shortlist(config: TransformerConfig, seed: int = 1) -> Shortlist:
    """Returns a map for a vocabulary: of each token itself and drawn ones, and common tokens.

    Ids stand for ranks of frequency, as SentencePiece gives them; the most frequent are the common ones. So is eos, by
    which the random weights end their sentences.
    """
    special = {config.pad_id, *_always(config)}
    ordinary = np.array([token for token in range(config.vocab_size) if token not in special], np.int32)
    common, rare = ordinary[:_NUM_COMMON], ordinary[_NUM_COMMON:]
    cumulated = np.cumsum(np.arange(1, len(rare) + 1) ** -_ZIPF_EXPONENT)
    draws = np.random.default_rng(seed).random((config.vocab_size, _PER_TOKEN)) * cumulated[-1]
    by_token = rare[np.searchsorted(cumulated, draws)]
    by_token[ordinary, 0] = ordinary
    return Shortlist(by_token, np.array([*_always(config), *common], np.int32))


def own_shortlist(model: Transformer, text: Text) -> Shortlist:
    """Returns a map learned from the text and what the model, in evaluation mode, translates it to."""
    config = model.config
    sources = sorted((list(ids) for ids in text.source_ids), key=len)
    pairs = []
    for start in range(0, len(sources), _BATCH):
        batch = sources[start : start + _BATCH]
        limits = [default_max_tokens(len(ids), config.max_positions) for ids in batch]
        found = search(model, batch, max_tokens=limits)
        pairs += [(ids, [*best.ids, config.eos_id]) for ids, (best, *_) in zip(batch, found, strict=True)]
    return build_shortlist(pairs, config.vocab_size, always=_always(config))


def _always(config: TransformerConfig) -> tuple[int, ...]:
    """Returns what CTranslate2 makes candidates whatever the map says."""
    return config.unk_id, config.bos_id, config.eos_id
