"""Keyboard shortcuts of labels: the mark before a letter, as in `_File` of GTK and `Save &As` of Qt.

A label is sent without its mark, which then stands before the first word of the translation. A word of Chinese,
Japanese or Korean has no key, so the letter of the source is put behind it, as in `(_F)`.
"""

import re
import unicodedata
from collections.abc import Iterable

_MARKS = "_&"
_LONGEST_LABEL = 60  # characters; half, and labels keep their mark in the text; twice, and sentences lose an "&"
_DECLARED = re.compile(
    r"^X-Accelerator-Marker:[ \t]*(\S)", re.MULTILINE | re.IGNORECASE
)  # a header of Translate Toolkit
# Before a word, within one that is written like "Exit", or all of "(_F)". No reference such as `&amp;` has one.
_SHORTCUTS = {
    mark: re.compile(
        rf"\s?\({mark}(?P<added>[A-Za-z])\)|(?<![\w{_MARKS}])(?:[A-Z][a-z]*+(?={mark}[a-z]))?{mark}(?=[^\W\d_])(?!\w+;)"
    )
    for mark in _MARKS
}
# The first letter of a word, but of no placeholder, tag, reference or option.
_WORD = re.compile(r"(?<![^\s(\[\"'\u00a1\u00ab\u00bf\u2018\u201a-\u201e])(?<!%\()[^\W\d_](?![^\s=_]{0,60}+[=_])")


def shortcut_marks(header: str, texts: Iterable[str]) -> str:
    """Returns the marks of shortcuts in a file: the mark that its header names, or else every mark that a label has.

    A text is such a label if it has the mark before a capital. So an identifier such as `_id` is none.
    """
    if declared := _DECLARED.search(header):
        return declared[1] if declared[1] in _MARKS else ""
    shortcuts = (split_shortcut(text, _MARKS) for text in texts)
    return "".join(sorted({mark for _, mark, key in shortcuts if key.isupper()}))


def split_shortcut(text: str, marks: str) -> tuple[str, str, str]:
    """Returns a text without the mark of its shortcut, the mark, and the letter behind it; two "" if it has none.

    Args:
        text: any text. Only a line of at most 60 characters with exactly one such mark has a shortcut.
        marks: that may be one.
    """
    if len(text) <= _LONGEST_LABEL and "\n" not in text:
        for mark in marks:
            found = _SHORTCUTS[mark].search(text) if text.count(mark) == 1 else None
            if found and found["added"]:
                return text[: found.start()] + text[found.end() :], mark, found["added"]
            if found:
                return text[: found.end() - 1] + text[found.end() :], mark, text[found.end()]
    return text, "", ""


def with_shortcut(translation: str, mark: str, key: str) -> str:
    """Puts a mark into a translation, which stays as it is if it has no word that may have one."""
    if not mark or not (word := _WORD.search(translation)):
        return translation
    if unicodedata.east_asian_width(word[0]) != "W":
        return f"{translation[: word.start()]}{mark}{translation[word.start() :]}"
    end = len(translation.rstrip(".:\u2026\uff1a "))
    return f"{translation[:end]}({mark}{key.upper()}){translation[end:]}"
