"""DeepL's API (https://developers.deepl.com/api-reference): requests to translate, in our messages and its own words.

It is version 2 for texts. What cannot be done is refused in DeepL's words. What is a mere hint, such as `context`, is
not looked at. Unknown fields are not looked at either, because DeepL adds some all the time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.errors import Code, GlossaryNotFound, InvalidRequest, TranslationError
from server.fronts.front import Front, check_text, raise_failure
from server.telemetry.metrics import DEEPL

Fields = Mapping[str, Sequence[Any]]  # each name with its values, of JSON or of a form

_SCHEME = "deepl-auth-key "
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MOST_GLOSSARIES = 5  # of a request, as DeepL has it
_MIME_TYPES = {"": "", "html": "text/html", "xml": "application/xml"}
_FORMALITIES = {"default": "FORMALITY_UNSPECIFIED"} | {
    name: f"FORMALITY_{name.upper()}" for name in ("less", "more", "prefer_less", "prefer_more")
}
_SPLIT = {"1": False, "0": True, "nonewlines": True}  # whether a line break is a blank
_MODEL_TYPES = {  # what each is answered with
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
    "latency_optimized": "latency_optimized",
}
_NOT_SERVED = ("style_id", "translation_memory_id", "custom_instructions")
_FLAGS = {"0": False, "1": True, "false": False, "true": True}
_NAMES = {  # of fields of ours that callers of DeepL know by other names
    "glossary": "glossary_id",
    "glossary.names": "glossary_id",
    "text.tags.ignored": "ignore_tags",
    "text.tags.splitting": "splitting_tags",
    "text.tags.non_splitting": "non_splitting_tags",
}
_LANGUAGE_FIELDS = {"source_language_code": "source_lang", "target_language_code": "target_lang"}


class Refused(InvalidRequest):
    """A request that is refused in DeepL's words.

    Args:
        field: as DeepL calls it.
        words: that DeepL has for it.
        detail: likewise.
    """

    def __init__(self, field: str, words: str, detail: str = "") -> None:
        super().__init__(field, "is refused by DeepL too")
        self.words = words
        self.detail = detail


class NotHere(TranslationError):
    """Something of DeepL's that is not served, or something that is not kept here. Its words are DeepL's or ours."""

    code = Code.NOT_FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class Translate:
    """A request to translate.

    Attributes:
        message: what it means.
        tag_version: of DeepL's handling of tags, that the answer names; "" for none.
        shows_billed_characters: whether the answer has the number of characters of each text.
        model_type: that the answer names; "" for none.
    """

    message: pb.TranslateRequest
    tag_version: str
    shows_billed_characters: bool
    model_type: str


def read_key(authorization: str | None, fields: Fields) -> str | None:
    """Returns the API key of a header, or that of the fields, as old clients send it; None if there is none.

    Raises:
        InvalidRequest: the field is no text.
    """
    if authorization is not None and authorization[: len(_SCHEME)].lower() == _SCHEME:
        return authorization[len(_SCHEME) :].strip()
    return optional(fields, "auth_key") or None


def read_translate(fields: Fields) -> Translate:
    """Returns what a request to translate means. Raises InvalidRequest."""
    texts, message = _read_texts(fields), read_options(fields)
    joins_lines = _SPLIT[_choice(fields, "split_sentences", _SPLIT, "1")]
    tag_handling = _choice(fields, "tag_handling", _MIME_TYPES, "")
    version = _choice(fields, "tag_handling_version", ("", "v1", "v2"), "")
    flag(fields, "preserve_formatting")
    optional(fields, "context")
    model_type = _choice(fields, "model_type", ("", *_MODEL_TYPES), "")
    message.contents.extend(texts)
    message.mime_type = _MIME_TYPES[tag_handling]
    message.text.join_lines = joins_lines and not tag_handling
    tags = _read_tags(fields, tag_handling, version)
    if tags is not None:
        message.text.tags.CopyFrom(tags)
    message.output.text_once = True
    return Translate(
        message=message,
        tag_version=version if tag_handling else "",
        shows_billed_characters=flag(fields, "show_billed_characters"),
        model_type=_MODEL_TYPES.get(model_type, ""),
    )


def read_options(fields: Fields) -> pb.TranslateRequest:
    """Returns what texts and documents ask for alike: languages and glossaries. Raises InvalidRequest."""
    target = optional(fields, "target_lang")
    if not target:
        raise not_supported("target_lang")
    source = optional(fields, "source_lang")
    for name in _NOT_SERVED:
        if any(fields.get(name, ())):
            raise not_supported(name)
    names = _read_glossaries(fields, source, target)
    return pb.TranslateRequest(
        source_language_code=source,
        target_language_code=target,
        glossary=pb.Glossary(names=names) if names else None,
        formality=_FORMALITIES[_choice(fields, "formality", _FORMALITIES, "default")],
    )


def refusal(error: TranslationError, asked: pb.TranslateRequest) -> TranslationError:
    """Returns the error that DeepL would answer to a request to translate, or to a document, instead of ours."""
    if isinstance(error, GlossaryNotFound):
        refused = Refused("glossary_id", "Glossary not found")
    elif isinstance(error, InvalidRequest) and error.field == "formality":
        refused = no_formality(asked.target_language_code)
    elif isinstance(error, InvalidRequest) and error.field in _LANGUAGE_FIELDS:
        refused = not_supported(_LANGUAGE_FIELDS[error.field])
    else:
        return error
    refused.is_recorded = error.is_recorded
    return refused


def write_translate(response: pb.TranslateResponse, asked: Translate) -> dict[str, Any]:
    """Returns the answer to a request to translate. Raises TranslationError if a text failed."""
    raise_failure(response.translations)
    translations = []
    for text, each in zip(asked.message.contents, response.translations, strict=True):
        legs = each.route
        source = each.detected_language_code or response.source_language_code
        source = source or (legs[0].source_language_code if legs else "")
        answer: dict[str, Any] = {"detected_source_language": base_code(source).upper(), "text": each.text}
        if asked.shows_billed_characters:
            answer["billed_characters"] = len(text)
        if asked.tag_version:
            answer["tag_handling_version"] = asked.tag_version
        if asked.model_type:
            answer["model_type_used"] = asked.model_type
        translations.append(answer)
    return {"translations": translations}


def write_usage() -> dict[str, int]:
    """Returns what a caller has used of its characters: none of as many as DeepL's unlimited plans have.

    A quota of this server is one of computing time.
    """
    return {"character_count": 0, "character_limit": 10**12}


def base_code(code: str) -> str:
    """Returns the language of a code, without region and script, in small letters."""
    return code.replace("_", "-").partition("-")[0].lower()


def is_uuid(identity: str) -> bool:
    """Returns whether a glossary's id is one that DeepL could have made."""
    return _UUID.fullmatch(identity) is not None


