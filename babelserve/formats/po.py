r"""gettext's PO: the `msgid` of each entry without a translation is translated into its `msgstr`.

`msgstr[0]` is a translation of `msgid`, and each other form one of `msgid_plural`; their number stays.
Where a language has one form for any number, such as Japanese, `msgstr[0]` is a translation of `msgid_plural`.
Translated, fuzzy and obsolete entries, comments and flags stay as they are.

The mark of a label's keyboard shortcut, as in `_File`, is not sent (`babelserve.formats.shortcuts`).
https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from babelserve.formats.document import PLAIN, BadFile, Document, Standing, Unit, decoded, has_letters, one_text
from babelserve.formats.shortcuts import shortcut_marks, split_shortcut, with_shortcut

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STRING = r'"((?:[^"\\\r\n]|\\.)*+)"[ \t]*\r?\n?'
_KEYWORD = re.compile(rf"[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*{_STRING}\Z")
_MORE = re.compile(rf"[ \t]*{_STRING}\Z")
_LANGUAGE = re.compile(r'(?:"|\\n)Language:[ \t]*([\w@-]*)')
_CHARSET = re.compile(r"charset=([\w-]+)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CODE = r"(?:x[0-9A-Fa-f]+|[0-7]{1,3})"  # of a byte
_ESCAPE = re.compile(rf"\\(?:({_CODE}(?:\\{_CODE})*)|(.))")
_TO_ESCAPE = {code: f"\\{code:03o}" for code in (*range(32), 127)}
_TO_ESCAPE |= {ord(char): f"\\{letter}" for letter, char in _ESCAPES.items()} | {ord('"'): '\\"', ord("\\"): "\\\\"}


@dataclass(slots=True)
class _Field:
    """The string behind a keyword: its range in the file, from the first quote to the last, and its lines."""

    begin: int
    end: int
    lines: list[str]

    @property
    def value(self) -> str:
        """The string. Lines that are put together one by one would take quadratic time."""
        return "".join(self.lines)


def read_po(data: bytes) -> Document:
    """Reads a file of messages in UTF-8.

    Raises:
        BadFile: it has another encoding, or a line that belongs to no entry.
    """
    text = decoded(data)
    newline = "\r\n" if "\r\n" in text else "\n"
    units: list[Unit] = []
    entries = [entry for entry in _entries(text) if "msgid" in entry]
    headers = [entry["msgstr"].value for entry in entries if _is_header(entry) and "msgstr" in entry]
    marks = shortcut_marks("".join(headers), (entry["msgid"].value for entry in entries))
    for entry in entries:
        if not _is_header(entry):
            units += _untranslated(text, entry, newline, marks)
        elif "msgstr" in entry:
            units += _language(text, entry["msgstr"])
    return one_text(PLAIN, text, units)


def _entries(text: str) -> Iterator[dict[str, _Field]]:
    """Yields the strings of each entry by their keywords."""
    entry: dict[str, _Field] = {}
    last: _Field | None = None
    for number, line in enumerate(_LINE.finditer(text.removeprefix("\ufeff")), 1):
        shift = line.start() + text.startswith("\ufeff")
        if line[0].isspace() or line[0].lstrip().startswith("#"):
            last = None
        elif found := _KEYWORD.match(line[0]):
            if found[1] in entry or (
                found[1] in ("msgctxt", "msgid") and any(key.startswith("msgstr") for key in entry)
            ):
                yield entry
                entry = {}
            last = _Field(shift + found.start(2) - 1, shift + found.end(2) + 1, [_unescaped(found[2])])
            entry[found[1]] = last
        elif last and (found := _MORE.match(line[0])):
            last.end = shift + found.end(1) + 1
            last.lines.append(_unescaped(found[1]))
        else:
            raise BadFile(f"is no PO file: line {number} belongs to no entry")
    yield entry


def _is_header(entry: dict[str, _Field]) -> bool:
    return not entry["msgid"].value and "msgctxt" not in entry


def _untranslated(text: str, entry: dict[str, _Field], newline: str, marks: str) -> Iterator[Unit]:
    forms = {name: field for name, field in entry.items() if name.startswith("msgstr")}
    if any(field.value for field in forms.values()):
        return
    for name, form in forms.items():
        is_singular = name == "msgstr[0]" and len(forms) > 1
        source = entry["msgid"] if is_singular else entry.get("msgid_plural", entry["msgid"])
        if has_letters(source.value):
            plain, mark, key = split_shortcut(source.value, marks)
            render = partial(_rendered, newline, mark, key)
            yield Unit(plain, form.begin, form.end, render, same=text[source.begin : source.end])


def _language(text: str, header: _Field) -> Iterator[Unit]:
    if found := _CHARSET.search(text, header.begin, header.end):
        if found[1].upper() in ("US-ASCII", "CHARSET"):  # the latter in files that xgettext makes
            yield Unit(None, found.start(1), found.end(1), lambda target, standing: "UTF-8")
        elif found[1].upper() not in ("UTF-8", "UTF8"):
            raise BadFile(f"has the encoding {found[1]}; it must be UTF-8: convert it by msgconv")
    if found := _LANGUAGE.search(text, header.begin, header.end):
        yield Unit(None, found.start(1), found.end(1), lambda target, standing: target.replace("-", "_"))


def _unescaped(string: str) -> str:
    return _ESCAPE.sub(_meant, string)


def _meant(escape: re.Match[str]) -> str:
    """What an escape stands for; several codes beside each other may be the bytes of one character."""
    if escape[2]:
        return _ESCAPES.get(escape[2], escape[2])
    codes = (int(code[1:], 16) if code.startswith("x") else int(code, 8) for code in escape[1].split("\\"))
    return bytes(code & 255 for code in codes).decode(errors="replace")


def _rendered(newline: str, mark: str, key: str, translation: str, _: Standing) -> str:
    return _written(with_shortcut(translation, mark, key), newline)


def _written(value: str, newline: str) -> str:
    """Writes a string, one line of the file for each of its lines, as gettext does."""
    lines = [f'"{line.translate(_TO_ESCAPE)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", value)]
    return newline.join(lines if len(lines) == 1 else ['""', *lines])
