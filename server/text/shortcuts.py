"""The signs before the letters that open menus: "&File", "E&xit", "Save _as".

A network that is shown one leaves the word as it is. So it is taken out, and put before a word of the translation that
begins with the same letter, else before the first one.
"""

import re

# Of a text that may have a shortcut. Half, and longer labels keep their signs; twice that, and names such as "_foo" in
# sentences lose theirs.
_MOST_CHARACTERS = 40
_SHORTCUT = re.compile(
    r"(?<![\w&\\])&(?=[^\W_])(?!\w++;)"  # &File, but neither &amp; nor AT&T
    r"|(?:(?<=\b[A-Z])|(?<=\b[A-Z][a-z]))&(?=[a-z])"  # E&xit, Cu&t
    r"|(?<![\w\\])_(?=[^\W\d_])"  # Save _as
)
_OF_PROSE = re.compile(r"(?<!\.)[.!]\Z|[.!?] ")
_FIRST_LETTER = re.compile(r"(?<![^\W_])[^\W\d_]")


def find_shortcut(text: str) -> int | None:
    """Returns where the sign of a label's shortcut stands, in code points; None if the text has none.

    A label begins with a capital, is no whole sentence, and has one such sign.

    Args:
        text: a sentence.
    """
    if len(text) > _MOST_CHARACTERS or text.count("&") + text.count("_") != 1 or _OF_PROSE.search(text):
        return None
    sign = _SHORTCUT.search(text)
    return sign.start() if sign and text.lstrip("&_")[:1].isupper() else None


def with_shortcut(text: str, sign: str, letter: str) -> str:
    """Returns a translation with a sign before a word that begins with a letter, else before its first word.

    Args:
        text: a translation.
        sign: "&" or "_".
        letter: behind the sign in the source, in any case.
    """
    places = [match.start() for match in _FIRST_LETTER.finditer(text)]
    place = next((each for each in places if text[each].lower() == letter.lower()), places[0] if places else 0)
    return text[:place] + sign + text[place:]
