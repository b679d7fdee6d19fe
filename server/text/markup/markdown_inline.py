"""Reads what stands within a block of Markdown: emphasis, links, code, HTML, escapes."""

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.text.markup.builder import BLANK_RUN, Builder, unescape
from server.text.markup.document import looking
from server.text.markup.html import BLOCKS, VOIDS, translates

_TARGET = (
    r"""\([ \t\n]*+(?:<[^<>\n]*+>|[^\s()<]*+(?:\([^\s()]*+\)[^\s()]*+)*+)"""
    r"""(?:[ \t\n]++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?[ \t\n]*+\)"""
)
# A tag, but not <T, P> or <T: Clone>, which are types of programs. A value may be an object of JSX: {{color: "red"}}.
_VALUE = r"""\{{1,2}+[^<>{}]{0,200}+\}{1,2}+(?=[\s/>])|(?:[^\s<>"'/]|/(?!>))*+"""
_ATTRIBUTES = rf"""(?:\s++|=(?:{_VALUE})|[^\s<>"'/=,]++|/(?!>)|"[^"]*+"|'[^']*+')*+"""
_HTML = rf"</?(?P<name>[A-Za-z][\w-]*+)(?!:\s){_ATTRIBUTES}(?P<void>/?)>"
_LINK_END = re.compile(rf"\](?:(?P<target>{_TARGET})|\[(?P<label>[^\[\]]*+)\])?")
_TOKEN = re.compile(
    r"(?P<note>\[\^[^\[\]\s]++\]|\\!(?=\[))|(?P<comment><!--)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<hard>(?:(?<! ) {2,}+|\\)(?:\r\n?|\n)[ \t>]*+)"
    r"|(?P<line>(?:\r\n?|\n)[ \t>]*+)"
    r"|(?P<reference>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|\w{1,31});)"
    r"|(?P<code>`++)"
    r"|(?P<formula>\$\$[^$]++\$\$|\$(?![\s\d$])[^$\n]*+(?<!\s)\$(?![\dA-Z_{]))"
    r"|(?P<link><(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+|[\w.+-]++@[\w.-]++)>)"
    r"|(?P<word><(?P<element>code|kbd|samp|var)(?:\s[^<>]*+)?>[^<>]*+</(?P=element)>|<(?P<index>su[bp])>[^\s<>]{1,16}</(?P=index)>)"
    rf"|(?P<html>{_HTML})"
    r"|(?P<open>!?\[)|(?P<close>\])"
    r"|(?P<mark>\*++|_++|~~)",
)
_CODE_OR_TAG = re.compile(rf"\\[\\`<]|`++|{_HTML}")
_COMMENT_END, _END_TAG = "-->", re.compile(r"</([A-Za-z][\w-]*+)")
_BACKTICKS = re.compile("`+")
_LONGEST_LABEL = 999  # characters, by CommonMark
_MOST_PIECES = 100  # of a link that tags cross. Half, and long links lose them; twice that, and hostile ones take twice


def normalized(label: str) -> str:
    """Returns a link's label as it is compared with others."""
    return " ".join(label.split()).casefold()


@dataclass(slots=True)
class _Piece:
    """A piece of a text: what it reads, or for a tag the element it belongs to."""

    source: str
    text: str | None = None
    name: str = ""
    is_end: bool = False
    is_kept: bool = False
    is_break: bool = False


def read_inline(text: str, labels: Collection[str], builder: Builder) -> None:
    """Adds the content of a block, and its tags.

    Args:
        text: the lines of a paragraph or the like, with what stands before a line from the second on.
        labels: of the links that the document defines, normalised.
        builder: to which it is added.
    """
    for piece in looking(_Inline(text, labels, builder).pieces(), builder.look):
        if piece.is_break:
            builder.stay(piece.source)
        elif piece.text is not None:
            builder.add_text(piece.source, piece.text)
        elif piece.is_kept:
            builder.keep(piece.source)
        elif piece.name:
            builder.add_tag(piece.source, piece.name, piece.is_end)
        else:
            builder.add_void(piece.source)


