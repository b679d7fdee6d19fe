"""A translation with the parts that its network was not shown, and whether it is whole.

A translation is whole if it has each carrier once and marks near their place, each number of the source in some right
form, and no word in capitals of its own invention.
"""

import enum
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from server.text.carriers import carrier_pattern, changed_around, clean, sure_end
from server.text.casing import Casing, begun, raise_again
from server.text.full_stops import end_like
from server.text.garbled import has_invented_capitals
from server.text.locales import locale_of
from server.text.markup.document import Mark
from server.text.number_signs import restore_number_signs
from server.text.numbers import NumberSpan, missing_numbers
from server.text.quotes import ended, is_quote, punctuated, written
from server.text.typography import clock_time, restore_typography

# Of the characters of a quotation, that its translation has at least. Half, and a word beside it is taken for it;
# twice as much, and short words of a language are taken for a loss.
_LEAST_QUOTED = 0.4
PARTED, _PARTED_END = re.compile(r"([(\[]) "), re.compile(r" (?=[)\]])")  # a word from a bracket beside it
_SPACE = re.compile(r"\s+")
_DIGIT = re.compile(r"\d")
_FIRST_QUOTED = re.compile(r"""\A["'][^\W\d_]""")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_ARROW = re.compile(r"[-=]*>|[\u2190-\u21ff\u25b6\u25b8\u25ba\u2794-\u27be]+")  # between the items of a menu


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
        pairs: marks round words that stand in none of these texts (`server.text.pairs`).
        adapts_from: BCP-47 code of the source's language if quantities are written as the target writes them; else "".
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
    pairs: tuple[Mark, ...] = ()
    adapts_from: str = ""

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate: two letters in a row, or one of a script without capitals."""
        letter = next(filter(str.isalpha, self.source), "A")
        return letter.lower() == letter.upper() or _LETTERS.search(self.source) is not None

    def restore(self, translation: str) -> Restored:
        """Returns a translation of `text` with each part once, and without carriers and characters of no meaning."""
        carriers = tuple(part.carrier for part in self.parts if part.carrier)
        pattern = carrier_pattern(carriers)
        if self.adapts_from and (locale := locale_of(self.source, self.adapts_from, self.language)):
            pieces = re.split(f"({pattern.pattern})", translation)
            translation = "".join(each if pattern.fullmatch(each) else locale.adapt(each) for each in pieces)
        translation = raise_again(self.original, translation, self.casing, self.language)
        translation = begun(self.original[len(self.leading) :], translation)
        for part in self.parts:
            if part.carrier and is_quote(part.text) and "," in (part.text[0], self._beside(part)[1]):
                translation = ended(translation, part.carrier)
        is_parted = PARTED.search(self.text) is not None and not PARTED.search(self.original)
        if is_parted:
            translation = PARTED.sub(r"\1", translation)
            if not _PARTED_END.search(self.original):  # networks then part the other bracket, too
                translation = _PARTED_END.sub("", translation)
        found = pattern.findall(translation)
        words = clean(pattern.sub(" ", translation))
        missing = tuple(missing_numbers(self.source, words, self.language))
        is_whole = (
            sorted(found) == sorted(carriers)
            and not missing
            and not (is_parted and any(words.count(bracket) != self.source.count(bracket) for bracket in "()[]"))
            and not self._has_inventions(words)
            and not any(self._is_far(part, translation) for part in self.parts if part.carrier)
            and self._is_in_order(translation)
        )
        text = self._place(translation, pattern, found)
        if any(is_quote(part.text) for part in self.parts):
            text = punctuated(text, self.language)
            if self.parts[0].start == 0 and self.original[1:2].isupper():  # the mark stands before the first word
                text = _FIRST_QUOTED.sub(lambda match: match[0].upper(), text)
        text = end_like(self.original.removesuffix(self.trailing).rstrip(), self._set(text))
        outcome = [
            KeptPart(part.text, Placement.BY_MODEL if part.carrier in found else Placement.BY_POSITION)
            for part in self.parts
            if not (is_quote(part.text) and part.carrier in found)
        ]
        ends = [KeptPart(end.strip(), Placement.BY_MODEL) for end in (self.leading, self.trailing) if end.strip()]
        lost = [KeptPart(self.original[span.start : span.end], Placement.MISSING) for span in missing]
        return Restored(self.leading + text + self.trailing, (*ends, *outcome, *lost), is_whole, missing)

    def restore_beginning(self, translation: str) -> str:
        """Returns the beginning of a translation of `text`, with the parts whose carriers it has.

        It ends before what may be the beginning of a carrier.
        """
        carriers = tuple(part.carrier for part in self.parts if part.carrier)
        translation = translation[: sure_end(translation, carriers)]
        translation = raise_again(self.original, translation, self.casing, self.language)
        translation = begun(self.original[len(self.leading) :], translation)
        return self.leading + self._set(self._with_found(translation, carrier_pattern(carriers)))

    def _place(self, translation: str, pattern: "re.Pattern[str]", found: Sequence[str]) -> str:
        """Returns the translation with parts in carriers' places, and the others about where the source has them."""
        text = self._with_found(translation, pattern)
        limit = len(text) + 1
        lost = [part for part in self.parts if part.carrier not in found]
        whole = [self._as_set(part) for part in self.parts if part.carrier in found]
        inside = self._inside(*lost) if len(lost) == 2 else ""
        if inside and text.count(inside) == 1 and not any(inside in each for each in whole):
            return text.replace(inside, f"{lost[0].text}{inside}{lost[1].text}")
        for part in reversed(lost):  # so that those of one place keep their order
            text, place = _insert(text, part, limit, whole)
            limit = len(text) + 1 if part.is_word else place
            whole.append(part.text)
        return text

    def _with_found(self, translation: str, pattern: "re.Pattern[str]") -> str:
        """Returns the translation with parts in carriers' places."""
        left = {part.carrier: part for part in self.parts if part.carrier}
        pieces: list[str] = []
        end = 0
        for match in pattern.finditer(translation):
            pieces.append(clean(translation[end : match.start()]))
            end = match.end()
            part = left.pop(match[0], None)
            if part is None:  # it has been put already
                continue
            before, behind = self._beside(part)
            if part.touches_left and (before.isalnum() or not pieces[-1][-2:-1].isalnum()):
                pieces[-1] = pieces[-1].removesuffix(" ")
            if (part.text.startswith("{") or part.text == "#") and before != "'" and pieces[-1].endswith("'"):
                pieces[-1] = f"{pieces[-1][:-1]}\u2019"  # in ICU messages "'{" begins a quotation
            pieces += [self._as_set(part), part.ending]
            is_beside = translation[end : end + 1] == " "
            if part.touches_right and is_beside and (behind.isalnum() or not translation[end + 1 : end + 2].isalnum()):
                end += 1
        return "".join([*pieces, clean(translation[end:])])

    def _as_set(self, part: Part) -> str:
        """Returns a part as it is put in its carrier's place."""
        return written(part.text) if is_quote(part.text) else clock_time(part.text, self.language)

    def _set(self, text: str) -> str:
        """Returns a text with the number signs and the typography of its language; parts that are no numbers stay."""
        numbers = {number.start for number in self.numbers}
        parts = [part for part in self.parts if _DIGIT.search(part.text) and part.start not in numbers]
        forms = {form for part in parts for form in (part.text, self._as_set(part))}
        return changed_around(forms, self.original, text, self._typeset)

    def _typeset(self, source: str, text: str) -> str:
        return restore_typography(source, restore_number_signs(source, text, self.language), self.language)

    def _beside(self, part: Part) -> tuple[str, str]:
        """Returns the characters before and behind a part. Where these are marks, the part touches no word."""
        end = part.start + len(part.text)
        return self.original[max(0, part.start - 1) : part.start], self.original[end : end + 1]

    def _is_far(self, part: Part, translation: str) -> bool:
        """Whether a part, which has a carrier, stands in quite another place than in the source."""
        start, others = translation.find(part.carrier), max(1, len(translation) - len(part.carrier))
        is_between = _ARROW.fullmatch(part.text) and _LETTERS.search(self.source, part.start + len(part.text))
        if is_between and not _LETTERS.search(translation, start + len(part.carrier)):
            return True  # the item behind an arrow is lost
        return abs(start / others - part.place) > part.reach

    def _is_in_order(self, translation: str) -> bool:
        """Whether marks stand in the source's order, and have between them what is no mere copy of the source."""
        for opening, closing in itertools.pairwise(part for part in self.parts if part.carrier):
            end = translation.find(opening.carrier) + len(opening.carrier)
            begin = translation.find(closing.carrier)
            inside = self._inside(opening, closing)
            if (inside or not (opening.is_word or closing.is_word)) and begin < end:
                return False
            copy = "" if is_quote(opening.text) else inside
            written = translation[end:begin].strip()
            if inside and written in ("", copy):
                return False
            if inside and is_quote(opening.text) and len(written) < _LEAST_QUOTED * len(inside):
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
        return self.casing is not Casing.CAPITALS and has_invented_capitals(self.source, translation)


def _insert(text: str, part: Part, limit: int, whole: Sequence[str]) -> tuple[str, int]:
    """Puts a part between two words, about where the source has it, and into none of the parts that are there already.

    Returns the text and where the part stands, which is before `limit`, with a word between, if there is room.
    """
    wanted = part.place * len(text)
    solid = text
    for each in sorted(whole, key=len, reverse=True):
        solid = solid.replace(each, "x" * len(each))
    places = [0, *(match.start() for match in _SPACE.finditer(solid)), len(text)]
    before_limit = [each for each in places if each < limit] if not part.is_word else []
    place = min(before_limit or places, key=lambda each: abs(each - wanted))
    before, behind = text[:place].rstrip(), text[place:].lstrip()
    left = " " if before and not part.touches_left else ""
    right = " " if behind and not part.touches_right else ""
    return f"{before}{left}{part.text}{part.ending}{right}{behind}", len(before)
