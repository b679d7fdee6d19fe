"""Sentences to calibrate and prove with: the user's own, or ours in some languages (export/imports/sentences).

Ours say the same thing in each language, short and long, with names and numbers. They were written for this project and
come under its licence.
"""

import itertools
from pathlib import Path

from export.examples import LEAST_WITHOUT_REFERENCES
from export.subject import DevSet
from export.texts import read_lines

_FOLDER = Path(__file__).with_name("sentences")
_MOST_TARGETS = 16  # languages that sentences are translated into, in turn
_MOST_SENTENCES = 200


def read_sentences(path: Path) -> list[str]:
    """Returns the lines of a user's file that are not empty.

    Raises:
        ValueError: it is no UTF-8, too large, or has too few of them.
        OSError: it cannot be read.
    """
    sentences = [line for line in read_lines("--text", path) if line]
    if len(sentences) < LEAST_WITHOUT_REFERENCES:
        raise ValueError(
            f"--text {path} has {len(sentences)} sentences, at least {LEAST_WITHOUT_REFERENCES} are needed"
        )
    return sentences


def sample_set(directions: list[tuple[str, str]], own: list[str] | None) -> DevSet:
    """Returns sentences with the languages to translate them from and into, each of the model's directions in turn.

    Args:
        directions: codes of source and target; at least one.
        own: sentences of the user's in the model's first source language; None for ours.

    Raises:
        ValueError: there are no sentences of ours in any source language.
    """
    by_source: dict[str, list[str]] = {}
    for source, target in directions:
        by_source.setdefault(source, []).append(target)
    if own is not None:
        sentences = {next(iter(by_source)): own}
    else:
        sentences = {source: ours for source in by_source if (ours := own_sentences(source))}
    if not sentences:
        known = ", ".join(sorted(path.stem for path in _FOLDER.glob("*.txt")))
        wanted = ", ".join(list(by_source)[:8])
        raise ValueError(
            f"there are sample sentences in {known}, not in {wanted}: give some of your own with --text FILE"
        )
    return _in_turn(sentences, by_source)


def own_sentences(code: str) -> list[str]:
    """Returns our sentences in a language; none if there are none. Another script than the usual one has none."""
    language, *others = code.split("-")
    path = _FOLDER / f"{language}.txt"
    if any(len(other) == 4 and other not in ("Latn", "Hans", "Jpan", "Cyrl") for other in others) or not path.exists():
        return []
    return path.read_text(encoding="utf-8").splitlines()


def _in_turn(sentences: dict[str, list[str]], by_source: dict[str, list[str]]) -> DevSet:
    lists = [[(source, text) for text in texts] for source, texts in sentences.items()]
    mixed = [each for group in itertools.zip_longest(*lists) for each in group if each is not None][:_MOST_SENTENCES]
    targets = {source: itertools.cycle(spread(by_source[source], _MOST_TARGETS)) for source in sentences}
    pairs = [(source, next(targets[source])) for source, _ in mixed]
    return DevSet(sources=[text for _, text in mixed], pairs=pairs)


def spread(codes: list[str], most: int) -> list[str]:
    """Returns at most so many of some codes, evenly spread among them."""
    return codes if len(codes) <= most else [codes[i * len(codes) // most] for i in range(most)]
