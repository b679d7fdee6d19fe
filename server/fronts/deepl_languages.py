"""The languages of a server as DeepL's clients know them: English and Portuguese, as targets, only by their regions."""

from collections.abc import Collection, Iterable
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.fronts.deepl import Fields, Refused, base_code, no_formality, not_supported, optional
from server.fronts.languages import directions, kept_for_models, names_of
from server.text.formality import has_formality

_TARGETS = {  # of a model's code, where they differ from the code itself
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
    "zh-Hans": (("ZH", "Chinese (simplified)"), ("ZH-HANS", "Chinese (simplified)")),
    "zh-Hant": (("ZH-HANT", "Chinese (traditional)"),),
    "no": (("NB", "Norwegian"),),
}
_NEEDS_BOTH = {"needs_source_support": True, "needs_target_support": True}
_FEATURES = {"formality": {"needs_target_support": True}, "glossary": _NEEDS_BOTH, "tag_handling": _NEEDS_BOTH}
_RESOURCES = {  # what languages are for, and what can be asked for with it
    "glossary": (),
    "translate_document": ("formality", "glossary"),
    "translate_text": ("formality", "glossary", "tag_handling"),
}
_OTHER_RESOURCES = ("voice", "write", "style_rules", "translation_memory")


def write_languages(fields: Fields, served: pb.ListModelsResponse) -> list[dict[str, Any]]:
    """Returns the source languages, or the target languages if the fields ask for these. Raises InvalidRequest."""
    kind = optional(fields, "type") or "source"
    if kind not in ("source", "target"):
        raise Refused("type", "Parameter 'type' is invalid. 'source' and 'target' are valid values.")
    if kind == "source":
        return [{"language": code, "name": name} for code, name in _sources(served).items()]
    formal = _formal_targets(served)
    return [
        {"language": code, "name": name, "supports_formality": base_code(code) in formal}
        for code, name in _targets(served).items()
    ]


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
    those_with = {
        "formality": _formal_targets(served),
        "glossary": {code for pair in glossary_pairs(served) for code in pair},
        "tag_handling": {base_code(code) for code in named},
    }
    return [
        {
            "lang": _bcp47(code),
            "name": name,
            "status": "stable",
            "usable_as_source": code in sources,
            "usable_as_target": code in targets or code in bases,
            "features": {
                name: {"status": "stable"} for name in _RESOURCES[resource] if base_code(code) in those_with[name]
            },
        }
        for code, name in named.items()
    ]


def write_resources() -> list[dict[str, Any]]:
    """Returns what version 3 calls the things that languages are for."""
    return [
        {"name": resource, "features": [{"name": name} | _FEATURES[name] for name in names]}
        for resource, names in _RESOURCES.items()
    ]


@kept_for_models
def glossary_pairs(served: pb.ListModelsResponse) -> Collection[tuple[str, str]]:
    """Returns the directions that a glossary may have: those of one model, by their languages alone."""
    direct = directions(pb.ListModelsResponse(models=served.models))
    pairs = ((base_code(source), base_code(target)) for source, targets in direct.items() for target in targets)
    return dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])  # each is looked for, too


def write_pairs(served: pb.ListModelsResponse) -> dict[str, Any]:
    """Returns the directions that a glossary may have."""
    return {
        "supported_languages": [
            {"source_lang": source, "target_lang": target} for source, target in glossary_pairs(served)
        ]
    }


def check_formality(asked: pb.TranslateRequest, served: pb.ListModelsResponse) -> None:
    """Raises Refused if a document is to have a formality that its target language has not."""
    needed = asked.formality in (pb.FORMALITY_LESS, pb.FORMALITY_MORE)
    if needed and base_code(asked.target_language_code) not in _formal_targets(served):
        raise no_formality(asked.target_language_code)


@kept_for_models
def _formal_targets(served: pb.ListModelsResponse) -> set[str]:
    """Returns the languages, without regions, that some model translates into with a formality."""
    direct = directions(pb.ListModelsResponse(models=served.models))
    return {base_code(target) for source in direct for target in direct[source] if has_formality(source, target)}


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