def optional(fields: Fields, name: str) -> str:
    """Returns the text of a field; "" for none. Raises InvalidRequest."""
    value = next(iter(fields.get(name, ())), None)
    return "" if value is None else check_text(name, value)


def required(fields: Fields, name: str) -> str:
    """Returns the text of a field. Raises InvalidRequest if there is none."""
    value = optional(fields, name)
    if not value:
        raise Refused(name, f"Missing or invalid argument: {name}")
    return value


def flag(fields: Fields, name: str, default: bool = False) -> bool:
    """Returns the value of a field that is true or false, as JSON or as a form. Raises InvalidRequest."""
    value = next(iter(fields.get(name, ())), None)
    if value is None:
        return default
    written = str(int(value)) if isinstance(value, bool | int) and value in (0, 1) else value
    if not isinstance(written, str) or written.lower() not in _FLAGS:
        raise not_supported(name)
    return _FLAGS[written.lower()]


def not_supported(name: str) -> Refused:
    """Returns the error that DeepL answers to a value that it does not know."""
    return Refused(name, f"Value for '{name}' not supported.")


def no_formality(target: str) -> Refused:
    """Returns the error that DeepL answers to a formality for a target language that has none."""
    shown = target if len(target) <= 32 else "given"
    return Refused("formality", f"Target language '{shown}' doesn't support formality.")


