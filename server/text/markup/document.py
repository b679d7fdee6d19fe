"""What every format of markup is read into: texts to translate, and what stands between them and stays as it is.

A document is its `leading` markup, then each block's text with what stands behind it. Within a block stand inline tags,
which move with the words that they enclose (`server.text.markup.placing`). What no network should be shown, such as
the content of `<code>`, is one stand-in: a private character of plane 15, which `server.text.masking` keeps. A text in
a tag, such as the title of a link, has a stand-in in that tag.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

FIRST_STAND_IN, LAST_STAND_IN = 0xF0000, 0xFFFFD
STAND_IN = re.compile(f"[{chr(FIRST_STAND_IN)}-{chr(LAST_STAND_IN)}]")

_T = TypeVar("_T")
PIECES_PER_LOOK = 64  # half as many, and to look takes a tenth of the time; twice that, and rests begin 1 ms late

Watch = Callable[[int], None]  # is told how many pieces of a document were read, and raises to end the reading


def unwatched(num_pieces: int) -> None:
    """Lets any document be read for as long as it takes."""


def looking(items: Iterable[_T], look: Callable[[], None]) -> Iterator[_T]:
    """Yields items, and calls a function after every 64 of them, which may rest, or raise to end the work."""
    for index, item in enumerate(items, 1):
        yield item
        if index % PIECES_PER_LOOK == 0:
            look()


class MalformedDocument(Exception):
    """A document cannot be read. The message is the rule that it breaks, and holds nothing of its text."""


class Tag(NamedTuple):
    """An inline tag of a block.

    Attributes:
        position: in `Block.text`, in code points: what stands before it.
        source: as the document has it, or as it is to be written.
        partner: index in `Block.tags` of the tag that ends or begins the same element; None if the block has none.
        is_end: whether it ends an element. A tag without a partner that is no end and no void begins one that another
            block ends.
        is_void: whether it is an element by itself, such as `<img>`.
    """

    position: int
    source: str
    partner: int | None = None
    is_end: bool = False
    is_void: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A text that is translated by itself, such as a paragraph's.

    Attributes:
        text: with entities decoded, every run of line breaks and blanks beside them one blank, none at the ends. An
            attribute's value keeps a line break that is written as an entity.
        behind: the document between this block and the next one, as it is.
        escape: writes a plain text as the format does in this place, such as "&lt;" for "<".
        tags: inline tags, in the order of the document; of one position in this order, too.
        kept: what each stand-in of the text stands for, as it is.
        values: the text that each stand-in of a tag, or of what is kept, stands for: an attribute's value.
    """

    text: str
    behind: str
    escape: Callable[[str], str]
    tags: tuple[Tag, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    values: "Mapping[str, Block]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A document: `leading`, then text and `behind` of each block."""

    leading: str
    blocks: tuple[Block, ...]


class Mark(NamedTuple):
    """An element, or the part of one that stands in a sentence.

    Attributes:
        begin, end: the code points of the sentence that it encloses; equal for a point.
        opening, closing: what is written there. One of them is empty if the element begins or ends outside of the
            sentence; then the mark reaches to that end of the sentence, in the translation too. A point has an opening
            alone.
    """

    begin: int
    end: int
    opening: str
    closing: str


Read = Callable[[str, Watch], Document]  # reads a text; raises MalformedDocument, and what the watch raises
