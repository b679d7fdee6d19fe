"""Odd characters in the midst of sentences: where they are put, and what is right in a translation.

A run is right if the translation has it exactly once, character for character, and in a sensible place:

- at the start, if it stood there; a run that has a letter or a digit is a word, which grammar may move: before the
  middle of the sentence;
- likewise at the end, with nothing but ordinary closing marks behind it;
- between two words, if its relative position (characters before it by all others of the line) differs by at most 0.4
  from that in the source.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PLACES = ("start", "end", "between")
_FARTHEST = 0.4
_LEAST_CAPITALS = 5
_WORD = re.compile(r"[^\W\d_]+")
_PRIVATE = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
_OPENING, _CLOSING = " \"'„“”‚‘«»¿¡(", " .!?…\"'“”‘’«»)"


@dataclass(frozen=True, slots=True)
class Run:
    """Characters that stand together between blanks, and the line of the data file that they are from."""

    group: str
    text: str

    @property
    def is_word(self) -> bool:
        """Whether it has a place in a sentence's grammar."""
        return any(unicodedata.category(character)[0] in "LN" for character in self.text)


@dataclass(frozen=True, slots=True)
class OddLine:
    """A sentence with a run.

    Attributes:
        sentence: without it.
        reference: translation of the sentence; empty if there is none.
        run: that was put in.
        place: one of `PLACES`.
        source: with it.
    """

    sentence: str
    reference: str
    run: Run
    place: str
    source: str


def read_runs(path: Path) -> list[Run]:
    """Returns the runs of a file whose lines are a group, a tab, and runs parted by blanks."""
    runs: list[Run] = []
    for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n"):
        group, texts = line.split("\t")
        runs += [Run(group, text) for text in texts.split(" ")]
    return runs


def odd_lines(pairs: Sequence[tuple[str, str]], runs: Sequence[Run]) -> Iterator[OddLine]:
    """Yields each sentence of several words with the next run that it does not hold, in turn at each place."""
    index = 0
    for sentence, reference in pairs:
        words = sentence.split()
        run = runs[index % len(runs)]
        if len(words) < 3 or run.text in sentence:
            continue
        place = PLACES[(index + index // len(runs)) % len(PLACES)]
        position = {"start": 0, "end": len(words), "between": 1 + index % (len(words) - 1)}[place]
        source = " ".join([*words[:position], run.text, *words[position:]])
        yield OddLine(sentence, reference, run, place, source)
        index += 1


def fault_of_run(line: OddLine, translation: str) -> str:
    """Returns what is wrong with the run in a translation: "lost", "doubled" or "moved"; empty if nothing is."""
    count = translation.count(line.run.text)
    if count != 1:
        return "doubled" if count else "lost"
    return "" if _is_in_place(line, translation) else "moved"


def fault_of_rest(line: OddLine, translation: str, plain: str) -> str:
    """Returns what noise a translation has beside the run: "stray" or "capitals"; empty if none.

    Args:
        line: what was translated.
        translation: of it.
        plain: translation of the sentence without the run.
    """
    rest = without_run(line, translation)
    if _PRIVATE.search(rest):
        return "stray"
    known = {word.upper() for text in (line.sentence, plain) for word in _WORD.findall(text)}
    shouted = {word for word in _WORD.findall(rest) if len(word) >= _LEAST_CAPITALS and word.isupper()}
    return "capitals" if shouted - known else ""


def without_run(line: OddLine, translation: str) -> str:
    """Returns a translation without the run, with single blanks."""
    return " ".join(translation.replace(line.run.text, " ").split())


def _is_in_place(line: OddLine, translation: str) -> bool:
    share = _share_before(line.run.text, translation)
    if line.place == "between":
        return abs(share - _share_before(line.run.text, line.source)) <= _FARTHEST
    before, _, behind = translation.partition(line.run.text)
    if line.place == "start":
        return not before.strip(_OPENING) or (line.run.is_word and share < 0.5)
    return not behind.strip(_CLOSING) or (line.run.is_word and share > 0.5)


def _share_before(run: str, text: str) -> float:
    before, _, behind = text.partition(run)
    return len(before) / max(1, len(before) + len(behind))
