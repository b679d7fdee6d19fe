"""Reads glossaries in TBX, the exchange format of term banks: ISO 30042, versions 2 (2008) and 3 (2019).

Version 2 has `termEntry`, `langSet` and `tig` or `ntig`, version 3 `conceptEntry`, `langSec` and `termSec`. Each term
of the source becomes any term of the target in its entries, except for those that the entry forbids. The file's name
says the languages. Else they are that of the root (`xml:lang`), and the only other one.

A DTD that the file only names is not read. One in the file, and entities, are refused: they can make a gigabyte of a
few bytes.
"""

from typing import NoReturn
from xml.parsers import expat

from server.text.glossary_entries import (
    HINT,
    Entries,
    MalformedGlossary,
    check_count,
    check_phrase,
    collected,
    normal_code,
)
from server.text.term_table import MAX_CHARACTERS

_ROOTS = ("martif", "tbx")
_ENTRIES, _LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")
_TERMS = ("tig", "ntig", "termSec")
_STATUS = "administrativeStatus"
_FORBIDDEN = ("forbidden", "obsolete", "deprecatedterm", "supersededterm")  # the last two may end with -admn-sts
_MAX_DEPTH = 64  # of elements; TBX needs 12
_CHUNK_BYTES = 16 << 10  # half is 3 % slower; twice that, and other threads wait twice as long, for 3 ms
_MAX_TAG_BYTES = 64 << 10  # a tag's attributes are read in one go, while other threads wait; TBX needs 1 KiB


def read_tbx(content: bytes, languages: tuple[str, str] | None) -> Entries:
    """Returns what a file has, in linear time.

    Args:
        content: of the file, in UTF-8, or in UTF-16 with a byte order mark.
        languages: codes of source and target, if the file's name says them.

    Raises:
        MalformedGlossary: it is no XML, no TBX, has a DTD or an entity, or breaks a rule.
    """
    reader = _Reader(languages)
    try:
        reader.read(content)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise MalformedGlossary(f"line {error.lineno}: must be well-formed XML in UTF-8, not so: {reason}") from None
    finally:
        del reader.parser  # they refer to each other, and would stay in memory until they are collected
    return reader.entries()


class _Reader:
    """Takes what the parser finds."""

    def __init__(self, languages: tuple[str, str] | None) -> None:
        self._languages = [normal_code(code) for code in languages] if languages else []
        self._has_languages = languages is not None
        self._targets: dict[str, tuple[str, ...]] = {}
        self._open: list[str] = []
        self._entry: dict[str, dict[str, None]] = {}  # the terms of an entry, each once, by language
        self._code = ""
        self._term = ""
        self._is_forbidden = False
        self._text: list[str] | None = None  # of an element that is being read
        self._num_characters = 0
        self.parser = parser = expat.ParserCreate("UTF-8")
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = parser.SkippedEntityHandler = self._refuse_entity
        parser.buffer_text = True

    def read(self, content: bytes) -> None:
        """Reads a whole file. Raises MalformedGlossary and ExpatError.

        The parser looks at a tag, or a comment, anew with each chunk until it has the whole, so these have a limit.
        """
        for begin in range(0, len(content), _CHUNK_BYTES):
            chunk = content[begin : begin + _CHUNK_BYTES]
            self.parser.Parse(chunk, False)
            if begin + len(chunk) - self.parser.CurrentByteIndex > _MAX_TAG_BYTES:
                self._fault(f"a tag or a comment must have at most {_MAX_TAG_BYTES} bytes; this one has more")
        self.parser.Parse(b"", True)

    def entries(self) -> Entries:
        """Returns what was read. Raises MalformedGlossary if that is nothing."""
        if len(self._languages) < 2:
            raise MalformedGlossary(f"must have terms in two languages, {HINT}")
        return collected(self._languages, self._targets)

    @property
    def _line(self) -> int:
        return self.parser.CurrentLineNumber

    def _fault(self, message: str) -> NoReturn:
        raise MalformedGlossary(f"line {self._line}: {message}")

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:  # noqa: ARG002
        if has_subset:
            self._fault("must have no DTD of its own")

    def _refuse_entity(self, *_: object) -> None:
        self._fault("must have no entities but those of XML itself")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._open.append(name)
        if len(self._open) > _MAX_DEPTH:
            self._fault(f"elements must be nested at most {_MAX_DEPTH} deep; these are deeper")
        if len(self._open) == 1:
            self._begin_root(name, normal_code(attributes.get("xml:lang", "")))
        elif name in _ENTRIES:
            self._entry = {}
        elif name in _LANGUAGES:
            self._begin_language(normal_code(attributes.get("xml:lang", "")))
        elif name in _TERMS:
            self._term, self._is_forbidden = "", False
        elif name in ("term", _STATUS) or (name == "termNote" and attributes.get("type") == _STATUS):
            self._text, self._num_characters = [], 0
            self._open[-1] = "term" if name == "term" else _STATUS

    def _begin_root(self, name: str, code: str) -> None:
        if name not in _ROOTS:
            self._fault(f"must be a TBX document: its root must be {' or '.join(_ROOTS)}")
        if not self._has_languages:
            if not code:
                self._fault(f"the root must have xml:lang, the code of the source, {HINT}")
            self._languages = [code]

    def _begin_language(self, code: str) -> None:
        self._code = code
        if not code:
            self._fault("a language must have xml:lang, its code")
        if not self._has_languages and code not in self._languages:
            self._languages.append(code)
            if len(self._languages) > 2:
                self._fault(f"must have 2 languages, that of the root and another, not {len(self._languages)}, {HINT}")

    def _add_text(self, text: str) -> None:
        if self._text is not None and self._num_characters <= MAX_CHARACTERS:  # no more is looked at
            self._text.append(text)
            self._num_characters += len(text)

    def _end(self, _: str) -> None:
        name = self._open.pop()
        if name == "term":
            self._term = " ".join(self._take_text().split())
        elif name == _STATUS:
            self._is_forbidden = self._take_text().strip().lower().removesuffix("-admn-sts") in _FORBIDDEN
        elif name in _TERMS and self._code in self._languages:
            self._end_term()
        elif name in _ENTRIES:
            self._end_entry()

    def _take_text(self) -> str:
        text, self._text = "".join(self._text or ()), None
        return text

    def _end_term(self) -> None:
        phrase = check_phrase(self._line, "a term", self._term)
        if not (self._is_forbidden and self._code == self._languages[1]):
            self._entry.setdefault(self._code, {})[phrase] = None

    def _end_entry(self) -> None:
        if len(self._languages) == 2:
            source, target = (self._entry.get(code, {}) for code in self._languages)
            if not target:
                return
            for phrase in source:
                forms = tuple(dict.fromkeys((*self._targets.get(phrase, ()), *target)))
                self._targets[phrase] = forms
                check_count(self._line, len(self._targets), len(forms))
