"""The targets of what reads markup, parts messages and places tags, each as in `tests.fuzz.targets`."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from xml.etree.ElementTree import ParseError, fromstring

from server.errors import InvalidRequest
from server.text.icu import find_messages
from server.text.layout import part_line, part_messages
from server.text.markup.builder import BLANKS, unescape
from server.text.markup.document import Document, MalformedDocument, Mark
from server.text.markup.html import read_html
from server.text.markup.lines import read_lines
from server.text.markup.markdown import read_markdown
from server.text.markup.marking import split_document
from server.text.markup.placing import place_marks
from server.text.markup.tag_rules import TagRules
from server.text.markup.xliff import read_xliff
from server.text.markup.xml import read_xml
from server.text.own_parts import OwnParts
from server.text.sentences import split_text
from server.text.source import SplitText
from tests.acceptance.markup_round_trip import FORMATS, find_fault
from tests.fuzz.parts import builtin_masker, builtin_tokenizer
from tests.server.text.markup.identity import identity

_MAX_TOKENS = 100
_BLANK = re.compile(f"[{BLANKS}]")
_NUMBER = re.compile(r"&#(?:\d+|[xX][0-9a-fA-F]+);?")  # a character by its number
_UNIT = "<xliff><trans-unit><source>{}</source></trans-unit></xliff>"
_TAG = re.compile("[\ue100-\uf8ff]")  # of `_with_own_tags`
_MOST_TAGS = 1000


def fuzz_html(data: bytes) -> None:
    """A document: all of it comes back, and each sentence's tags in any translation."""
    text = data.decode(errors="replace")
    document = read_html(text)
    is_same = Counter(_BLANK.findall(unescape(text))) == Counter(_BLANK.findall(text))  # white space by number may go
    if is_same and all(map(unescape, _NUMBER.findall(text))):  # and characters that no document may have
        assert find_fault(text, document, FORMATS[0]) is None
    _check_sentences(document)


def fuzz_markdown(data: bytes) -> None:
    """A document: each of its letters comes back, and each sentence's tags in any translation."""
    text = data.decode(errors="replace")
    document = read_markdown(text)
    parts = (document.leading, *(part for block in document.blocks for part in (block.text, block.behind)))
    assert len("".join(parts)) <= 2 * len(text)
    _check_sentences(document)


def fuzz_xliff(data: bytes) -> None:
    """A unit's source, or a whole document: a fault of its form, or a document that can be read again."""
    text = data.decode(errors="replace")
    for whole in (text, _UNIT.format(text)):
        try:
            document = read_xliff(whole)
        except MalformedDocument:
            continue
        again = read_xliff(identity(document))
        assert [block.text for block in again.blocks] == [block.text for block in document.blocks]
        assert identity(again) == identity(document)
        _check_xml(whole, identity(document))
        _check_sentences(document)


def fuzz_xml(data: bytes) -> None:
    """A piece of XML, and behind a NUL an element that stays: a fault of its form, or all of it comes back."""
    text, _, name = data.decode(errors="replace").partition("\0")
    rules = TagRules(ignored=frozenset({name}))
    try:
        document = read_xml(text, rules=rules)
    except MalformedDocument:
        return
    again = read_xml(identity(document), rules=rules)
    assert [block.text for block in again.blocks] == [block.text for block in document.blocks]
    assert identity(again) == identity(document)
    _check_xml(f"<a>{text}</a>", f"<a>{identity(document)}</a>")
    _check_sentences(document)


def fuzz_lines(data: bytes) -> None:
    """A text: but for white space all of it comes back."""
    text = data.decode(errors="replace")
    document = read_lines(text)
    assert identity(document).split() == text.split()
    _check_sentences(document)


def fuzz_placing(data: bytes) -> None:
    """A document and, behind a NUL, a translation of each of its sentences: every tag once, nested as before."""
    source, _, target = data.decode(errors="replace").partition("\0")
    _check_sentences(read_html(source), target)


