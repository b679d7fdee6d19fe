"""Whether a server links the words of its translations right.

    python -m tests.acceptance.alignments
    python -m tests.acceptance.alignments --bundle bundle --source en --target pt
    python -m tests.acceptance.alignments --by-hand

The judge is a lexical model of words: IBM model 1 in both directions, learned from all translations of this run
(`export.alignment.sure_links`). A link that both directions have is sure. The error rate is the part of the words of
translations with a sure link that the server links to another word, or to none. Beside it stands the error rate of
links by position, which know nothing of words. The judge is wrong at times, too: it knows no order, and rare words
badly. So the rate is good for comparisons, and an upper bound.

`--by-hand` judges by `tests/data/aligned_by_hand.tsv` instead: English to German and back, or with `--bundle` the
direction of the flags. The server gets the translations of the file as prefixes, so it links these whatever it would
say. Of its links A, the sure links S and all links P of the file, the error rate is
1 - (|A & S| + |A & P|) / (|A| + |S|) (Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models",
Computational Linguistics 29(1), 2003).
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from babelserve.v1.translation_pb2 import OutputOptions, Sentence
from export.alignment import sure_links
from tests.acceptance.lines import DATA, Asker, Judged, add_flags, open_asker, read_pairs, run_judge
from tests.acceptance.report import Check

_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_MOST_ERRORS = 0.2
_LEAST_LINKED = 0.9  # of the words of translations
_MOST_ERRORS_BY_HAND = 0.15

_Pair = tuple[int, int]  # places of a word of the source and of one of the translation


class _Linked(NamedTuple):
    """A sentence: the words of source and translation, and links by their places."""

    source: list[str]
    target: list[str]
    links: set[_Pair]


class ByHand(NamedTuple):
    """A sentence and a translation of it, aligned by hand; `possible` has the sure links too."""

    source: str
    target: str
    sure: set[_Pair]
    possible: set[_Pair]


class Agreement(NamedTuple):
    """How far our links agree with links made by hand."""

    precision: float
    recall: float
    error_rate: float


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


def judge_by_hand(asks: Sequence[Asker]) -> Judged:
    """Returns the table for these directions, and a row for each sentence with an error, the worst first."""
    checks: list[Check] = []
    judged: list[tuple[ByHand, set[_Pair]]] = []
    for ask in asks:
        own = read_by_hand(ask.source, ask.target)
        links = _ask_for_links(ask, own)
        checks.append(_check(f"{ask.source}-{ask.target}, {len(own)} sentences", agreement(own, links)))
        judged += zip(own, links, strict=True)
    both = agreement([each for each, _ in judged], [links for _, links in judged])
    checks.append(_check("error rate against the links made by hand", both, _MOST_ERRORS_BY_HAND))
    judged.sort(key=lambda pair: -agreement([pair[0]], [pair[1]]).error_rate)
    rows = [
        [each.source, each.target, _show(each, links - each.possible), _show(each, each.sure - links)]
        for each, links in judged
        if links - each.possible or each.sure - links
    ]
    return checks, rows


def read_by_hand(source: str, target: str) -> list[ByHand]:
    """Returns the sentences of a direction that were aligned by hand.

    Raises:
        ValueError: there are none.
    """
    lines = (DATA / "aligned_by_hand.tsv").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    found: list[ByHand] = []
    for direction, text, translation, *columns in (line.split("\t") for line in lines):
        if direction == f"{source}-{target}":
            sure, rest = ({_read_pair(link) for link in column.split()} for column in columns)
            found.append(ByHand(text, translation, sure, sure | rest))
    if not found:
        raise ValueError(f'no sentences from "{source}" to "{target}" were aligned by hand')
    return found


def _read_pair(link: str) -> _Pair:
    source, target = link.split("-")
    return int(source), int(target)


def agreement(by_hand: Sequence[ByHand], links: Sequence[set[_Pair]]) -> Agreement:
    """Returns precision, recall and error rate over all links of all sentences."""
    num_links, num_sure = sum(map(len, links)), sum(len(each.sure) for each in by_hand)
    right = sum(len(own & each.possible) for each, own in zip(by_hand, links, strict=True))
    found = sum(len(own & each.sure) for each, own in zip(by_hand, links, strict=True))
    error_rate = 1.0 - (found + right) / max(1, num_links + num_sure)
    return Agreement(right / max(1, num_links), found / max(1, num_sure), error_rate)


def _ask_for_links(ask: Asker, by_hand: Sequence[ByHand]) -> list[set[_Pair]]:
    """Returns the links of the translations of the file. What the server adds behind one does not count.

    Raises:
        ValueError: a translation does not begin with that of the file, or is of several sentences.
    """
    answers = dataclasses.replace(ask, output=OutputOptions(include_alignment=True))(
        [each.source for each in by_hand], [each.target for each in by_hand]
    )
    links: list[set[_Pair]] = []
    for each, answer in zip(by_hand, answers, strict=True):
        if len(answer.sentences) != 1 or not answer.text.startswith(each.target):
            raise ValueError(f"{each.source!r} must be translated as {each.target!r}, not as {answer.text!r}")
        num_words = len(_WORD.findall(each.target))
        links.append({(i, j) for i, j in _read(answer.sentences[0]).links if j < num_words})
    return links


def _check(name: str, measured: Agreement, most: float | None = None) -> Check:
    shown = f"{measured.error_rate:.3f} (precision {measured.precision:.3f}, recall {measured.recall:.3f})"
    return Check(name, shown) if most is None else Check(name, shown, f"<= {most}", measured.error_rate <= most)


def _show(each: ByHand, links: set[_Pair]) -> str:
    source, target = _WORD.findall(each.source), _WORD.findall(each.target)
    return ", ".join(f"{source[i]} = {target[j]}" for i, j in sorted(links))


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
    parser.add_argument("--by-hand", action="store_true", help="judge by sentences that were aligned by hand")
    options = parser.parse_args(arguments)
    if options.by_hand:
        return run_judge(options, lambda ask: _judge_directions(ask, options))
    texts = list(dict.fromkeys(text for text, _ in read_pairs("de" if options.reverse else options.source, "")))
    return run_judge(options, lambda ask: judge(ask, texts[: options.sentences]))


def _judge_directions(ask: Asker, options: argparse.Namespace) -> Judged:
    if options.bundle:
        return judge_by_hand([ask])
    with open_asker(argparse.Namespace(**{**vars(options), "reverse": not options.reverse})) as other:
        return judge_by_hand([ask, other])


if __name__ == "__main__":
    sys.exit(main())
