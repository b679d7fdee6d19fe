"""A text of a request in sentences, as values that every room below the fronts hands on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from server.decoding.terms import Replaced
from server.errors import InvalidRequest
from server.text.glossary import FoundTerm, UsedTerm, locate
from server.text.hiding import hide
from server.text.markup.sentence_markup import SentenceMarkup
from server.text.masked import Masked, Placement, Restored


@dataclass(frozen=True, slots=True)
class Given:
    """A translation that somebody gives, to have it scored, or what one begins with: its text and ids; eos ends one."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence, or a piece of an over-long one.

    Attributes:
        text: without white space at its ends, never empty.
        separator: white space that follows it; may be empty.
        source_ids: eos and prefixes included; None for one that no model translates: it is copied, or `written`.
        num_added: of its ids, those that are not the text's own.
        masked: what the ids stand for, if that is not the text itself, or has numbers or marks that the
            network may write otherwise; None else, and if it is copied.
        markup: of a document's sentence; None for a plain text.
        given: its translation, which is scored; None for the model to translate it.
        prefix: what its translation begins with; None if the model chooses.
        terms: that its translation must have.
        written: its translation, if it is nothing but a term.
        replaced: what a translation that lacked a term has in the place of terms. None without such a translation:
            then the search is not told of the terms.
        lacking: of each term, whether that translation lacked it; empty without such a translation.
        exchanged: that translation with each term that it lacked in the place of the words that stand for the term;
            empty if these are not known, or if no words may be exchanged.
        choices: ids of translations, of which the likeliest is taken. Empty for any other search.
    """

    text: str
    separator: str
    source_ids: tuple[int, ...] | None
    num_added: int = 1
    masked: Masked | None = None
    markup: SentenceMarkup | None = None
    given: Given | None = None
    prefix: Given | None = None
    terms: tuple[FoundTerm, ...] = ()
    written: str | None = None
    replaced: Replaced | None = None
    lacking: tuple[bool, ...] = ()
    exchanged: str = ""
    choices: tuple[tuple[int, ...], ...] = ()

    @property
    def is_marked(self) -> bool:
        """Whether its translation has tags, marks round words or terms, which find their places by alignment."""
        has_tags = self.markup is not None and bool(self.markup.marks)
        return bool(self.terms) or has_tags or (self.masked is not None and bool(self.masked.pairs))

    def begun_with(self, text: str, encode: Callable[[str], tuple[int, ...] | None]) -> "tuple[Given, SourceSentence]":
        """Returns what its translation begins with, as the model is fed it, and the sentence with that.

        Args:
            text: as it was given.
            encode: returns the ids of a translation, with eos.
        """
        shown = text if self.masked is None else hide(self.masked, text)
        prefix = Given(text, (encode(shown) or ())[:-1])
        return prefix, replace(self, prefix=prefix)

    def find_terms(self, restored: Restored) -> tuple[UsedTerm, ...]:
        """Returns its terms, and where a translation has them."""
        if not self.terms:
            return ()
        return tuple(locate(self.terms, restored.text, [part.text for part in restored.parts]))

    def is_better(self, restored: Restored, before: Restored) -> bool:
        """Whether a translation lacks fewer terms than one before, or is worse in no respect and better in one."""
        faults, faults_before = self._faults(restored), self._faults(before)
        return faults[0] < faults_before[0] or (faults != faults_before and not self.is_worse(restored, before))

    def is_worse(self, restored: Restored, before: Restored) -> bool:
        """Whether a translation is worse than one before in any respect."""
        return any(own > other for own, other in zip(self._faults(restored), self._faults(before), strict=True))

    def _faults(self, restored: Restored) -> tuple[int, ...]:
        num_terms = sum(used.span is None for used in self.find_terms(restored))
        num_parts = sum(part.placement is not Placement.BY_MODEL for part in restored.parts)
        return num_terms, num_parts, not restored.is_whole, restored.is_garbled

    @property
    def num_tokens(self) -> int:
        """Tokens that are translated, eos and prefixes not counted."""
        return len(self.source_ids) - self.num_added if self.source_ids else 0


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text as `leading` white space and sentences, or neither and the `error` of one that breaks a limit.

    Attributes:
        sentences: in reading order; behind them those that stand within tags of others, such as the title of a link.
        homes: for each sentence within a tag, the number of the sentence that has the tag; ascending.
    """

    leading: str
    sentences: tuple[SourceSentence, ...]
    error: InvalidRequest | None = None
    homes: tuple[int, ...] = ()

    @property
    def num_shown(self) -> int:
        """The number of sentences that stand within no tag of another."""
        return len(self.sentences) - len(self.homes)

    def join(self, translations: Sequence[str]) -> str:
        """Puts one translation in the place of each sentence that is shown."""
        pairs = zip(translations, self.sentences[: self.num_shown], strict=True)
        return self.leading + "".join(text + sentence.separator for text, sentence in pairs)

    def begins(self, translations: Sequence[str]) -> list[int]:
        """Returns where each translation begins in what `join` returns, in code points."""
        begins, begin = [], len(self.leading)
        for text, sentence in zip(translations, self.sentences[: self.num_shown], strict=True):
            begins.append(begin)
            begin += len(text) + len(sentence.separator)
        return begins
