"""Units of XML: what stands in a paragraph is sent as HTML, in which numbered tags stand for the document's own.

    <w:r><w:t>A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>   is sent as   A <span id="1">red</span>

Most of a paragraph looks alike: that format needs no tag. The server returns each tag once, at the words that stand for
those of the source, and the document's own take the places of the numbered ones.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from babelserve.formats.document import Standing, Unit, has_letters

_ANSWER = re.compile(r"<(/?)([a-z]++)([^<>]*+)>|([^<]++|<)")
_NUMBER = re.compile(r'\sid="([0-9]{1,9})"')
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TAG = re.compile(r"<[^>]*+>")


@dataclass(frozen=True, slots=True)
class Format:
    """What is written around each text of a kind, such as a run of Word and its properties."""

    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters with their entities, as the document has them."""

    source: str
    format: Format = Format()


@dataclass(frozen=True, slots=True)
class Span:
    """An element around others: its tags, as the document has them, and the tag of HTML that stands for it."""

    opening: str
    closing: str
    pieces: Sequence["Piece"]
    tag: str = "span"


@dataclass(frozen=True, slots=True)
class Point:
    """What stands between texts and has none of this unit: a range of the document.

    Attributes:
        around: what is written around the range.
        tag: "br" where a sentence ends; "code" for a word that stays; "img" for a picture, which is none at the ends of
            a sentence; "wbr" for anything else in it.
        is_ordered: whether it is the beginning or the end of something, such as a bookmark: these stay in their order.
    """

    begin: int
    end: int
    around: Format = Format()
    tag: str = "wbr"
    is_ordered: bool = False


Piece = Text | Span | Point


@dataclass(frozen=True, slots=True)
class Group:
    """Pieces whose range of the document is written anew as a whole; None: here a unit ends, and nothing is written."""

    begin: int
    end: int
    pieces: Sequence[Piece] | None


def units(groups: Iterable[Group]) -> Iterator[Unit]:
    """Yields the units of one paragraph: from the first word to the last, between groups that end one."""
    run: list[Group] = []
    for group in [*groups, Group(0, 0, None)]:
        if group.pieces is not None:
            run.append(group)
            continue
        words = [index for index, each in enumerate(run) if any(map(_has_words, each.pieces or ()))]
        if words:
            yield from _unit(run[words[0] : words[-1] + 1])
        run = []


def _has_words(piece: Piece) -> bool:
    if isinstance(piece, Span):
        return any(map(_has_words, piece.pieces))
    return piece.tag == "code" if isinstance(piece, Point) else not piece.source.isspace()


def _unit(groups: list[Group]) -> Iterator[Unit]:
    builder = _Builder()
    text = builder.add([piece for group in groups for piece in group.pieces or ()])
    if has_letters(html.unescape(_TAG.sub("", text))):
        yield Unit(text, groups[0].begin, groups[-1].end, builder.render)


class _Builder:
    """Numbers the tags of a unit, and puts the document's own back."""

    def __init__(self) -> None:
        self._tags: list[tuple[str, Span | Point | Format, Format]] = []  # its name; of texts in it
        self._format = Format()

    def add(self, pieces: Sequence[Piece]) -> str:
        """Returns the HTML of a unit's pieces."""
        self._format = _commonest(pieces, Format())
        return self._html(pieces, self._format)

    def _html(self, pieces: Sequence[Piece], usual: Format) -> str:
        out: list[str] = []
        last = usual
        for piece in pieces:
            now = piece.format if isinstance(piece, Text) else usual
            if isinstance(piece, Text) and (not piece.source or piece.source.isspace()):
                now = last
            if now != last:
                out.append("</span>" if last != usual else "")
                out.append(self._opened("span", now, now) if now != usual else "")
                last = now
            if isinstance(piece, Text):
                out.append(piece.source)
            elif isinstance(piece, Point):
                out.append(self._opened(piece.tag, piece, usual) + ("</code>" if piece.tag == "code" else ""))
            else:
                inner = _commonest(piece.pieces, usual)
                opened = self._opened(piece.tag, piece, inner)
                out += [opened, self._html(piece.pieces, inner), f"</{piece.tag}>"]
        return "".join([*out, "</span>" if last != usual else ""])

    def _opened(self, name: str, what: Span | Point | Format, inner: Format) -> str:
        self._tags.append((name, what, inner))
        return f'<{name} id="{len(self._tags)}">'

    def render(self, translation: str, standing: Standing) -> str | None:
        """Writes a translation with the document's own tags; None if it has not each tag once and well nested."""
        try:
            return self._render(translation, standing)
        except ValueError:  # Python's, of a character whose number has thousands of digits
            return None

    def _render(self, translation: str, standing: Standing) -> str | None:
        out: list[str] = []
        left = set(range(len(self._tags)))
        opened: list[tuple[str, str]] = []  # its name, what closes it
        formats = [self._format]
        ordered = iter([what for _, what, _ in self._tags if isinstance(what, Point) and what.is_ordered])
        for slash, name, attributes, text in _ANSWER.findall(translation):
            if text:
                source = html.escape(html.unescape(text), quote=False)
                if _NO_XML.search(source):
                    return None
                out += [formats[-1].before, source, formats[-1].after]
            elif slash:
                if not opened or opened[-1][0] != name:
                    return None
                out.append(opened.pop()[1])
                formats.pop()
            else:
                number = int(found[1]) - 1 if (found := _NUMBER.search(attributes)) else -1
                if number not in left or self._tags[number][0] != name:
                    return None
                left.remove(number)
                _, what, inner = self._tags[number]
                if isinstance(what, Point):
                    what = next(ordered) if what.is_ordered else what
                    out += [what.around.before, standing(what.begin, what.end), what.around.after]
                    if name != "code":
                        continue
                out.append(what.opening if isinstance(what, Span) else "")
                opened.append((name, what.closing if isinstance(what, Span) else ""))
                formats.append(inner)
        return None if left or opened else "".join(out)


def _commonest(pieces: Sequence[Piece], default: Format) -> Format:
    """The format of the most characters."""
    lengths: Counter[Format] = Counter()
    for piece in pieces:
        if isinstance(piece, Text):
            lengths[piece.format] += len(piece.source)
    return lengths.most_common(1)[0][0] if lengths else default
