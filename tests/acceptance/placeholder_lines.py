"""Sentences with placeholders and tags of ten styles, between words and touching them, the same in each run."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What stands in the place of {}: placeholders by themselves, and what touches a word.
STYLES = (
    "{name}",
    "{{user.name}}",
    "%s",
    "%1$s",
    "${VAR}",
    "$HOME_DIR",
    ":tada:",
    '<ph id="1"/>',
    "[[1]]",
    "%(count)d",
)
_TOUCHING = ("{0}", "{n}", "{{x}}", "${VAR}", '<x id="2"/>', "<b>", "<em>", "<1>", "*", "**")
_PAIRS = {"<b>": "</b>", "<em>": "</em>", "<1>": "</1>", "*": "*", "**": "**"}
_LEAST_WORDS = 4
_LEAST_LETTERS = 3  # of a word that may be found untranslated
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class PlaceholderLine:
    """A sentence with placeholders.

    Attributes:
        sentence: without them.
        placeholders: what the translation must have, each as often as it is listed.
        place: "start", "between", "end", "touching", "round" or "quoted".
        source: with them.
    """

    sentence: str
    placeholders: tuple[str, ...]
    place: str
    source: str


def placeholder_lines(sentences: Sequence[str]) -> Iterator[PlaceholderLine]:
    """Yields sentences of several plain words, each with a placeholder, in turn of each style and at each place.

    Args:
        sentences: any; those with signs of their own are left out.
    """
    index = 0
    for sentence in sentences:
        words = sentence.split()
        if len(words) < _LEAST_WORDS or not re.fullmatch(r"[^\W\d_][\w ,'-]*[.!?]", sentence):
            continue
        style, touching = STYLES[index % len(STYLES)], _TOUCHING[index % len(_TOUCHING)]
        closing = _PAIRS.get(touching, "")
        position = 1 + index % (len(words) - 1)
        word = words[position]
        bare = word.rstrip(".,!?")
        place = ("start", "between", "touching", "end", "round", "quoted")[(index // len(STYLES)) % 6]
        placeholders: tuple[str, ...] = (style,)
        if place == "start":
            source = f"{style} {sentence}"
        elif place == "between":
            source = " ".join([*words[:position], style, *words[position:]])
        elif place == "end":
            source = f"{sentence[:-1]} {style}{sentence[-1]}"
        elif place == "quoted":
            source = f'{sentence[:-1]} "{style}"{sentence[-1]}'
        elif place == "touching":
            source = f"{touching}{sentence}{closing}"
            placeholders = (touching, closing) if closing else (touching,)
        else:
            opening, closing = (touching, closing) if closing else (touching, "{/}")
            source = " ".join([*words[:position], opening + bare + closing + word[len(bare) :], *words[position + 1 :]])
            placeholders = (opening, closing)
        yield PlaceholderLine(sentence, placeholders, place, source)
        index += 1


def num_lost(line: PlaceholderLine, translation: str) -> int:
    """Returns how many placeholders of a line do not stand in a translation as often as they should."""
    wanted = {each: line.placeholders.count(each) for each in line.placeholders}
    return sum(_count(translation, each) != count for each, count in wanted.items())


def without_placeholders(line: PlaceholderLine, translation: str) -> str:
    """Returns a translation without a line's placeholders and the quotation marks round them, with single blanks."""
    for each in sorted(line.placeholders, key=len, reverse=True):
        is_pair = line.place in ("touching", "round")
        translation = translation.replace(each, "" if is_pair else " ")
    if line.place == "quoted":
        translation = re.sub(
            "[\"'\u201e\u201c\u201d\u00bb\u00ab]\\s*[\"'\u201e\u201c\u201d\u00bb\u00ab]", " ", translation
        )
    return re.sub(r"\s+([.,!?])", r"\1", " ".join(translation.split()))


def untranslated(line: PlaceholderLine, translation: str, plain: str) -> list[str]:
    """Returns the words beside placeholders that stand in a translation as in the source, but not in the plain one.

    Args:
        line: what was translated.
        translation: of it.
        plain: translation of the sentence without placeholders.
    """
    pattern = "|".join(re.escape(each) for each in sorted(set(line.placeholders), key=len, reverse=True))
    beside = re.findall(rf"([^\W\d_]+)\W{{0,2}}(?={pattern})|(?<=[^\w\s])\W{{0,3}}([^\W\d_]+)", line.source)
    words = {word for pair in beside for word in pair if len(word) >= _LEAST_LETTERS}
    there = set(_WORD.findall(without_placeholders(line, translation)))
    return sorted(word for word in words & there if word.lower() not in plain.lower())


def _count(text: str, placeholder: str) -> int:
    """Counts a placeholder, but no part of a longer one: "*" is none of "**"."""
    mark = re.escape(placeholder[0])
    return len(re.findall(rf"(?<!{mark}){re.escape(placeholder)}(?!{re.escape(placeholder[-1])})", text))
