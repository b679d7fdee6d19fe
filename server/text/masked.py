"""A translation with the parts that its network was not shown, and whether it is whole.

A translation is whole if it has each carrier once and marks near their place, each number of the source in some right
form, and no word in capitals of its own invention. Characters that mean nothing to a reader never leave: U+FFFD, which
stands for bytes that are no text, and private ones.
"""

import enum
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from server.text.casing import Casing, begun, fold, raise_again
from server.text.numbers import NumberSpan, missing_numbers
from server.text.quotes import ended, is_quote, punctuated, written
from server.text.typography import clock_time, restore_typography

_STRAY = re.compile("[\ufffd\ue000-\uf8ff]")
_LEAST_INVENTED = 5  # capitals in a row that no translation has of its own; German has "WLAN" for "Wi-Fi"
_BRACKET = re.compile(r"[(\[](?=\w)")
PARTED = re.compile(r"([(\[]) ")  # a word from the bracket before it
_SPACE = re.compile(r"\s+")
_NOTHING = re.compile(r"(?!)")
_DIGIT = re.compile(r"\d")
_FIRST_QUOTED = re.compile(r"""\A["'][^\W\d_]""")
_WORD = re.compile(r"[^\W\d_]+")
_DOUBLE_QUOTE = '["\u201c\u201d\u201e\u00ab\u00bb]'


