"""The types of documents whose markup is understood."""

import functools
import re
from collections.abc import Mapping

from server.text.markup.document import MalformedDocument, Read, unwatched
from server.text.markup.html import read_html
from server.text.markup.markdown import read_markdown
from server.text.markup.xliff import read_xliff

HTML = "text/html"
READERS: Mapping[str, Read] = {
    HTML: read_html,
    "text/markdown": read_markdown,
    "application/xliff+xml": read_xliff,
}
read_html_with_attributes = functools.partial(read_html, with_attributes=True)

_FIRST_CHARACTERS = 1 << 14  # in which a page has its first words. Half, and some have none; twice, and it takes 5 ms
_TAG = re.compile(r"<[^<>]*>")


def first_words(mime_type: str, text: str) -> str:
    """Returns about the words that a reader would see first of a text, to guess its language by."""
    if mime_type not in READERS:
        return text
    beginning = text[:_FIRST_CHARACTERS]
    try:
        return " ".join(block.text for block in READERS[mime_type](beginning, unwatched).blocks)
    except MalformedDocument:  # it may be so because it was cut
        return _TAG.sub(" ", beginning)
