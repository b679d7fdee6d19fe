"""Whether tags come back whole, and round the right words.

    python -m tests.acceptance.tag_placement
    python -m tests.acceptance.tag_placement --bundle bundle --target pt

It has both directions translated by the built-in models, without a server. First, random nested elements and points
are put into held-out sentences: each must come back once, nested as before, in the same translation. Then the spans of
`tests/data/marked_spans.tsv`, which a person has marked in both texts: F1 is over the words that have the mark, all
lines together. A line whose translation is another one by now is not judged. Beside the server's placing stand placing
by position, and giving each word the tags of the word that it is linked to, which may tear an element in pieces.

With a bundle, of a model from English, the first part alone is run: nobody has marked its translations.
"""

import argparse
import gzip
import html
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from server.errors import StartupError, TranslationError
from server.text.alignment import WordWeights, link_words
from server.text.markup.document import Mark
from server.text.markup.placing import place_marks
from tests.acceptance.aligned import Aligned, align_texts
from tests.acceptance.lines import DATA
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.server.text.markup.random_marks import faults, random_marks

_DIRECTIONS = (("en", "de"), ("de", "en"))
_NUM_DOCUMENTS = 1000  # of both directions
_LEAST_F1 = 0.87
_LEAST_GAIN = 0.12  # of F1, over placing by position
_LEAST_JUDGED = 0.9  # of the marked spans
_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")

_Words = frozenset[int]


class MarkedSpan(NamedTuple):
    """A sentence and its translation, each with the range that a person has marked, in code points."""

    source: str
    source_span: tuple[int, int]
    target: str
    target_span: tuple[int, int]


def read_spans(source: str, target: str) -> list[MarkedSpan]:
    """Returns the marked spans of one direction, by language codes."""
    lines = (DATA / "marked_spans.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [
        MarkedSpan(*_without_brackets(row[1]), *_without_brackets(row[2]))
        for row in rows
        if row[0] == f"{source}-{target}"
    ]


def _without_brackets(text: str) -> tuple[str, tuple[int, int]]:
    before, marked, behind = re.split(r"[\[\]]", text)
    return before + marked + behind, (len(before), len(before) + len(marked))


def words_within(text: str, begin: int, end: int) -> _Words:
    """Returns the numbers of the words that a range touches."""
    matches = enumerate(_WORD.finditer(text))
    return frozenset(number for number, match in matches if match.start() < end and begin < match.end())


def placed_words(span: MarkedSpan, words: WordWeights | None) -> _Words:
    """Returns the words of the translation that the server puts the mark round."""
    mark = Mark(*span.source_span, "\0", "\1")
    before, marked, _ = re.split("[\0\1]", place_marks([mark], span.source, span.target, words, str))
    return words_within(span.target, len(before), len(before) + len(marked))


def linked_words(span: MarkedSpan, words: WordWeights) -> _Words:
    """Returns the words of the translation that are linked to marked ones."""
    begin, end = span.source_span
    linked = [link.target for link in link_words(words) if link.source[0] < end and begin < link.source[1]]
    return frozenset().union(*(words_within(span.target, *target) for target in linked))


def f1(found: Sequence[_Words], right: Sequence[_Words]) -> float:
    """Returns the harmonic mean of precision and recall of words, all items together."""
    num_same = sum(len(one & other) for one, other in zip(found, right, strict=True))
    return 2 * num_same / max(1, sum(map(len, found)) + sum(map(len, right)))


def check_documents(sentences: Sequence[Aligned]) -> list[Check]:
    """Puts random marks into sentences until there are enough documents, and counts what does not come back."""
    rng = random.Random(20261127)
    found: list[str] = []
    num_marks = 0
    for index in range(_NUM_DOCUMENTS):
        source, target, words = sentences[index % len(sentences)]
        marks = random_marks(rng, len(source))
        num_marks += len(marks)
        found += faults(marks, target, place_marks(marks, source, target, words, html.escape))
    shares = {fault: 1.0 - found.count(fault) / _NUM_DOCUMENTS for fault in ("text", "tags", "nesting")}
    return [
        Check("documents, random elements and points in them", f"{_NUM_DOCUMENTS}, {num_marks}"),
        *(
            Check(f"documents whose {fault} came back", f"{share:.1%}", "100.0%", share == 1.0)
            for fault, share in shares.items()
        ),
    ]


