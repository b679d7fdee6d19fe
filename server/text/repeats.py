"""Texts that say one word again and again, such as "no no no", of which networks say it once.

So each word is translated by itself. What sings or laughs, such as "la la la", is no word: it is kept from networks.
"""

import re
from collections.abc import Iterator

from server.text.layout import Syntax

# Words of such a text. Half, and verses of songs are longer; twice that, and one line costs as much as a page.
_MOST_REPEATS = 64
_SOUND = r"(?:[bdhlnrt]a|h[eio]|[aou]h|blah?|hm++|tra|tsk|yada)(?!\w)"
_SOUNDS = re.compile(rf"{_SOUND}(?:(?:,? ++|-){_SOUND}){{2,}}+", re.IGNORECASE)
_SECOND_LETTERS = frozenset("aehiolrmsAEHIOLRMS")  # of sounds, so that few sentences are looked at
_REPEATED = re.compile(
    rf"\s*+(?P<word>[^\W\d_]++)(?:(?:,? ++|-)(?P=word)(?!\w)){{2,{_MOST_REPEATS - 1}}}+[.!?\u2026]*+\s*+",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")


def part_repeats(line: str) -> Iterator[str]:
    """Yields what joins to a line: the words of one that says a word thrice or more, and what is between, as syntax.

    Any other line is one piece. Takes time linear in the line.
    """
    repeated = _REPEATED.fullmatch(line)
    if repeated is None or _SOUNDS.match(line.lstrip()):
        yield line
        return
    end = 0
    for word in _WORD.finditer(line):
        yield from _between(line[end : word.start()])
        yield word[0]
        end = word.end()
    yield from _between(line[end:])


def sounds_end(text: str) -> int:
    """Returns where the sounds end that a sentence begins with, as "La la la, I can't hear you" does; 0 for none."""
    sounds = _SOUNDS.match(text) if text[1:2] in _SECOND_LETTERS else None
    return sounds.end() if sounds else 0


def _between(text: str) -> Iterator[str]:
    if text:
        yield text if text.isspace() else Syntax(text)
