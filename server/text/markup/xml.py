"""Reads XML of any kind, whole documents and pieces of them: what stands between the tags is text.

Nobody says which elements of XML are paragraphs. An element that stands beside text, as `b` in `<p>One <b>two</b></p>`
does, belongs to the sentence, and so does every other of its name; all others end a sentence. The caller may name
elements that do, that do not, and that stay as they are. Names are compared with their prefix and in their case.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from server.text.markup.builder import BLANK_RUN, BLANKS, Builder
from server.text.markup.document import Document, MalformedDocument, Watch, unwatched
from server.text.markup.html import read_html
from server.text.markup.tag_rules import NO_RULES, TagRules
from server.text.markup.xliff import decode, escape, malformed, matches


@dataclass(slots=True)
class _Token:
    """A piece of the document.

    Attributes:
        source: as it is.
        name: of a tag's element; "" for no tag.
        text: what a text reads; None for what is none.
    """

    source: str
    name: str = ""
    is_end: bool = False
    is_empty: bool = False
    text: str | None = None


@dataclass(slots=True)
class _Element:
    """An element that is open, or the document: the names in it, and whether text stands beside them."""

    name: str
    names: list[str]
    has_text: bool = False


def read_xml(text: str, watch: Watch = unwatched, *, rules: TagRules = NO_RULES) -> Document:
    """Returns the texts of an XML document, and what stands between them, in linear time.

    Args:
        text: a whole document or any piece of one.
        watch: see `Builder`.
        rules: which elements end a sentence, and which stay as they are.

    Raises:
        MalformedDocument: it is not well-formed XML.
    """
    try:
        return _read_well_formed(text, watch, rules)
    except MalformedDocument:
        if not rules.repair:
            raise
        return read_html(text, watch, ignored={name.lower() for name in rules.ignored})


def _read_well_formed(text: str, watch: Watch, rules: TagRules) -> Document:
    builder = Builder(text, escape, watch)
    tokens = list(_tokens(text, builder))
    splitting = _splitting(tokens, rules, len(text))
    kept: list[str] = []  # of an element that stays as it is
    depth = 0
    for token in tokens:
        if kept or (token.name in rules.ignored and not token.is_end):
            kept.append(token.source)
            depth += 0 if not token.name or token.is_empty else -1 if token.is_end else 1
            if depth == 0:
                whole, kept = "".join(kept), []
                if token.name in splitting:
                    builder.stay(whole)
                else:
                    builder.keep(whole)
        else:
            _add(token, splitting, builder)
    return builder.finish()


def _tokens(text: str, builder: Builder) -> Iterator[_Token]:
    for match in matches(text):
        builder.count()
        name = match["name"] or ""
        plain = None if name else match["cdata"] if match["text"] is None else decode(match["text"])
        yield _Token(match[0], name, match["slash"] == "/", match["close"] == "/", plain)


def _splitting(tokens: Sequence[_Token], rules: TagRules, length: int) -> set[str]:
    """Returns the names of the elements that end a sentence. Raises MalformedDocument."""
    names: set[str] = set()
    beside: set[str] = set(rules.non_splitting)
    opened = [_Element("", [])]
    position = 0
    for token in tokens:
        if token.text is not None and token.text.strip(BLANKS):
            opened[-1].has_text = True
        elif token.is_end:
            if opened[-1].name != token.name:
                raise malformed(position, "a tag ends an element that is not open")
            _close(opened.pop(), beside)
        elif token.name:
            names.add(token.name)
            opened[-1].names.append(token.name)
            if not token.is_empty:
                opened.append(_Element(token.name, []))
        position += len(token.source)
    if len(opened) > 1:
        raise malformed(length, "an element is not ended")
    _close(opened.pop(), beside)
    return set(rules.splitting) if rules.only_named_split else (names - beside) | rules.splitting


def _close(element: _Element, beside: set[str]) -> None:
    if element.has_text:
        beside.update(element.names)


def _add(token: _Token, splitting: set[str], builder: Builder) -> None:
    """Adds a token where it belongs."""
    if token.text is not None:
        builder.add_text(token.source, BLANK_RUN.sub(" ", token.text))
    elif token.source[0] == "&":  # a reference to what a DTD defines
        builder.keep(token.source)
    elif token.name in splitting or (not token.name and not token.source.startswith("<!--")):
        builder.stay(token.source)
    elif not token.name or token.is_empty:
        builder.add_void(token.source)
    else:
        builder.add_tag(token.source, token.name, token.is_end)
