"""Reads XLIFF 1.2 and 2.x: each unit's source is a text, and its translation becomes the unit's target.

Source: the standards of OASIS, XLIFF 1.2 (2008) and 2.1 (2018). A target that is there is replaced. Its attributes
stay, but for `state`, which becomes "translated". What is approved, signed off or final stays as it is. Where a source
has segments (`seg-source`), the target is one text. A reference to what a DTD defines, such as `&product;`, is kept as
a word. The elements may have a prefix that is declared as that of XLIFF, as `<xlf:source>` has.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from server.text.markup.builder import BLANK_RUN, Builder
from server.text.markup.document import Document, MalformedDocument, Watch, unwatched

_UNITS = frozenset({"trans-unit", "segment"})
_BEGINS, _ENDS = frozenset({"bx", "bpt", "sc", "sm"}), frozenset({"ex", "ept", "ec", "em"})
_SPANS = frozenset({"g", "pc", "mrk"})
_FINAL = frozenset({"final", "signed-off"})  # states
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}  # XML has no others of its own
_REFERENCE = r"&(?:(?:amp|lt|gt|quot|apos)|\#0*+\d{1,7}|\#x0*+[0-9a-fA-F]{1,6});"
_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>|<![A-Z][^<>\[]*+(?:\[[^\]]*+\]\s*)?>"
    r"""|<(?P<slash>/?)(?P<name>[\w:][\w:.-]*+)(?:\s++|[^\s<>/"']++|"[^"<]*+"|'[^'<]*+')*+(?P<close>/?)>"""
    rf"|(?P<text>(?:[^<&]++|{_REFERENCE}|&(?![^\s<&;]{{1,64}};))++)|&[^\s<&;]{{1,64}};",
    re.DOTALL,
)
_DECODED = re.compile(_REFERENCE)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_PREFIX = re.compile(r"""\sxmlns:([\w.-]++)\s*+=\s*+["']urn:oasis:names:tc:xliff:document:""")
_STATE = re.compile(r"""(?<=\s)state\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the document: a tag, a text, or what has no name and no text, such as a comment.

    Attributes:
        source: as it is.
        name: of a tag's element, without the prefix of XLIFF.
        prefix: of XLIFF, with its colon; "" for none.
        text: what a text reads.
        parent: the name of the element around it.
        attributes: of a tag that begins an element.
        is_translated: whether the text in it is.
        keeps_blanks: whether white space in it means more than a blank, by `xml:space`.
    """

    source: str
    name: str = ""
    prefix: str = ""
    text: str | None = None
    attributes: dict[str, str] | None = None
    parent: str = ""
    is_end: bool = False
    is_translated: bool = True
    keeps_blanks: bool = False


# A placeholder is kept as a word, because it mostly stands for one; so is a `mrk` that is not translated.
_KEPT = frozenset({"mrk", "x", "ph"})


def escape(text: str) -> str:
    """Returns a plain text as XML writes it between tags."""
    return text.translate(_ESCAPES)


def decode(text: str) -> str:
    """Returns a text with the references decoded that XML has without a DTD: five by name, and those by number."""
    return _DECODED.sub(_decoded, text)


def _decoded(match: re.Match[str]) -> str:
    name = match[0][1:-1]
    if name in _NAMED:
        return _NAMED[name]
    number = int(name.replace("#", "0"), 16) if name[1] == "x" else int(name[1:])
    is_character = number in (0x9, 0xA, 0xD) or 0x20 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF
    return chr(number) if is_character else "\ufffd"


def read_xliff(text: str, watch: Watch = unwatched) -> Document:
    """Returns the sources of an XLIFF document's units, to be written as their targets.

    Units stay as they are where `translate="no"`, `approved="yes"`, or a state that is final says so. Codes within a
    unit are tags.

    Args:
        text: a whole document.
        watch: see `Builder`.

    Raises:
        MalformedDocument: it is not well-formed XML, or no XLIFF.
    """
    builder = Builder(text, escape, watch)
    tokens, ends = _read_tokens(text, builder.count)
    if not any(token.name == "xliff" for token in tokens):
        raise MalformedDocument("must be an XLIFF document: it has no element <xliff>")
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.name == "source" and token.parent in _UNITS and token.is_translated and ends.get(index, index) > index:
            index = _read_unit(tokens, ends, index, builder)
        else:
            builder.stay(token.source)
            index += 1
    return builder.finish()


def _read_unit(tokens: Sequence[_Token], ends: dict[int, int], begin: int, builder: Builder) -> int:
    """Adds a unit from its source to its target, and returns the index of the token behind."""
    builder.look()
    source_end = ends[begin]
    behind = source_end + 1
    following = _next_tag(tokens, behind)
    if tokens[following].name == "seg-source":
        behind = ends[following] + 1
        following = _next_tag(tokens, behind)
    is_old = tokens[begin].parent == "trans-unit"  # of XLIFF 1.2, which has the state in the target
    name = f"{tokens[begin].prefix}target"
    opening = f'<{name} state="translated">' if is_old else f"<{name}>"
    end = behind
    if tokens[following].name == "target" and not tokens[following].is_end:
        name = f"{tokens[following].prefix}target"
        end = ends[following] + 1
        if (tokens[following].attributes or {}).get("state") in _FINAL:
            builder.stay("".join(token.source for token in tokens[begin:end]))
            return end
        behind = following
        opening = _STATE.sub('state="translated"', tokens[following].source, 1)
        opening = opening[:-2].rstrip() + ">" if opening.endswith("/>") else opening
    builder.stay("".join(token.source for token in tokens[begin:behind]) + opening)
    _read_source(tokens, ends, begin, builder)
    builder.stay(f"</{name}>")
    return end


def _next_tag(tokens: Sequence[_Token], index: int) -> int:
    """Returns the index of the next tag; there is one behind each tag but the last."""
    while not tokens[index].name:
        index += 1
    return index


def _read_source(tokens: Sequence[_Token], ends: dict[int, int], begin: int, builder: Builder) -> None:
    index = begin + 1
    while index < ends[begin]:
        token = tokens[index]
        end = index if token.name in _SPANS and token.is_translated else ends.get(index, index)
        whole = "".join(each.source for each in tokens[index : end + 1])
        if token.text is not None:
            text = token.text if tokens[begin].keeps_blanks else BLANK_RUN.sub(" ", token.text)
            builder.add_text(token.source, text)
        elif token.name in _SPANS and token.is_translated and ends.get(index) != index:
            builder.add_tag(token.source, token.name, token.is_end)
        elif token.name in _BEGINS or token.name in _ENDS:
            builder.add_tag(whole, _pair_of(token), is_end=token.name in _ENDS)
        elif token.name in _KEPT or token.source[0] == "&":
            builder.keep(whole)
        else:
            builder.add_void(whole)
        index = end + 1


def _pair_of(token: _Token) -> str:
    """Returns what both codes of a pair have in common."""
    attributes = token.attributes or {}
    return "code " + next((attributes[key] for key in ("rid", "startRef", "id") if key in attributes), "")


def _read_tokens(text: str, count: Callable[[], None]) -> tuple[list[_Token], dict[int, int]]:
    """Returns the tokens of a document, and for each that begins an element the index of the one that ends it."""
    tokens: list[_Token] = []
    ends: dict[int, int] = {}
    begun: list[int] = []
    prefixes = frozenset(_PREFIX.findall(text))
    for match in matches(text):
        count()
        prefix, name = _parted(match["name"] or "", prefixes)
        around = tokens[begun[-1]] if begun else _Token("")
        if not name:
            plain = match["cdata"] if match["text"] is None else decode(match["text"])
            tokens.append(_Token(match[0], text=plain))
        elif match["slash"]:
            if (around.prefix, around.name) != (prefix, name):
                raise malformed(match.start(), "a tag ends an element that is not open")
            ends[begun.pop()] = len(tokens)
            tokens.append(_Token(match[0], name, prefix, is_end=True))
        else:
            if match["close"]:
                ends[len(tokens)] = len(tokens)
            else:
                begun.append(len(tokens))
            tokens.append(_begin_tag(match[0], name, prefix, around))
    if begun:
        raise malformed(len(text), "an element is not ended")
    return tokens, ends


def _parted(name: str, prefixes: frozenset[str]) -> tuple[str, str]:
    """Returns the prefix of XLIFF that a name has, with its colon, and the rest of the name."""
    prefix, colon, rest = name.partition(":")
    return (prefix + colon, rest) if rest and prefix in prefixes else ("", name)


def _begin_tag(source: str, name: str, prefix: str, around: _Token) -> _Token:
    attributes = {key: first or second for key, first, second in _ATTRIBUTE.findall(source)}
    is_protected = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
    is_done = attributes.get("approved") == "yes" or (name == "segment" and attributes.get("state") in _FINAL)
    space = attributes.get("xml:space")
    return _Token(
        source,
        name,
        prefix,
        attributes=attributes,
        parent=around.name,
        is_translated=not is_protected
        and not is_done
        and (around.is_translated or attributes.get("translate") == "yes"),
        keeps_blanks=around.keeps_blanks if space is None else space == "preserve",
    )


def matches(text: str) -> Iterator[re.Match[str]]:
    """Yields the tokens of XML, which together are the text. Raises MalformedDocument."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise malformed(position, "there is neither a whole tag nor a text")
        yield match
        position = match.end()


def malformed(position: int, message: str) -> MalformedDocument:
    """Returns the error of a document that is no XML, for the code point where that shows."""
    return MalformedDocument(f"must be well-formed XML, but at character {position} {message}")
