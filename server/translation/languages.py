"""Finds which of a model's languages a request means."""

import functools
from collections.abc import Sequence

from server.bundle.codes import CodeTable
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.errors import InvalidRequest
from server.translation.rules import shown

_MOST_NAMED = 12  # codes that an error lists; a model with more lists only the near ones


def choose_languages(manifest: Manifest, source: str, target: str) -> LanguagePair:
    """Returns the direction that a request means. `server.bundle.codes` says how codes may be written.

    Args:
        manifest: has the model's languages.
        source: a code, or empty if the model has only one source for the target.
        target: a code.

    Raises:
        InvalidRequest: a code is wrong. The error says which one, and which codes are known or near.
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
    """Returns the direction that two codes mean; None if the model does not translate it."""
    into = find_target(manifest, target)
    if into is None:
        return None
    # Any source goes with any target, so one table serves all targets: there may be hundreds of each.
    table = _table(manifest.sources_of(into) if manifest.languages is None else manifest.source_codes)
    from_ = table.find(source)
    return manifest.find_pair(from_, into) if from_ is not None else None


def find_target(manifest: Manifest, target: str) -> str | None:
    """Returns a model's code for the target language that a client wrote; None if the model has no such target."""
    return _table(tuple(sorted(manifest.target_codes))).find(target) if target else None


def is_same(code: str, other: str) -> bool:
    """Returns whether a code that a client wrote means a model's code."""
    return _table((code,)).find(other) is not None


def known_languages(codes: tuple[str, ...], code: str) -> str:
    """Returns words for an error: which codes are known, and the code that a client wrote, if any."""
    return f"{_one_of(codes)}, not {_other(codes, code)}" if code else _one_of(codes)


@functools.lru_cache(maxsize=1024)
def _table(codes: tuple[str, ...]) -> CodeTable:
    return CodeTable(codes)


def _one_of(codes: Sequence[str]) -> str:
    return (
        f"one of {', '.join(codes)}" if len(codes) <= _MOST_NAMED else f"one of the {len(codes)} that ListModels names"
    )


def _other(codes: tuple[str, ...], code: str) -> str:
    """Returns words for an error: the code that a client wrote, and which of many known codes are near to it."""
    near = CodeTable(codes).near(code) if len(codes) > _MOST_NAMED else []
    return f"{shown(code)}; near are {', '.join(near)}" if near else shown(code)
