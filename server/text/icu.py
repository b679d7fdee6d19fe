"""ICU messages with plural and select: which characters of them are texts, and which are syntax.

In `{count, plural, one {# message} other {# messages}}` each branch, here "# message" and "# messages", is a text of
its own. Names, keys and braces are syntax, which no translation may touch. Arguments within a branch, such as `{name}`
and `#`, belong to its text: `server.text.patterns` finds them there.

A message that is broken has no texts. It reaches to the brace that closes it, or else to the end of the text.
"""

import re
from collections.abc import Iterator

Span = tuple[int, int]

_HEAD = re.compile(r"\{\s*+[\w.-]++\s*+,\s*+(?:plural|selectordinal|select)\s*+,(?:\s*+offset:\d++)?+")
_KEY = re.compile(r"\s*+(?:=\d++|[\w-]++)\s*+\{")
_END = re.compile(r"\s*+\}")
_ARGUMENT = re.compile(r"\{[^{}]*+\}")
# An apostrophe quotes what follows it up to the next one if a sign of syntax follows; two of them are one apostrophe.
_SIGN = re.compile(r"'(?:'|[{}#|][^']*+(?:''[^']*+)*+'?)|[{}]")


def begins_quotation(branch: str) -> bool:
    """Whether the last character of a branch is an apostrophe that would quote the sign behind it."""
    return _SIGN.sub("", branch).endswith("'")


def find_messages(text: str) -> Iterator[tuple[Span, list[Span]]]:
    """Yields where each message with plural or select stands in a text, and where the texts of its branches stand.

    Takes time linear in the text: a message that is broken is left behind as a whole.

    Args:
        text: any text.
    """
    end = 0
    while head := _HEAD.search(text, end):
        start = head.start()
        texts: list[Span] = []
        end = _message_end(text, head.end(), texts)
        if not end:
            end, texts = _broken_end(text, start), []
        yield (start, end), texts


def _message_end(text: str, position: int, texts: list[Span]) -> int:
    """Adds the texts of a message whose first key is expected at a position. Returns its end; 0 if it is broken."""
    depth = 1  # of messages that are open
    while depth:
        if key := _KEY.match(text, position):
            begin = key.end()
        elif close := _END.match(text, position):
            position = begin = close.end()
            depth -= 1
            if not depth:
                break
        else:
            return 0
        end = _text_end(text, begin)
        if end < 0:
            return 0
        texts.append((begin, end))
        head = _HEAD.match(text, end)
        position = head.end() if head else end + 1
        depth += head is not None
    return position


def _text_end(text: str, position: int) -> int:
    """Returns where the text of a branch ends: at its brace, or at a message within it; -1 if it never does."""
    while sign := _SIGN.search(text, position):
        position = sign.end()
        if sign[0] == "}" or (sign[0] == "{" and _HEAD.match(text, sign.start())):
            return sign.start()
        if sign[0] == "{":
            argument = _ARGUMENT.match(text, sign.start())
            if argument is None:
                break
            position = argument.end()
    return -1


def _broken_end(text: str, start: int) -> int:
    """Returns where the brace is closed that is opened at a position; the text's end if it never is."""
    depth = 0
    for sign in _SIGN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if not depth and sign[0] == "}":
            return sign.end()
    return len(text)
