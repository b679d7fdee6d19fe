"""Writes the page beside a job of lines."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from babelserve.explanation.page import page
from babelserve.lines import Line, TranslatedLine
from babelserve.outputs import UsageError

MOST_TEXTS = 100  # 2 MB with sentences of 20 words; nobody reads twice as many


def few(lines: Iterable[Line]) -> Iterator[Line]:
    """Yields lines. Raises UsageError at one that is too many for a page."""
    for number, line in enumerate(lines):
        if number == MOST_TEXTS:
            raise UsageError(f"--explain explains up to {MOST_TEXTS} texts; give fewer")
        yield line


def explained(
    results: Iterable[list[TranslatedLine]], path: Path, target: str, source: str | None
) -> Iterator[list[TranslatedLine]]:
    """Yields what it is given, and writes the page at the end.

    Args:
        results: as `translate_lines` yields them, asked for with `wishes`.
        path: of the page; what is there is overwritten.
        target: code of the language that is translated into.
        source: code of the other language; None if it is not known.

    Raises:
        OSError: the page cannot be written.
    """
    lines: list[TranslatedLine] = []
    for batch in results:
        lines += batch
        yield batch
    path.write_text(page(lines, target, source), encoding="utf-8")
