"""Terms that a translation must have, each in one of its forms.

A form is a run of tokens that begins with a word. A beam has written it when its last word ends there, because what
goes on with a word makes another word of it. So "Hund" is not written in "Hunde", unless that is a form, too. A term
that may begin a longer word is written as well once this word has enough letters: "Hund" in "Hundehütte".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Form = tuple[int, ...]

# Letters that a longer word has beside a part. With half as many, "Hund" is in "Hunden", and "Tag" in "Montage". With
# twice as many, most such words are missed.
LEAST_LETTERS = 4


class ReplacedWord(NamedTuple):
    """A word of a translation that stands in the place of a term.

    Attributes:
        place: its number among the translation's words.
        token: its first token.
        num_before: how often this token begins words before it that stay.
    """

    place: int
    token: int
    num_before: int


class Replaced(NamedTuple):
    """What a translation that lacks terms has in their place.

    Attributes:
        words: of each term, in order; empty if they are not known.
        staying: the translation's tokens, with -1 in place of those of words that are replaced.
        gone: the tokens with which replaced words begin, unless a word that stays begins so, too.
        begin: tokens that are written again as they are, because no term is missing there or soon after.
    """

    words: tuple[tuple[ReplacedWord, ...], ...]
    staying: tuple[int, ...]
    gone: frozenset[Form] = frozenset()
    begin: Form = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one sentence. A term that is there twice must be written twice.

    Attributes:
        forms: of each term, at least one; each form has at least one token, and none is eos.
        replaced: what the network has said instead, for each of them.
        word_parts: tokens that go on with the word before them, and how many letters they have.
        joined: for each of them what a longer word may begin with to have it, which may be nothing; empty if none may
            begin any.
    """

    forms: tuple[tuple[Form, ...], ...]
    replaced: Replaced
    word_parts: Mapping[int, int] = field(default_factory=dict, hash=False)  # of the model, the same for all
    joined: tuple[tuple[Form, ...], ...] = ()

    @property
    def num_tokens(self) -> int:
        """Most tokens that the terms take."""
        return sum(max(map(len, forms)) for forms in self.forms)