def _read_texts(fields: Fields) -> list[str]:
    values = fields.get("text", ())
    value = values[0] if len(values) == 1 else list(values)
    texts = value if isinstance(value, list) else [value]
    if not texts or value is None:
        raise Refused("text", "Parameter 'text' not specified")
    return [check_text(f"text[{index}]", each) for index, each in enumerate(texts)]


def _choice(fields: Fields, name: str, known: Sequence[str] | Mapping[str, Any], default: str) -> str:
    value = next(iter(fields.get(name, ())), None)
    if value is None:
        return default
    value = str(value) if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 else value
    if not isinstance(value, str) or value.lower() not in known:
        raise not_supported(name)
    return value.lower()


def _read_tags(fields: Fields, tag_handling: str, version: str) -> pb.TagRules | None:
    """Returns the rules for elements; None without any. XML has to be well-formed in version 2 only."""
    ignored, splitting, non_splitting = (
        _read_list(fields, name) for name in ("ignore_tags", "splitting_tags", "non_splitting_tags")
    )
    is_outlined = flag(fields, "outline_detection", default=True)
    if tag_handling == "html":
        tags = pb.TagRules(ignored=[name.lower() for name in ignored])
    elif tag_handling == "xml":
        tags = pb.TagRules(
            ignored=ignored,
            splitting=splitting,
            non_splitting=non_splitting,
            only_named_split=not is_outlined,
            repair=version != "v2",
        )
    else:
        return None
    return tags if tags.ByteSize() else None


def _read_list(fields: Fields, name: str) -> list[str]:
    """Returns the texts of a field that is a list, many fields of a form, or one with commas. Raises InvalidRequest."""
    found = []
    for value in fields.get(name, ()):
        for index, each in enumerate(value if isinstance(value, list) else [] if value is None else [value]):
            found += check_text(f"{name}[{index}]", each).split(",")
    return [each.strip() for each in found if each.strip()]


def _read_glossaries(fields: Fields, source: str, target: str) -> list[str]:
    """Returns the names of glossaries: of callers by id and direction, of files as they are. Raises InvalidRequest."""
    one, many = optional(fields, "glossary_id"), _read_list(fields, "glossary_ids")
    if len(many) > _MOST_GLOSSARIES or (one and many):
        raise not_supported("glossary_ids")
    chosen = [one] if one else many
    if chosen and not source:
        raise Refused("source_lang", "Use of a glossary requires the source_lang parameter to be specified")
    direction = f"{base_code(source)}-{base_code(target)}"
    return [f"{each.lower()}.{direction}" if is_uuid(each) else each for each in chosen]


def _error_body(error: TranslationError, words: str, _: int) -> dict[str, str]:
    if isinstance(error, Refused):
        return {"message": error.words} | ({"detail": error.detail} if error.detail else {})
    if error.code is Code.UNAUTHENTICATED:
        words = (
            "Authorization failed: the header must be Authorization: DeepL-Auth-Key KEY, with a key that is known here"
        )
    elif isinstance(error, InvalidRequest) and error.field in _NAMES:
        words = _NAMES[error.field] + words[len(error.field) :]
    elif words.startswith(("contents:", "contents[")):  # no word of a sentence
        words = "text" + words.removeprefix("contents")
        if "well-formed XML" in words:
            words = f"Tag handling parsing failed, please check input. {words}"
    return {"message": words}


FRONT = Front(name=DEEPL, body=_error_body, statuses={Code.UNAUTHENTICATED: 403})
