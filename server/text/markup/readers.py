"""The types of documents whose markup is understood."""

import functools
import importlib
import re
from typing import Any, cast

from server.text.markup.document import MalformedDocument, Read, unwatched

HTML = "text/html"
_READERS = {HTML: "html", "text/markdown": "markdown", "application/xliff+xml": "xliff"}  # each file has read_NAME
TYPES = tuple(_READERS)

_FIRST_CHARACTERS = 1 << 14  # in which a page has its first words. Half, and some have none; twice, and it takes 5 ms
_TAG = re.compile(r"<[^<>]*>")


@functools.cache
def reader_of(mime_type: str, *, with_attributes: bool = False) -> Read:
    """Returns what reads documents of a type, one of `TYPES`.

    A reader is imported when there is first something to read: their patterns take 15 ms, which a start can do without.

    Args:
        mime_type: the type.
        with_attributes: of HTML, whether attributes that people read are texts.
    """
    name = _READERS[mime_type]
    read: Any = getattr(importlib.import_module(f"server.text.markup.{name}"), f"read_{name}")
    return cast("Read", functools.partial(read, with_attributes=True) if with_attributes else read)


def first_words(mime_type: str, text: str) -> str:
    """Returns about the words that a reader would see first of a text, to guess its language by."""
    if mime_type not in TYPES:
        return text
    beginning = text[:_FIRST_CHARACTERS]
    try:
        return " ".join(block.text for block in reader_of(mime_type)(beginning, unwatched).blocks)
    except MalformedDocument:  # it may be so because it was cut
        return _TAG.sub(" ", beginning)
