"""What else a word of a glossary may look like in a sentence, by the endings of its language. Only German has rules.

There is no dictionary, so some of the forms are no words. The network, which is to write one of them, mostly avoids
these. A word list took away few of its mistakes. Nouns get the endings of their cases, and those plurals alone that end
as a case does: with all plurals the network takes the plural for a singular source.
"""

import functools
import re
from collections.abc import Sequence

_OF_ADJECTIVES = ("e", "er", "es", "em", "en")
_OF_VERBS = ("en", "e", "t", "te", "ten", "st")
_OF_NOUNS = (  # ends of nouns, their endings
    ("eln ern innen", ()),
    ("Herr herr", ("n", "en")),
    ("Bär Fürst fürst Graf graf Held held Prinz prinz", ("en",)),
    ("ung heit keit schaft ion tät enz", ("en",)),
    ("nis", ("ses",)),
    ("e", ("n", "s", "ns")),
    ("er el", ("s", "n")),
    ("a i o u y en chen lein um", ("s",)),
    ("ent ant ist at et it ot og oph ensch", ("en", "s", "es")),
    ("s ß x z sch", ("es",)),
    ("", ("s", "es")),
)
# Words whose participle has no ge- before them: with other prefixes, and participles themselves.
_NO_GE = re.compile(r"be|ent|er|über|unter|ver|zer|.*ge...")


@functools.lru_cache(maxsize=4096)
def inflected(phrase: str, language: str) -> tuple[str, ...]:
    """Returns a phrase and its other forms, at most 24 together; the phrase alone in a language without rules.

    Args:
        phrase: as a glossary has it, with single blanks.
        language: a BCP-47 code.
    """
    if language.partition("-")[0] != "de":
        return (phrase,)
    words = phrase.split(" ")
    head = head_of(words)
    if head < 0:
        return (phrase,)
    rest = words[head + 1 :]
    nouns = _forms(words[head])
    forms = [" ".join([*before, noun, *rest]) for before in _before(words[:head]) for noun in nouns]
    return tuple(dict.fromkeys((phrase, *forms)))


def head_of(words: Sequence[str]) -> int:
    """Returns the number of the word that is inflected: the last one of the first nouns in a row; -1 if none is."""
    if len(words) == 1:
        return 0 if words[0].replace("-", "").isalpha() else -1
    first = next((index for index, word in enumerate(words) if word[:1].isupper()), -1)
    after = next((index for index in range(first, len(words)) if not words[index][:1].isupper()), len(words))
    return after - 1 if first >= 0 else -1


def _before(words: list[str]) -> list[tuple[str, ...]]:
    """Returns the words before a noun in all forms: adjectives change together."""
    stems = [(word, _stem(word)) for word in words]
    others = [tuple(word if word == stem else stem + ending for word, stem in stems) for ending in _OF_ADJECTIVES]
    return list(dict.fromkeys([tuple(words), *others]))


def _stem(adjective: str) -> str:
    """Returns an adjective without its ending; of a word with a capital, which may be a name, -e alone is one."""
    ends = ("e",) if adjective[:1].isupper() else _OF_ADJECTIVES
    return next(
        (adjective.removesuffix(end) for end in ends if len(adjective) > 4 and adjective.endswith(end)), adjective
    )


def _forms(word: str) -> list[str]:
    """Returns the forms of a noun, which has a capital, or else of an adjective, a participle or a verb."""
    if word[:1].isupper():
        return _noun_forms(word)
    stem = _stem(word)
    bases = {word, stem} if not word.endswith("e") else {stem}
    forms = [base + ending for base in sorted(bases) for ending in ("", *_OF_ADJECTIVES)]
    if word.endswith("en"):
        forms += [stem + ending for ending in _OF_VERBS] + ([] if _NO_GE.match(word) else [f"ge{stem}t"])
    if word.endswith("el"):
        forms += [f"{word[:-2]}l{ending}" for ending in _OF_ADJECTIVES]
    return forms


def _noun_forms(word: str) -> list[str]:
    endings = next(endings for ends, endings in _OF_NOUNS if word.endswith(tuple(ends.split(" "))))
    return [word + ending for ending in ("", *endings)]
