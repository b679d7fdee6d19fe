"""Which marks at the ends of a sentence are cut off, because the sentence begins and ends between them."""

import re
import unicodedata
from collections.abc import Iterator

from server.text.runs import Run

# Characters that are marks where they stand alone, beside Unicode's symbols:
_MARKS = frozenset("-*#_\u2010\u2011\u2012\u2013\u2014\u2015\u2022\u00b7\u00a7\u00b6\u2020\u2021\u2026")
_OF_TEXT = frozenset("\u00b0")  # a symbol that belongs to the number before it
_SPEAKER = re.compile(r"[-\u2010-\u2015](?=[^\W\d_](?:[^\W\d_]|['\u2019 ]))")  # the dash that touches the words
# Of an item of a list, which begins with a capital: "a)", "(1)" and "iv.", but neither "a. D." nor "v. Chr."
_ENUMERATOR = re.compile(r"(?:(?:\(?\d{1,3}|[a-z]|[ivx]{2,4})\)|(?:[a-h]|i{1,3}|iv|vi{1,3})\.)(?=\s[^\W\d_a-zäöü]\w)")
_SPACE, _WORD_BEHIND = re.compile(r"\s+"), re.compile(r"\s*(\S+)(?=\s)")
_IN_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")


def marks_at_ends(text: str) -> Iterator[tuple[int, int]]:
    """Yields what is nothing but marks at either end of a sentence, such as the "-" of a list or before a speech.

    The number or letter of a list's item is a mark, too. The dash of a speech touches a word in small letters that
    begins with a capital, or "I".
    """
    start, end = 0, len(text)
    if _SPEAKER.match(text) and text[1].isupper() and not text[2].isupper():
        yield 0, 1
    if not text[:1].isupper() and (enumerator := _ENUMERATOR.match(text)):
        yield enumerator.span()
        start = enumerator.end()
    while (word := _WORD_BEHIND.match(text, start)) and all(map(_is_mark, word[1])):
        yield word.span(1)
        start = word.end()
    while start < end and all(map(_is_mark, text[(begin := text.rfind(" ", start, end) + 1) : end])):
        if begin < end:  # else there are two blanks
            yield begin, end
        end = begin - 1


def _is_mark(character: str) -> bool:
    return character in _MARKS or (character not in _OF_TEXT and unicodedata.category(character) in ("Sm", "So", "Sk"))


def cut_ends(text: str, runs: list[Run]) -> tuple[int, int, list[Run]]:
    """Returns where a sentence begins and ends without the marks at its ends, and the parts between.

    Brackets round all of it are such marks too, since networks copy what stands in them: en-de-small 2.3 made "(Lieht)"
    of "(laughs)", and left "[LAUGHS]" as it was.

    Args:
        text: a sentence.
        runs: its parts, in order, apart from each other.
    """
    start, end, first, last = 0, len(text), 0, len(runs)
    while first < last and runs[first].start == start and _is_cut(text, runs[first], runs[first].end):
        start = _space_end(text, runs[first].end)
        first += 1
    while first < last and runs[last - 1].end == end and _is_cut(text, runs[last - 1], runs[last - 1].start - 1):
        last -= 1
        end = runs[last].start
        while end > start and text[end - 1].isspace():
            end -= 1
    runs = runs[first:last]
    if _IN_BRACKETS.fullmatch(text, start, end) and all(start < run.start and run.end < end for run in runs):
        start, end = start + 1, end - 1
    return start, end, runs


def _is_cut(text: str, run: Run, beside: int) -> bool:
    """Whether a run at an end of a sentence is cut off.

    A mark is, and a placeholder that touches the letter beside it, or that stands before a capital: the sentence begins
    behind it.
    """
    if not run.is_word or not 0 <= beside < len(text):
        return not run.is_word
    if text[beside].isalpha():
        return text[run.start] in "{[<$" and text[run.end - 1] in "}]>"
    is_ahead = beside == run.end and text[beside] == " " and text[beside + 1 : beside + 2].isupper()
    return is_ahead and text[run.start] in "{[<$%:"


def _space_end(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return space.end() if space else start
