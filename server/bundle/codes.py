"""BCP-47 codes of languages: which of a model's a client means, never a neighbour of what it means.

A client's code means one of a model's if, in this order,
1. both are the same, in whatever case;
2. both have the same language, script and region, those that are left out taken to be the likely ones, and old and long
   names for the new (deu_Latn and de; iw and he; cmn-TW and zh-Hant; no and nb; pt and pt-BR);
3. the model's names no region, and language and script are the same: it stands for all regions (zh-TW and zh-Hant;
   en-GB and en; pt-PT and pt).
Nothing else does: to take pt-BR for pt-PT, or Croatian for Serbian, would answer what was not asked. Such neighbours
are only named in the error.

Aliases, likely scripts and distances are those of Unicode's CLDR, as langcodes has them (MIT, no dependencies, imported
in 50 ms). Of what clients write only its tables and its parser see anything: its `Language` keeps for ever what it has
seen once.
"""

import difflib
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import langcodes
from langcodes.data_dicts import (
    LANGUAGE_DISTANCES,
    LANGUAGE_REPLACEMENTS,
    LIKELY_SUBTAGS,
    NORMALIZED_MACROLANGUAGES,
    TERRITORY_REPLACEMENTS,
)
from langcodes.tag_parser import parse_tag

_MAX_CODE_CHARACTERS = 64
_MOST_KEPT = 1024  # codes that have been read: a request's is looked for in each model
_FEW = 8  # codes that an error names
_NEAR = 25  # the distance in CLDR of languages whose readers may understand each other, such as nn and nb
_BOKMAL = {"no": "nb"}  # what Norwegian without more is


class _Tag(NamedTuple):
    """A code's parts, of which but the first may be missing."""

    language: str
    script: str | None = None
    region: str | None = None


class CodeTable:
    """Finds a model's code for what clients write.

    Args:
        codes: of the model's languages; one that is no BCP-47 code is found if it is written the same.
    """

    def __init__(self, codes: Iterable[str]) -> None:
        self._codes = tuple(codes)
        self._same: dict[str, str] = {}
        self._likely: dict[_Tag, str] = {}
        self._any_region: dict[_Tag, str] = {}
        for code in self._codes:
            self._same.setdefault(code.lower(), code)
            tag = _read(code)
            if tag is not None:
                likely = _fill(tag)
                self._likely.setdefault(likely, code)
                if tag.region is None:
                    self._any_region.setdefault(likely._replace(region=None), code)

    def find(self, code: str) -> str | None:
        """Returns the model's code for what a client wrote, or None."""
        same = self._same.get(code.lower())
        tag = _read(code) if same is None else None
        if tag is None:
            return same
        likely = _fill(tag)
        return self._likely.get(likely) or self._any_region.get(likely._replace(region=None))

    def near(self, code: str) -> list[str]:
        """Returns codes that may have been meant, at most 8: the same language, then near ones, then near spellings."""
        tag = _read(code)
        near: list[str] = []
        if tag is not None:
            distances = [(_distance(tag, _read(each)), each) for each in self._codes]
            near = [each for distance, each in sorted(distances) if distance <= _NEAR]
        return (near or difflib.get_close_matches(code[:_MAX_CODE_CHARACTERS], self._codes, _FEW))[:_FEW]


def canonical_code(code: str) -> str | None:
    """Returns a code as BCP-47 writes it, or None if it is none; for codes of models, which are few."""
    try:
        return langcodes.standardize_tag(code)
    except ValueError:
        return None


def language_of(code: str) -> str | None:
    """Returns the language of a code by its new name, without script and region; None if it is none."""
    tag = _read(code)
    return tag.language if tag is not None else None


def few_of(names: Sequence[str], most: int) -> str:
    """Returns the first of some names, with commas between them, and how many there are beside these."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _read(code: str) -> _Tag | None:
    """Returns a code's parts, by their new names; None if it is none, or has parts of other kinds."""
    return _parse(code) if code.isascii() and len(code) <= _MAX_CODE_CHARACTERS else None


@functools.lru_cache(_MOST_KEPT)
def _parse(code: str) -> _Tag | None:
    code = LANGUAGE_REPLACEMENTS.get(code.lower().replace("_", "-"), code)
    try:
        parts = dict(parse_tag(code))
    except ValueError:
        return None
    language = parts.pop("extlang", parts.get("language", ""))  # yue of zh-yue
    script, region = parts.pop("script", None), parts.pop("territory", None)
    if len(parts) > 1 or "language" not in parts:
        return None
    replaced = str(LANGUAGE_REPLACEMENTS.get(language.lower(), language))
    language, *more = replaced.split("-")  # sh is sr-Latn, prs is fa-AF
    for part in more:
        script, region = (script or part, region) if part.istitle() else (script, region or part)
    language = NORMALIZED_MACROLANGUAGES.get(language, language)
    if region is not None:
        region = TERRITORY_REPLACEMENTS.get(region.lower(), region)
    return _Tag(_BOKMAL.get(language, language), script, region)


@functools.lru_cache(_MOST_KEPT)
def _fill(tag: _Tag) -> _Tag:
    """Returns a tag with the likely script and region where it has none."""
    for known in (tag, tag._replace(script=None), tag._replace(region=None), _Tag(tag.language)):
        likely = LIKELY_SUBTAGS.get("-".join(filter(None, known)))
        if likely is not None:
            _, script, region = likely.split("-")
            return _Tag(tag.language, tag.script or script, tag.region or region)
    return tag


def _distance(tag: _Tag, other: _Tag | None) -> float:
    """Returns how far languages are from each other, by CLDR; infinite if it does not say."""
    if other is None:
        return float("inf")
    if tag.language == other.language:
        return 0
    return LANGUAGE_DISTANCES.get(tag.language, {}).get(other.language, float("inf"))
