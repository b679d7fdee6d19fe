"""Trials that show which characters a network returns, and which short codes it copies.

Whether a vocabulary has a character says little: a network that has seen it on a few lines only turns a sentence round
it into noise. So each character that the vocabulary has is put into some real sentences, and counts as known if it
stands in at least half of their translations. Letters of the languages themselves, and the marks of ordinary
punctuation, are not tried: languages use different ones.
"""

import logging
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from export.id_translator import IdTranslator
from server.bundle.manifest import Manifest
from server.bundle.masking import Masking
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions

logger = logging.getLogger(__name__)

Translate = Callable[[list[str]], list[str]]

CODES = ("%{}", "XQ{}", "X{}", "P_{}", "7{}11")
MAX_TRANSLATIONS = 20_000
_MOST_CODES = 2
_LEAST_COPIED = 0.85  # of the trials of a code
_TRIALS = 24  # of a character or code
_FIRST_TRIALS = 8  # decide most characters: nearly all are always returned, or hardly ever
_LEAST_WORDS = 5  # of a sentence to try with
_LETTERS_END = 0x530  # of Latin, Greek and Cyrillic, which write names of other languages
_SYMBOLS_END = 0x3040
_ALPHABET_PIECES = 8  # of several letters that have a letter, if it belongs to one of the languages' alphabets
_PUNCTUATION = frozenset(
    "\u00b0!\"'(),-.:;?&%[]\u00a1\u00bf\u2010\u2011\u2012\u2013\u2014\u2015\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2026\u2032\u2033\u3001\u3002"
)


def probe(
    translate: Translate,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    masking: Masking,
    max_translations: int = MAX_TRANSLATIONS,
) -> Masking:
    """Returns what a network can read, as far as trials show it.

    Args:
        translate: returns the network's translations of texts, as it makes them without any masking.
        tokenizer: of the network, under a manifest that names no unknown characters.
        sentences: in the source language; those of a few words are passed over.
        masking: what is known already.
        max_translations: that may be asked for. Characters are not tried if that is too few: a large network, whose
            translations take long, seldom loses any that its vocabulary has.
    """
    long = [each for each in sentences if len(each.split()) >= _LEAST_WORDS] or list(sentences)
    trials = [long[index % len(long)] for index in range(_TRIALS)]
    codes = _copied_codes(translate, trials)
    folds_capitals = masking.folds_capitals or _reads_small_letters(translate, trials)
    candidates = list(_candidates(tokenizer))
    if len(candidates) * _FIRST_TRIALS > max_translations - len(CODES) * _TRIALS:
        candidates = []
    unknown = _unknown_characters(translate, trials, candidates)
    logger.info("copies %s; does not return %s", ", ".join(codes) or "no code", " ".join(unknown) or "nothing untried")
    return replace(masking, codes=codes, folds_capitals=folds_capitals, unknown_characters="".join(unknown))


def probe_model(
    translator: IdTranslator,
    tokenizer: Tokenizer,
    manifest: Manifest,
    direction: tuple[str, str],
    sentences: Sequence[str],
    max_translations: int = MAX_TRANSLATIONS,
) -> Manifest:
    """Returns a model's manifest with what its network can read.

    Args:
        translator: of the model.
        tokenizer: of the model, under a manifest that names no unknown characters.
        manifest: of the model.
        direction: codes of source and target, to try it in.
        sentences: in the source language.
        max_translations: as `probe` takes it.
    """
    pair = manifest.find_pair(*direction)
    assert pair is not None, "the model translates in this direction"
    options = DecodingOptions(length_penalty=manifest.search.length_penalty, forced_prefix=pair.target_prefix)

    def translate(texts: list[str]) -> list[str]:
        sources = [list(tokenizer.encode(text, pair.source_prefix)) for text in texts]
        fitting = [source[-manifest.limits.max_source_tokens :] for source in sources]
        return [tokenizer.decode(best.ids) for best in translator(fitting, options)]

    return replace(manifest, masking=probe(translate, tokenizer, sentences, manifest.masking, max_translations))


