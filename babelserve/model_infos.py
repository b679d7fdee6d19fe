"""Reads the descriptions of models."""

from babelserve.results import ModelInfo
from babelserve.v1 import translation_pb2


def model_infos(response: translation_pb2.ListModelsResponse) -> tuple[ModelInfo, ...]:
    """Reads the answer to ListModels."""
    return tuple(
        ModelInfo(
            name=model.name,
            version=model.version,
            variant=model.variant,
            language_pairs=_pairs(model),
            max_beam_size=model.max_beam_size,
            max_source_tokens=model.max_source_tokens,
            max_target_tokens=model.max_target_tokens,
            has_shortlist=model.has_shortlist,
            has_alignment=model.has_alignment,
            has_confidence=model.has_confidence,
            family=model.family or "transformer",  # older servers do not say
            has_length_control=model.has_length_control,
            max_length_ratio=model.max_length_ratio,
            source_languages=tuple(model.source_language_codes or dict.fromkeys(source for source, _ in _pairs(model))),
            target_languages=tuple(model.target_language_codes or dict.fromkeys(target for _, target in _pairs(model))),
        )
        for model in response.models
    )


def _pairs(model: translation_pb2.ModelInfo) -> tuple[tuple[str, str], ...]:
    return tuple((pair.source_language_code, pair.target_language_code) for pair in model.language_pairs)
