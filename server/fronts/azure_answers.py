"""Answers of Azure Translator to a request to translate, in versions 3.0 and 2026-06-06."""

from collections.abc import Mapping, Sequence
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.errors import TranslationError
from server.fronts.azure import V3, lengths, refusal
from server.fronts.azure_translate import Input, Key, Part, Target, Translate
from server.fronts.front import raise_failure


def write_translate(asked: Translate, responses: Mapping[Key, pb.TranslateResponse]) -> Any:
    """Returns the answer. Raises TranslationError if a text failed."""
    items = []
    for index, each in enumerate(asked.inputs):
        item: dict[str, Any] = {}
        translations = []
        for target in each.targets:
            response = responses[target.key]
            translation = response.translations[asked.parts[target.key].rows[index]]
            if not each.source and not item:
                item["detectedLanguage"] = _detected(translation, response)
            translations.append(_translation(asked, each, target, translation))
        items.append({**item, "translations": translations})
    return items if asked.version == V3 else {"value": items}


def named(error: TranslationError, asked: Translate, part: Part) -> TranslationError:
    """Returns an error of a request of ours in Azure's names."""
    if asked.version == V3:
        return refusal(error, [f"[{index}]" for index in part.rows], "from", "to")
    return refusal(error, [f"inputs[{index}]" for index in part.rows], "language", "targets.language")


def check_answered(asked: Translate, key: Key, response: pb.TranslateResponse) -> None:
    """Checks that all texts of a request of ours are translated. Raises TranslationError in Azure's names."""
    try:
        raise_failure(response.translations)
    except TranslationError as error:
        raise named(error, asked, asked.parts[key]) from None


def _detected(translation: pb.Translation, response: pb.TranslateResponse) -> dict[str, Any]:
    """Returns the language of a text. Where only one was possible, its score is 0: nothing was detected."""
    legs = translation.route
    route = legs[0].source_language_code if legs else ""
    code = translation.detected_language_code or response.source_language_code or route
    return {"language": code, "score": translation.detection_confidence}


def _translation(asked: Translate, each: Input, target: Target, translation: pb.Translation) -> dict[str, Any]:
    if asked.version != V3:
        return {"language": target.name, "sourceCharacters": len(each.text), "text": translation.text}
    answer: dict[str, Any] = {"text": translation.text, "to": target.name}
    is_plain = target.key.mime_type == "text/plain"
    sentences = translation.sentences
    if asked.with_alignment and is_plain:
        answer["alignment"] = {"proj": _projection(sentences)}
    if asked.with_lengths and is_plain:
        answer["sentLen"] = {
            "srcSentLen": lengths((sentence.source_begin for sentence in sentences), len(each.text)),
            "transSentLen": lengths((sentence.begin for sentence in sentences), len(translation.text)),
        }
    return answer


def _projection(sentences: Sequence[pb.Sentence]) -> str:
    """Returns pairs of words, such as "0:2-4:7": their first and last code points in the text and the translation."""
    return " ".join(
        f"{sentence.source_begin + link.source_begin}:{sentence.source_begin + link.source_end - 1}"
        f"-{sentence.begin + link.target_begin}:{sentence.begin + link.target_end - 1}"
        for sentence in sentences
        for link in sentence.links
    )
