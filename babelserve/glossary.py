"""Glossaries of the command line: terms that are written as flags, and files of them; which terms were missed.

A file is UTF-8 with a term a line: its source, its target, and other forms of its target. Tabs, or else semicolons, or
else commas part them, whichever the first term has; tabs in a file whose name ends so. Parts may be in double quotes
where no tabs part them. Empty lines and lines that begin with # are no terms. Nor is a first line that begins with
`source, target` or with the codes of two languages. Parts three and four are no forms if they are such codes, the same
in every line, as DeepL writes them. A target that is given twice has no other form.
"""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

from babelserve.lines import TranslatedLine
from babelserve.messages import MAX_REQUEST_BYTES
from babelserve.outputs import UsageError

_MAX_TERMS, _MAX_FORMS, _MAX_CHARACTERS = 1000, 32, 200  # as translation.proto says of Glossary and Term
_NO_CATEGORIES = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")  # as the server says of the characters of a term
_NO_TEXT = "\u2581\ufffd\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DELIMITERS = ("\t", ";", ",")
_TAB_ENDINGS = (".tsv", ".tab")
_CODE = re.compile(r"[a-z]{2}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?")  # with three letters or capitals, words look so
Languages = tuple[str | None, str | None]  # codes of source and target, None where unknown


class _Terms:
    """Takes terms until there are too many."""

    def __init__(self, *, ignore_case: bool) -> None:
        self.targets: dict[str, str | list[str]] = {}  # by source, a list if there are forms
        self._ignores_case = ignore_case
        self._place_of: dict[str, str] = {}

    def add(self, place: str, phrases: Sequence[str]) -> None:
        """Adds a term, whose white space is made single blanks.

        Args:
            place: where it is written, for messages.
            phrases: its source, its target, and other forms of this, of which empty ones are left out.

        Raises:
            UsageError: it cannot be sent.
        """
        source, target, *forms = [" ".join(phrase.split()) for phrase in phrases]
        forms = [target, *filter(None, forms)]
        for name, phrase in (("source", source), *(("target", form) for form in forms)):
            if not phrase:
                raise UsageError(f"{place}: the {name} is empty")
            if len(phrase) > _MAX_CHARACTERS:
                raise UsageError(f"{place}: the {name} has {len(phrase)} characters; the limit is {_MAX_CHARACTERS}")
            if (wrong := next(filter(_means_nothing, phrase), None)) is not None:
                raise UsageError(
                    f"{place}: the {name} has U+{ord(wrong):04X}, a control character or one without meaning"
                )
        if len(forms) > _MAX_FORMS:
            raise UsageError(f"{place}: the target has {len(forms) - 1} other forms; the limit is {_MAX_FORMS - 1}")
        other = self._place_of.setdefault(source.casefold() if self._ignores_case else source, place)
        if other != place:
            raise UsageError(f"{place}: the source {source!r} is that of {other} already")
        if len(self.targets) == _MAX_TERMS:
            raise UsageError(f"{place}: this is one term too many; the limit is {_MAX_TERMS} for a request")
        self.targets[source] = forms if len(forms) > 1 else target


def read_terms(
    written: Iterable[str], file: Path | None, *, ignore_case: bool, languages: Languages = (None, None)
) -> dict[str, str | list[str]]:
    """Returns the targets, or lists of them and their other forms, by source, of `--term` and `--glossary`.

    Args:
        written: as `SOURCE=TARGET` or `SOURCE=TARGET|FORM|FORM`.
        file: a glossary; None for none.
        ignore_case: whether sources that differ by their case are the same.
        languages: whose codes the file may have beside its terms; for None, what looks like a code is one.

    Raises:
        UsageError: a term is none, or breaks a limit; the message has the place, the limit and the value.
        OSError: the file cannot be read.
    """
    terms = _Terms(ignore_case=ignore_case)
    for number, term in enumerate(written, start=1):
        source, equals, targets = term.partition("=")
        if not equals:
            raise UsageError(f"--term {number}: must be SOURCE=TARGET, not {_shown(term)}")
        terms.add(f"--term {number}", [source, *targets.split("|")])
    if file is not None:
        rows = list(_rows(file, languages))
        codes = rows[0][1][2:4] if rows else []
        has_codes = _are_codes(codes, languages) and all(
            cells[2:4] == codes and not any(cells[4:]) for _, cells in rows
        )
        for number, cells in rows:
            terms.add(f"{file}, line {number}", cells[:2] if has_codes else cells)
    return terms.targets


def tell_missed(
    results: Iterable[list[TranslatedLine]], tell: Callable[[str], object]
) -> Generator[list[TranslatedLine], None, None]:
    """Yields the results, and tells at their end how often each term was missed, the most frequent one first."""
    missed: Counter[str] = Counter()
    try:
        for batch in results:
            missed.update(term.source for line in batch for term in line.translation.terms if not term.is_applied)
            yield batch
    finally:
        for source, count in missed.most_common():
            tell(f"the term {source!r} was missed {count} {'time' if count == 1 else 'times'}")


def _means_nothing(character: str) -> bool:
    return character in _NO_TEXT or unicodedata.category(character) in _NO_CATEGORIES


def _rows(file: Path, languages: Languages) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each term, without white space at their ends, with its line's number, from 1."""
    delimiter = "\t" if file.suffix.lower() in _TAB_ENDINGS else None
    lines = enumerate(io.StringIO(_text(file), newline=None), start=1)  # which knows every kind of line end
    rows = ((number, line) for number, line in lines if line.strip() and not line.startswith("#"))
    for index, (number, line) in enumerate(rows):
        try:
            delimiter = delimiter or _delimiter(line)
            cells = [cell.strip() for cell in _cells(line, delimiter)]
        except csv.Error as error:
            raise UsageError(f"{file}, line {number}: cannot be parted: {error}: {_shown(line)}") from error
        is_head = [cell.lower() for cell in cells[:2]] == ["source", "target"] or _are_codes(cells[:2], languages)
        if index == 0 and is_head:
            continue
        if len(cells) < 2:
            parts = repr(delimiter) if index else "a tab, a semicolon or a comma"
            raise UsageError(
                f"{file}, line {number}: must be a source and a target with {parts} between: {_shown(line)}"
            )
        yield number, cells


def _are_codes(cells: Sequence[str], languages: Languages) -> bool:
    """Whether two cells are the codes of the languages."""
    return len(cells) == len(languages) and all(
        _CODE.fullmatch(cell) if code is None else _normal(cell) == _normal(code)
        for cell, code in zip(cells, languages, strict=True)
    )


def _normal(code: str) -> str:
    return code.lower().replace("_", "-")


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(MAX_REQUEST_BYTES + 1)
    if len(data) > MAX_REQUEST_BYTES:
        raise UsageError(f"{file}: has more than {MAX_REQUEST_BYTES} bytes, the limit of a request")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file}, line {number}: is not UTF-8: byte {error.start} of the file is wrong; convert it first"
        ) from error


def _delimiter(line: str) -> str:
    """Returns the first delimiter that parts a line; the last one if none does. Raises csv.Error: a cell is huge."""
    return next((each for each in _DELIMITERS if len(_cells(line, each, is_strict=False)) > 1), _DELIMITERS[-1])


def _cells(line: str, delimiter: str, *, is_strict: bool = True) -> list[str]:
    """Parts a line. Raises csv.Error: quotes are not closed or within a cell, if it is strict, or a cell is huge."""
    if delimiter == "\t":
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=is_strict))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