class _Inline:
    """Finds the pieces of a text, and then which of its marks belong together."""

    def __init__(self, text: str, labels: Collection[str], builder: Builder):
        self._text = text
        self._labels = labels
        self._count = builder.count
        self._pieces: list[_Piece] = []
        self._brackets: list[tuple[int, int]] = []  # index of the piece, and where the text behind it begins
        self._marks: list[int] = []  # pieces of emphasis that may begin
        self._num_marks: Counter[str] = Counter()
        self._pairs: list[tuple[int, int]] = []  # pieces of emphasis that begin and end, by their ends
        self._tags: list[int] = []  # pieces of HTML that may cross a link
        self._kept_ends = _find_code_ends(text, builder.count)
        self._kept_ends |= _find_element_ends(text, self._kept_ends, builder.look)
        self._last_comment_end = text.rfind(_COMMENT_END)
        self._last_ends = {f"<{match[1].lower()}": match.start() for match in _END_TAG.finditer(text)}

    def pieces(self) -> list[_Piece]:
        """Returns all pieces."""
        position = 0
        while match := _TOKEN.search(self._text, position):
            self._count()
            self._add_text(self._text[position : match.start()])
            position = self._add(match)
        self._add_text(self._text[position:])
        return self._pieces

    def _add_text(self, text: str) -> None:
        if text:
            self._pieces.append(_Piece(text, text=BLANK_RUN.sub(" ", text)))

    def _add(self, match: re.Match[str]) -> int:
        """Adds a token, and returns where it ends."""
        end = match.end()
        if match["close"]:
            return self._close_bracket(match)
        if match["mark"]:
            self._add_mark(match)
            return end
        if match["open"]:
            self._brackets.append((len(self._pieces), end))
        if match.start() in self._kept_ends:
            end = self._kept_ends[match.start()]
            is_break = (match["name"] or "").lower() in BLOCKS
            self._pieces.append(_Piece(self._text[match.start() : end], is_kept=True, is_break=is_break))
        elif match["comment"] and end <= self._last_comment_end:
            end = self._text.index(_COMMENT_END, end) + len(_COMMENT_END)
            self._pieces.append(_Piece(self._text[match.start() : end]))
        else:
            piece = _make_piece(match)
            if piece.name and self._brackets:
                if piece.is_end or self._last_ends.get(piece.name, 0) > end:
                    self._tags.append(len(self._pieces))
                else:  # it never ends, so it stays where it is in the link
                    piece.name = ""
            self._pieces.append(piece)
        return end

    def _close_bracket(self, match: re.Match[str]) -> int:
        """Ends a link or an image, or adds a bracket that is text; returns where it ends."""
        found = _LINK_END.match(self._text, match.start())
        if found and self._brackets:
            index, begin = self._brackets.pop()
            label = found["label"] or self._text[begin : min(match.start(), begin + _LONGEST_LABEL)]
            if found["target"] is not None or normalized(label) in self._labels:
                self._keep_within(index)
                tags = self._pop_tags(index)
                if self._pieces[index].source == "![":
                    self._pieces[index:] = [_Piece(self._text[begin - 2 : found.end()], is_kept=True)]
                    return found.end()
                source = found[0] if found["target"] or found["label"] else f"][{label}]"
                name = f"[{index}"
                self._pieces[index] = _Piece(self._pieces[index].source, name=name)
                self._pieces.append(_Piece(source, name=name, is_end=True))
                self._move_out(index, tags)
                return found.end()
        self._pieces.append(_Piece("]", text="]"))
        return match.end()

    def _add_mark(self, match: re.Match[str]) -> None:
        """Begins or ends emphasis."""
        mark = match[0]
        before, behind = self._text[match.start() - 1 : match.start()], self._text[match.end() : match.end() + 1]
        opens, closes = _flanks(before, behind), _flanks(behind, before)
        if mark[0] == "_":
            opens, closes = opens and not before.isalnum(), closes and not behind.isalnum()
        index = len(self._pieces)
        self._pieces.append(_Piece(mark, text=mark))
        if closes and self._num_marks[mark]:
            begin = self._pop_mark()
            while self._pieces[begin].source != mark:
                begin = self._pop_mark()
            for piece in (self._pieces[begin], self._pieces[index]):
                piece.text, piece.name = None, f"{mark}{begin}"
            self._pieces[index].is_end = True
            self._pairs.append((begin, index))
        elif opens:
            self._marks.append(index)
            self._num_marks[mark] += 1

    def _keep_within(self, index: int) -> None:
        """Undoes emphasis with one end behind a piece that begins a link: of the two, the link counts."""
        while self._marks and self._marks[-1] > index:
            self._pop_mark()
        while self._pairs and self._pairs[-1][1] > index:
            pair = self._pairs.pop()
            if pair[0] < index:
                for piece in (self._pieces[each] for each in pair):
                    piece.text, piece.name, piece.is_end = piece.source, "", False
                self._marks.append(pair[0])
                self._num_marks[self._pieces[pair[0]].source] += 1

    def _pop_tags(self, index: int) -> list[int]:
        """Takes the tags of HTML behind a piece off those that may cross a link, and returns them."""
        tags: list[int] = []
        while self._tags and self._tags[-1] > index:
            tags.append(self._tags.pop())
        return tags[::-1]

    def _move_out(self, index: int, tags: Sequence[int]) -> None:
        """Moves tags of HTML that cross a link to the nearer end of it, so that both stay whole.

        Args:
            index: of the piece that begins the link. The last piece ends it.
            tags: pieces within the link.
        """
        begun: list[int] = []  # tags without the other one in the link
        ended: list[int] = []
        for place in tags:
            piece = self._pieces[place]
            if not piece.is_end:
                begun.append(place)
            elif begun and self._pieces[begun[-1]].name == piece.name:
                begun.pop()
            else:
                ended.append(place)
        if (begun or ended) and len(self._pieces) - index <= _MOST_PIECES:
            crossing = {*begun, *ended}
            inner = [piece for place, piece in enumerate(self._pieces[index:], index) if place not in crossing]
            moved = [[self._pieces[place] for place in places] for places in (ended, begun)]
            self._pieces[index:] = [*moved[0], *inner, *moved[1]]

    def _pop_mark(self) -> int:
        index = self._marks.pop()
        self._num_marks[self._pieces[index].source] -= 1
        return index


