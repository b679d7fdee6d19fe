"""Reads plain text whose lines end where the page did: each line break is a blank, an empty line ends a paragraph."""

import re

from server.text.markup.builder import BLANK_RUN, Builder
from server.text.markup.document import Document, Watch, unwatched

_PARAGRAPH_END = re.compile(r"((?:\r\n?+|\n)(?:[ \t]*+(?:\r\n?+|\n))++)")


def read_lines(text: str, watch: Watch = unwatched) -> Document:
    """Returns the paragraphs of a text, each in one line, and the empty lines between them.

    Args:
        text: any text.
        watch: see `Builder`.
    """
    builder = Builder(text, str, watch)
    for index, piece in enumerate(_PARAGRAPH_END.split(text)):
        builder.count()
        if index % 2:
            builder.stay(piece)
        else:
            builder.add_text(piece, BLANK_RUN.sub(" ", piece))
    return builder.finish()
