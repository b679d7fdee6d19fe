"""Reads HTML: pages, fragments of pages, and texts with a few tags.

A regular expression cuts the document into tags, comments and texts, as browsers do (HTML standard, 13.2.5). It drops
nothing and repairs nothing, as libraries do that were tried (html5lib, lxml, selectolax, turbohtml), so what is not
translated comes back byte for byte.

Tags of `BLOCKS` end a block; all others stand in sentences. What is kept from the network is a stand-in where it has a
place in the grammar of a sentence (`_WORDS`, and what is marked as not to be translated), else a void tag (`_PICTURES`,
`_RAW` and comments), or stays between blocks if it has a block in it.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

from server.text.markup.builder import BLANK_RUN, BLANKS, Builder, Value, unescape
from server.text.markup.document import Document, Watch, unwatched


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


BLOCKS = _set(
    "address article aside audio blockquote body br button canvas caption center colgroup datalist dd details dialog"
    " dir div dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html label"
    " legend li main menu nav noscript object ol optgroup option p pre search section select summary table tbody td"
    " tfoot th thead title tr ul video"
)
VOIDS = _set("area base br col embed frame hr img input link meta param source track wbr")
_PLACED = _set("img input")  # voids that a reader sees as a word of the sentence
_RAW = _set("iframe noembed noframes script style textarea xmp")  # have no tags inside
_WORDS = _set("code kbd math samp var")
_PICTURES = _set("svg template")
_UNTRANSLATED = _WORDS | _PICTURES | {"pre"}
_END_THEIR_LIKE = _set("dd dt li optgroup option p td th tr")  # <li>One<li>Two

_ATTRIBUTE = (
    r"(?P<key>[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)"
    r"""(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?P<value>"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r"'>][^ \t\n\f\r>]*+)?)?"""
)
_TOKEN = re.compile(
    r"(?P<index><su(?P<kind>[bp])>(?!(?:st|nd|rd|th)<)[^\s<>]{1,16}</su(?P=kind)>)"  # of the word before it
    rf"|<(?P<slash>/?)(?P<name>[A-Za-z][^ \t\n\f\r/>]*+)(?:[ \t\n\f\r]++|/(?!>)|{_ATTRIBUTE})*+(?P<close>/?>|\Z)"
    r"|<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<[!?/][^>]*+>?"  # other declarations and instructions, and end tags without a name
    r"|(?P<text>(?:[^<]++|<(?![A-Za-z!?/]))++)",
    re.DOTALL,
)
_NAMED_ATTRIBUTE = re.compile(_ATTRIBUTE)
_NAME_END = re.compile(r"[ \t\n\f\r/>]")
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in (*_RAW, "title")}
_MAY_SAY = re.compile("translate", re.IGNORECASE)
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;"})
_QUOTES = {'"': "&quot;", "'": "&#39;"}
_READ = frozenset(["alt", "title", "placeholder", "aria-label"])  # attributes that people read
_READ_META = _set(
    "description og:title og:description og:image:alt twitter:title twitter:description twitter:image:alt"
)
_NOT_READ = _set("link script style")  # whose title is a name


def escape(text: str) -> str:
    """Returns a plain text as HTML writes it between tags."""
    return text.translate(_ESCAPES)


def _value_escape(escaped: Mapping[str, str]) -> Callable[[str], str]:
    table = _ESCAPES | str.maketrans(dict(escaped))
    return lambda text: text.translate(table)


_VALUE_ESCAPES = {
    quote: _value_escape({quote: reference, "\n": "&#10;", "\r": "&#13;"}) for quote, reference in _QUOTES.items()
}
# Of a value without quotes, which they or a blank would end:
_BARE_ESCAPE = _value_escape(_QUOTES | {character: f"&#{ord(character)};" for character in BLANKS + "=`"})


