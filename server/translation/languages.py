"""Which of a model's languages a request means."""

import functools
from collections.abc import Sequence

from server.bundle.codes import CodeTable
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.errors import InvalidRequest
from server.translation.rules import shown

_MOST_NAMED = 12  # codes of a model; of one that has more, an error names those that are near


def choose_languages(manifest: Manifest, source: str, target: str) -> LanguagePair:
    """Returns the direction that is meant; see `server.bundle.codes` for how codes may be written.

    Args:
        manifest: the model's languages.
        source: a code, or empty if the model has but one for the target.
        target: a code.

    Raises:
        InvalidRequest: which code is wrong, and which are known, or near.
    """
    into = find_target(manifest, target)
    if into is None:
        known = known_languages(tuple(sorted(manifest.target_codes)), target)
        raise InvalidRequest("target_language_code", f"must be {known}" if target else f"is required: {known}")
    sources = manifest.sources_of(into)
    if not source and len(sources) != 1:
        raise InvalidRequest("source_language_code", f"is required: {_one_of(sources)}")
    pair = find_languages(manifest, source, target) if source else manifest.find_pair(sources[0], into)
    if pair is None:
        raise InvalidRequest(
            "source_language_code", f"must be {_one_of(sources)} for this target, not {_other(sources, source)}"
        )
    return pair


def find_languages(manifest: Manifest, source: str, target: str) -> LanguagePair | None:
    """Returns the direction that is meant by two codes; None if the model does not translate it."""
    into = find_target(manifest, target)
    if into is None:
        return None
    # By one table for all targets, where any source goes with any: there may be hundreds of both.
    table = _table(manifest.sources_of(into) if manifest.languages is None else manifest.source_codes)
    from_ = table.find(source)
    return manifest.find_pair(from_, into) if from_ is not None else None


def find_target(manifest: Manifest, target: str) -> str | None:
    """Returns a model's code for what a client wrote as target language, if anything, or None."""
    return _table(tuple(sorted(manifest.target_codes))).find(target) if target else None


def is_same(code: str, other: str) -> bool:
    """Says whether what a client wrote means a model's code."""
    return _table((code,)).find(other) is not None


def known_languages(codes: tuple[str, ...], code: str) -> str:
    """Says which codes there are, and what a client wrote instead, if anything."""
    return f"{_one_of(codes)}, not {_other(codes, code)}" if code else _one_of(codes)


@functools.lru_cache(maxsize=1024)
def _table(codes: tuple[str, ...]) -> CodeTable:
    return CodeTable(codes)


def _one_of(codes: Sequence[str]) -> str:
    return (
        f"one of {', '.join(codes)}" if len(codes) <= _MOST_NAMED else f"one of the {len(codes)} that ListModels names"
    )


def _other(codes: tuple[str, ...], code: str) -> str:
    """Says what a client wrote, and which of many codes are near."""
    near = CodeTable(codes).near(code) if len(codes) > _MOST_NAMED else []
    return f"{shown(code)}; near are {', '.join(near)}" if near else shown(code)
