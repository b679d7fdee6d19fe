"""What a search is told of the terms of a sentence: their forms, and which words of a translation they replace."""

import numpy as np
from numpy.typing import NDArray

from server.bundle.tokenizer import Tokenizer
from server.decoding.result import Hypothesis
from server.decoding.terms import Replaced, ReplacedWord, Terms
from server.text.alignment import attending, find_spans, words_of
from server.text.glossary import MAX_OF_SENTENCE, FoundTerm
from server.text.source import SourceSentence

TERMS_BEAM_SIZE = 8  # at least; half, and sentences lose 0.7 chrF; twice that, and they take twice as long for no more


def terms_of(tokenizer: Tokenizer, sentence: SourceSentence) -> Terms | None:
    """Returns the terms of a sentence that the vocabulary can write, at most `MAX_OF_SENTENCE`; None without any."""
    replaced = sentence.replaced or Replaced(())
    forms = (tokenizer.encode_forms(_spelt(found, sentence)) for found in sentence.terms[:MAX_OF_SENTENCE])
    told = [each for each in zip(forms, replaced.words, strict=False) if each[0]]
    if not told:
        return None
    of_told = replaced._replace(words=tuple(words for _, words in told))
    return Terms(tuple(own for own, _ in told), of_told, tokenizer.word_parts)


def _spelt(found: FoundTerm, sentence: SourceSentence) -> list[str]:
    """Returns the forms of a term, with a capital too if it begins the sentence, as it may begin the translation."""
    forms = list(found.term.targets)
    if not any(map(str.isalnum, sentence.text[: found.start])):
        forms += [form[:1].upper() + form[1:] for form in forms]
    return forms


def find_replaced(
    tokenizer: Tokenizer, sentence: SourceSentence, hypothesis: Hypothesis, attention: NDArray[np.float32] | None
) -> Replaced:
    """Returns what a translation has in the place of each term.

    Args:
        tokenizer: of the model.
        sentence: the source.
        hypothesis: its translation.
        attention: of this, [T, S]; None if it was not aligned. Then nothing is known.
    """
    if attention is None:
        return Replaced(tuple(() for _ in sentence.terms))
    ids, pieces = hypothesis.ids, tokenizer.spell_target(hypothesis.ids)
    words = words_of(pieces)
    spans = find_spans(tokenizer.spell_source(sentence.source_ids or ()), sentence.text)
    firsts = [attending(attention, spans, (term.start, term.end), words) for term in sentence.terms]
    replaced = {first for own in firsts for first in own}
    staying = [first for first, _ in words if first not in replaced]
    # A first token of few letters begins many words.
    telling = {ids[first] for first, end in words if 2 * len(pieces[first]) >= len("".join(pieces[first:end]))}
    gone = telling.intersection(ids[first] for first in replaced).difference(ids[first] for first in staying)

    def word(first: int) -> ReplacedWord:
        before = sum(other < first and ids[other] == ids[first] for other in staying)
        return ReplacedWord(first, ids[first], before)

    return Replaced(tuple(tuple(map(word, own)) for own in firsts), frozenset(gone))