def fuzz_icu(data: bytes) -> None:
    """A text: its messages and their texts are in order, and the pieces join to it."""
    text = data.decode(errors="replace")
    end = 0
    for (start, stop), texts in find_messages(text):
        assert end <= start < stop <= len(text)
        end = start
        for begin, until in texts:
            assert end <= begin <= until <= stop
            end = until
        end = stop
    assert "".join(part_messages(text)) == text
    for line in text.splitlines():
        assert "".join(part_line(line)) == line


def fuzz_own_parts(data: bytes) -> None:
    """Literals, delimiters and a text with NUL between them: refused, or parts of the text that are in order."""
    *own, text = data.decode(errors="replace").split("\0")
    half = len(own) // 2
    literals, delimiters = own[:half], list(zip(own[half::2], own[half + 1 :: 2], strict=False))
    try:
        parts = OwnParts([*literals, *delimiters])
    except InvalidRequest:
        return
    end = 0
    for start, stop in parts.find(text):
        assert end <= start < stop <= len(text)
        found, end = text[start:stop], stop
        between = (found.startswith(first) and found.endswith(last) for first, last in delimiters)
        assert found in literals or any(between)


MARKUP_TARGETS: dict[str, Callable[[bytes], None]] = {
    "html": fuzz_html,
    "markdown": fuzz_markdown,
    "xliff": fuzz_xliff,
    "xml": fuzz_xml,
    "lines": fuzz_lines,
    "placing": fuzz_placing,
    "icu": fuzz_icu,
    "own_parts": fuzz_own_parts,
}


def _check_xml(source: str, result: str) -> None:
    """What a parser of XML reads, it reads again, and a unit that was given its source as target has it as such."""
    try:
        fromstring(source)
    except ParseError:
        return
    root = fromstring(result)
    for unit in root.iter():
        pair = [each for each in unit if each.tag in ("source", "target")]
        if root.tag == "xliff" and unit.tag == "trans-unit" and len(pair) == len(unit) == 2 and len(pair[0]) == 0:
            texts = ["".join(each.itertext()).split() for each in pair]
            assert texts[0] == texts[1] or "target" in source


def _split(text: str, num_before: int) -> SplitText:
    assert num_before >= 0
    return split_text(text, "en", builtin_tokenizer().encode, _MAX_TOKENS, masker=builtin_masker())


def _check_sentences(document: Document, target: str = "") -> None:
    """Every sentence that is its own translation, or is translated into anything, has each of its tags."""
    split = split_document(document, _split)
    for sentence in split.sentences:
        assert sentence.markup is not None
        marks, tags = _with_own_tags(sentence.markup.marks)
        for translation in (sentence.text, target, " ".join(reversed(sentence.text.split()))):
            plain = _TAG.sub("", translation)
            placed = place_marks(marks, sentence.text, plain, None, partial(str))
            assert _TAG.sub("", placed) == plain
            found = _TAG.findall(placed)
            assert sorted(found) == sorted(tags)
            _check_nesting(marks, found)


def _with_own_tags(marks: Sequence[Mark]) -> tuple[list[Mark], list[str]]:
    """Returns marks whose openings and closings are one private character each, and these."""
    tags = iter(map(chr, range(0xE100, 0xF900)))
    own: list[Mark] = []
    for mark in marks[:_MOST_TAGS]:
        opening, closing = (next(tags) if tag else "" for tag in (mark.opening, mark.closing))
        own.append(Mark(mark.begin, mark.end, opening, closing))
    return own, [tag for mark in own for tag in (mark.opening, mark.closing) if tag]


def _check_nesting(marks: Sequence[Mark], found: Sequence[str]) -> None:
    """What begins and ends in the sentence is closed in the reverse order."""
    whole = {mark.closing: mark.opening for mark in marks if mark.opening and mark.closing}
    begun: list[str] = []
    for tag in found:
        if tag in whole.values():
            begun.append(tag)
        elif tag in whole:
            assert begun.pop() == whole[tag]
