"""The languages of a server as DeepL's clients know them: English and Portuguese, as targets, only by their regions."""

from collections.abc import Iterable
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.fronts.deepl import Fields, Refused, base_code, not_supported, optional
from server.fronts.languages import directions, names_of

_TARGETS = {  # of a model's code, where they differ from the code itself
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
    "zh-Hans": (("ZH", "Chinese (simplified)"), ("ZH-HANS", "Chinese (simplified)")),
    "zh-Hant": (("ZH-HANT", "Chinese (traditional)"),),
    "no": (("NB", "Norwegian"),),
}
_RESOURCES = ("translate_text", "glossary")
_OTHER_RESOURCES = ("translate_document", "voice", "write", "style_rules", "translation_memory")


def write_languages(fields: Fields, served: pb.ListModelsResponse) -> list[dict[str, Any]]:
    """Returns the source languages, or the target languages if the fields ask for these. Raises InvalidRequest."""
    kind = optional(fields, "type") or "source"
    if kind not in ("source", "target"):
        raise Refused("type", "Parameter 'type' is invalid. 'source' and 'target' are valid values.")
    if kind == "source":
        return [{"language": code, "name": name} for code, name in _sources(served).items()]
    return [{"language": code, "name": name, "supports_formality": False} for code, name in _targets(served).items()]


def write_v3_languages(fields: Fields, served: pb.ListModelsResponse) -> list[dict[str, Any]]:
    """Returns all languages, as version 3 has them. Raises InvalidRequest."""
    resource = optional(fields, "resource")
    if resource in _OTHER_RESOURCES:
        return []
    if resource not in _RESOURCES:
        raise not_supported("resource")
    sources, targets = _sources(served), _targets(served)
    bases = {base_code(code).upper() for code in targets}
    named = sources | {code: name for code, name in targets.items() if resource != "glossary"}
    return [
        {
            "lang": _bcp47(code),
            "name": name,
            "status": "stable",
            "usable_as_source": code in sources,
            "usable_as_target": code in targets or code in bases,
            "features": {},
        }
        for code, name in named.items()
    ]


def write_resources() -> list[dict[str, Any]]:
    """Returns what version 3 calls the things that languages are for."""
    return [{"name": name, "features": []} for name in _RESOURCES]


def glossary_pairs(served: pb.ListModelsResponse) -> list[tuple[str, str]]:
    """Returns the directions that a glossary may have: those of one model, by their languages alone."""
    direct = directions(pb.ListModelsResponse(models=served.models))
    pairs = ((base_code(source), base_code(target)) for source, targets in direct.items() for target in targets)
    return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def write_pairs(served: pb.ListModelsResponse) -> dict[str, Any]:
    """Returns the directions that a glossary may have."""
    return {
        "supported_languages": [
            {"source_lang": source, "target_lang": target} for source, target in glossary_pairs(served)
        ]
    }


def _sources(served: pb.ListModelsResponse) -> dict[str, str]:
    codes = dict.fromkeys("nb" if code == "no" else base_code(code) for code in directions(served))
    return _sorted((code.upper(), names_of(code).english) for code in codes)


def _targets(served: pb.ListModelsResponse) -> dict[str, str]:
    codes = dict.fromkeys(target for targets in directions(served).values() for target in targets)
    return _sorted(pair for code in codes for pair in _TARGETS.get(code, ((code.upper(), names_of(code).english),)))


def _sorted(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    return dict(sorted(named))


def _bcp47(code: str) -> str:
    language, *parts = code.lower().split("-")
    return "-".join([language, *(part.title() if len(part) == 4 else part.upper() for part in parts)])