def check_spans(spans: Sequence[MarkedSpan], aligned: Sequence[Sequence[Aligned]]) -> tuple[list[Check], list[str]]:
    """Compares places with a person's.

    Args:
        spans: what the person has marked.
        aligned: the sentences of each source, as they are translated now.

    Returns:
        The table's lines, and a text for each span that the server has put round other words than the person.
    """
    judged = [
        (span, sentences[0].words)
        for span, sentences in zip(spans, aligned, strict=True)
        if [sentence[:2] for sentence in sentences] == [(span.source, span.target)]
    ]
    share = len(judged) / len(spans)
    right = [words_within(span.target, *span.target_span) for span, _ in judged]
    ours = [placed_words(span, words) for span, words in judged]
    position = [placed_words(span, None) for span, _ in judged]
    linked = [linked_words(span, words) if words is not None else frozenset() for span, words in judged]
    rate, of_position = f1(ours, right), f1(position, right)
    gain = rate - of_position
    checks = [
        Check(
            "marked spans whose translation is the same",
            f"{share:.1%}",
            f">= {_LEAST_JUDGED:.0%}",
            share >= _LEAST_JUDGED,
        ),
        Check("F1 of words", f"{rate:.3f}", f">= {_LEAST_F1}", rate >= _LEAST_F1),
        Check("F1 beyond that by position", f"{gain:+.3f}", f">= {_LEAST_GAIN}", gain >= _LEAST_GAIN),
        *(
            Check(f"F1, exact: {name}", f"{f1(found, right):.3f}, {_exact(found, right):.1%}")
            for name, found in (
                ("as the server does", ours),
                ("by position", position),
                ("by each word's link", linked),
            )
        ),
    ]
    shown = [
        f"{span.source[slice(*span.source_span)]} = {span.target[slice(*span.target_span)]}, placed round: "
        + " ".join(word for number, word in enumerate(_WORD.findall(span.target)) if number in found)
        for (span, _), found, wanted in zip(judged, ours, right, strict=True)
        if found != wanted
    ]
    return checks, shown


def _exact(found: Sequence[_Words], right: Sequence[_Words]) -> float:
    return sum(one == other for one, other in zip(found, right, strict=True)) / max(1, len(right))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs both measurements and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.tag_placement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--show", action="store_true", help="print spans that are placed otherwise than by the person")
    parser.add_argument("--bundle", type=Path, help="judge this model (default: the built-in ones)")
    parser.add_argument("--target", default="de", help="language that the bundle translates into (%(default)s)")
    options = parser.parse_args(arguments)
    sentences: list[Aligned] = []
    spans: list[MarkedSpan] = []
    aligned: list[list[Aligned]] = []
    try:
        for source, target in [("en", options.target)] if options.bundle else _DIRECTIONS:
            own = [] if options.bundle else read_spans(source, target)
            lines = gzip.decompress((DATA / f"general_dev.{source}.gz").read_bytes()).decode().splitlines()
            found = align_texts([*lines, *(span.source for span in own)], source, target, bundle=options.bundle)
            sentences += [sentence for each in found[: len(lines)] for sentence in each]
            spans += own
            aligned += found[len(lines) :]
    except (OSError, StartupError, TranslationError) as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    if options.bundle:
        return print_checks(check_documents(sentences))
    checks, shown = check_spans(spans, aligned)
    if options.show:
        print(*shown, "", sep="\n")
    return print_checks(check_documents(sentences) + checks)


if __name__ == "__main__":
    sys.exit(main())