class Placement(enum.Enum):
    """Who put a part where it stands in a translation, or what is wrong with it."""

    BY_MODEL = "by_model"  # the network copied its carrier, or it stood at an end of the sentence
    BY_POSITION = "by_position"  # the network lost it: it stands about where the source has it
    MISSING = "missing"  # a number that the translation may not have


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part of a sentence, as it stands in source and translation, and what became of it."""

    text: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class Restored:
    """A translation with its parts.

    Attributes:
        text: for the reader.
        parts: what was kept from the network, in the source's order, then numbers that are missing.
        is_whole: whether nothing is lost, doubled or invented.
        missing: the numbers, as they stand in the source.
        is_garbled: whether the model wrote what no translation is (`server.text.garbled`).
    """

    text: str
    parts: tuple[KeptPart, ...] = ()
    is_whole: bool = True
    missing: tuple[NumberSpan, ...] = ()
    is_garbled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a network is not shown of a sentence.

    Attributes:
        text: as the source has it.
        start: where it stands in the sentence.
        carrier: that the network is shown; empty if it is shown nothing.
        place: share of the sentence's other characters that stand before it, 0 to 1.
        reach: share of a translation's other characters that it may be from its place there, 0 to 1.
        touches_left, touches_right: whether it touches a word there, from which its carrier is parted by a blank.
        is_word: whether it has a place in the sentence's grammar. Marks, which have none, stay in their order.
        ending: what is written behind it, because it is an ordinal: "." in German.
    """

    text: str
    start: int
    carrier: str
    place: float
    reach: float
    touches_left: bool
    touches_right: bool
    is_word: bool = True
    ending: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A sentence as the network is shown it.

    Attributes:
        text: what is shown.
        original: the sentence.
        source: the sentence, with blanks in the place of its parts.
        leading, trailing: marks that were cut off its ends.
        parts: within it, in order.
        casing: how it was written; what is shown is folded.
        num_fit: characters before the first part for which there is no carrier; None if all have one.
        language: of the translation.
        attempt: how many came before.
        numbers: of the source, that are parts because an attempt before lacked them.
    """

    text: str
    original: str
    source: str
    leading: str = ""
    trailing: str = ""
    parts: tuple[Part, ...] = ()
    casing: Casing = Casing.PLAIN
    num_fit: int | None = None
    language: str = ""
    attempt: int = 0
    numbers: tuple[NumberSpan, ...] = ()

    @property
    def has_words(self) -> bool:
        """Whether there is a letter to translate."""
        return any(map(str.isalpha, self.source))

    def hide(self, given: str) -> str:
        """Returns what the network is shown of a translation that somebody gives: as it would have written it.

        Args:
            given: the beginning of a translation of `original`, or all of it.
        """
        shown = given.removeprefix(self.leading) if self.leading else given
        for part in self.parts:
            match = re.search(_shown(part, self.language), shown) if part.carrier else None
            if match is not None:
                before, behind = " " * part.touches_left, " " * (part.touches_right and match.end() < len(shown))
                shown = f"{shown[: match.start()]}{before}{part.carrier}{behind}{shown[match.end() :]}"
        if self._is_parted:
            shown = _BRACKET.sub(r"\g<0> ", shown)
        return fold(shown, self.casing)

    @property
    def _is_parted(self) -> bool:
        """Whether the network is shown words apart from the brackets before them, and the source has them together."""
        return PARTED.search(self.text) is not None and not PARTED.search(self.original)

    def restore(self, translation: str) -> Restored:
        """Returns a translation of `text` with each part once, and without carriers and characters of no meaning."""
        translation = raise_again(self.original, translation, self.casing, self.language)
        translation = begun(self.original[len(self.leading) :], translation)
        carriers = tuple(part.carrier for part in self.parts if part.carrier)
        for part in self.parts:
            if part.carrier and is_quote(part.text) and part.text[0] == ",":
                translation = ended(translation, part.carrier)
        if self._is_parted:
            translation = PARTED.sub(r"\1", translation)
        pattern = _pattern(carriers)
        found = pattern.findall(translation)
        words = clean(pattern.sub(" ", translation))
        missing = tuple(missing_numbers(self.source, words, self.language))
        is_whole = (
            sorted(found) == sorted(carriers)
            and not missing
            and not (self._is_parted and any(words.count(bracket) != self.source.count(bracket) for bracket in "()[]"))
            and not self._has_inventions(words)
            and not any(self._is_far(part, translation) for part in self.parts)
            and self._is_in_order(translation)
        )
        text = self._place(translation, pattern, found)
        if any(is_quote(part.text) for part in self.parts):
            text = punctuated(text, self.language)
            if self.parts[0].start == 0 and self.original[1:2].isupper():  # the mark stands before the first word
                text = _FIRST_QUOTED.sub(lambda match: match[0].upper(), text)
        text = restore_typography(self.original, text, self.language)
        outcome = [
            KeptPart(part.text, Placement.BY_MODEL if part.carrier in found else Placement.BY_POSITION)
            for part in self.parts
            if not (is_quote(part.text) and part.carrier in found)
        ]
        ends = [KeptPart(end.strip(), Placement.BY_MODEL) for end in (self.leading, self.trailing) if end.strip()]
        lost = [KeptPart(self.original[span.start : span.end], Placement.MISSING) for span in missing]
        return Restored(self.leading + text + self.trailing, (*ends, *outcome, *lost), is_whole, missing)

    def _place(self, translation: str, pattern: "re.Pattern[str]", found: Sequence[str]) -> str:
        """Returns the translation with parts in carriers' places, and the others about where the source has them."""
        left = {part.carrier: part for part in self.parts if part.carrier}
        pieces: list[str] = []
        end = 0
        for match in pattern.finditer(translation):
            pieces.append(clean(translation[end : match.start()]))
            end = match.end()
            part = left.pop(match[0], None)
            if part is None:  # it has been put already
                continue
            if part.touches_left:
                pieces[-1] = pieces[-1].removesuffix(" ")
            pieces.append(written(part.text) if is_quote(part.text) else clock_time(part.text, self.language))
            pieces.append(part.ending)
            if part.touches_right and translation[end : end + 1] == " ":
                end += 1
        text = "".join([*pieces, clean(translation[end:])])
        limit = len(text) + 1
        lost = [part for part in self.parts if part.carrier not in found]
        if len(lost) == 2 and (inside := self._inside(*lost)) and text.count(inside) == 1:
            return text.replace(inside, f"{lost[0].text}{inside}{lost[1].text}")
        for part in reversed(self.parts):  # so that those of one place keep their order
            if part.carrier not in found:
                text, place = _insert(text, part, limit)
                limit = len(text) + 1 if part.is_word else place
        return text

    def _is_far(self, part: Part, translation: str) -> bool:
        """Whether a part stands in quite another place than in the source."""
        if not part.carrier:
            return False
        others = max(1, len(translation) - len(part.carrier))
        return abs(translation.find(part.carrier) / others - part.place) > part.reach

    def _is_in_order(self, translation: str) -> bool:
        """Whether marks stand in the source's order, and have between them what is no mere copy of the source."""
        for opening, closing in itertools.pairwise(part for part in self.parts if part.carrier):
            end = translation.find(opening.carrier) + len(opening.carrier)
            begin = translation.find(closing.carrier)
            inside = self._inside(opening, closing)
            if (inside or not (opening.is_word or closing.is_word)) and begin < end:
                return False
            copy = "" if is_quote(opening.text) else inside
            if inside and translation[end:begin].strip() in ("", copy):
                return False
        return True

    def _inside(self, opening: Part, closing: Part) -> str:
        """Returns the words between two parts that both touch them, such as tags; "" if they are no such pair."""
        is_pair = opening.touches_right and closing.touches_left
        inside = self.original[opening.start + len(opening.text) : closing.start] if is_pair else ""
        return inside if any(map(str.isalpha, inside)) else ""

    def _has_inventions(self, translation: str) -> bool:
        """Whether a translation has what its source has not.

        That is a word in capitals that the source has in no case, or a number although the source has none.
        """
        if self.parts and _DIGIT.search(translation) and not _DIGIT.search(self.source):
            return True
        if self.casing is Casing.CAPITALS or self.source.isupper():
            return False
        words = {word for word in _WORD.findall(translation) if len(word) >= _LEAST_INVENTED and word.isupper()}
        return bool(words.difference(map(str.upper, _WORD.findall(self.source))))


