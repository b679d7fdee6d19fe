"""Makes a document of the pieces that the reader of a format finds one after the other."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from server.text.markup.document import (
    FIRST_STAND_IN,
    LAST_STAND_IN,
    PIECES_PER_LOOK,
    STAND_IN,
    Block,
    Document,
    Tag,
    Watch,
    looking,
    unwatched,
)

BLANKS = " \t\n\f\r"  # what HTML, XML and Markdown take for white space; a no-break space is a character of the text
BLANK_RUN = re.compile(f"[{BLANKS}]+")
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_WRITTEN_BLANKS = re.compile(rf"(?:[{BLANKS}]|&#(?:0*+(?:9|10|13|32)|[xX]0*+(?:[9aAdD]|20));|&(?:Tab|NewLine);)++")
_BLANK_ENDS = (*BLANKS, ";")  # what a match of `_WRITTEN_BLANKS` can end in
_SEPARATORS = frozenset("|\u00b7\u2022\u00bb\u203a")
_LETTER = re.compile(r"[^\W\d_]")
_MOST_DIGITS = 7  # of a character's number
_LONG_NUMBER = re.compile(r"&#(\d{8,});?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Value:
    """An attribute's value in a tag that is a text of its own.

    Attributes:
        begin, end: where it stands in the tag, without quotes, in code points.
        escape: writes a plain text as such a value.
    """

    begin: int
    end: int
    escape: Callable[[str], str]


class _Piece(NamedTuple):
    """A piece of a block.

    Attributes:
        source: as it is.
        text: the text that it stands for; None for a tag and for what is kept.
        name: of the element that a tag begins or ends; "" for a void tag, and for no tag.
        is_picture: of what is kept, whether it has no place in a sentence at the ends of a block.
        values: of a tag, in order.
    """

    source: str
    text: str | None = None
    name: str = ""
    is_end: bool = False
    is_kept: bool = False
    is_picture: bool = False
    values: Sequence[Value] = ()

    @property
    def has_words(self) -> bool:
        """Whether it is part of the text of a block, more than white space between tags."""
        return (self.is_kept and not self.is_picture) or bool(self.text and self.text.strip(BLANKS))


class Builder:
    """Makes blocks of pieces. It takes time that is linear in what it is given.

    A block without a letter stays as it is. So do white space and tags at the ends of a block, except for a tag whose
    partner is inside: a pair round the whole text, or a comment before it, cannot be in a wrong place.

    Args:
        text: the whole document, none of whose characters is chosen as a stand-in.
        escape: see `Block`; of the blocks that end while it has this value.
        watch: called again and again with the number of pieces that were counted so far; ends the work by raising.
    """

    def __init__(self, text: str, escape: Callable[[str], str], watch: Watch = unwatched):
        self.escape = escape
        self._watch = watch
        self._num_pieces = 0
        self._stand_ins: list[str] = []
        self._more_stand_ins = _unused(text)
        self._pieces: list[_Piece] = []
        self._outside: list[str] = []  # what stands behind the last block
        self._leading: str | None = None  # known from the first block on
        self._block: Block | None = None  # the last one, whose `behind` is not known
        self._blocks: list[Block] = []

    def count(self) -> None:
        """Counts a piece of the document. A reader calls it for each one that it finds, before it keeps the piece."""
        self._num_pieces += 1
        if self._num_pieces % PIECES_PER_LOOK == 0:
            self._watch(self._num_pieces)

    def look(self) -> None:
        """Lets the watch rest or end the work. A reader calls it every so often in what it does to counted pieces."""
        self._watch(self._num_pieces)

    def stay(self, source: str, values: Sequence[Value] = ()) -> None:
        """Ends the block, and adds what stays behind it, but for the values in it."""
        if self._pieces:
            self._end_block()
        self._leave([_Piece(source, values=values)])

    def add_text(self, source: str, text: str) -> None:
        """Adds a text, as it is and as it reads. A sign alone that parts links, such as in a menu, ends the block."""
        if text.strip(BLANKS) in _SEPARATORS and self._pieces and self._pieces[-1].text is None:
            self.stay(source)
            return
        self._pieces.append(_Piece(source, text=text))

    def add_tag(self, source: str, name: str, is_end: bool, values: Sequence[Value] = ()) -> None:
        """Adds a tag that begins or ends the element `name`, or what else has two ends."""
        self._pieces.append(_Piece(source, name=name, is_end=is_end, values=values))

    def add_void(self, source: str, values: Sequence[Value] = ()) -> None:
        """Adds a tag that is an element by itself, or a comment."""
        self._pieces.append(_Piece(source, values=values))

    def keep(self, source: str, *, is_picture: bool = False, values: Sequence[Value] = ()) -> None:
        """Adds what the text has a stand-in for; a picture only if it stands between words."""
        self._pieces.append(_Piece(source, is_kept=True, is_picture=is_picture, values=values))

    def finish(self) -> Document:
        """Returns the document of all that was added."""
        self.stay("")
        self._end_outside()
        return Document(self._leading or "", tuple(self._blocks))

    def _end_outside(self) -> None:
        """Gives the last block, or the document, what stands before the next one."""
        outside, self._outside = "".join(self._outside), []
        if self._block is not None:
            self._blocks.append(replace(self._block, behind=outside))
        else:
            self._leading = outside

    def _leave(self, pieces: Iterable[_Piece]) -> None:
        """Adds pieces that stay outside of texts, and a block for each value of them that has a letter."""
        for piece in looking(pieces, self.look):
            position = 0
            for begin, end, block in _texts(piece):
                self._outside.append(piece.source[position:begin])
                self._end_outside()
                self._block = block
                position = end
            self._outside.append(piece.source[position:])

    def _end_block(self) -> None:
        pieces, self._pieces = self._pieces, []
        if not any(piece.text and _LETTER.search(piece.text) for piece in pieces):
            self._leave(pieces)
            return
        partners = _find_partners(looking(pieces, self.look))
        words = [index for index, piece in enumerate(looking(pieces, self.look)) if piece.has_words]
        first, last = words[0], words[-1]

        def stays(index: int) -> bool:
            return not first < partners.get(index, first) < last

        begin = next((index for index in range(first) if not stays(index)), first)
        end = next((index for index in range(len(pieces) - 1, last, -1) if not stays(index)), last)
        self._leave(pieces[:begin])
        self._outside += [piece.source for piece in pieces[begin:first] if piece.text is not None]
        if pieces[first].text is not None:
            self._outside.append(_outer_blanks(pieces[first].source)[0])
        self._end_outside()
        self._block = self._make_block(pieces, [*range(begin, end + 1)], partners, first, last)
        if pieces[last].text is not None:
            self._outside.append(_outer_blanks(pieces[last].source)[1])
        self._outside += [piece.source for piece in pieces[last + 1 : end + 1] if piece.text is not None]
        self._leave(pieces[end + 1 :])

    def _make_block(
        self, pieces: Sequence[_Piece], within: Sequence[int], partners: dict[int, int], first: int, last: int
    ) -> Block:
        """Returns the block of some pieces, of which the first and the last with words are given; without `behind`."""
        texts: list[str] = []
        kept: dict[str, str] = {}
        values: dict[str, Block] = {}
        sources: dict[int, str] = {}  # of each tag
        places: dict[int, int] = {}  # the position of each tag's piece
        length = 0
        for index in looking(within, self.look):
            piece = pieces[index]
            if piece.is_kept and (stand_in := self._stand_in(len(kept) + len(values))):
                text = stand_in
                kept[stand_in] = ""  # so that the next stand-in is another
                kept[stand_in] = self._with_stand_ins(piece, kept, values)
            elif piece.text is None:
                places[index] = length
                sources[index] = self._with_stand_ins(piece, kept, values)
                continue
            elif first <= index <= last:
                text = piece.text.lstrip(BLANKS) if index == first else piece.text
                text = text.rstrip(BLANKS) if index == last else text
            else:
                continue
            texts.append(text)
            length += len(text)
        numbers = {index: number for number, index in enumerate(places)}
        tags = tuple(
            Tag(
                position=position,
                source=sources[index],
                partner=numbers[partners[index]] if index in partners else None,
                is_end=pieces[index].is_end,
                is_void=not pieces[index].name,
            )
            for index, position in looking(places.items(), self.look)
        )
        return Block("".join(texts), "", self.escape, tags, kept, values)

    def _with_stand_ins(self, piece: _Piece, kept: Mapping[str, str], values: dict[str, Block]) -> str:
        """Returns a piece's source with a stand-in for each text in it, and adds these texts to a block's values."""
        sources, position = [], 0
        for begin, end, block in _texts(piece):
            if stand_in := self._stand_in(len(kept) + len(values)):
                values[stand_in] = block
                sources += [piece.source[position:begin], stand_in]
                position = end
        return "".join([*sources, piece.source[position:]])

    def _stand_in(self, index: int) -> str | None:
        """Returns the stand-in of that number, the same in each block; None if there are no more."""
        if index == len(self._stand_ins):
            self._stand_ins += next(self._more_stand_ins, "")
        return self._stand_ins[index] if index < len(self._stand_ins) else None


def _outer_blanks(source: str) -> tuple[str, str]:
    """Returns the white space at the begin and the end of a text's source, references as they are, but no CDATA."""
    pattern = _WRITTEN_BLANKS
    if source.startswith(_CDATA):
        source, pattern = source.removeprefix(_CDATA).removesuffix(_CDATA_END), BLANK_RUN
    begin, end = pattern.match(source), ""
    if source.endswith(_BLANK_ENDS):
        end = next((match[0] for match in pattern.finditer(source) if match.end() == len(source)), "")
    return begin[0] if begin else "", end