def read_html(
    text: str, watch: Watch = unwatched, *, with_attributes: bool = False, ignored: Container[str] = ()
) -> Document:
    """Returns the texts of an HTML document, and what stands between them.

    Any text is read, however malformed, in time that is linear in its length. Elements are kept from the network that
    `translate="no"` or the class "notranslate" marks, up to `translate="yes"` in a block of theirs.

    Args:
        text: a whole document or any piece of one.
        watch: see `Builder`.
        with_attributes: whether attributes that people read are texts.
        ignored: names of elements, in small letters, that are kept from the network as well.
    """
    builder = Builder(text, escape, watch)
    _Reader(text, builder, with_attributes=with_attributes, ignored=ignored).read_all()
    return builder.finish()


def read_fragment(text: str, builder: Builder) -> None:
    """Adds the texts of a piece of HTML that stands in a document of another format, such as a block of Markdown."""
    outer, builder.escape = builder.escape, escape
    _Reader(text, builder).read_all()
    builder.stay("")
    builder.escape = outer


class _Token(NamedTuple):
    """A piece of the document.

    Attributes:
        source: as it is.
        name: of a tag's element, in small letters; else "".
        is_empty: whether a tag ends as `<br/>` does.
        is_text: whether it is text; a token that is neither that nor a tag stays as it is.
        is_index: whether it is a whole element, a subscript or a superscript of a word.
    """

    source: str
    name: str = ""
    is_end: bool = False
    is_empty: bool = False
    is_text: bool = False
    is_index: bool = False


class _Reader:
    """Goes through the tokens of a document, and knows which elements are open."""

    def __init__(self, text: str, builder: Builder, *, with_attributes: bool = False, ignored: Container[str] = ()):
        self._text = text
        self._ignored = ignored
        self._with_attributes = with_attributes
        self._builder = builder
        self._open: list[tuple[str, bool]] = []  # the name of each, and whether it is translated
        self._num_open: Counter[str] = Counter()
        self._kept: list[str] = []  # tokens of an element within a sentence that is kept
        self._kept_name = ""
        self._kept_depth = 0  # how many elements are open around it
        self._has_block = False

    def read_all(self) -> None:
        """Adds all of the text to the builder."""
        for token in self.tokens():
            self._read(token)
        self._end_kept()

    def tokens(self) -> Iterator[_Token]:
        """Yields the tokens of the document, which together are the document."""
        position = 0
        while match := _TOKEN.match(self._text, position):
            position = match.end()
            name = (match["name"] or "").lower()
            token = _Token(
                match[0],
                name,
                match["slash"] == "/",
                match["close"] == "/>",
                match["text"] is not None,
                match["index"] is not None,
            )
            is_foreign = token.is_empty and (self._num_open["svg"] or self._num_open["math"])
            if name not in _RAW_ENDS or token.is_end or is_foreign:
                yield token
                continue
            end = found.start() if (found := _RAW_ENDS[name].search(self._text, position)) else len(self._text)
            content = self._text[position:end]
            position = end
            if name == "title":
                yield token
                yield _Token(content, is_text=True)
            else:
                end_tag = _TOKEN.match(self._text, end)
                position = end_tag.end() if end_tag else end
                yield _Token(self._text[match.start() : position])

    def _read(self, token: _Token) -> None:
        """Reads the next token."""
        self._builder.count()
        is_translated = not self._open or self._open[-1][1]
        if token.is_end:
            self._end_element(token, is_translated)
        elif token.name and token.name not in VOIDS and not token.is_empty:
            self._begin_element(token, is_translated)
        else:
            self._add(token, is_translated)

    def _begin_element(self, token: _Token, is_translated: bool) -> None:
        if self._open and self._open[-1][0] == token.name and token.name in _END_THEIR_LIKE:
            self._close()
            is_translated = not self._open or self._open[-1][1]
        is_kept = token.name in _UNTRANSLATED or token.name in self._ignored
        becomes = not is_kept and translates(token.source, is_translated=is_translated)
        if is_translated and not becomes and token.name not in BLOCKS and not self._kept:
            self._kept_name, self._kept_depth, self._has_block = token.name, len(self._open), False
            self._kept.append(token.source)
        else:
            self._add(token, is_translated)
        self._open.append((token.name, becomes))
        self._num_open[token.name] += 1

    def _end_element(self, token: _Token, is_translated: bool) -> None:
        if self._num_open[token.name]:
            while self._open[-1][0] != token.name:
                self._close()
            self._close()
        if self._kept and len(self._open) < self._kept_depth:  # ended by the end of an element around it
            self._end_kept()
            is_translated = True
        self._add(token, is_translated)
        if self._kept and len(self._open) == self._kept_depth:
            self._end_kept()

    def _close(self) -> None:
        name, _ = self._open.pop()
        self._num_open[name] -= 1

    def _end_kept(self) -> None:
        """Adds the element that is kept, of which all tokens are read; nothing if there is none."""
        if not self._kept:
            return
        source, self._kept = "".join(self._kept), []
        if self._kept_name in _PICTURES:
            self._builder.add_void(source)
        elif self._has_block:
            self._builder.stay(source)
        else:
            self._builder.keep(source)

    def _add(self, token: _Token, is_translated: bool) -> None:
        """Adds a token where it belongs."""
        is_block = token.name in BLOCKS
        values = _values(token.source) if self._with_attributes and is_translated and not token.is_text else []
        if self._kept:
            self._kept.append(token.source)
            self._has_block |= is_block
        elif is_block or not is_translated:
            self._builder.stay(token.source, values)
        elif token.is_text:
            self._builder.add_text(token.source, BLANK_RUN.sub(" ", unescape(token.source)))
        elif token.is_index or token.name in _PLACED:
            self._builder.keep(token.source, is_picture=not token.is_index, values=values)
        elif not token.name or (not token.is_end and (token.is_empty or token.name in VOIDS)):
            self._builder.add_void(token.source, values)
        else:
            self._builder.add_tag(token.source, token.name, token.is_end, values)