def _shown(part: Part, language: str) -> str:
    """Returns a pattern of what a reader is shown of a part."""
    if is_quote(part.text):
        return _DOUBLE_QUOTE if written(part.text) == '"' else re.escape(part.text)
    text = clock_time(part.text, language)
    before, behind = (r"(?<!\w)" * text[:1].isalnum(), r"(?!\w)" * text[-1:].isalnum())
    return f"{before}{re.escape(text)}{behind}"


def clean(translation: str) -> str:
    """Returns a translation without characters that mean nothing to a reader: U+FFFD, and private ones."""
    return _STRAY.sub("", translation)


@functools.lru_cache(maxsize=256)
def _pattern(carriers: tuple[str, ...]) -> "re.Pattern[str]":
    """Returns a pattern of carriers, codes as whole words; of none it finds nothing."""
    if not carriers:
        return _NOTHING
    symbols = [each for each in carriers if _STRAY.fullmatch(each)]
    codes = [each for each in carriers if each not in symbols]
    found = [f"[{''.join(symbols)}]"] if symbols else []
    return re.compile("|".join(found + [rf"(?<!\w){re.escape(each)}(?!\w)" for each in codes]))


def _insert(text: str, part: Part, limit: int) -> tuple[str, int]:
    """Puts a part between two words, about where the source has it.

    Returns the text and where the part stands, which is before `limit`, with a word between, if there is room.
    """
    wanted = part.place * len(text)
    places = [0, *(match.start() for match in _SPACE.finditer(text)), len(text)]
    before_limit = [each for each in places if each < limit] if not part.is_word else []
    place = min(before_limit or places, key=lambda each: abs(each - wanted))
    before, behind = text[:place].rstrip(), text[place:].lstrip()
    left = " " if before and not part.touches_left else ""
    right = " " if behind and not part.touches_right else ""
    return f"{before}{left}{part.text}{part.ending}{right}{behind}", len(before)
