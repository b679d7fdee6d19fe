"""What a search is told of the terms of a sentence: their forms, and which words of a translation they replace."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.bundle.languages import LanguagePair
from server.bundle.tokenizer import Tokenizer
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.terms import Form, Replaced, ReplacedWord, Terms
from server.text.agreement import grammar_of, is_singular
from server.text.alignment import attending, find_spans, mean_by_word, words_of
from server.text.compounds import begins_of_compounds
from server.text.glossary import MAX_OF_SENTENCE, FoundTerm, locate
from server.text.source import SourceSentence
from server.text.term_table import LETTER, normal

TERMS_BEAM_SIZE = 6  # at least; with 4, sentences lose 0.3 chrF; with 8, they take longer and gain nothing
# So many words before the first replaced one may change with it, such as its article. With 2, and with all, sentences
# of one set lose 0.3 chrF; with all, the search also takes longer.
_WORDS_BEFORE = 3

# What a translation becomes by other words before its terms. Half, and of two terms with two cases each some pairs of
# cases are not tried if a term has endings; twice that, and two such translations take more rows than the widest beam.
_MOST_AGREEING = 8

# What may become the rest of a longer word. With half as many letters, terms grow into words that are none before "of"
# and "to". With twice as many, "date" and "mode" stand beside a term as words of their own.
_WORD_BEHIND = re.compile(r"\s[^\W\d_]{4}")

# Words by themselves: no carrier, no mark, and of no script without blanks.
_WHOLE_WORDS = re.compile(rf"(?=\w)(?!_){LETTER}(?:[ -]?(?!_){LETTER})*")


def terms_of(tokenizer: Tokenizer, sentence: SourceSentence) -> Terms | None:
    """Returns the terms of a sentence that the vocabulary can write, at most `MAX_OF_SENTENCE`; None without any."""
    replaced = sentence.replaced or Replaced((), ())
    found = sentence.terms[:MAX_OF_SENTENCE]
    forms = (tokenizer.encode_forms(_spelt(each, sentence)) for each in found)
    joined = (tokenizer.encode_forms(_joined(each, sentence)) for each in found)
    told = [each for each in zip(forms, joined, replaced.words, strict=False) if each[0]]
    if not told:
        return None
    own, longer, words = zip(*told, strict=True)
    return Terms(own, replaced._replace(words=words), tokenizer.word_parts, longer)


def _spelt(found: FoundTerm, sentence: SourceSentence) -> list[str]:
    """Returns the forms of a term, with a capital too if it begins the sentence, as it may begin the translation."""
    forms = list(map(normal, found.term.targets))
    if not any(map(str.isalnum, sentence.text[: found.start])):
        forms += [form[:1].upper() + form[1:] for form in forms]
    return forms


def _joined(found: FoundTerm, sentence: SourceSentence) -> list[str]:
    """Returns what longer words may begin with to have a term; nothing if the source has no word behind the term."""
    if not found.may_join or not _WORD_BEHIND.match(sentence.text, found.end):
        return []
    return begins_of_compounds(map(normal, found.term.targets))


def find_replaced(
    tokenizer: Tokenizer,
    sentence: SourceSentence,
    hypothesis: Hypothesis,
    attention: NDArray[np.float32] | None,
    is_missing: Sequence[bool],
) -> tuple[Replaced, str]:
    """Returns what a translation has in the place of each term, and the translation with the missing terms there.

    Args:
        tokenizer: of the model.
        sentence: the source.
        hypothesis: its translation.
        attention: of this, [T, S]; None if it was not aligned. Then nothing is known.
        is_missing: of each term, whether the translation lacks it.

    Returns:
        Both; the text is empty if a missing term has no place, or not one alone, and if the translation was cut off.
    """
    if attention is None:
        return Replaced(tuple(() for _ in sentence.terms[:MAX_OF_SENTENCE]), hypothesis.ids), ""
    pieces = tokenizer.spell_target(hypothesis.ids)
    words = words_of(pieces)
    numbers = _standing(tokenizer, sentence, pieces, words, attention)
    replaced = _replaced(hypothesis.ids, pieces, words, numbers, is_missing)
    if hypothesis.finish_reason is not FinishReason.STOP:
        return replaced, ""
    return replaced, _exchange(tokenizer, sentence, hypothesis.ids, words, numbers, is_missing)


def _standing(
    tokenizer: Tokenizer,
    sentence: SourceSentence,
    pieces: Sequence[str],
    words: Sequence[tuple[int, int]],
    attention: NDArray[np.float32],
) -> list[list[int]]:
    """Returns for each term the numbers of the words of a translation that stand for it."""
    by_word = mean_by_word(attention, words)
    marks = [not any(map(str.isalnum, "".join(pieces[first:end]))) for first, end in words[: len(by_word)]]
    by_word[marks] = 0.0  # what has no letters stands for no term
    spans = find_spans(tokenizer.spell_source(sentence.source_ids or ()), sentence.text)
    return [attending(by_word, spans, (term.start, term.end)) for term in sentence.terms[:MAX_OF_SENTENCE]]


def _replaced(
    ids: Form,
    pieces: Sequence[str],
    words: Sequence[tuple[int, int]],
    numbers: Sequence[Sequence[int]],
    is_missing: Sequence[bool],
) -> Replaced:
    replaced = {number for own in numbers for number in own}
    staying_ids = list(ids)
    for number in replaced:
        first, end = words[number]
        staying_ids[first:end] = [-1] * (end - first)
    first_tokens = [ids[first] for first, _ in words]
    staying = [number for number in range(len(words)) if number not in replaced]
    gone = {_telling(ids, pieces, words[number]) for number in replaced}
    sizes = set(map(len, gone))
    gone -= {ids[words[each][0] : words[each][0] + size] for each in staying for size in sizes}
    first_numbers = [min(own, default=0) for own, each in zip(numbers, is_missing, strict=False) if each]
    first_new = max(0, min(first_numbers, default=0) - _WORDS_BEFORE)

    def word(number: int) -> ReplacedWord:
        token = first_tokens[number]
        return ReplacedWord(number, token, sum(each < number and first_tokens[each] == token for each in staying))

    own_words = tuple(tuple(map(word, own)) for own in numbers)
    begin = ids[: words[first_new][0]] if first_new else ()
    return Replaced(own_words, tuple(staying_ids), frozenset(gone), begin)


def _exchange(
    tokenizer: Tokenizer,
    sentence: SourceSentence,
    ids: Form,
    words: Sequence[tuple[int, int]],
    numbers: Sequence[Sequence[int]],
    is_missing: Sequence[bool],
) -> str:
    """Returns a translation with each missing term in the place of the words that stand for it.

    Returns an empty text if a missing term has no such words, or has words that are not side by side, that stand for
    another missing term, too, or that something other than a blank stands right before. Terms beyond the first 16 are
    not looked for.
    """
    written = {number: ids[first:end] for number, (first, end) in enumerate(words)}
    taken: set[int] = set()
    for found, own, is_out in zip(sentence.terms, numbers, is_missing, strict=False):
        if not is_out:
            continue
        if not own or own[-1] - own[0] >= len(own) or taken.intersection(own):
            return ""
        if not _WHOLE_WORDS.fullmatch(tokenizer.decode(ids[words[own[0]][0] : words[own[-1]][1]])):
            return ""
        spelt = _spelt(found, sentence)
        is_raised = own[0] == 0 and spelt[0].split(" ")[0].islower()
        with_capitals = spelt[len(found.term.targets) :] if is_raised else []
        forms = tokenizer.encode_forms((with_capitals or spelt)[:1])
        if not forms:
            return ""
        taken.update(own)
        written.update(dict.fromkeys(own, ()))
        written[own[0]] = forms[0]
    return tokenizer.decode([token for each in written.values() for token in each])


def find_choices(
    tokenizer: Tokenizer, sentence: SourceSentence, hypothesis: Hypothesis, pair: LanguagePair
) -> tuple[Form, ...]:
    """Returns the ids, with eos, of translations of which the likeliest is to be taken in place of the second search's.

    The choice is between the second search's translation and the first translation with the terms put into it, each
    with the words before terms as these would agree with them. Of these only the translations with the most terms are
    returned. Where the first translation had a term already, the words before it stay: the network has chosen them.

    Nothing is returned if there is no other choice than what the second search has found.

    Args:
        tokenizer: of the model.
        sentence: the source.
        hypothesis: what the second search has found.
        pair: the languages.
    """
    if sentence.prefix is not None or hypothesis.finish_reason is not FinishReason.STOP:
        return ()
    text = tokenizer.decode(hypothesis.ids)
    of_first = _agreeing(sentence.exchanged, sentence, pair) if sentence.exchanged else []
    in_turn = itertools.zip_longest(_agreeing(text, sentence, pair), of_first)  # so that a narrow beam has some of both
    texts = list(dict.fromkeys(each for both in in_turn for each in both if each is not None))
    numbers = [sum(used.span is not None for used in locate(sentence.terms, each)) for each in texts]
    texts = [each for each, number in zip(texts, numbers, strict=True) if number == max(numbers)]
    encoded = [tokenizer.encode_target(each) for each in texts]
    # If the vocabulary cannot write one of them, none is compared.
    are_written = all(tokenizer.encode_forms([each]) for each in texts)
    return tuple(ids for ids in encoded if ids is not None) if are_written and texts != [text] else ()


def _agreeing(text: str, sentence: SourceSentence, pair: LanguagePair) -> list[str]:
    """Returns what a translation may be for the words before its terms to agree with these; itself if they do."""
    texts, grammar = [text], grammar_of(pair.target)
    if grammar is None:
        return texts
    used = zip(locate(sentence.terms, text), sentence.lacking, strict=True)
    for each, is_lacking in reversed([*used]):  # the last one first, so that the places of the others hold
        found, span = each.found, each.span
        is_name = found.term.targets[0] in found.term.sources  # its end tells no gender
        if span is not None and is_lacking and not is_name:
            forms = list(map(normal, found.term.targets))
            is_single = is_singular(sentence.text[found.start : found.end], pair.source)
            own = [grammar.agreeing(old, span, forms, is_singular=is_single) for old in texts]
            texts = [new for old, news in zip(texts, own, strict=True) for new in news or [old]][:_MOST_AGREEING]
    return texts


def _telling(ids: Form, pieces: Sequence[str], word: tuple[int, int]) -> Form:
    """Returns the first tokens of a word, with half of its letters at least: fewer begin many words."""
    first, end = word
    lengths = list(itertools.accumulate(map(len, pieces[first:end])))
    return ids[first : first + 1 + next(index for index, each in enumerate(lengths) if 2 * each >= lengths[-1])]