def _values(source: str) -> list[Value]:
    """Returns the values that people read of the tag with which a token begins; none if that says `translate="no"`."""
    tag = _TOKEN.match(source)
    if not tag or not tag["name"] or tag["slash"]:
        return []
    name, attributes = tag["name"].lower(), _attributes(tag[0])
    if name in _NOT_READ or not translates(tag[0], is_translated=True):
        return []
    read = _READ
    if name == "meta" and any(_plain(attributes.get(key)) in _READ_META for key in ("name", "property")):
        read = _READ | {"content"}
    values = []
    for key, match in attributes.items():
        if key in read and (value := match["value"]):
            quote = value[0] if value[0] in _QUOTES else ""
            begin = match.start("value") + len(quote)
            end = match.end("value") - (len(value) > 1 and value[-1] == quote)
            values.append(Value(begin, end, _VALUE_ESCAPES.get(quote, _BARE_ESCAPE)))
    return values


def translates(tag: str, *, is_translated: bool) -> bool:
    """Returns whether what an element holds is translated, where it stands in something that is translated or not."""
    if not _MAY_SAY.search(tag):
        return is_translated
    attributes = _attributes(tag)
    says = _plain(attributes["translate"]) if "translate" in attributes else None
    if says == "no" or "notranslate" in _plain(attributes.get("class")).split():
        return False
    return is_translated or says in ("", "yes")


def _attributes(tag: str) -> dict[str, re.Match[str]]:
    """Returns the attributes of a tag by their names in small letters; the first one of each name."""
    attributes: dict[str, re.Match[str]] = {}
    for match in _NAMED_ATTRIBUTE.finditer(tag, len(_NAME_END.split(tag, 1)[0])):
        attributes.setdefault(match["key"].lower(), match)
    return attributes


def _plain(attribute: "re.Match[str] | None") -> str:
    """Returns a value without quotes, in small letters; "" for none."""
    return (attribute["value"] or "").strip("\"'" + BLANKS).lower() if attribute else ""
