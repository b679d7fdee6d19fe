"""What a search is told of the terms of a sentence: their forms, and which words of a translation they replace."""

import numpy as np
from numpy.typing import NDArray

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import Hypothesis
from server.decoding.terms import Terms
from server.text.alignment import attending, find_spans, words_of
from server.text.glossary import MAX_OF_SENTENCE
from server.text.source import SourceSentence

TERMS_BEAM_SIZE = 8  # at least; half, and sentences lose 0.7 chrF; twice that, and they take twice as long for no more


def terms_of(tokenizer: Tokenizer, sentence: SourceSentence) -> Terms | None:
    """Returns the terms of a sentence that the vocabulary can write, at most `MAX_OF_SENTENCE`; None without any."""
    forms = (tokenizer.encode_forms(found.term.targets) for found in sentence.terms[:MAX_OF_SENTENCE])
    told = [each for each in zip(forms, sentence.replaced or (), strict=False) if each[0]]
    if not told:
        return None
    return Terms(tuple(own for own, _ in told), tuple(words for _, words in told), tokenizer.word_parts)


def find_replaced(
    tokenizer: Tokenizer, sentence: SourceSentence, hypothesis: Hypothesis, attention: NDArray[np.float32] | None
) -> tuple[frozenset[int], ...]:
    """Returns for each term the tokens that begin the words that a translation has in its place.

    Args:
        tokenizer: of the model.
        sentence: the source.
        hypothesis: its translation.
        attention: of this, [T, S]; None if it was not aligned. Then no words are found.
    """
    if attention is None:
        return tuple(frozenset() for _ in sentence.terms)
    words = words_of(tokenizer.spell_target(hypothesis.ids))
    spans = find_spans(tokenizer.spell_source(sentence.source_ids or ()), sentence.text)
    return tuple(
        frozenset(hypothesis.ids[first] for first in attending(attention, spans, (term.start, term.end), words))
        for term in sentence.terms
    )