def _copied_codes(translate: Translate, sentences: Sequence[str]) -> tuple[str, ...]:
    """Returns the codes that are copied best, best first, if they are copied often enough."""
    copied: dict[str, float] = {}
    for code in CODES:
        first, second = code.replace("{}", "1"), code.replace("{}", "2")
        translations = translate([_with(_with(each, first, 3), second, 1) for each in sentences])
        copied[code] = sum(_holds(each, first) + _holds(each, second) for each in translations) / (2 * len(sentences))
    best = sorted(CODES, key=lambda code: -copied[code])[:_MOST_CODES]
    return tuple(code for code in best if copied[code] >= _LEAST_COPIED)


def _reads_small_letters(translate: Translate, sentences: Sequence[str]) -> bool:
    """Whether sentences in capitals are translated better when they are shown in small letters.

    That is, whether their translations share more words with those of the sentences as they are written.
    """
    right, small, capital = (
        [Counter(text.upper().split()) for text in translate(texts)]
        for texts in ([*sentences], [each.lower() for each in sentences], [each.upper() for each in sentences])
    )
    shared = [sum((one & other).total() for one, other in zip(right, found, strict=True)) for found in (small, capital)]
    return shared[0] > shared[1]


def _unknown_characters(translate: Translate, sentences: Sequence[str], candidates: Sequence[str]) -> list[str]:
    """Returns the characters that fewer than half of the translations have."""
    first = _count(translate, sentences[:_FIRST_TRIALS], candidates)
    doubtful = [each for each in candidates if 1 < first[each] < _FIRST_TRIALS - 1]
    rest = _count(translate, sentences[_FIRST_TRIALS:], doubtful)
    is_known = {each: first[each] > 1 for each in candidates}
    is_known |= {each: 2 * (first[each] + rest[each]) >= len(sentences) for each in doubtful}
    return [each for each in candidates if not is_known[each]]


def _count(translate: Translate, sentences: Sequence[str], candidates: Sequence[str]) -> Counter[str]:
    """Returns for each character how many translations have it."""
    texts = [_with(sentence, _shown(each), 2) for each in candidates for sentence in sentences]
    translations = translate(texts)
    found = Counter[str]()
    for index, translation in enumerate(translations):
        character = candidates[index // len(sentences)]
        is_letter = unicodedata.category(character)[0] == "L"
        found[character] += (_shown(character) if is_letter else character) in translation
    return found


def _shown(character: str) -> str:
    """Returns a character as it may stand in a text: in a name, with a number, or by itself."""
    category = unicodedata.category(character)
    if category[0] == "L":
        return f"Ka{character.lower()}ina" if character.islower() else f"{character}akina"
    return {"No": f"10{character}", "Sc": f"{character}50"}.get(category, character)


def _with(sentence: str, text: str, part: int) -> str:
    """Returns a sentence with a text between two of its words, behind 1 to 3 quarters of them."""
    words = sentence.split()
    place = max(1, len(words) * part // 4)
    return " ".join([*words[:place], text, *words[place:]])


def _holds(translation: str, code: str) -> bool:
    return sum(code in word for word in translation.split()) == 1


def _candidates(tokenizer: Tokenizer) -> Iterator[str]:
    """Yields the characters of the vocabulary that are tried: all but alphabets and ordinary punctuation."""
    of_alphabet = Counter(letter for piece in tokenizer.source_pieces() if len(piece) > 2 for letter in set(piece))
    for code in range(0x21, _SYMBOLS_END):
        character = chr(code)
        category = unicodedata.category(character)
        is_letter = category[0] == "L" and not character.isascii() and code < _LETTERS_END
        is_symbol = category[0] in "PS" or category in ("No", "Cf")
        if character in _PUNCTUATION or not (is_letter or is_symbol):
            continue
        if not (is_letter and of_alphabet[character] >= _ALPHABET_PIECES) and tokenizer.knows(character):
            yield character
