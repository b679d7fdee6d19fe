"""Reads glossaries in rows, TSV and CSV: a source, its target, and other forms of the target.

The first row has the codes of the languages, `en<TAB>de`, unless the file's name says them. If the name says them, the
first row may still have them, or `source` and `target`. CSV has commas, or semicolons if its first row has any; a cell
may stand in double quotes, but has no line breaks. Cells of TSV have no quotes. Empty rows, and rows that begin with
`#`, are no terms. Columns three and four are no forms if they are the languages' codes in every row, as DeepL writes
them. A target that is given twice has no other form. It is UTF-8, with or without a byte order mark.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial

from server.text.glossary_entries import (
    CODE,
    HINT,
    MAX_TERMS,
    Entries,
    MalformedGlossary,
    check_count,
    check_phrase,
    collected,
    normal_code,
)

_MAX_LINE_BYTES = 64 << 10  # twice what a term takes that has all of its forms as long as they may be
_MAX_LINES = 2 * MAX_TERMS  # with those that are no terms


def read_rows(content: bytes, languages: tuple[str, str] | None, *, is_csv: bool) -> Entries:
    """Returns what a file has, in linear time.

    Args:
        content: of the file.
        languages: codes of source and target, if the file's name says them; None if its first row does.
        is_csv: whether it is CSV, else TSV.

    Raises:
        MalformedGlossary: a row breaks a rule, or has a source that another row has with another target.
    """
    targets: dict[str, tuple[str, ...]] = {}
    line_of: dict[str, int] = {}
    if languages is None and (first := next(_rows(content, is_csv=is_csv), None)):
        languages = _read_header(*first)
    codes = [normal_code(code) for code in languages or ()]
    terms = partial(_terms, content, codes, is_csv=is_csv)
    num_columns = 2 if all([normal_code(cell) for cell in cells[2:] if cell] == codes for _, cells in terms()) else None
    for line, cells in terms():
        if len(cells) < 2:
            raise MalformedGlossary(f"line {line}: must have at least 2 columns, source and target, not {len(cells)}")
        source = check_phrase(line, "the source", cells[0])
        forms = [check_phrase(line, "the target", cells[1])]
        forms += [
            check_phrase(line, f"column {number}", cell) for number, cell in enumerate(cells[2:num_columns], 3) if cell
        ]
        own = tuple(dict.fromkeys(forms))
        own = own * 2 if len(own) < len(forms) == 2 else own  # given twice: this form alone
        if targets.setdefault(source, own) != own:
            message = f"line {line}: has the source of line {line_of[source]}, but another target"
            raise MalformedGlossary(f"{message}; a term's targets must stand in one row")
        line_of.setdefault(source, line)
        check_count(line, len(targets), len(own))
    return collected(languages or ("", ""), targets)


def _read_header(line: int, cells: Sequence[str]) -> tuple[str, str]:
    if len(cells) < 2 or not all(re.fullmatch(CODE, cell) for cell in cells[:2]):
        raise MalformedGlossary(f"line {line}: the first row must be codes of two languages, such as en and de, {HINT}")
    for number, cell in enumerate(cells[2:], 3):
        if cell and normal_code(cell) != normal_code(cells[1]):
            message = f"line {line}: column {number} of the first row must be empty, or the code of the target"
            raise MalformedGlossary(f"{message}: further columns are other forms of the target")
    return cells[0], cells[1]


def _terms(content: bytes, codes: list[str], *, is_csv: bool) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of `_rows` but a head."""
    for index, (line, cells) in enumerate(_rows(content, is_csv=is_csv)):
        if index or [normal_code(cell) for cell in cells[:2]] not in (codes, ["source", "target"]):
            yield line, cells


def _rows(content: bytes, *, is_csv: bool) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each row that is not empty, with the number of its line."""
    delimiter = "" if is_csv else "\t"
    for line, text in _lines(content):
        if not delimiter:
            delimiter = ";" if len(_cells(line, text, ";", is_strict=False)) > 1 else ","
        cells = [cell.strip() for cell in _cells(line, text, delimiter)]
        if any(cells):
            yield line, cells


def _cells(line: int, text: str, delimiter: str, *, is_strict: bool = True) -> list[str]:
    if delimiter == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=is_strict))
    except csv.Error:
        message = f"line {line}: a cell that begins with a quote must end with one, on the same line"
        raise MalformedGlossary(f"{message}; quotes within must be doubled") from None


def _lines(content: bytes) -> Iterator[tuple[int, str]]:
    file = io.BytesIO(content)
    for line in itertools.count(1):
        data = file.readline(_MAX_LINE_BYTES + 1)
        if not data:
            return
        if len(data) > _MAX_LINE_BYTES:
            num_bytes = len(data) + len(file.readline())
            raise MalformedGlossary(f"line {line}: must have at most {_MAX_LINE_BYTES} bytes, not {num_bytes}")
        if line > _MAX_LINES:
            raise MalformedGlossary(f"line {line}: a file must have at most {_MAX_LINES} lines; this one has more")
        try:
            text = data.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedGlossary(f"line {line}: must be UTF-8, but byte {error.start + 1} is none") from None
        text = text.rstrip("\r\n")
        if "\r" in text:  # an old program for the Mac has written it, and all rows are one line
            raise MalformedGlossary(f"line {line}: must end with a line feed, but has a carriage return alone")
        if text.strip() and not text.startswith("#"):
            yield line, text
