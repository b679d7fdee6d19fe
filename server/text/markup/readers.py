"""The types of documents that are understood: those with markup, and plain text in lines of a fixed width."""

import functools
import importlib
import re
from typing import Any, cast

from server.text.detector import MAX_CHARACTERS
from server.text.markup.document import MalformedDocument, Read, Watch, unwatched
from server.text.markup.tag_rules import NO_RULES, TagRules

HTML, XML = "text/html", "application/xml"
_READERS = {HTML: "html", XML: "xml", "text/markdown": "markdown", "application/xliff+xml": "xliff"}
TYPES = tuple(_READERS)  # each file has read_NAME

FIRST_CHARACTERS = 1 << 14  # in which a page has its first words. Half, and some have none; twice, and it takes 5 ms
_FEW_CHARACTERS = 1 << 11  # that mostly have enough words; to read them takes an eighth of the time
_TAG = re.compile(r"<[^<>]*>")


def reader_of(mime_type: str, *, with_attributes: bool = False, rules: TagRules = NO_RULES) -> Read:
    """Returns what reads documents of a type, one of `TYPES`.

    Args:
        mime_type: the type.
        with_attributes: of HTML, whether attributes that people read are texts.
        rules: of HTML which elements stay as they are, of XML also which ones end a sentence.
    """
    read = _read(_READERS[mime_type])
    if mime_type == HTML and (with_attributes or rules.ignored):
        return cast("Read", functools.partial(read, with_attributes=with_attributes, ignored=rules.ignored))
    return cast("Read", functools.partial(read, rules=rules) if mime_type == XML else read)


def reader_of_lines() -> Read:
    """Returns what reads plain text in lines of a fixed width."""
    return cast("Read", _read("lines"))


@functools.cache
def _read(name: str) -> Any:
    """Returns a reader, imported now: their patterns take 15 ms, which a start can do without."""
    return getattr(importlib.import_module(f"server.text.markup.{name}"), f"read_{name}")


def first_words(mime_type: str, text: str, watch: Watch = unwatched) -> str:
    """Returns about the words that a reader would see first of a text, to guess its language by.

    Args:
        mime_type: of the text; of any but `TYPES` all is words.
        text: of which `FIRST_CHARACTERS` are read, or fewer if these have words enough.
        watch: see `Builder`.
    """
    if mime_type not in TYPES:
        return text
    words = _words(mime_type, text[:_FEW_CHARACTERS], watch)
    if len(text) > _FEW_CHARACTERS and len(words or "") < MAX_CHARACTERS:
        words = _words(mime_type, text[:FIRST_CHARACTERS], watch)
    return _TAG.sub(" ", text[:FIRST_CHARACTERS]) if words is None else words


def _words(mime_type: str, beginning: str, watch: Watch) -> str | None:
    """Returns the words of a document's beginning; None if it cannot be read, which may be because it was cut."""
    try:
        return " ".join(block.text for block in reader_of(mime_type)(beginning, watch).blocks)
    except MalformedDocument:
        return None
