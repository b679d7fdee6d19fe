"""Quotations that an apostrophe confuses, such as "Don't go", or one within single marks.

A network takes the piece of such a word behind a mark for a name: it made „Don nicht gehen“ of it, but knows the word
behind a blank. So the quotation marks are carriers. A comma before the closing mark, as English has it, is shown behind
it, since there the network knows where the quotation ends.
"""

import re
from collections.abc import Iterator

_FIRST = r"(?=[a-z]\w*['\u2019]\w|\w+n['\u2019]t\b)"
_QUOTED = re.compile(
    rf"(?<![\w\"])(\"){_FIRST}[^\"\n]{{1,200}}?(,?\")(?![\w\"])"
    rf"|(\u201c){_FIRST}[^\u201c\u201d\n]{{1,200}}?(,?\u201d)"
    rf"|(?<![\w'])(')(?=\w[^'\n]{{0,100}}+'\w)(?:[^'\n]|'(?=\w)){{1,200}}?(,?')(?![\w'])"
    rf"|(\u2018){_FIRST}(?:[^\u2018\u2019\n]|\u2019(?=\w)){{1,200}}?(,?\u2019)(?!\w)"
)
_PLAIN = {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"}
MARKS = frozenset("\"'\u201c\u201d\u2018\u2019")


def find_quotes(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the marks of such quotations stand, each closing one with the comma before it.

    Args:
        text: a sentence.
    """
    for match in _QUOTED.finditer(text):
        yield from (match.span(group) for group in range(1, match.re.groups + 1) if match[group])


def is_quote(part: str) -> bool:
    """Whether a part is what `find_quotes` finds."""
    return part.removeprefix(",") in MARKS


def written(part: str) -> str:
    """Returns a quotation mark as it is written for `restore_typography`, without its comma."""
    mark = part.removeprefix(",")
    return _PLAIN.get(mark, mark)