def _make_piece(match: re.Match[str]) -> _Piece:
    """Returns the piece of a token that belongs to no other one."""
    source = match[0]
    if match["escaped"]:
        return _Piece(source, text=match["escaped"])
    if match["name"]:
        name = match["name"].lower()
        if name in BLOCKS:
            return _Piece(source, is_break=True)
        is_void = bool(match["void"]) or name in VOIDS
        return _Piece(source, name="" if is_void else f"<{name}", is_end=source.startswith("</"))
    if match["note"]:
        return _Piece(source)
    if match["hard"] or match["link"] or match["formula"] or match["word"]:
        return _Piece(source, is_break=bool(match["hard"]), is_kept=not match["hard"])
    return _Piece(source, text=" " if match["line"] else unescape(source) if match["reference"] else source)


def _flanks(outer: str, inner: str) -> bool:
    """Whether a mark between these characters may have its text on the inner side."""
    if not inner or inner.isspace():
        return False
    return not _is_punctuation(inner) or not outer or outer.isspace() or _is_punctuation(outer)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _find_code_ends(text: str, count: Callable[[], None]) -> dict[int, int]:
    """Returns for each run of backticks that has another of its length behind it where that one ends."""
    ends: dict[int, int] = {}
    last: dict[int, int] = {}  # where the last run of each length begins
    for match in _BACKTICKS.finditer(text):
        count()
        length = match.end() - match.start()
        if length in last:
            ends[last[length]] = match.end()
        last[length] = match.start()
    return ends


def _find_element_ends(text: str, code_ends: Mapping[int, int], look: Callable[[], None]) -> dict[int, int]:
    """Returns for each tag that begins an element which is not translated where that, or else the text, ends."""
    ends: dict[int, int] = {}
    begun: defaultdict[str, list[re.Match[str]]] = defaultdict(list)  # tags of elements that are open, by name
    if "translate" not in text.lower():
        return ends
    for match in looking(_code_and_tags(text, code_ends), look):
        name = (match["name"] or "").lower()
        is_end = match[0].startswith("</")
        if name and not (is_end or match["void"] or name in VOIDS):
            begun[name].append(match)
        elif is_end and begun[name]:
            tag = begun[name].pop()
            if not translates(tag[0], is_translated=True):
                ends[tag.start()] = match.end()
    left = looking(itertools.chain.from_iterable(begun.values()), look)
    return ends | {tag.start(): len(text) for tag in left if not translates(tag[0], is_translated=True)}


def _code_and_tags(text: str, code_ends: Mapping[int, int]) -> Iterator[re.Match[str]]:
    """Yields runs of backticks, tags outside of code, and escapes of these, which have no name."""
    position = 0
    while match := _CODE_OR_TAG.search(text, position):
        yield match
        position = code_ends.get(match.start(), match.end())
