"""Whether a server links the words of its translations right.

    python -m tests.acceptance.alignments
    python -m tests.acceptance.alignments --bundle bundle --source en --target pt

The judge is a lexical model of words: IBM model 1 in both directions, learned from all translations of this run
(`export.alignment.sure_links`). A link that both directions have is sure. The error rate is the part of the words of
translations with a sure link that the server links to another word, or to none. Beside it stands the error rate of
links by position, which know nothing of words. The judge is wrong at times, too: it knows no order, and rare words
badly. So the rate is good for comparisons, and an upper bound.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from babelserve.v1.translation_pb2 import OutputOptions, Sentence
from export.alignment import sure_links
from tests.acceptance.lines import Asker, Judged, add_flags, read_pairs, run_judge
from tests.acceptance.report import Check

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_MOST_ERRORS = 0.2
_LEAST_LINKED = 0.9  # of the words of translations

_Pair = tuple[int, int]  # places of a word of the source and of one of the translation


class _Linked(NamedTuple):
    """A sentence: the words of source and translation, and links by their places."""

    source: list[str]
    target: list[str]
    links: set[_Pair]


def judge(ask: Asker, texts: Sequence[str]) -> Judged:
    """Returns the table, and a row for each sentence with a wrong link: source, translation, what is wrong."""
    answers = dataclasses.replace(ask, output=OutputOptions(include_alignment=True))(texts)
    linked = [_read(sentence) for answer in answers for sentence in answer.sentences]
    linked = [each for each in linked if each.source and each.target]
    sure = _sure(linked)
    by_position = [{(j * len(each.source) // len(each.target), j) for j in range(len(each.target))} for each in linked]
    rate, other = _error_rate([each.links for each in linked], sure), _error_rate(by_position, sure)
    num_words = sum(len(each.target) for each in linked)
    share = sum(len({j for _, j in each.links}) for each in linked) / max(1, num_words)
    checks = [
        Check("sentences", str(len(linked))),
        Check("error rate against the lexical model", f"{rate:.3f}", f"<= {_MOST_ERRORS}", rate <= _MOST_ERRORS),
        Check("error rate of links by position", f"{other:.3f}"),
        Check("words of translations with a link", f"{share:.1%}", f">= {_LEAST_LINKED:.0%}", share >= _LEAST_LINKED),
    ]
    rows = []
    for each, right in zip(linked, sure, strict=True):
        columns = {j for _, j in right}
        wrong = [pair for pair in sorted(each.links - right) if pair[1] in columns]
        if wrong:
            shown = ", ".join(f"{each.source[i]} = {each.target[j]}" for i, j in wrong)
            rows.append([" ".join(each.source), " ".join(each.target), shown])
    return checks, rows


def _read(sentence: Sentence) -> _Linked:
    source, target = (
        [match.span() for match in _WORD.finditer(text)] for text in (sentence.source_text, sentence.text)
    )
    links = set()
    for link in sentence.links:
        pair = (link.source_begin, link.source_end), (link.target_begin, link.target_end)
        if pair[0] in source and pair[1] in target:  # else it is of a part that was kept, and several words
            links.add((source.index(pair[0]), target.index(pair[1])))
    return _Linked(_words(sentence.source_text, source), _words(sentence.text, target), links)


def _words(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [text[slice(*span)].lower() for span in spans]


def _sure(linked: Sequence[_Linked]) -> list[set[_Pair]]:
    numbers: dict[str, int] = {}
    sources, targets = (
        [[numbers.setdefault(word, len(numbers)) for word in getattr(each, side)] for each in linked]
        for side in ("source", "target")
    )
    found = sure_links(sources, targets)
    return [{(int(i), int(j)) for j, i in zip(*matrix.nonzero(), strict=True)} for matrix in found]


def _error_rate(links: Sequence[set[_Pair]], sure: Sequence[set[_Pair]]) -> float:
    right = sum(len(one & other) for one, other in zip(links, sure, strict=True))
    return 1.0 - right / max(1, sum(map(len, sure)))  # a word has one sure link at most


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.alignments", description=__doc__)
    add_flags(parser, 2000)
    options = parser.parse_args(arguments)
    texts = list(dict.fromkeys(text for text, _ in read_pairs("de" if options.reverse else options.source, "")))
    return run_judge(options, lambda ask: judge(ask, texts[: options.sentences]))


if __name__ == "__main__":
    sys.exit(main())
