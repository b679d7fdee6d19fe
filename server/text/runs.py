"""What belongs to a character that a network does not know: the word, the number or the picture that it stands in."""

import re
import unicodedata
from typing import NamedTuple

from server.text.markup.document import STAND_IN

_RAISED = "<super>"  # of Unicode's decompositions: of a superscript, which may be a letter
_LONGEST_UNIT = 16  # characters of a number with its unit
_LONGEST_PICTURE = 32  # characters
_MOST_UNIT_LETTERS = 2  # before a superscript: of km², but not of a word with the number of a footnote
_LATIN = ("MICRO", "FEMININE", "MASCULINE", "KELVIN", "ANGSTROM")  # signs that stand among Latin letters
_WITHIN_WORDS = frozenset("-'\u2010\u2011\u2012\u2013\u2019")
_NUMBER_BEHIND = re.compile(r"\d(?:[\d.,]*\d)?")
_JOINS_WORDS = re.compile(r"[^\w]+")  # between words of a foreign phrase


class Run(NamedTuple):
    """Characters that are kept from the network together.

    Attributes:
        start, end: where they stand.
        is_word: whether they are words or numbers, which have a place in a sentence's grammar; else they are marks.
    """

    start: int
    end: int
    is_word: bool


def script_of(letter: str) -> str:
    """Returns the first word of a letter's name, which is its script's: "LATIN", "CJK"."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return "LATIN" if script in _LATIN else script


def add_run(runs: list[Run], run: Run, text: str) -> None:
    """Adds a run, as one with the last if they touch, or are words with nothing but marks between them."""
    if runs:
        last = runs[-1]
        between = text[last.end : run.start]
        is_phrase = _JOINS_WORDS.fullmatch(between) and last.is_word and run.is_word
        if not between or (is_phrase and not _has_digit(text[max(last.start, last.end - _LONGEST_UNIT) : run.end])):
            runs[-1] = Run(last.start, max(last.end, run.end), last.is_word or run.is_word)
            return
    runs.append(run)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def grown_run(text: str, index: int, hidden: set[str]) -> Run:
    """Returns an unknown character with what belongs to it.

    A letter takes its word with it, a sign the number that it touches, and a superscript also the unit before it.

    Args:
        text: the sentence.
        index: of the character.
        hidden: the characters that the network is not shown.
    """
    category = unicodedata.category(text[index])
    is_raised = unicodedata.decomposition(text[index]).startswith(_RAISED)
    if (picture := _picture(text, index, hidden)) is not None:
        return picture
    if unicodedata.decomposition(text[index]).startswith("<sub>") or _is_within_word(text, index):
        return _grown_through(text, index)
    if category[0] in "LM" and not is_raised:
        return _grown_word(text, index, hidden)
    start, end = index, index + 1
    while end < len(text) and text[end] in hidden and unicodedata.category(text[end])[0] not in "LM":
        end += 1
    if category[0] not in "SN" and not is_raised:
        return Run(start, end, is_word=False)
    if behind := _NUMBER_BEHIND.match(text, end):
        end = behind.end()
    if category == "No" or is_raised:
        start = _unit_start(text, start)
    start = _number_start(text, start)
    if start > 0 and unicodedata.category(text[start - 1]) == "Sc":
        start -= 1
    return Run(start, end, is_word=has_words(text[start:end]))


def _is_within_word(text: str, index: int) -> bool:
    """Whether a sign stands within a word, or for a letter of it that was lost; not between two words."""
    before, behind = text[max(0, index - 1) : index], text[index + 1 : index + 2]
    if text[index] == "\ufffd":
        return before.isalpha() or behind.isalpha()
    return before.isalpha() and behind.islower() and unicodedata.category(text[index])[0] not in "LM"


def _grown_through(text: str, index: int) -> Run:
    """Returns a character with the letters and digits on both sides of it, as in H2O with a small 2."""
    start, end = index, index + 1
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return Run(start, end, is_word=True)


def _number_start(text: str, end: int) -> int:
    """Returns where a number begins that ends there; `end` if none does."""
    start = end
    while start > 0 and (text[start - 1].isdecimal() or (start > 1 and text[start - 1] in ".,")):
        start -= 1
    if start > 0 and text[start - 1].isalpha():  # a word that ends with a number
        return end
    return start + len(text[start:end]) - len(text[start:end].lstrip(".,"))


def _unit_start(text: str, end: int) -> int:
    """Returns where the letters of a unit begin that ends there; `end` if they are too many for one."""
    start = end
    while start > 0 and text[start - 1].isalpha():
        start -= 1
        if end - start > _MOST_UNIT_LETTERS:
            return end
    return start


def _picture(text: str, index: int, hidden: set[str]) -> Run | None:
    """Returns what stands between blanks round an unknown character, if it is a picture: several such, and no word."""
    start = text.rfind(" ", max(0, index - _LONGEST_PICTURE), index) + 1 or max(0, index - _LONGEST_PICTURE)
    picture = text[start : index + _LONGEST_PICTURE].partition(" ")[0].rstrip(".,:;!?")
    if len(picture) > _LONGEST_PICTURE:
        return None
    words = sum(character.isalnum() and character not in hidden for character in picture)
    if words or sum(character in hidden for character in picture) < 2 or not _is_drawn(picture):
        return None
    return Run(start, start + len(picture), is_word=False)


def _is_drawn(text: str) -> bool:
    """Whether marks stand among the letters of a text, as in a picture."""
    return any(unicodedata.category(character)[0] not in "LMN" for character in text)


def _grown_word(text: str, index: int, hidden: set[str]) -> Run:
    is_mark = unicodedata.category(text[index])[0] == "M"  # of the letter before it
    script = script_of(text[max(0, index - is_mark)])
    is_cased = _is_cased(text[index])  # of scripts that are mixed within a word to deceive
    start, end = index, index + 1

    def belongs(character: str) -> bool:
        category = unicodedata.category(character)
        if category[0] == "L":
            return character in hidden or script_of(character) == script or (is_cased and _is_cased(character))
        return category[0] == "M" or category == "Nd" or character in _WITHIN_WORDS

    while start > 0 and belongs(text[start - 1]):
        start -= 1
    while end < len(text) and belongs(text[end]):
        end += 1
    while text[start] in _WITHIN_WORDS:
        start += 1
    while text[end - 1] in _WITHIN_WORDS:
        end -= 1
    return Run(start, end, is_word=True)


def _is_cased(letter: str) -> bool:
    return letter.lower() != letter.upper()


def has_words(text: str) -> bool:
    """Whether a text has something that has a place in a sentence's grammar: a letter, a plain digit or a stand-in."""
    return any(character.isalpha() or character.isdecimal() or STAND_IN.match(character) for character in text)
