"""Whether documents with markup come back whole when each of their texts is translated into itself.

    python -m tests.acceptance.markup_round_trip DIR...

Reads the HTML, Markdown and PO files of these folders, or as many of each as `--most` says, spread over all. For the
latter two see `round_trip_faults.py`; Markdown needs markdown-it-py. In HTML, what stands between texts must be
equal byte for byte. Within texts every tag must be equal and in its place, and every word. White space may be one
blank, and may have moved over a tag at an end of a text; characters may be written in another way.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.text.markup.builder import BLANKS, unescape
from server.text.markup.document import Document
from server.text.markup.html import read_html
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.acceptance.round_trip_faults import markdown_fault, po_fault
from tests.server.text.markup.identity import identity

_MOST_BYTES = 4_000_000
_SHOWN_FAULTS = 10


@dataclass(frozen=True, slots=True)
class Format:
    """A format of documents.

    Attributes:
        endings: of its files.
        read: reads one.
        unit: one character of a text as it may be written.
        plain: what such a unit reads.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[str], Document]
    unit: re.Pattern[str]
    plain: Callable[[str], str]


_REFERENCE = r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);?"
FORMATS = (Format("HTML", (".html", ".htm", ".xhtml"), read_html, re.compile(rf"{_REFERENCE}|.", re.DOTALL), unescape),)


def find_fault(text: str, document: Document, form: Format) -> str | None:
    """Returns what of a document does not come back; None if all does.

    Args:
        text: the document as it is.
        document: as it was read.
        form: its format.
    """
    position = 0
    for segment, is_text in _segments(document):
        end = _end_of_text(text, position, segment, form) if is_text else _end_of_markup(text, position, segment)
        if end is None:
            return f"at {position}: {text[position : position + 60]!r} is not {segment[:60]!r}"
        position = end
    return f"at {position}: the rest" if text[position:].strip() else None


def _segments(document: Document) -> Iterator[tuple[str, bool]]:
    """Yields the pieces of a document, and whether each is a plain text."""
    yield document.leading, False
    for block in document.blocks:
        position = 0
        for tag in (*block.tags, None):
            end = len(block.text) if tag is None else tag.position
            for piece in re.split(f"([{''.join(block.kept)}])" if block.kept else "(?!)", block.text[position:end]):
                yield block.kept.get(piece, piece), piece not in block.kept
            if tag is not None:
                yield tag.source, False
            position = end
        yield block.behind, False


def _end_of_markup(text: str, position: int, segment: str) -> int | None:
    """Returns where markup ends that begins here; white space next to a text may have moved over a tag."""
    if text.startswith(segment, position):
        return position + len(segment)
    position, segment = _behind_blanks(text, position), segment.strip(BLANKS)
    return position + len(segment) if text.startswith(segment, position) else None


def _end_of_text(text: str, position: int, plain: str, form: Format) -> int | None:
    """Returns where the plain text ends that is written here."""
    index = 0
    while index < len(plain):
        if plain[index] in BLANKS or text[position] in BLANKS:
            position, index = _behind_blanks(text, position), _behind_blanks(plain, index)
            continue
        unit = form.unit.match(text, position)
        if unit is None:
            return None
        reads = form.plain(unit[0])
        if not plain.startswith(reads, index) and reads.strip(BLANKS):
            return None
        position, index = unit.end(), index + len(reads.strip(BLANKS))
    return position


def _behind_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in BLANKS:
        position += 1
    return position


def check_format(form: Format, paths: Sequence[Path]) -> list[Check]:
    """Reads files, prints what does not come back, and returns the lines of the table."""
    faults = num_equal = num_blocks = num_characters = 0
    seconds = 0.0
    for path in paths:
        text = path.read_bytes().decode("utf-8", "replace")
        began = time.process_time()
        document = form.read(text)
        seconds += time.process_time() - began
        num_blocks += len(document.blocks)
        num_characters += len(text)
        num_equal += identity(document) == text
        if fault := find_fault(text, document, form):
            faults += 1
            if faults <= _SHOWN_FAULTS:
                print(f"{path}: {fault}")
    return [
        Check(f"{form.name}: documents that come back, of {len(paths)}", str(len(paths) - faults), "all", not faults),
        Check("- equal in every byte", str(num_equal)),
        Check("- texts", str(num_blocks)),
        Check("- million characters, read in seconds", f"{num_characters / 1e6:.1f}, {seconds:.1f}"),
    ]


def check_files(name: str, paths: Sequence[Path], find: Callable[[bytes], str | None]) -> list[Check]:
    """Looks for a fault in each file, prints the first ones, and returns the lines of the table."""
    found = [(path, fault) for path in paths if (fault := find(path.read_bytes()))]
    for path, fault in found[:_SHOWN_FAULTS]:
        print(f"{path}: {fault}")
    return [Check(f"{name}: files that come back, of {len(paths)}", str(len(paths) - len(found)), "all", not found)]


def find_files(folders: Sequence[Path], endings: Sequence[str], most: int) -> list[Path]:
    """Returns the files of a format, spread evenly over all that there are if these are more than `most`."""
    paths = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix.lower() in endings and path.is_file() and path.stat().st_size <= _MOST_BYTES
    )
    return paths[:: max(1, -(-len(paths) // most))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the check, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="where to look for files")
    parser.add_argument("--most", type=int, default=300, help="files of each format (default: %(default)s)")
    options = parser.parse_args(arguments)
    checks: list[Check] = []
    for form in FORMATS:
        if paths := find_files(options.folders, form.endings, options.most):
            checks += check_format(form, paths)
    for name, ending, find in (("Markdown", ".md", markdown_fault), ("PO", ".po", po_fault)):
        if paths := find_files(options.folders, (ending,), options.most):
            checks += check_files(name, paths, find)
    if not checks:
        print("no file of a known format")
        return EXIT_NOT_RUN
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