def _texts(piece: _Piece) -> Iterator[tuple[int, int, Block]]:
    """Yields the values of a piece that have a letter: where each stands in the piece's source, and its block."""
    for value in piece.values:
        source = piece.source[value.begin : value.end]
        text = source.strip(BLANKS)
        if _LETTER.search(unescape(text)):
            begin = value.begin + source.index(text)
            yield begin, begin + len(text), Block(unescape(BLANK_RUN.sub(" ", text)), "", value.escape)


def unescape(text: str) -> str:
    """Returns a text with its references decoded, as `html.unescape` does; also those of thousands of digits."""
    return html.unescape(_LONG_NUMBER.sub(_shortened, text))


def _shortened(reference: re.Match[str]) -> str:
    digits = reference[1].lstrip("0")
    return f"&#{digits};" if len(digits) <= _MOST_DIGITS else "\ufffd"


def _unused(text: str) -> Iterator[str]:
    """Yields the stand-ins that a document has neither as characters nor as references to such."""
    used = set(STAND_IN.findall(unescape(text)))
    yield from (stand_in for stand_in in map(chr, range(FIRST_STAND_IN, LAST_STAND_IN + 1)) if stand_in not in used)


def _find_partners(pieces: Iterable[_Piece]) -> dict[int, int]:
    """Returns the index of the other tag of each element that begins and ends among these pieces.

    A tag ends the last element of its name that is open. Elements that began within that one have no end.
    """
    partners: dict[int, int] = {}
    begun: list[tuple[int, str]] = []
    num_begun: Counter[str] = Counter()
    for index, piece in enumerate(pieces):
        if not piece.name:
            continue
        if not piece.is_end:
            begun.append((index, piece.name))
            num_begun[piece.name] += 1
        elif num_begun[piece.name]:
            name = ""
            while name != piece.name:
                other, name = begun.pop()
                num_begun[name] -= 1
            partners[index], partners[other] = other, index
    return partners
